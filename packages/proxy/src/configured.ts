/** The file of `FAREBOX_CONFIG` applied to a shop: prices of the services that it has, and routes beside them. */
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Service } from '@farebox/core/service/define';
import type { ServiceRules } from '@farebox/core/stock/service-rule';
import { ruledBy, soldUnder } from '@farebox/core/stock/service-rule';
import {
  chosenUnder,
  type MadeStock,
  type StockFile,
  StockRefused,
  type StockSource,
} from '@farebox/core/stock/source';
import { StartError } from '@farebox/process/start-error';
import { checkConfig, loadConfig } from './config/load.ts';
import { ConfigError } from './config/problem.ts';
import type { ProxyConfig } from './config/proxy-config.ts';
import { LiveRoutes } from './sell/live-routes.ts';
import { type OpenRoutes, openRoutes } from './sell/open-routes.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A shop's own services as the file sells them, and its routes. */
export interface ConfiguredShop {
  /** What is sold at the start. */
  readonly services: readonly Service[];
  /** Paths of services that the file takes off sale. */
  readonly withheld: readonly string[];
  readonly tags: Readonly<Record<string, string>>;
  /** Null where there is no file. */
  readonly routes: LiveRoutes | null;
  /** From what it is sold later on. @param entries of `SERVICES` */
  source(entries: readonly string[]): StockSource;
}

export interface ConfiguredNeeds {
  /** Null: there is no file. */
  file: string | null;
  /** The services that the shop has without it. */
  own: readonly Service[];
  /** Their categories, in the order of the catalog, and what each holds. */
  tags: Readonly<Record<string, string>>;
  /** Holds the secrets that the file names. */
  environment: Environment;
  version: string;
  nowMs(): number;
}

/**
 * Reads the file, and makes of it what a shop sells.
 *
 * @throws StartError with each line that is wrong
 */
export async function configuredShop(needs: ConfiguredNeeds): Promise<ConfiguredShop> {
  const { own, environment, version, nowMs } = needs;
  const serviceNames = own.map(({ path }) => path);
  const surroundings = { env: environment, serviceNames };
  const open = (config: ProxyConfig, before: OpenRoutes | null) =>
    openRoutes(config, { version, nowMs, taken: serviceNames, before });
  const fileAt = needs.file === null ? null : fileOf(needs.file, surroundings);
  const stateAtStart = (await fileAt?.state()) ?? null;
  const first = needs.file === null ? null : await loadConfig(needs.file, surroundings).catch(refuseStart);
  const routes = first === null ? null : new LiveRoutes(open(first, null));
  const tagsWith = (opened: OpenRoutes | null) => ({ ...needs.tags, ...opened?.tags });

  function make(content: string | null, rules: ServiceRules, entries: readonly string[]): MadeStock {
    const config = content === null || routes === null ? null : readVersion(content, surroundings);
    const opened = config === null ? null : open(config, routes?.now ?? null);
    const refused = opened === null ? null : (routes?.refuses(opened) ?? null);
    if (refused !== null) throw new StockRefused(refused);
    const ofFile: ServiceRules = config?.services ?? new Map();
    const chosen = chosenUnder(own, together(own, rules, ofFile), entries, opened?.services);
    return {
      stock: { ...chosen, tags: tagsWith(opened), elsewhere: opened?.elsewhere ?? [] },
      fileRules: ofFile,
      enter() {
        if (opened !== null) routes?.put(opened);
      },
    };
  }

  const fileRules: ServiceRules = first?.services ?? new Map();
  const ruleOf = ({ path }: Service) => ruledBy(fileRules.get(path));
  return {
    services: [...own.map((each) => soldUnder(ruleOf(each), each)), ...(routes?.now.services ?? [])],
    withheld: own.filter((each) => ruleOf(each).isAvailable === false).map(({ path }) => path),
    tags: tagsWith(routes?.now ?? null),
    routes,
    source: (entries) => ({
      own,
      file: first === null || fileAt === null ? null : { ...fileAt, atStart: first.written, stateAtStart },
      fileRules,
      make: (content, rules) => make(content, rules, entries),
    }),
  };
}

/** What the operators set wins over the file. */
function together(own: readonly Service[], rules: ServiceRules, fileRules: ServiceRules): ServiceRules {
  return new Map(own.map(({ path }) => [path, ruledBy(rules.get(path), fileRules.get(path))]));
}

type Surroundings = Parameters<typeof loadConfig>[1];

/** A content that was the file of some replica once. What it names may be missing here. */
function readVersion(content: string, surroundings: Surroundings): ProxyConfig {
  try {
    return checkConfig(JSON.parse(content), 'this version', surroundings);
  } catch (error) {
    throw asRefused(error);
  }
}

function fileOf(file: string, surroundings: Surroundings): Omit<StockFile, 'atStart' | 'stateAtStart'> {
  const look = () => stat(file).catch(() => null);
  return {
    name: basename(file),
    async read() {
      try {
        return (await loadConfig(file, surroundings)).written;
      } catch (error) {
        throw asRefused(error, { file });
      }
    },
    async state() {
      const found = await look();
      return found === null ? null : [found.ino, found.size, found.mtimeMs].join(' ');
    },
    changedAtMs: async () => (await look())?.mtimeMs ?? null,
  };
}

/** Without the folder, which is nobody's business but this machine's. */
function asRefused(error: unknown, at: { file: string } | null = null): unknown {
  if (!(error instanceof ConfigError)) return error;
  const message = at === null ? error.message : error.message.replaceAll(at.file, basename(at.file));
  return new StockRefused(message);
}

function refuseStart(error: unknown): never {
  throw error instanceof ConfigError ? new StartError(`FAREBOX_CONFIG:\n${error.message}`) : error;
}
