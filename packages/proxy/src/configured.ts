/** The file of `FAREBOX_CONFIG` applied to a shop: prices of the services that it has, and routes beside them. */
import { priceInUsd } from '@farebox/core/ledger/money';
import type { Service } from '@farebox/core/service/define';
import { StartError } from '@farebox/process/start-error';
import { loadConfig } from './config/load.ts';
import { ConfigError } from './config/problem.ts';
import type { HouseServiceRule, ProxyConfig } from './config/proxy-config.ts';
import { type OpenRoutes, openRoutes } from './sell/open-routes.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A shop's own services as the file sells them, and its routes. Everything is empty where there is no file. */
export interface ConfiguredShop {
  /**
   * Reads the file. Called once, before the others are asked.
   *
   * @param own the services that the shop has without it
   * @returns what there is to sell: those services at the file's prices, then the routes
   * @throws StartError with each line that is wrong
   */
  services(own: readonly Service[]): Promise<readonly Service[]>;
  /** Paths of services that the file takes off sale. */
  withheld(): readonly string[];
  /** The categories of its routes, and what each holds. */
  tags(): Readonly<Record<string, string>>;
  /** Null where there is no file. */
  routes(): OpenRoutes | null;
}

/**
 * Prepares what a file makes of a shop.
 *
 * @param about.file asked once: the setting of `FAREBOX_CONFIG`; null: there is no file
 * @param about.environment holds the secrets that the file names
 */
export function configuredShop({
  file: fileOf,
  environment,
  version,
  nowMs,
}: {
  file(): string | null;
  environment: Environment;
  version: string;
  nowMs(): number;
}): ConfiguredShop {
  let config: ProxyConfig | null = null;
  let routes: OpenRoutes | null = null;
  return {
    async services(own) {
      const file = fileOf();
      if (file === null) return own;
      const names = own.map(({ path }) => path);
      config = await loadConfig(file, { env: environment, serviceNames: names }).catch(refuse);
      routes = openRoutes(config, { version, nowMs, taken: names });
      const rules = config.services;
      return [...own.map((service) => priced(service, rules.get(service.path))), ...routes.services];
    },
    withheld: () =>
      [...(config?.services ?? [])].flatMap(([path, rule]) => (rule.isAvailable === false ? [path] : [])),
    tags: () => routes?.tags ?? {},
    routes: () => routes,
  };
}

function refuse(error: unknown): never {
  throw error instanceof ConfigError ? new StartError(`FAREBOX_CONFIG:\n${error.message}`) : error;
}

/** A service at the price and by the rails that the file says. */
function priced(service: Service, rule: HouseServiceRule | undefined): Service {
  if (rule === undefined) return service;
  const { priceMicros, isSoldByMpp } = rule;
  return {
    ...service,
    priceUsd: priceMicros === null ? service.priceUsd : priceInUsd(priceMicros),
    mpp: isSoldByMpp ?? service.mpp,
  };
}
