/**
 * The only reader of the environment. What there is to configure, each part declares beside itself; here it is joined,
 * checked at the start, and handed out. `docs/configuration.md` shows all of it in one table, which a test holds.
 */
import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { StartError } from '@farebox/process/start-error';
import { z } from 'zod';
import type { DATABASE } from './db/declared.ts';
import {
  type Configured,
  type Declared,
  declare,
  list,
  Sealed,
  type Surroundings,
  url,
  type Variable,
  type Variables,
  whole,
} from './declared.ts';
import { type ProxyTrust, parseTrustedProxies } from './http/caller-address.ts';
import { fileVariableOf, textOf } from './secret-files.ts';
import { OWN_NAME, type Shop, shopLogo, shopName } from './shop.ts';
import { legalDocument } from './words/legal.ts';
import { mixturesOfWorlds } from './world.ts';

/** Headers that callers and browsers write themselves. None of them may be `PROXY_HEADER`. */
const CALLERS_OWN_HEADERS = new Set([
  ...['accept', 'authorization', 'connection', 'content-length', 'content-type', 'cookie', 'host', 'origin'],
  ...['referer', 'user-agent', 'x-api-key', 'x-payment', 'payment-signature', 'idempotency-key'],
]);

/** The variables of the process itself, whichever parts it has. */
const HOUSE = declare({
  name: 'house',
  variables: {
    mode: {
      name: 'FAREBOX_MODE',
      describe:
        '`production` refuses sandbox parts, weak secrets and unknown variables, and shortens error messages',
      shape: z.enum(['development', 'production']),
      fallback: 'development',
    },
    host: {
      name: 'HOST',
      describe: 'Address to listen on',
      shape: z
        .string()
        .refine((value) => isIP(value) !== 0 || value === 'localhost', 'must be an address to listen on'),
      fallback: '127.0.0.1',
    },
    port: { name: 'PORT', describe: 'Port to listen on', shape: whole(1, 65_535), fallback: '8402' },
    /** Null: known only once the port is, as `http://host:port`. */
    publicUrl: {
      name: 'PUBLIC_URL',
      describe: 'Public address of the server, used in every document. Required in production, with https',
      shape: url,
      fallback: null,
    },
    proxies: {
      name: 'TRUSTED_PROXIES',
      describe: 'Proxies whose `PROXY_HEADER` is trusted: addresses, CIDR ranges, `loopback`, `private`',
      shape: z.string().transform((value, context) => {
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
      fallback: '',
    },
    proxyHeader: {
      name: 'PROXY_HEADER',
      describe:
        'The one header in which trusted proxies name the caller: `x-forwarded-for`, `forwarded` (RFC 7239), or one that holds an address, such as `x-real-ip`. Others are ignored',
      shape: z
        .string()
        .transform((value) => value.trim().toLowerCase())
        .refine((value) => /^[a-z0-9-]{1,60}$/.test(value), 'must be the name of one header')
        .refine((value) => !CALLERS_OWN_HEADERS.has(value), 'is a header that callers set themselves'),
      fallback: 'x-forwarded-for',
    },
    rateLimitPerAddress: {
      name: 'RATE_LIMIT_PER_ADDRESS',
      describe: 'Requests a minute from one address, per process',
      shape: whole(1, 100_000_000),
      fallback: '1000',
    },
    drainDelayMs: {
      name: 'DRAIN_DELAY_MS',
      describe:
        'Time after SIGTERM in which calls are still taken while `/health/ready` says no. Longer than your balancer needs to notice (checks that must fail × their interval). Without `DATABASE_URL` there is no other replica, and no delay',
      shape: whole(0, 300_000),
      fallback: '7000',
    },
    drainTimeoutMs: {
      name: 'DRAIN_TIMEOUT_MS',
      describe: 'Time that running calls have to end after that delay',
      shape: whole(1_000, 600_000),
      fallback: '30000',
    },
    contactEmail: {
      name: 'CONTACT_EMAIL',
      describe: 'E-mail address for callers: in the documents, on the pages and below mails',
      shape: z.email(),
      fallback: null,
    },
    shopName: {
      name: 'SHOP_NAME',
      describe: 'What your shop is called: in every document, on the pages, in mails and in the 402',
      shape: shopName,
      fallback: OWN_NAME,
    },
    shopLogo: {
      name: 'SHOP_LOGO',
      describe:
        'Logo of your shop: an https address, or the path of an SVG, PNG, JPEG or WebP file of at most 200,000 bytes',
      shape: shopLogo,
      fallback: null,
    },
    terms: {
      name: 'TERMS',
      describe:
        'Your terms: an https address, or the path of a file with Markdown, which is shown at `/legal/terms`. Linked from every page, before each payment by card and in OpenAPI',
      shape: legalDocument,
      fallback: null,
    },
    privacy: {
      name: 'PRIVACY',
      describe: 'What you do with personal data, in the same form; shown at `/legal/privacy`',
      shape: legalDocument,
      fallback: null,
    },
    refundPolicy: {
      name: 'REFUNDS',
      describe: 'When you refund, in the same form; shown at `/legal/refunds`',
      shape: legalDocument,
      fallback: null,
    },
    imprint: {
      name: 'IMPRINT',
      describe: 'Who you are, in the same form; shown at `/legal/imprint`',
      shape: legalDocument,
      fallback: null,
    },
    services: {
      name: 'SERVICES',
      describe:
        'What you sell, comma-separated: names (`token-price`), tags (`Banking`), patterns (`earthdata-*`); with `!` in front, what you do not. Everything unless set',
      shape: list(z.string().max(80), 200),
      fallback: '',
    },
    logLevel: {
      name: 'LOG_LEVEL',
      describe: 'Lowest level that is logged; every paid call is one line at `info`',
      shape: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
      fallback: 'info',
    },
    sourcesOfStart: {
      name: 'FAREBOX_UPSTREAMS',
      describe: 'For `npm start` only: `live` uses the real upstream APIs that need no key',
      shape: z.enum(['sandbox', 'live']),
      fallback: 'sandbox',
    },
    sandboxParts: {
      name: 'FAREBOX_SANDBOX_PARTS',
      describe:
        'Set by `npm start`: the sandbox parts it started, `name=address`. With any of them all money is sandbox money',
      shape: list(
        z
          .string()
          .regex(
            /^[a-z]+=https?:\/\/\S+$/,
            'must be parts with their addresses, such as chain=http://127.0.0.1:8545',
          )
          .transform((value) => ({
            name: value.split('=')[0] ?? '',
            url: value.slice(value.indexOf('=') + 1),
          })),
      ),
      fallback: '',
    },
    sandboxWallets: {
      name: 'FAREBOX_SANDBOX_WALLETS',
      describe:
        'Set by `npm start`: the wallets it made for this installation, which sandbox money goes to and comes from',
      shape: list(z.string().regex(/^\w{32,44}$/, 'must be addresses of wallets')),
      fallback: '',
    },
  },
  problems({ publicUrl, sandboxParts = [] }, { production }) {
    if (!production) return [];
    const names = sandboxParts.map(({ name }) => name).join(', ');
    return [
      ...(publicUrl === null ? ['PUBLIC_URL: must be set in production'] : []),
      ...(typeof publicUrl === 'string' && !publicUrl.startsWith('https://')
        ? ['PUBLIC_URL: must begin with https:// in production']
        : []),
      ...(names === '' ? [] : [`FAREBOX_SANDBOX_PARTS: sandbox parts (${names}) cannot serve in production`]),
    ];
  },
});

/** The settings of the process, with what follows from them. */
export type HouseSettings = Configured<typeof HOUSE.variables>['settings'] & {
  production: boolean;
  /** Whether the money is that of a sandbox: published before anybody pays, and asked for nothing else. */
  sandbox: boolean;
  /** The proxies to believe about who is calling. */
  proxyTrust: ProxyTrust;
  shop: Shop;
};

/** A part's declaration, whatever it is configured by. */
export type AnyDeclared = Omit<Declared, 'problems' | 'money'> & {
  // A function that takes its own part's values is no function of any part's.
  problems?(values: never, about: Surroundings): string[];
  money?(values: never, about: Surroundings): ReturnType<NonNullable<Declared['money']>>;
};

export type ConfigOf<Parts extends readonly AnyDeclared[]> = {
  readonly [Each in Parts[number] as Each['name']]: Configured<Each['variables']>;
} & { readonly house: HouseSettings };

/** How to reach the configured database. */
export function databaseOf({ database }: { database: Configured<typeof DATABASE.variables> }) {
  return {
    ...database.settings,
    ...database.secrets.reveal(),
    passwordNow: () => passwordIn(database.secrets.reveal().databaseUrl),
  };
}

/** The password in the address of a database; null: there is none. */
function passwordIn(url: string | null): string | null {
  const [, password] = /^[^/]*\/\/[^@/?]*?:([^@/?]*)@/.exec(url ?? '') ?? [];
  return password === undefined || password === '' ? null : decodeURIComponent(password);
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

/** Every variable there is, in the order of the documentation's table. */
export function variablesOf(parts: readonly AnyDeclared[]): readonly Variable[] {
  return [HOUSE, ...parts].flatMap(({ variables }) => Object.values<Variable>(variables));
}

/** Variables that Kubernetes sets for every service, such as `DATABASE_SERVICE_HOST` for a service named database. */
const SERVICE_LINK =
  /_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/** Set by reproducible builds of images: https://reproducible-builds.org/specs/source-date-epoch/ */
const BUILDERS_OWN = 'SOURCE_DATE_EPOCH';

/**
 * Names that look like variables of ours and are none: a name that we do not know under the first word of one that we
 * do is a mistake rather than somebody else's.
 */
function misspelt(environment: object, variables: readonly Variable[]): string[] {
  const files = variables.map(fileVariableOf).filter((name) => name !== null);
  const names = new Set([...variables.map(({ name }) => name), ...files]);
  const prefixes = new Set(
    [...names].flatMap((name) => (name.includes('_') ? [name.slice(0, name.indexOf('_') + 1)] : [])),
  );
  return Object.keys(environment).filter(
    (name) =>
      !names.has(name) &&
      !SERVICE_LINK.test(name) &&
      name !== BUILDERS_OWN &&
      [...prefixes].some((prefix) => name.startsWith(prefix)),
  );
}

/**
 * Reads the configuration.
 *
 * @param environment such as `process.env`; an empty value counts as not set
 * @param parts what the parts declare
 * @param options.all false: there are more parts than these, so that a name that they do not know is no mistake
 * @throws ConfigError with everything that is wrong, not just the first thing
 *
 * @example
 * ```ts
 * import { readConfig } from '@farebox/core/config';
 *
 * readConfig({ PORT: '9000' }, []).house.port; // 9_000
 * ```
 */
export function readConfig<const Parts extends readonly AnyDeclared[]>(
  environment: Readonly<Record<string, string | undefined>>,
  parts: Parts,
  { all }: { all: boolean } = { all: true },
): ConfigOf<Parts> {
  const problems: string[] = [];
  const known = new Map<string, unknown>();
  const read = [HOUSE as AnyDeclared, ...parts].map((declared) => {
    const values: Record<string, unknown> = {};
    for (const [key, variable] of Object.entries<Variable>(declared.variables)) {
      const { name, shape, fallback } = variable;
      const given = textOf(environment, variable);
      if ('problem' in given) {
        problems.push(given.problem);
        continue;
      }
      const text = given.text ?? fallback;
      const parsed = text === null ? null : shape.safeParse(text);
      if (parsed?.success === false)
        problems.push(`${name}: ${parsed.error.issues[0]?.message ?? 'is invalid'}`);
      if (parsed === null && variable.required === true) problems.push(`${name}: must be set`);
      values[key] = parsed === null && variable.required !== true ? null : parsed?.data;
      known.set(name, values[key]);
    }
    return { declared, values };
  });
  const production = known.get('FAREBOX_MODE') === 'production';
  if (production && all)
    for (const name of misspelt(environment, variablesOf(parts)))
      problems.push(`${name}: there is no such variable`);
  const about: Surroundings = { production, other: (name) => known.get(name) };
  for (const { declared, values } of read)
    problems.push(...(declared.problems?.(values as never, about) ?? []));
  if (problems.length === 0) problems.push(...mixturesIn(read, about));
  if (problems.length > 0) throw new ConfigError(problems);
  const configured = read.map(({ declared, values }) => [declared.name, apart(declared.variables, values)]);
  const config = Object.fromEntries(configured) as Record<string, Configured<Variables>>;
  return { ...config, house: settledHouse(config.house as never) } as ConfigOf<Parts>;
}

/**
 * Reads the files of secrets again, and hands each part the new ones that it takes while it runs.
 *
 * @param config as `readConfig` made it of the same environment and parts
 * @returns the names of the variables that are in force from now on, and of those that wait for the next start
 * @throws ConfigError when anything is wrong; nothing has changed then
 */
export function renewSecrets(
  config: object,
  environment: Readonly<Record<string, string | undefined>>,
  parts: readonly AnyDeclared[],
): { renewed: string[]; waiting: string[] } {
  const kept = config as Readonly<Record<string, Configured<Variables>>>;
  const read = readConfig(environment, parts) as Readonly<Record<string, Configured<Variables>>>;
  const changed = parts.flatMap(({ name: part, variables }) => {
    const [before, after] = [kept[part]?.secrets, read[part]?.secrets];
    if (before === undefined || after === undefined) return [];
    const [old, fresh]: Readonly<Record<string, unknown>>[] = [before.reveal(), after.reveal()];
    return Object.entries<Variable>(variables)
      .filter(([key]) => !isDeepStrictEqual(old?.[key], fresh?.[key]))
      .map(([key, { name, renewed }]) => ({ before, key, value: fresh?.[key], name, renewed }));
  });
  const now = changed.filter(({ renewed }) => renewed === true);
  for (const { before, key, value } of now) before.renew({ [key]: value });
  return {
    renewed: now.map(({ name }) => name),
    waiting: changed.flatMap(({ name, renewed }) => (renewed === true ? [] : [name])),
  };
}

function settledHouse({ settings }: Configured<typeof HOUSE.variables>): HouseSettings {
  return {
    ...settings,
    production: settings.mode === 'production',
    sandbox: settings.sandboxParts.length > 0,
    proxyTrust: { proxies: settings.proxies, header: settings.proxyHeader },
    shop: {
      name: settings.shopName,
      contactEmail: settings.contactEmail,
      logo: settings.shopLogo,
      legal: {
        terms: settings.terms,
        privacy: settings.privacy,
        refunds: settings.refundPolicy,
        imprint: settings.imprint,
      },
    },
  };
}

/** A part's settings, and apart from them its secrets. */
function apart(variables: Variables, values: Readonly<Record<string, unknown>>): Configured<Variables> {
  const settings: Record<string, unknown> = {};
  const secrets: Record<string, unknown> = {};
  for (const [key, { secret }] of Object.entries(variables))
    (secret === true ? secrets : settings)[key] = values[key];
  return { settings, secrets: new Sealed(secrets) };
}

/** Finds the configured money that is of another world than the rest: asked only once nothing is wrong in itself. */
function mixturesIn(
  read: readonly { declared: AnyDeclared; values: object }[],
  about: Surroundings,
): string[] {
  const parts = about.other('FAREBOX_SANDBOX_PARTS') as { url: string }[];
  const wallets = about.other('FAREBOX_SANDBOX_WALLETS') as string[];
  const money = read.map(({ declared, values }) => declared.money?.(values as never, about) ?? {});
  return mixturesOfWorlds(parts.length === 0 ? null : { urls: parts.map(({ url: each }) => each), wallets }, {
    urls: money.flatMap(({ urls = [] }) => urls).filter(({ url: each }) => each !== ''),
    recipients: money.flatMap(({ recipients = [] }) => recipients),
    evmKeys: money.flatMap(({ evmKeys = [] }) => evmKeys),
    solanaKeys: money.flatMap(({ solanaKeys = [] }) => solanaKeys),
    cardKey: money.find(({ cardKey }) => typeof cardKey === 'string')?.cardKey ?? null,
  });
}
