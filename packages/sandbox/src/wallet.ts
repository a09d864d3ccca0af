/**
 * `npm run sandbox:wallet`: makes a new wallet on the chains of the running sandbox and fills it, ready to buy calls.
 * The keys are printed and kept nowhere. `-- --json` prints for machines.
 */
import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { createKeyPairSignerFromPrivateKeyBytes, getBase58Decoder, getBase58Encoder } from '@solana/kit';
import { formatEther, formatUnits, parseEther, parseUnits } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { StartError } from '../../../apps/server/src/start-error.ts';
import { fund } from './chain/faucet.ts';
import { usdcAccountOf } from './solana/genesis.ts';
import { dataDirOf, environmentOfRunningWorld } from './world.ts';

interface Wallet {
  rpcUrl: string;
  privateKey: string;
  address: string;
  /** Decimal amounts. */
  holds: { usdc: string; native: string };
}

const USDC_DECIMALS = 6;
const SOL_DECIMALS = 9;
const GIFT_USDC = parseUnits('100', USDC_DECIMALS);
const GIFT_WEI = parseEther('0.1');
const GIFT_LAMPORTS = parseUnits('0.1', SOL_DECIMALS);
const RPC_TIMEOUT_MS = 10_000;

const { values: asked } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
try {
  const wallets = await makeWallets();
  process.stdout.write(asked.json ? `${JSON.stringify(wallets, null, 2)}\n` : text(wallets));
} catch (error) {
  process.stderr.write(`farebox: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}

async function makeWallets(): Promise<{ base: Wallet | null; solana: Wallet | null }> {
  const environment = environmentOfRunningWorld(process.env);
  if (environment === null)
    throw new StartError(`no sandbox runs on ${dataDirOf(process.env)}; start one with npm start`);
  const { UPSTREAM_BASE_BASE_URL: base, UPSTREAM_SOLANA_BASE_URL: solana } = environment;
  if (base === undefined && solana === undefined)
    throw new StartError('the running sandbox has no chain of its own: their addresses were configured');
  return {
    base: base === undefined ? null : await evmWallet(base),
    solana: solana === undefined ? null : await solanaWallet(solana),
  };
}

async function evmWallet(rpcUrl: string): Promise<Wallet> {
  const privateKey = generatePrivateKey();
  const address = privateKeyToAddress(privateKey);
  const { usdcMicros, ethWei } = await fund(rpcUrl, address, { usdcMicros: GIFT_USDC, ethWei: GIFT_WEI });
  const holds = { usdc: formatUnits(usdcMicros, USDC_DECIMALS), native: formatEther(ethWei) };
  return { rpcUrl, privateKey, address, holds };
}

async function solanaWallet(rpcUrl: string): Promise<Wallet> {
  const seed = randomBytes(32);
  const { address } = await createKeyPairSignerFromPrivateKeyBytes(seed);
  const gift = { lamports: Number(GIFT_LAMPORTS), usdcUnits: Number(GIFT_USDC) };
  await ask(rpcUrl, 'sandbox_fund', address, gift);
  const sol = await ask<{ value: number }>(rpcUrl, 'getBalance', address);
  const account = await usdcAccountOf(address);
  const usdc = await ask<{ value: { uiAmountString: string } }>(rpcUrl, 'getTokenAccountBalance', account);
  return {
    rpcUrl,
    // As Solana's wallets and tools take it: the seed and then the public key.
    privateKey: getBase58Decoder().decode(new Uint8Array([...seed, ...getBase58Encoder().encode(address)])),
    address,
    holds: { usdc: usdc.value.uiAmountString, native: formatUnits(BigInt(sol.value), SOL_DECIMALS) },
  };
}

async function ask<Result>(rpcUrl: string, method: string, ...params: unknown[]): Promise<Result> {
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(RPC_TIMEOUT_MS),
  });
  const reply: { result: Result; error?: { message: string } } = JSON.parse(await response.text());
  if (reply.error !== undefined) throw new Error(`${method}: ${reply.error.message}`);
  return reply.result;
}

function text({ base, solana }: { base: Wallet | null; solana: Wallet | null }): string {
  const lines = ['A sandbox wallet. Its keys are shown this once, and its money is worth nothing elsewhere.'];
  const show = (chain: string, coin: string, { rpcUrl, privateKey, address, holds }: Wallet) => {
    lines.push(
      '',
      `  ${chain}, RPC ${rpcUrl}`,
      `    key      ${privateKey}`,
      `    address  ${address}`,
      `    holds    ${holds.usdc} USDC, ${holds.native} ${coin}`,
    );
  };
  if (base !== null) show('Base (chain id 8453)', 'ETH', base);
  if (solana !== null) show('Solana', 'SOL', solana);
  return `${lines.join('\n')}\n`;
}
