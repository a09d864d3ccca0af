/** Opens what a configuration sells: its upstreams, a service for each priced route, and the table of all routes. */
import { createHash } from 'node:crypto';
import type { Service } from '@farebox/core/service/define';
import type { SoldElsewhere } from '@farebox/core/service/shelf';
import type { Gate, ProxyConfig, Route, Upstream as UpstreamConfig } from '../config/proxy-config.ts';
import { RouteTable } from '../wire/path.ts';
import { openUpstream, type Upstream } from '../wire/upstream.ts';
import { type RouteStream, routeStream } from './ask-upstream.ts';
import { gateService } from './gate-service.ts';
import { routeService } from './route-service.ts';

/** Calls that may wait for a place, for each that runs. */
const WAITING_FOR_EACH = 1;
const DEFAULT_TAG = 'Other APIs';
const ABOUT_DEFAULT_TAG = 'Routes of the APIs behind this server.';
const MOST_ID_CHARACTERS = 60;

/** A route as it is sold, or given for nothing. */
export interface OpenRoute {
  readonly method: string;
  readonly path: Route['path'];
  readonly route: Route;
  readonly upstream: Upstream;
  /** Null for a free route. */
  readonly service: Service | null;
  /** How a free route streams; null where it does not, or is sold. */
  readonly freeStream: RouteStream | null;
}

/** A gate, and the routes that its server answers. */
export interface OpenGate {
  readonly gate: Gate;
  readonly table: RouteTable<GateRoute>;
  readonly routes: readonly GateRoute[];
}

export interface GateRoute {
  readonly method: string;
  readonly path: Route['path'];
  readonly route: Route;
  readonly service: Service;
}

/** The routes of a configuration, with connections to their upstreams. */
export interface OpenRoutes {
  readonly table: RouteTable<OpenRoute>;
  readonly routes: readonly OpenRoute[];
  /** Servers that sell here what they answer by themselves: at no address of this server. */
  readonly gates: readonly OpenGate[];
  /** The services that are for sale here, in the order of the file. */
  readonly services: readonly Service[];
  /** Those that are for sale at gates. */
  readonly elsewhere: readonly SoldElsewhere[];
  /** The categories that the catalogue of services does not have, and what each holds. */
  readonly tags: Readonly<Record<string, string>>;
  readonly userAgent: string;
  /** The upstreams, by digests of all that they are opened with. */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** Closes the connections to upstreams that the next routes do not have, once no call needs them. */
  retire(next: Pick<OpenRoutes, 'upstreams'>): Promise<void>;
  /** Lets calls end, and closes the connections. */
  close(): Promise<void>;
}

/**
 * Opens the routes of a configuration. Nothing is connected before the first call.
 *
 * @param about.version of this server, which upstreams are told
 * @param about.taken ids of other services
 * @param about.before routes whose upstreams are taken over where they are the same: their bounds and what is known of their failures
 *   stay
 */
export function openRoutes(
  config: ProxyConfig,
  {
    version,
    nowMs,
    taken,
    before = null,
  }: {
    version: string;
    nowMs(): number;
    taken: readonly string[];
    before?: Pick<OpenRoutes, 'upstreams'> | null;
  },
): OpenRoutes {
  const userAgent = `farebox/${version}`;
  const digests = new Map(config.upstreams.map((each) => [each.name, digestOf(each)]));
  const upstreams = new Map(
    config.upstreams.map((each) => {
      const digest = digests.get(each.name) ?? '';
      return [digest, before?.upstreams.get(digest) ?? open(each, nowMs)];
    }),
  );
  const ids = new Set(taken);
  const named = config.routes.map((route) => {
    const id = idOf(route, ids);
    ids.add(id);
    return { route, id };
  });
  const routes = named.flatMap(({ route, id }): OpenRoute | [] => {
    if (route.gate !== null) return [];
    const upstream = upstreams.get(digests.get(route.upstream.name) ?? '');
    if (upstream === undefined) throw new Error(`${route.key} has no upstream`);
    const tag = route.tags[0] ?? DEFAULT_TAG;
    const sent = { route, upstream, userAgent };
    const isFree = route.sale.kind === 'free';
    const service = isFree ? null : routeService({ ...sent, id, tag });
    const freeStream = isFree && route.answer === 'streamed' ? routeStream(sent) : null;
    return { method: route.method, path: route.path, route, upstream, service, freeStream };
  });
  const services = routes.flatMap(({ service }) => (service === null ? [] : [service]));
  const gates = config.gates.map((gate): OpenGate => {
    const ofGate = named.flatMap(({ route, id }): GateRoute | [] => {
      if (route.gate?.name !== gate.name) return [];
      const service = gateService(route, { id, tag: route.tags[0] ?? DEFAULT_TAG, userAgent });
      return { method: route.method, path: route.path, route, service };
    });
    return { gate, routes: ofGate, table: new RouteTable(ofGate) };
  });
  return {
    table: new RouteTable(routes),
    routes,
    gates,
    services,
    elsewhere: gates.flatMap(({ gate, routes: ofGate }) =>
      ofGate.map(({ service }) => ({ service, baseUrl: gate.url })),
    ),
    tags: aboutTags(services),
    userAgent,
    upstreams,
    async retire(next) {
      const left = [...upstreams].filter(([digest]) => !next.upstreams.has(digest));
      await Promise.all(left.map(([, each]) => each.retire()));
    },
    close: async () => void (await Promise.all([...upstreams.values()].map((each) => each.close()))),
  };
}

/** The tags of these services, each with a sentence. */
function aboutTags(services: readonly { tag: string }[]): Record<string, string> {
  return Object.fromEntries(
    services.map(({ tag }) => [tag, tag === DEFAULT_TAG ? ABOUT_DEFAULT_TAG : `Routes of ${tag}.`]),
  );
}

/** Tells upstreams apart by all that they are opened with, their secrets too. */
function digestOf(config: UpstreamConfig): string {
  const secrets = config.credentials.map(({ kind, name, reveal }) => [kind, name, reveal()]);
  return createHash('sha256')
    .update(JSON.stringify([config, secrets]))
    .digest('base64url');
}

function open(config: UpstreamConfig, nowMs: () => number): Upstream {
  const { origin, credentials, fixedHeaders, timeouts, concurrency, keepAlive, breaker } = config;
  const secret = (kind: 'header' | 'query') =>
    Object.fromEntries(
      credentials.flatMap((each) => (each.kind === kind ? [[each.name, each.reveal()]] : [])),
    );
  return openUpstream({
    url: origin,
    headers: { ...Object.fromEntries(fixedHeaders), ...secret('header') },
    query: secret('query'),
    headersTimeoutMs: timeouts.headersMs,
    idleTimeoutMs: timeouts.idleMs,
    wholeTimeoutMs: timeouts.wholeMs,
    concurrency,
    mostWaiting: concurrency * WAITING_FOR_EACH,
    keepAlive,
    breaker,
    nowMs,
  });
}

/** The id of a route's service, such as `get-v1-stations-id`: the same as long as its key is the same. */
function idOf({ key }: Route, taken: ReadonlySet<string>): string {
  const words = key
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, MOST_ID_CHARACTERS)
    .replace(/-$/, '');
  if (!taken.has(words)) return words;
  return `${words}-${createHash('sha256').update(key).digest('hex').slice(0, 8)}`;
}
