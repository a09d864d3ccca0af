/** Makes the house and, from the list of its parts, the server: one HTTP app, one list of jobs, one beginning and one end. */
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import type { Pools } from './db/connection.ts';
import { bringSqlTexts } from './db/functions.ts';
import type { StartPatience } from './db/start-patience.ts';
import type { Route } from './discovery/context.ts';
import type { ProxyTrust } from './http/caller-address.ts';
import { createAddressReader, proxyNotices } from './http/proxy-check.ts';
import { createAddressLimit, createRateLimit } from './http/rate-limit.ts';
import { allowBrowsers, createHttpServer } from './http/server.ts';
import { refuseWhileShut } from './http/shut.ts';
import type { Job } from './jobs/schedule.ts';
import type { House, Part } from './part.ts';
import { callsBought } from './service/calls-bought.ts';
import type { Service } from './service/define.ts';
import { Shelf, type SoldElsewhere } from './service/shelf.ts';
import type { Shop } from './shop.ts';

/** More names than a flood can push out while their minute runs. */
const MAX_LIMITED_NAMES = 50_000;
const RESUMED_EVERY_MS = 3_000;
/** How often this process notes which database functions it calls, so that they are not dropped as unused. */
const SQL_TEXTS_EVERY_MS = 86_400_000;

/** The settings of the house. */
interface HouseSettings {
  sandbox: boolean;
  shop: Shop;
  /** The proxies to believe about who is calling. */
  proxyTrust: ProxyTrust;
  /** Requests a minute from one address. */
  rateLimitPerAddress: number;
}

/** The things that the process gives to the house. */
export interface HouseNeeds {
  pools: Pools;
  /** The public address, without a trailing slash. */
  baseUrl: string;
  version: string;
  /** The services that are sold, in catalog order. */
  services: readonly Service[];
  /** Their categories, in the order of the catalog, and what each holds. */
  tags: Readonly<Record<string, string>>;
  /** Paths of services that there are and that are not sold here; none unless given. */
  leftOut?: readonly string[];
  /** What other servers sell through this one; nothing unless given. */
  elsewhere?: readonly SoldElsewhere[];
  /** The codes of errors that this server has a page about; none unless given. */
  errorCodes?: { has(code: string): boolean };
  logger: FastifyBaseLogger;
  nowMs(): number;
}

/**
 * Makes what every part gets: database, public address, clock, log and bounds.
 *
 * @example
 * ```ts
 * import { openHouse } from '@farebox/core/house';
 *
 * openHouse(config.house, given).baseUrl; // 'http://127.0.0.1:8402'
 * ```
 */
export function openHouse(settings: HouseSettings, needs: HouseNeeds): House {
  const { sandbox, shop, proxyTrust, rateLimitPerAddress } = settings;
  const { pools, baseUrl, version, services, tags, leftOut = [], logger, nowMs } = needs;
  const { errorCodes, elsewhere = [] } = needs;
  const addresses = createAddressReader(proxyTrust, (message) => logger.warn(message));
  const shelf = new Shelf({ services, tags, leftOut, elsewhere }, nowMs);
  const bound = (perMinute: number) => ({ perMinute, maxNames: MAX_LIMITED_NAMES, nowMs });
  return {
    pools,
    baseUrl,
    version,
    sandbox,
    shop,
    shelf,
    logger,
    addresses,
    nowMs,
    firstCall: {
      get path() {
        return shelf.firstCall.path;
      },
      get body() {
        return shelf.firstCall.body;
      },
    },
    docUrlOf: (code) => (errorCodes?.has(code) === true ? `${baseUrl}/docs/errors/${code}` : null),
    callsFor: (amountUsd) => callsBought(amountUsd, shelf.services),
    addressOf: (request: FastifyRequest) => addresses.addressOf(request.raw),
    limit: (perMinute) => createRateLimit(bound(perMinute)),
    limitByAddress: (perMinute = rateLimitPerAddress) => createAddressLimit(bound(perMinute)),
  };
}

export interface Server {
  http: FastifyInstance;
  /** In the order of the list. */
  parts: readonly Part[];
  /** The routes, as they are registered. */
  routes: readonly Route[];
  jobs: readonly Job[];
  /** Asks those whose answers the first 402 depends on. To be awaited before listening. */
  prepare(patience: StartPatience): Promise<void>;
  /**
   * Leaves the balancer: `/health/ready` says no, so that no new calls are sent here, and each answer tells its connection to end.
   * Calls that come all the same are served.
   */
  leave(): void;
  /** Leaves, and holds no connection whose last answer is out. `close` follows. */
  drain(): void;
  /** Tells the log what is open when the process is ended by force. */
  leftOpen(): Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

/**
 * Puts the parts together. Nothing listens yet, and no job runs.
 *
 * @param routes filled with every route as it is registered
 *
 * @example
 * ```ts
 * import { assemble } from '@farebox/core/house';
 *
 * const server = assemble(house, config.house, [keyed, sales], []);
 * server.parts.length; // 2
 * await server.close();
 * ```
 */
export function assemble(
  house: House,
  { proxyTrust, host, publicUrl }: { proxyTrust: ProxyTrust; host: string; publicUrl: string | null },
  parts: readonly Part[],
  routes: Route[],
): Server {
  const http = createHttpServer(house.logger, {
    lost: parts.find(({ lost }) => lost !== undefined)?.lost,
    payPage: parts.find(({ payPage }) => payPage !== undefined)?.payPage,
    receiptPage: parts.find(({ receiptPage }) => receiptPage !== undefined)?.receiptPage,
    docUrlOf: house.docUrlOf,
  });
  http.addHook('onRoute', ({ method, url, config }) => {
    const { operation } = config ?? {};
    for (const each of [method].flat())
      routes.push({ method: each, path: url, ...(operation === undefined ? {} : { operation }) });
  });
  allowBrowsers(http, () => parts.flatMap(({ requestHeaders = [] }) => requestHeaders));
  const shut = () => firstOf(parts, (part) => part.shut?.() ?? null);
  refuseWhileShut(http, shut);
  for (const part of parts) part.routes?.(http);
  const leave = () => {
    for (const part of parts) part.drain?.();
    http.ending.isNear = true;
  };
  return {
    http,
    parts,
    routes,
    jobs: waitingWhileShut(shut, [
      ...parts.flatMap(({ jobs = [] }) => jobs),
      {
        name: 'resume-relayers',
        intervalMs: RESUMED_EVERY_MS,
        async run() {
          // A chain that is silent keeps no other one waiting.
          const all = await Promise.allSettled(parts.map((part) => part.resume?.()));
          const failed = all.find(({ status }) => status === 'rejected');
          if (failed?.status === 'rejected') throw failed.reason;
        },
      },
      {
        name: 'keep-functions',
        intervalMs: SQL_TEXTS_EVERY_MS,
        run: () => bringSqlTexts(house.pools.patient),
      },
    ]),
    async prepare(patience) {
      const notices = proxyNotices(proxyTrust, { host, publicUrl });
      for (const { level, message } of notices) house.logger[level](message);
      for (const part of parts) await part.prepare?.(patience);
    },
    leave,
    drain() {
      leave();
      // A connection whose last answer is out must not be waited for until its client lets go.
      http.server.keepAliveTimeout = 1;
    },
    leftOpen: () => Object.assign({}, ...parts.map((part) => part.leftOpen?.())),
    async close() {
      await http.close();
      const [first, ...others] = parts;
      await first?.close?.();
      await Promise.all(others.map((part) => part.close?.()));
    },
  };
}

function firstOf<T>(parts: readonly Part[], say: (part: Part) => T | null): T | null {
  for (const part of parts) {
    const said = say(part);
    if (said !== null) return said;
  }
  return null;
}

/** The jobs, of which those that may move money do nothing while the shop is shut. */
function waitingWhileShut(shut: () => string | null, jobs: readonly Job[]): Job[] {
  return jobs.map((job) =>
    job.whileShut === true
      ? job
      : { ...job, run: async (stopping) => (shut() === null ? job.run(stopping) : undefined) },
  );
}
