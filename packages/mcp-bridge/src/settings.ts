/** Reads the bridge's settings from its environment: where it buys, with what, and how much it may spend. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isThisMachine, microsOf, NETWORKS, type NetworkName, USUAL_NETWORKS } from 'farebox/buying';
import { z } from 'zod';

const WAYS = ['x402', 'mpp'] as const;
/** How a wallet pays. */
export type WayToPay = (typeof WAYS)[number];

export interface Settings {
  /** Address of the server's `/mcp`, with the toolset that it is to list. */
  url: URL;
  apiKey: string | null;
  evmKey: string | null;
  solanaKey: string | null;
  /** A node of Solana, which a payment there is built with; null: the public one. */
  solanaRpcUrl: string | null;
  /** In the order in which they are tried. */
  networks: readonly NetworkName[];
  /** How a wallet pays, the first choice first. */
  payBy: readonly WayToPay[];
  /** A node of Tempo, which a payment there is built with. */
  tempoRpcUrl: string;
  /** Whether the wallet was made for a sandbox, and holds no real money: no other wallet pays one, and it pays nothing else. */
  sandbox: boolean;
  /** The most that a call, and below it a day (UTC), may cost without asking a person. */
  maxCallMicros: bigint;
  maxDayMicros: bigint;
  /** How long the server may say nothing. */
  silenceMs: number;
  /** Where it is kept what was spent. */
  spendingFile: string;
}

/** A setting that cannot be used. Its message never holds the value: it may be a secret. */
export class SettingsError extends Error {}

const usd = (fallback: string) =>
  z
    .string()
    .default(fallback)
    .transform((text, context) => {
      const micros = microsOf(text);
      if (micros === null) context.addIssue('must be an amount in USD, such as 2.50');
      return micros ?? 0n;
    });

const DECLARED = z.object({
  FAREBOX_URL: z.string().transform(addressOf),
  FAREBOX_TOOLSET: z
    .string()
    .regex(/^[a-z0-9, _-]{1,200}$/i, 'must be core, or names of toolsets with commas between them')
    .optional(),
  FAREBOX_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{8,200}$/, 'must be an API key')
    .optional(),
  FAREBOX_EVM_PRIVATE_KEY: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hexadecimal digits')
    .optional(),
  FAREBOX_SOLANA_PRIVATE_KEY: z
    .string()
    .regex(/^[1-9A-HJ-NP-Za-km-z]{80,90}$/, 'must be the 64 bytes of a key pair in base58')
    .optional(),
  FAREBOX_SOLANA_RPC_URL: z.string().refine(isHttp, 'must be an address of http or https').optional(),
  FAREBOX_NETWORKS: z
    .string()
    .default(USUAL_NETWORKS.join(','))
    .transform(namesIn)
    .pipe(z.array(z.enum(Object.keys(NETWORKS) as NetworkName[]))),
  FAREBOX_PAY_BY: z
    .string()
    .default(WAYS.join(','))
    .transform(namesIn)
    .pipe(z.array(z.enum(WAYS))),
  FAREBOX_TEMPO_RPC_URL: z
    .string()
    .default('https://rpc.tempo.xyz')
    .refine(isHttp, 'must be an address of http or https'),
  FAREBOX_SANDBOX_WALLET: z.enum(['true', 'false'], 'must be true or false').default('false'),
  FAREBOX_MAX_USD_PER_CALL: usd('1.00'),
  FAREBOX_MAX_USD_PER_DAY: usd('10.00'),
  FAREBOX_SILENCE_SECONDS: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, 'must be a number of seconds from 1 to 999')
    .default('30'),
  FAREBOX_SPENDING_FILE: z
    .string()
    .min(1)
    .default(() => join(homedir(), '.farebox', 'mcp-spending.sqlite')),
});

/**
 * Reads the environment. A variable that is empty counts as left out: hosts write them so.
 *
 * @throws SettingsError which variable cannot be used, and what it must be
 */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const given = Object.fromEntries(
    Object.keys(DECLARED.shape).flatMap((name) => {
      const value = environment[name]?.trim();
      return value === undefined || value === '' ? [] : [[name, value]];
    }),
  );
  const port = environment.PORT?.trim() ?? '';
  const here = `http://127.0.0.1:${/^\d{1,5}$/.test(port) ? port : '8402'}`;
  const read = DECLARED.safeParse({ FAREBOX_URL: here, ...given });
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new SettingsError(`${String(issue?.path[0])} ${issue?.message}`);
  }
  const { data } = read;
  if (data.FAREBOX_API_KEY !== undefined && (data.FAREBOX_EVM_PRIVATE_KEY ?? data.FAREBOX_SOLANA_PRIVATE_KEY))
    throw new SettingsError('FAREBOX_API_KEY pays, and so does a private key: give one of them');
  const pays =
    data.FAREBOX_API_KEY ?? data.FAREBOX_EVM_PRIVATE_KEY ?? data.FAREBOX_SOLANA_PRIVATE_KEY ?? null;
  if (pays !== null && data.FAREBOX_URL.protocol === 'http:' && !isThisMachine(data.FAREBOX_URL))
    throw new SettingsError(
      'FAREBOX_URL must be of https: with http anybody on the way reads the key, or names another price and recipient',
    );
  if (data.FAREBOX_TOOLSET !== undefined) data.FAREBOX_URL.searchParams.set('toolset', data.FAREBOX_TOOLSET);
  return {
    url: data.FAREBOX_URL,
    apiKey: data.FAREBOX_API_KEY ?? null,
    evmKey: data.FAREBOX_EVM_PRIVATE_KEY ?? null,
    solanaKey: data.FAREBOX_SOLANA_PRIVATE_KEY ?? null,
    solanaRpcUrl: data.FAREBOX_SOLANA_RPC_URL ?? null,
    networks: data.FAREBOX_NETWORKS,
    payBy: data.FAREBOX_PAY_BY,
    tempoRpcUrl: data.FAREBOX_TEMPO_RPC_URL,
    sandbox: data.FAREBOX_SANDBOX_WALLET === 'true',
    maxCallMicros: data.FAREBOX_MAX_USD_PER_CALL,
    maxDayMicros: data.FAREBOX_MAX_USD_PER_DAY,
    silenceMs: Number(data.FAREBOX_SILENCE_SECONDS) * 1_000,
    spendingFile: data.FAREBOX_SPENDING_FILE,
  };
}

function namesIn(text: string): string[] {
  return text.split(',').map((name) => name.trim());
}

function isHttp(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? '');
}

/** The address of `/mcp` at a server whose own address was given, or that of its `/mcp`. */
function addressOf(text: string, context: z.RefinementCtx): URL {
  const url = URL.parse(text);
  if (url === null || !isHttp(text) || url.username !== '' || url.password !== '' || url.search !== '') {
    context.addIssue('must be the address of a Farebox, such as https://farebox.example');
    return z.NEVER;
  }
  const path = url.pathname.replace(/\/+$/, '');
  url.pathname = path.endsWith('/mcp') ? path : `${path}/mcp`;
  return url;
}
