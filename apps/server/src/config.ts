/**
 * The only reader of the environment. Every variable stands in `VARIABLES` with what it means; `docs/operating.md`
 * shows the same table, and a test holds the two together.
 */
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { z } from 'zod';
import { StartError } from '../../../packages/process/src/start-error.ts';
import { type ProxyTrust, parseTrustedProxies } from './http/caller-address.ts';
import { usdToMicros } from './ledger/money.ts';
import { NETWORK_NAMES, type NetworkName } from './rails/x402/networks.ts';
import { readSolanaKey } from './rails/x402/solana-key.ts';
import { type Secrets, secretsOf } from './secrets/secrets.ts';
import type { UpstreamDefinition } from './upstreams/define.ts';
import type { UpstreamConfig } from './upstreams/http.ts';
import { UPSTREAM_NAMES, UPSTREAMS, type UpstreamName } from './upstreams/index.ts';
import { mixturesOfWorlds } from './world.ts';

export interface Variable {
  name: string;
  describe: string;
  /** What holds when it is not set, as it would be written; null: nothing. */
  fallback: string | null;
  secret?: true;
}

const whole = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(minimum).max(maximum));
const flag = z.enum(['true', 'false']).transform((value) => value === 'true');
/** Comma-separated; empty entries are left out. */
const list = <Output>(entry: z.ZodType<Output, string>) =>
  z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((each) => each.trim())
        .filter((each) => each !== ''),
    )
    .pipe(z.array(entry).max(20));
const evmAddress = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be an address: 0x and 40 hex digits')
  .transform((value) => value as `0x${string}`);
const privateKey = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, 'must be private keys: 0x and 64 hex digits each')
  .transform((value) => value as `0x${string}`);
const solanaKey = z.string().refine((value) => {
  try {
    readSolanaKey(value);
    return true;
  } catch {
    return false;
  }
}, 'must be a Solana private key: base58 of 64 bytes, or a JSON list of them');
const url = z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/$/, ''));

/** What callers and browsers write, and no proxy: none of it may say where a request comes from. */
const CALLERS_OWN_HEADERS = new Set([
  ...['accept', 'authorization', 'connection', 'content-length', 'content-type', 'cookie', 'host', 'origin'],
  ...['referer', 'user-agent', 'x-api-key', 'x-payment', 'payment-signature', 'idempotency-key'],
]);

const SCHEMA = {
  FAREBOX_MODE: z.enum(['development', 'production']),
  HOST: z
    .string()
    .refine((value) => isIP(value) !== 0 || value === 'localhost', 'must be an address to listen on'),
  PORT: whole(1, 65_535),
  PUBLIC_URL: url,
  FAREBOX_DATA_DIR: z.string().transform((value) => resolve(value)),
  DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, 'must begin with postgres://'),
  DATABASE_MAX_CONNECTIONS: whole(2, 200),
  FAREBOX_SECRET: z
    .string()
    // One secret is taken as it is; between several, blanks are not part of any.
    .transform((value) => (value.includes(',') ? value.split(',').map((each) => each.trim()) : [value]))
    .refine((values) => values.every((value) => value.length >= 32), 'must have at least 32 characters each')
    .refine((values) => new Set(values).size === values.length, 'must not name one twice')
    .refine((values) => values.length <= 16, 'must be 16 at most')
    .transform(secretsOf),
  FAREBOX_SECRETS_LOST: list(z.string().regex(/^[0-9a-f]{16}$/, 'must be the ids that the start named')),
  TRUSTED_PROXIES: z.string().transform((value, context) => {
    try {
      return parseTrustedProxies(value);
    } catch {
      context.addIssue({
        code: 'custom',
        message:
          'must be addresses or CIDR ranges, comma-separated, none so wide that anybody could be in it',
      });
      return z.NEVER;
    }
  }),
  PROXY_HEADER: z
    .string()
    .transform((value) => value.trim().toLowerCase())
    .refine((value) => /^[a-z0-9-]{1,60}$/.test(value), 'must be the name of one header')
    .refine((value) => !CALLERS_OWN_HEADERS.has(value), 'is a header that callers set themselves'),
  TRIAL_ALLOW_INTERNAL: flag,
  TRIAL_BUDGET_USD_PER_DAY: z.string().transform((value, context) => {
    if (value === 'none') return null;
    try {
      const micros = usdToMicros(value);
      if (micros >= 0n) return micros;
    } catch {
      // said below
    }
    context.addIssue({ code: 'custom', message: 'must be an amount in USD, or none' });
    return z.NEVER;
  }),
  RATE_LIMIT_PER_ADDRESS: whole(1, 100_000_000),
  RATE_LIMIT_PER_KEY: whole(1, 100_000_000),
  MAX_CONCURRENT_CALLS: whole(1, 100_000),
  MAX_CONCURRENT_CALLS_PER_KEY: whole(1, 100_000),
  ANSWER_TTL_HOURS: whole(24, 24 * 30),
  RECONCILE_INTERVAL_MS: whole(100, 600_000),
  DRAIN_TIMEOUT_MS: whole(1_000, 600_000),
  METRICS_TOKEN: z.string().min(16, 'must have at least 16 characters'),
  CONTACT_EMAIL: z.email(),
  X402_NETWORKS: list(z.enum(NETWORK_NAMES, `must be names of ${NETWORK_NAMES.join(', ')}`)),
  X402_RECIPIENT: evmAddress,
  X402_RECIPIENT_SOLANA: z
    .string()
    .regex(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/, 'must be a base58 address: the owner, not the token account'),
  FACILITATOR_URL: list(url),
  FACILITATOR_TOKEN: z.string().min(8, 'must have at least 8 characters'),
  X402_RELAYER_KEYS: list(privateKey),
  X402_REFUND_KEYS: list(privateKey),
  X402_WALLET_FACTORIES: list(evmAddress),
  X402_GAS_TOKEN_USD: list(
    z
      .string()
      .regex(/^[a-z]+:[1-9]\d{0,6}$/, 'must be prices in whole USD, such as base:4000,polygon:1')
      .transform((value): [string, number] => [value.split(':')[0] ?? '', Number(value.split(':')[1])])
      .refine(([name]) => NETWORK_NAMES.some((known) => known === name), 'must name chains of X402_NETWORKS'),
  ),
  X402_RELAYER_KEY_SOLANA: solanaKey,
  X402_REFUND_KEY_SOLANA: solanaKey,
  X402_REFUND_AFTER_SECONDS: whole(30, 86_400),
  MPP_METHODS: list(z.enum(['tempo', 'evm'], 'must be of tempo, evm')),
  MPP_SECRET_KEY: list(z.string().min(32, 'must have at least 32 characters each')),
  MPP_TEMPO_RPC_URL: url,
  MPP_TEMPO_RECIPIENT: evmAddress,
  MPP_TEMPO_CURRENCY: evmAddress,
  MPP_TEMPO_REFUND_KEY: privateKey,
  WALLET_ENCRYPTION_KEY: list(z.string().regex(/^[0-9a-fA-F]{64}$/, 'must be keys of 64 hex digits each')),
  IDENTITY_REGISTRAR_KEY: privateKey,
  CARD_PROVIDER_URL: url,
  CARD_PROVIDER_KEY: z
    .string()
    .regex(/^(sk|rk)_(test|live)_\w{8,250}$/, 'must be a secret or restricted key: sk_… or rk_…'),
  CARD_WEBHOOK_SECRET: list(z.string().regex(/^whsec_\S{8,250}$/, 'must be webhook secrets: whsec_…')),
  RECHARGE_MAX_PER_DAY: whole(1, 50),
  SMTP_URL: z.url({ protocol: /^smtps?$/ }),
  MAIL_FROM: z.email(),
  ADMIN_TOKENS: list(
    z
      .string()
      .regex(/^[\w.@-]{1,60}:[\x21-\x7e]{24,200}$/, 'must be name:token, each token at least 24 characters')
      .transform((value) => {
        const at = value.indexOf(':');
        return { name: value.slice(0, at), token: value.slice(at + 1) };
      }),
  ),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
  FAREBOX_UPSTREAMS: z.enum(['sandbox', 'live']),
  FAREBOX_SANDBOX_PARTS: list(
    z
      .string()
      .regex(
        /^[a-z]+=https?:\/\/\S+$/,
        'must be parts with their addresses, such as chain=http://127.0.0.1:8545',
      )
      .transform((value) => ({ name: value.split('=')[0] ?? '', url: value.slice(value.indexOf('=') + 1) })),
  ),
  FAREBOX_SANDBOX_WALLETS: list(z.string().regex(/^\w{32,44}$/, 'must be addresses of wallets')),
};
type VariableName = keyof typeof SCHEMA;

const FIXED: Record<VariableName, Omit<Variable, 'name'>> = {
  FAREBOX_MODE: {
    describe:
      '`production` refuses sandbox parts, weak secrets and unknown variables, and answers with fewer words',
    fallback: 'development',
  },
  HOST: { describe: 'Address to listen on', fallback: '127.0.0.1' },
  PORT: { describe: 'Port to listen on', fallback: '8402' },
  PUBLIC_URL: {
    describe:
      'The address callers use, as it stands in every document. Required in production, there with https',
    fallback: null,
  },
  FAREBOX_DATA_DIR: { describe: 'Folder for everything that must outlive a restart', fallback: '.farebox' },
  DATABASE_URL: {
    describe: 'PostgreSQL 15 or newer; without it one is started below `FAREBOX_DATA_DIR`',
    fallback: null,
    secret: true,
  },
  DATABASE_MAX_CONNECTIONS: { describe: 'Connections this process may open', fallback: '10' },
  FAREBOX_SECRET: {
    describe:
      'Secrets that HMACs of addresses, keys that are fetched and stored answers are made with, comma-separated, at least 32 characters each: the first makes them, all are recognized. Same on all replicas',
    fallback: null,
    secret: true,
  },
  FAREBOX_SECRETS_LOST: {
    describe:
      'Ids of secrets that are gone for good, comma-separated, as the refused start named them: what needs them is given up',
    fallback: '',
  },
  TRUSTED_PROXIES: {
    describe: 'Whose `PROXY_HEADER` is believed: addresses, CIDR ranges, `loopback`, `private`',
    fallback: '',
  },
  PROXY_HEADER: {
    describe:
      'The one header in which the trusted proxies name the caller: `x-forwarded-for`, `forwarded` (RFC 7239), or one that holds an address, such as `x-real-ip`. No other is looked at',
    fallback: 'x-forwarded-for',
  },
  TRIAL_ALLOW_INTERNAL: {
    describe: 'Whether callers from internal addresses may take a trial',
    fallback: 'false',
  },
  TRIAL_BUDGET_USD_PER_DAY: {
    describe:
      'How much credit trials may give in a day (UTC), over all replicas; `none`: any. `npm start` sets `none`',
    fallback: '100',
  },
  RATE_LIMIT_PER_ADDRESS: { describe: 'Requests a minute from one address, per process', fallback: '1000' },
  RATE_LIMIT_PER_KEY: { describe: 'Paid requests a minute with one key, per process', fallback: '1000' },
  MAX_CONCURRENT_CALLS: { describe: 'Paid calls running at once, per process', fallback: '1000' },
  MAX_CONCURRENT_CALLS_PER_KEY: {
    describe: 'Paid calls of one key running at once, per process',
    fallback: '100',
  },
  ANSWER_TTL_HOURS: { describe: 'How long a bought answer can be asked for again', fallback: '48' },
  RECONCILE_INTERVAL_MS: { describe: 'How often unfinished calls are looked for', fallback: '5000' },
  DRAIN_TIMEOUT_MS: { describe: 'How long running calls may take to end after SIGTERM', fallback: '30000' },
  METRICS_TOKEN: {
    describe: 'Bearer token for `/metrics`. Without it only internal addresses may read them',
    fallback: null,
    secret: true,
  },
  CONTACT_EMAIL: { describe: 'Where callers reach you; stands in `/openapi.json`', fallback: null },
  X402_NETWORKS: {
    describe:
      'Chains to offer, of `base`, `ethereum`, `polygon`, `arbitrum`, `solana`. One is offered when its node, a recipient and a settler are configured',
    fallback: '',
  },
  X402_RECIPIENT: { describe: 'Where USDC goes on EVM chains', fallback: null },
  X402_RECIPIENT_SOLANA: {
    describe: 'Where USDC goes on Solana: the owner of a token account that exists',
    fallback: null,
  },
  FACILITATOR_URL: {
    describe:
      'x402 facilitators in order of preference, comma-separated; the next one is asked when one fails',
    fallback: '',
  },
  FACILITATOR_TOKEN: { describe: 'Bearer token for the facilitators', fallback: null, secret: true },
  X402_RELAYER_KEYS: {
    describe: 'Private keys of our own settler, comma-separated. With one, EVM payments need no facilitator',
    fallback: '',
    secret: true,
  },
  X402_REFUND_KEYS: {
    describe:
      'Private keys that hold USDC and gas for refunds. Without one, services that must be paid first take no x402',
    fallback: '',
    secret: true,
  },
  X402_WALLET_FACTORIES: {
    describe:
      'Contracts that our settler calls to put a smart wallet on the chain with its first payment (ERC-6492). Only such as run no code of the caller’s choice; unless said otherwise those of Coinbase Smart Wallet 1.0 and 1.1',
    fallback: '0x0BA5ED0c6AA8c49038F819E587E2633c4A9F428a,0xBA5ED110eFDBa3D005bfC882d75358ACBbB85842',
  },
  X402_GAS_TOKEN_USD: {
    describe:
      'What a whole unit of a chain’s own currency is taken to be worth, in whole USD: a settlement may not cost more gas than its price is worth. Rather too much than too little',
    fallback: 'base:4000,ethereum:4000,arbitrum:4000,polygon:1',
  },
  X402_RELAYER_KEY_SOLANA: {
    describe:
      'Private key of our own settler on Solana, base58 or a JSON list. With it, Solana payments need no facilitator; it holds SOL alone',
    fallback: null,
    secret: true,
  },
  X402_REFUND_KEY_SOLANA: {
    describe:
      'Private key that holds USDC and SOL for refunds on Solana. Without it, services that must be paid first are not sold there',
    fallback: null,
    secret: true,
  },
  X402_REFUND_AFTER_SECONDS: {
    describe: 'How long a paid call that failed may be tried again before its price is sent back',
    fallback: '600',
  },
  MPP_METHODS: {
    describe:
      'Ways to pay at `/mpp/`, in order of preference: `tempo`, and `evm` (USDC on Base, settled as x402 payments are). Empty: `/mpp/` is off',
    fallback: '',
  },
  MPP_SECRET_KEY: {
    describe:
      'Keys that MPP challenges are bound with, comma-separated, at least 32 characters each: the first makes them, all are recognized. Same on all replicas',
    fallback: '',
    secret: true,
  },
  MPP_TEMPO_RPC_URL: { describe: 'Node of the Tempo chain', fallback: 'https://rpc.tempo.xyz' },
  MPP_TEMPO_RECIPIENT: { describe: 'Where stablecoins go on Tempo', fallback: null },
  MPP_TEMPO_CURRENCY: {
    describe: 'The stablecoin that is taken on Tempo, with 6 decimals; USDC.e unless said otherwise',
    fallback: '0x20C000000000000000000000b9537d11c60E8b50',
  },
  MPP_TEMPO_REFUND_KEY: {
    describe:
      'Private key that holds that stablecoin for refunds on Tempo. Without it, services that must be paid first are not sold there',
    fallback: null,
    secret: true,
  },
  WALLET_ENCRYPTION_KEY: {
    describe:
      'Keys that managed wallets are encrypted under, 64 hex digits each, comma-separated: the first encrypts, all decrypt',
    fallback: '',
    secret: true,
  },
  IDENTITY_REGISTRAR_KEY: {
    describe: 'Private key that registers ERC-8004 identities on Base; it needs gas',
    fallback: null,
    secret: true,
  },
  CARD_PROVIDER_URL: { describe: 'The card provider’s API', fallback: 'https://api.stripe.com' },
  CARD_PROVIDER_KEY: {
    describe: 'Secret key at the card provider. Without it nothing is sold by card',
    fallback: null,
    secret: true,
  },
  CARD_WEBHOOK_SECRET: {
    describe:
      'Secrets that the card provider signs its messages to `/api/m2m/credits/webhook` with, comma-separated: two while one is replaced',
    fallback: '',
    secret: true,
  },
  RECHARGE_MAX_PER_DAY: { describe: 'How often a kept card may be charged in 24 hours', fallback: '3' },
  SMTP_URL: {
    describe:
      'Mail server, such as `smtp://user:password@host:587` or `smtps://…`. Without it no mail is sent',
    fallback: null,
    secret: true,
  },
  MAIL_FROM: { describe: 'The address that mail comes from. Required with `SMTP_URL`', fallback: null },
  ADMIN_TOKENS: {
    describe:
      'Who may open `/admin`: `name:token`, comma-separated, each token at least 24 characters. Empty: there is no such page',
    fallback: '',
    secret: true,
  },
  LOG_LEVEL: {
    describe: 'Least severe level that is logged; every paid call is one line at `info`',
    fallback: 'info',
  },
  FAREBOX_UPSTREAMS: {
    describe: '`npm start` only: `live` sends requests of keyless upstreams to their real addresses',
    fallback: 'sandbox',
  },
  FAREBOX_SANDBOX_PARTS: {
    describe:
      'Set by `npm start`: the sandbox parts it started, `name=address`. With any of them all money is sandbox money',
    fallback: '',
  },
  FAREBOX_SANDBOX_WALLETS: {
    describe:
      'Set by `npm start`: the wallets it made for this installation, which sandbox money goes to and comes from',
    fallback: '',
  },
};

/** `AI_BASE_URL` is a name of its own in the field; the others are `UPSTREAM_<NAME>_…`. */
function upstreamPrefix(name: UpstreamName): string {
  return name === 'ai' ? 'AI' : `UPSTREAM_${name.toUpperCase()}`;
}

/** The variable that holds an upstream's address. */
export function upstreamBaseUrlVariable(name: UpstreamName): string {
  return `${upstreamPrefix(name)}_BASE_URL`;
}

function upstreamVariables(name: UpstreamName): Variable[] {
  const definition: UpstreamDefinition<never> = UPSTREAMS[name] as unknown as UpstreamDefinition<never>;
  const variables: Variable[] = [
    {
      name: upstreamBaseUrlVariable(name),
      describe: `Address of ${definition.title}${definition.baseUrl === null ? '' : '; `none` to go without'}`,
      fallback: definition.baseUrl,
    },
  ];
  if (definition.key !== 'none') {
    variables.push({
      name: `${upstreamPrefix(name)}_API_KEY`,
      describe: `Key for ${definition.title}${definition.key === 'required' ? ', which needs one' : ', if you have one'}`,
      fallback: null,
      secret: true,
    });
  }
  for (const [setting, { describe }] of Object.entries(definition.settings ?? {})) {
    variables.push({ name: setting, describe, fallback: null });
  }
  return variables;
}

/** Every variable there is, in the order of the documentation's table. */
export const VARIABLES: readonly Variable[] = [
  ...Object.entries(FIXED).map(([name, rest]) => ({ name, ...rest })),
  ...UPSTREAM_NAMES.flatMap(upstreamVariables),
];

export interface Config {
  production: boolean;
  /** Whether the money is that of a sandbox: published before anybody pays, and asked for nothing else. */
  sandbox: boolean;
  host: string;
  port: number;
  /** Null: known only once the port is, as `http://host:port`. */
  publicUrl: string | null;
  dataDir: string;
  databaseUrl: string | null;
  databaseMaxConnections: number;
  secrets: Secrets;
  /** Ids of versions that are gone for good. */
  secretsLost: string[];
  /** Whom to believe about who is calling. */
  proxyTrust: ProxyTrust;
  trialAllowInternal: boolean;
  /** Null: there is no such bound. */
  trialBudgetMicrosPerDay: bigint | null;
  rateLimitPerAddress: number;
  rateLimitPerKey: number;
  maxConcurrentCalls: number;
  maxConcurrentCallsPerKey: number;
  answerTtlMs: number;
  reconcileIntervalMs: number;
  drainTimeoutMs: number;
  metricsToken: string | null;
  contactEmail: string | null;
  logLevel: string;
  x402: {
    networks: NetworkName[];
    recipient: `0x${string}` | null;
    recipientSolana: string | null;
    facilitatorUrls: string[];
    facilitatorToken: string | null;
    relayerKeys: `0x${string}`[];
    refundKeys: `0x${string}`[];
    walletFactories: `0x${string}`[];
    gasTokenUsd: Partial<Record<NetworkName, number>>;
    relayerKeySolana: string | null;
    refundKeySolana: string | null;
    refundAfterMs: number;
  };
  mpp: {
    methods: ('tempo' | 'evm')[];
    secretKeys: string[];
    tempoRpcUrl: string;
    tempoRecipient: `0x${string}` | null;
    tempoCurrency: `0x${string}`;
    tempoRefundKey: `0x${string}` | null;
  };
  walletEncryptionKeys: string[];
  identityRegistrarKey: `0x${string}` | null;
  /** Null: nothing is sold by card. */
  cards: { url: string; secretKey: string; webhookSecrets: string[]; rechargesPerDay: number } | null;
  /** Null: no mail is sent. */
  mail: { smtpUrl: string; from: string } | null;
  adminTokens: { name: string; token: string }[];
  upstreams: Record<UpstreamName, UpstreamConfig>;
}

/** Everything that is wrong with the environment, a line each. */
export class ConfigError extends StartError {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`the configuration is wrong:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** First words of our variables: a name that we do not know under one of them is a mistake rather than somebody else's. */
const OWN_PREFIXES = new Set(
  VARIABLES.flatMap(({ name }) => (name.includes('_') ? [name.slice(0, name.indexOf('_') + 1)] : [])),
);
/** What Kubernetes sets for every service beside ours, such as `DATABASE_SERVICE_HOST` for one that is named database. */
const SERVICE_LINK =
  /_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/** Whether a name looks like a variable of ours and is none. */
function isMisspelt(name: string): boolean {
  if (VARIABLES.some((variable) => variable.name === name) || SERVICE_LINK.test(name)) return false;
  return [...OWN_PREFIXES].some((prefix) => name.startsWith(prefix));
}

/**
 * Reads the configuration.
 *
 * @param environment such as `process.env`; an empty value counts as not set
 * @throws ConfigError with everything that is wrong, not just the first thing
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const set = (name: string) => (environment[name] === '' ? undefined : environment[name]);

  function read<Name extends VariableName>(name: Name): z.output<(typeof SCHEMA)[Name]> | null {
    const value = set(name) ?? FIXED[name].fallback;
    if (value === null) return null;
    const parsed = SCHEMA[name].safeParse(value);
    if (parsed.success) return parsed.data as z.output<(typeof SCHEMA)[Name]>;
    problems.push(`${name}: ${parsed.error.issues[0]?.message ?? 'is invalid'}`);
    return null;
  }
  /** As `read`, for variables that have a value unless that value is wrong, which is reported. */
  function need<Name extends VariableName>(name: Name): z.output<(typeof SCHEMA)[Name]> {
    return read(name) as z.output<(typeof SCHEMA)[Name]>;
  }

  const production = read('FAREBOX_MODE') === 'production';
  if (production) {
    for (const name of Object.keys(environment).filter(isMisspelt))
      problems.push(`${name}: there is no such variable`);
  }

  const publicUrl = read('PUBLIC_URL');
  const secrets = read('FAREBOX_SECRET');
  if (secrets === null && set('FAREBOX_SECRET') === undefined) problems.push('FAREBOX_SECRET: must be set');
  if (production) {
    if (publicUrl === null) problems.push('PUBLIC_URL: must be set in production');
    else if (!publicUrl.startsWith('https://'))
      problems.push('PUBLIC_URL: must begin with https:// in production');
    if (secrets?.all.some(({ value }) => new Set(value).size < 12) === true)
      problems.push('FAREBOX_SECRET: is too regular to be a secret');
    if (need('TRIAL_ALLOW_INTERNAL')) problems.push('TRIAL_ALLOW_INTERNAL: must not be true in production');
    // A right token is let in however many wrong ones came before, so it must be none that can be guessed.
    if (need('ADMIN_TOKENS')?.some(({ token }) => new Set(token).size < 8))
      problems.push('ADMIN_TOKENS: a token is too regular to be a secret');
    const parts = need('FAREBOX_SANDBOX_PARTS');
    if (parts !== null && parts.length > 0)
      problems.push(
        `FAREBOX_SANDBOX_PARTS: sandbox parts (${parts.map(({ name }) => name).join(', ')}) cannot serve in production`,
      );
  }

  const upstreams = {} as Record<UpstreamName, UpstreamConfig>;
  for (const name of UPSTREAM_NAMES) {
    const definition = UPSTREAMS[name] as unknown as UpstreamDefinition<never>;
    const configured = set(upstreamBaseUrlVariable(name)) ?? definition.baseUrl;
    const address = configured === 'none' ? null : configured;
    const parsed = address === null ? null : url.safeParse(address);
    if (parsed?.success === false)
      problems.push(`${upstreamBaseUrlVariable(name)}: must be an http(s) address`);
    const agreed = set(`${upstreamPrefix(name)}_REQUESTS_PER_MINUTE`);
    if (agreed !== undefined && !(Number(agreed) >= 0.1 && Number(agreed) <= 100_000)) {
      problems.push(`${upstreamPrefix(name)}_REQUESTS_PER_MINUTE: must be a number between 0.1 and 100,000`);
    }
    problems.push(...wrongSettings(definition, set));
    upstreams[name] = {
      baseUrl: parsed?.success === true ? parsed.data : null,
      apiKey: definition.key === 'none' ? undefined : set(`${upstreamPrefix(name)}_API_KEY`),
      settings: Object.fromEntries(
        Object.keys(definition.settings ?? {}).map((setting) => [setting, set(setting)]),
      ),
    };
  }

  const cardKey = read('CARD_PROVIDER_KEY');
  const smtpUrl = read('SMTP_URL');
  const mailFrom = read('MAIL_FROM');
  const sandboxParts = read('FAREBOX_SANDBOX_PARTS') ?? [];
  const config: Config = {
    production,
    sandbox: sandboxParts.length > 0,
    host: need('HOST'),
    port: need('PORT'),
    publicUrl,
    dataDir: need('FAREBOX_DATA_DIR'),
    databaseUrl: read('DATABASE_URL'),
    databaseMaxConnections: need('DATABASE_MAX_CONNECTIONS'),
    // Without one there is no configuration: it has been reported.
    secrets: secrets as Secrets,
    secretsLost: need('FAREBOX_SECRETS_LOST'),
    proxyTrust: { proxies: need('TRUSTED_PROXIES'), header: need('PROXY_HEADER') },
    trialAllowInternal: need('TRIAL_ALLOW_INTERNAL'),
    trialBudgetMicrosPerDay: read('TRIAL_BUDGET_USD_PER_DAY'),
    rateLimitPerAddress: need('RATE_LIMIT_PER_ADDRESS'),
    rateLimitPerKey: need('RATE_LIMIT_PER_KEY'),
    maxConcurrentCalls: need('MAX_CONCURRENT_CALLS'),
    maxConcurrentCallsPerKey: need('MAX_CONCURRENT_CALLS_PER_KEY'),
    answerTtlMs: need('ANSWER_TTL_HOURS') * 3_600_000,
    reconcileIntervalMs: need('RECONCILE_INTERVAL_MS'),
    drainTimeoutMs: need('DRAIN_TIMEOUT_MS'),
    metricsToken: read('METRICS_TOKEN'),
    contactEmail: read('CONTACT_EMAIL'),
    logLevel: need('LOG_LEVEL'),
    x402: {
      networks: need('X402_NETWORKS'),
      recipient: read('X402_RECIPIENT'),
      recipientSolana: read('X402_RECIPIENT_SOLANA'),
      facilitatorUrls: need('FACILITATOR_URL'),
      facilitatorToken: read('FACILITATOR_TOKEN'),
      relayerKeys: need('X402_RELAYER_KEYS'),
      refundKeys: need('X402_REFUND_KEYS'),
      walletFactories: need('X402_WALLET_FACTORIES'),
      gasTokenUsd: Object.fromEntries(need('X402_GAS_TOKEN_USD')),
      relayerKeySolana: read('X402_RELAYER_KEY_SOLANA'),
      refundKeySolana: read('X402_REFUND_KEY_SOLANA'),
      refundAfterMs: need('X402_REFUND_AFTER_SECONDS') * 1_000,
    },
    mpp: {
      methods: need('MPP_METHODS'),
      secretKeys: need('MPP_SECRET_KEY'),
      tempoRpcUrl: need('MPP_TEMPO_RPC_URL'),
      tempoRecipient: read('MPP_TEMPO_RECIPIENT'),
      tempoCurrency: need('MPP_TEMPO_CURRENCY'),
      tempoRefundKey: read('MPP_TEMPO_REFUND_KEY'),
    },
    walletEncryptionKeys: need('WALLET_ENCRYPTION_KEY'),
    identityRegistrarKey: read('IDENTITY_REGISTRAR_KEY'),
    cards:
      cardKey === null
        ? null
        : {
            url: need('CARD_PROVIDER_URL'),
            secretKey: cardKey,
            webhookSecrets: need('CARD_WEBHOOK_SECRET'),
            rechargesPerDay: need('RECHARGE_MAX_PER_DAY'),
          },
    mail: smtpUrl === null || mailFrom === null ? null : { smtpUrl, from: mailFrom },
    adminTokens: need('ADMIN_TOKENS'),
    upstreams,
  };
  if (cardKey !== null && set('CARD_WEBHOOK_SECRET') === undefined)
    problems.push('CARD_WEBHOOK_SECRET: must be set with CARD_PROVIDER_KEY');
  if (cardKey !== null && production && /_test_/.test(cardKey))
    problems.push('CARD_PROVIDER_KEY: is a test key, which cannot serve in production');
  if (smtpUrl !== null && set('MAIL_FROM') === undefined)
    problems.push('MAIL_FROM: must be set with SMTP_URL');
  const admins = config.adminTokens ?? [];
  if (new Set(admins.map(({ name }) => name)).size < admins.length)
    problems.push('ADMIN_TOKENS: must name everybody once');
  read('FAREBOX_UPSTREAMS');
  for (const name of config.x402.networks ?? []) {
    const needed = name === 'solana' ? 'X402_RECIPIENT_SOLANA' : 'X402_RECIPIENT';
    if (set(needed) === undefined) problems.push(`${needed}: must be set to take payments on ${name}`);
    if (upstreams[name].baseUrl === null)
      problems.push(`${upstreamBaseUrlVariable(name)}: must be set to take payments on ${name}`);
  }
  const mppMethods = config.mpp.methods ?? [];
  if (mppMethods.length > 0 && set('MPP_SECRET_KEY') === undefined)
    problems.push('MPP_SECRET_KEY: must be set with MPP_METHODS');
  if (mppMethods.includes('tempo') && set('MPP_TEMPO_RECIPIENT') === undefined)
    problems.push('MPP_TEMPO_RECIPIENT: must be set for the method tempo');
  if (mppMethods.includes('evm') && config.x402.networks?.includes('base') !== true)
    problems.push('X402_NETWORKS: must include base for the MPP method evm, which settles there');
  if (problems.length === 0)
    problems.push(...mixturesIn(config, sandboxParts, read('FAREBOX_SANDBOX_WALLETS') ?? []));
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** What is wrong with an upstream's own settings. */
function wrongSettings(
  { settings = {} }: Pick<UpstreamDefinition<never>, 'settings'>,
  set: (name: string) => string | undefined,
): string[] {
  return Object.entries(settings).flatMap(([name, { check }]) => {
    const value = set(name);
    const wrong = value === undefined ? null : (check?.(value) ?? null);
    return wrong === null ? [] : [`${name}: ${wrong}`];
  });
}

/** What of the configured money is of another world than the rest: asked only once nothing is wrong in itself. */
function mixturesIn(
  { x402, mpp, upstreams, cards, identityRegistrarKey }: Config,
  parts: readonly { url: string }[],
  wallets: readonly string[],
): string[] {
  const networks = new Set<UpstreamName>(x402.networks);
  if (identityRegistrarKey !== null) networks.add('base');
  const onTempo = mpp.methods.includes('tempo');
  return mixturesOfWorlds(parts.length === 0 ? null : { urls: parts.map(({ url }) => url), wallets }, {
    urls: [
      ...[...networks].map((name) => ({
        variable: upstreamBaseUrlVariable(name),
        url: upstreams[name].baseUrl ?? '',
      })),
      ...x402.facilitatorUrls.map((each) => ({ variable: 'FACILITATOR_URL', url: each })),
      ...(onTempo ? [{ variable: 'MPP_TEMPO_RPC_URL', url: mpp.tempoRpcUrl }] : []),
    ].filter(({ url: address }) => address !== ''),
    recipients: [
      { variable: 'X402_RECIPIENT', wallet: x402.recipient },
      { variable: 'X402_RECIPIENT_SOLANA', wallet: x402.recipientSolana },
      { variable: 'MPP_TEMPO_RECIPIENT', wallet: onTempo ? mpp.tempoRecipient : null },
    ],
    evmKeys: [
      { variable: 'X402_RELAYER_KEYS', keys: x402.relayerKeys },
      { variable: 'X402_REFUND_KEYS', keys: x402.refundKeys },
      { variable: 'MPP_TEMPO_REFUND_KEY', keys: mpp.tempoRefundKey === null ? [] : [mpp.tempoRefundKey] },
      {
        variable: 'IDENTITY_REGISTRAR_KEY',
        keys: identityRegistrarKey === null ? [] : [identityRegistrarKey],
      },
    ],
    solanaKeys: [
      { variable: 'X402_RELAYER_KEY_SOLANA', key: x402.relayerKeySolana },
      { variable: 'X402_REFUND_KEY_SOLANA', key: x402.refundKeySolana },
    ],
    cardKey: cards?.secretKey ?? null,
  });
}

/** The nodes of the chains that payments settle on: those that services read too. */
export function rpcUrlsOf(config: Config): Record<NetworkName, string | null> {
  return Object.fromEntries(NETWORK_NAMES.map((name) => [name, config.upstreams[name].baseUrl])) as Record<
    NetworkName,
    string | null
  >;
}
