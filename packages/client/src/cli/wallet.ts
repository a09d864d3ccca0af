/** `farebox wallet`: a wallet of this person's, kept in their settings. */

import { pause } from '../buying/pause.ts';
import { isRecord, parsed, textOf } from '../json.ts';
import { inUsd } from '../money.ts';
import { NETWORKS } from '../networks.ts';
import { peer } from '../peer.ts';
import { USDC } from '../usdc.ts';
import { EXIT, type Io, UsageError } from './io.ts';
import { type KeptWallet, readKept, writeKept } from './settings.ts';

const NODE_TIMEOUT_MS = 20_000;
const LOOK_MS = 250;
const MOST_LOOKS = 120;
const GIFT_MICROS = 100_000_000n;
const TOKEN = USDC[NETWORKS.base] ?? '';
const BALANCE_OF = '0x70a08231';
const TRANSFER = '0xa9059cbb';

export interface WalletOptions {
  json: boolean;
  sandbox: boolean;
  rpc?: string | undefined;
}

/** @param asked `create`, `balance`, `fund`, or nothing for the address */
export async function walletCommand(
  io: Io,
  asked: string | undefined,
  options: WalletOptions,
): Promise<number> {
  if (asked === 'create') return create(io, options);
  const { wallet } = readKept(io);
  if (wallet === null) throw new UsageError('there is no wallet: farebox wallet create');
  if (asked === undefined) return said(io, options, { address: wallet.address, sandbox: wallet.sandbox });
  const rpc = options.rpc ?? io.environment.BASE_RPC_URL;
  if (rpc === undefined || rpc === '')
    throw new UsageError(
      'name a node of Base: --rpc, or BASE_RPC_URL of the environment (npm start names that of its sandbox as chain)',
    );
  if (asked === 'fund') await fund(io, rpc, wallet);
  else if (asked !== 'balance') throw new UsageError('farebox wallet takes create, balance or fund');
  const micros = await balanceOf(rpc, wallet.address);
  return said(io, options, { address: wallet.address, usdc: inUsd(micros) });
}

async function create(io: Io, options: WalletOptions): Promise<number> {
  const kept = readKept(io);
  if (kept.wallet !== null)
    throw new UsageError(`there is a wallet already (${kept.wallet.address}): its key would be lost`);
  const { generatePrivateKey, privateKeyToAddress } = await peer('viem', () => import('viem/accounts'));
  const evm = generatePrivateKey();
  const wallet = { evm, address: privateKeyToAddress(evm), sandbox: options.sandbox };
  writeKept(io, { ...kept, wallet });
  return said(io, options, { address: wallet.address, sandbox: wallet.sandbox });
}

function said(io: Io, { json }: WalletOptions, values: Record<string, unknown>): number {
  const lines = Object.entries(values).map(([name, value]) => `${name}  ${JSON.stringify(value)}`);
  io.out(json ? JSON.stringify(values) : lines.join('\n').replaceAll('"', ''));
  return EXIT.done;
}

async function balanceOf(rpc: string, address: string): Promise<bigint> {
  const call = { to: TOKEN, data: BALANCE_OF + wordOf(address) };
  const held = await askNode(rpc, 'eth_call', [call, 'latest']);
  return /^0x[0-9a-f]{1,64}$/i.test(textOf(held)) ? BigInt(textOf(held)) : 0n;
}

/** Takes USDC from an account that the node itself signs for: only a sandbox has such accounts. */
async function fund(io: Io, rpc: string, { address, sandbox }: KeptWallet): Promise<void> {
  if (!sandbox)
    throw new UsageError('this wallet was not made for a sandbox: farebox wallet create --sandbox');
  const accounts = await askNode(rpc, 'eth_accounts', []);
  for (const from of Array.isArray(accounts) ? accounts.map(textOf) : []) {
    if ((await balanceOf(rpc, from)) < GIFT_MICROS) continue;
    const data = TRANSFER + wordOf(address) + GIFT_MICROS.toString(16).padStart(64, '0');
    const sent = await askNode(rpc, 'eth_sendTransaction', [{ from, to: TOKEN, data }]);
    await untilIn(io, rpc, sent);
    return;
  }
  throw new UsageError('this node gives no money away: npm run sandbox:wallet makes a wallet of a sandbox');
}

/** Waits for the block of a transaction: until then the balance is the old one. */
async function untilIn(io: Io, rpc: string, transaction: unknown): Promise<void> {
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const receipt = await askNode(rpc, 'eth_getTransactionReceipt', [transaction], { orNull: true });
    if (receipt !== null) return;
    await pause(LOOK_MS, io.signal);
  }
  throw new Error(
    'the node takes long to put the transaction into a block: farebox wallet balance tells later',
  );
}

const wordOf = (address: string) => address.slice(2).toLowerCase().padStart(64, '0');

/** @param orNull whether the node may have no answer yet */
async function askNode(
  rpc: string,
  method: string,
  params: unknown[],
  { orNull = false } = {},
): Promise<unknown> {
  const response = await fetch(rpc, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(NODE_TIMEOUT_MS),
  }).catch(() => {
    // Its address may hold a key.
    throw new Error('the node does not answer');
  });
  const answer = parsed((await response.text()).slice(0, 1_000_000));
  if (!isRecord(answer) || answer.error !== undefined || answer.result === undefined)
    throw new Error(`the node refuses ${method}`);
  if (answer.result === null && !orNull) throw new Error(`the node has no answer to ${method}`);
  return answer.result;
}
