/** What the command line keeps of a person: the server's address, keys by server, and a wallet. For their owner alone. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addressIn } from '../address.ts';
import { createFarebox, type Farebox, type FareboxOptions, type ServiceTypes } from '../client.ts';
import { isRecord, parsed, textOf } from '../json.ts';
import { microsOf } from '../money.ts';
import { fileStore } from '../node.ts';
import type { Wallet } from '../payer.ts';
import { type Io, UsageError } from './io.ts';

export interface KeptWallet {
  evm: `0x${string}`;
  address: string;
  sandbox: boolean;
}

export interface Kept {
  url: string | null;
  /** By the address of the server. */
  keys: Record<string, string>;
  wallet: KeptWallet | null;
}

const fileOf = ({ home }: Pick<Io, 'home'>) => join(home, 'settings.json');

/** @throws Error when the file holds something else: a wallet is not forgotten for it */
export function readKept(io: Pick<Io, 'home'>): Kept {
  let text: string;
  try {
    text = readFileSync(fileOf(io), 'utf8');
  } catch {
    return { url: null, keys: {}, wallet: null };
  }
  const kept = parsed(text);
  if (!isRecord(kept) || !isRecord(kept.keys)) throw new Error(`${fileOf(io)} is damaged`);
  return kept as unknown as Kept;
}

export function writeKept(io: Pick<Io, 'home'>, kept: Kept): void {
  mkdirSync(io.home, { recursive: true, mode: 0o700 });
  const fresh = `${fileOf(io)}.${process.pid}.new`;
  writeFileSync(fresh, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600 });
  renameSync(fresh, fileOf(io));
}

/** The server: named by `--url` or `FAREBOX_URL`, or once by `farebox use`, or on this machine at `PORT`. */
function serverOf(io: Io, named: string | undefined): string {
  return named ?? addressIn(io.environment, readKept(io).url);
}

export interface Given {
  url?: string | undefined;
  maxUsd?: string | undefined;
  yes?: boolean | undefined;
}

function keyOf({ environment: { FAREBOX_API_KEY } }: Io, { keys }: Kept, url: string): string | undefined {
  const isGiven = FAREBOX_API_KEY !== undefined && FAREBOX_API_KEY !== '';
  return isGiven ? FAREBOX_API_KEY : keys[url];
}

/** Whether there is a key for a server. */
export const hasKey = (io: Io, url: string): boolean => keyOf(io, readKept(io), url) !== undefined;

/** A client that pays with what this person has: a key for this server, and else their wallet. */
export async function openClient(
  io: Io,
  given: Given,
  log: (line: string) => void,
): Promise<Farebox<ServiceTypes>> {
  const url = serverOf(io, given.url).replace(/\/+$/, '');
  const kept = readKept(io);
  const apiKey = keyOf(io, kept, url);
  const options: FareboxOptions = {
    url,
    store: fileStore(join(io.home, 'purchases')),
    wallets: apiKey === undefined ? await walletsOf(io, kept) : [],
    limits: limitsOf(io, given),
    log,
  };
  if (apiKey !== undefined) options.apiKey = apiKey;
  if (given.yes === true) options.approve = () => true;
  // Where nobody sits, nobody is asked, and nobody has said no.
  else if (io.isTerminal)
    options.approve = async ({ question }) => /^y(es)?$/i.test((await io.ask(`${question} [y/N] `)).trim());
  return createFarebox<ServiceTypes>(options);
}

async function walletsOf({ environment }: Io, { wallet }: Kept): Promise<Wallet[]> {
  const evm = environment.FAREBOX_EVM_PRIVATE_KEY ?? wallet?.evm;
  const solana = environment.FAREBOX_SOLANA_PRIVATE_KEY;
  if (evm === undefined && solana === undefined) return [];
  if (evm !== undefined && !/^0x[0-9a-fA-F]{64}$/.test(evm))
    throw new UsageError('FAREBOX_EVM_PRIVATE_KEY must be 0x and 64 hexadecimal digits');
  const isKept = environment.FAREBOX_EVM_PRIVATE_KEY === undefined && wallet !== null;
  const sandbox = isKept ? wallet.sandbox : environment.FAREBOX_SANDBOX_WALLET === 'true';
  const { x402Wallet } = await import('../x402.ts');
  const node = environment.FAREBOX_SOLANA_RPC_URL;
  return [
    await x402Wallet({
      ...(evm === undefined ? {} : { evm: evm as `0x${string}` }),
      ...(solana === undefined ? {} : { solana }),
      ...(node === undefined ? {} : { solanaRpcUrl: node }),
      sandbox,
    }),
  ];
}

function limitsOf({ environment }: Io, { maxUsd }: Given) {
  const amount = (text: string, name: string) => {
    const micros = microsOf(text);
    if (micros === null) throw new UsageError(`${name} must be an amount in USD, such as 2.50`);
    return micros;
  };
  return {
    maxCallMicros: amount(maxUsd ?? environment.FAREBOX_MAX_USD_PER_CALL ?? '1.00', '--max-usd'),
    maxDayMicros: amount(environment.FAREBOX_MAX_USD_PER_DAY ?? '10.00', 'FAREBOX_MAX_USD_PER_DAY'),
  };
}

/** A key that was issued, as text of a person's or a server's. @throws UsageError when it is none */
export function apiKeyIn(text: unknown): string {
  const key = textOf(text).trim();
  if (!/^[\x21-\x7e]{8,200}$/.test(key)) throw new UsageError('that is no API key');
  return key;
}
