import type { Described } from '../http/operation.ts';
import type { Availability } from '../service/availability.ts';
import type { Service } from '../service/define.ts';
import type { ServiceFigures } from '../service/figures.ts';
import type { Legal } from '../words/legal.ts';
import type { CardSigner } from './card-signature.ts';

/** Everything that a published document may state. The documents are pure functions of this context. */
export interface DiscoveryContext {
  /** The name of the software, whatever its operator calls the shop. */
  product: string;
  /** The shop as its operator names it. */
  shop: { name: string; contactEmail: string | null; logoUrl: string | null; legal?: Legal };
  version: string;
  /** The configured public address, without a trailing slash. Never taken from a request's `Host`. */
  baseUrl: string;
  /** Whether the money is that of a sandbox: every document says so. */
  sandbox: boolean;
  /** The services that are for sale at all, in catalog order. */
  readonly services: readonly Service[];
  /** Their categories, in the order of the catalog, and what each holds. */
  readonly tags: Readonly<Record<string, string>>;
  /** Paths of services that exist but are not sold here. */
  readonly leftOut: readonly string[];
  /** Whether a service may be sold at this moment; asked again for every rendering. */
  availability(service: Service): Availability;
  /** How services have answered in the last day. */
  figures: ServiceFigures;
  /** The ways to pay that work now. Credits always do. */
  readonly rails: { readonly x402: X402Offer | null; readonly mpp: MppOffer | null };
  /** Null while no trial keys are given out. */
  trial: TrialTerms | null;
  /** True once a card can be charged. Tiers are published only then. */
  cardCheckout: boolean;
  /** Signs the agent card of A2A. */
  cardSigner: CardSigner;
  tiers: readonly CreditTier[];
  limits: { requestsPerMinute: number; bodyBytes: number };
  /**
   * Every route of the app, as registered with Fastify. The list may grow until the first request, because documents
   * are rendered on request. No document mentions a route that is not in it.
   */
  routes: readonly Route[];
  /** How the parts describe their routes. */
  described(): readonly Described[];
  nowMs(): number;
}

export const DAY_MS = 86_400_000;

/** The number of the day since 1970. Documents that state a date stay the same all day. */
export function dayOf({ nowMs }: DiscoveryContext): number {
  return Math.floor(nowMs() / DAY_MS);
}

export interface Route {
  method: string;
  /** With Fastify's parameters: `/x402/recipes/:service`. */
  path: string;
  /** How OpenAPI describes it; absent when the route's part does not describe it. */
  operation?: (method: string) => Readonly<Record<string, unknown>> | null;
}

/** On-chain payment by x402, where it is on. The first network is the preferred one. */
export interface X402Offer {
  facilitatorUrl: string | null;
  networks: readonly [X402Network, ...X402Network[]];
}

export interface X402Network {
  /** CAIP-2, such as `eip155:8453`. */
  network: string;
  /** The short name, such as `base`. */
  name: string;
  payTo: string;
  asset: { symbol: string; address: string; decimals: number };
  /** False when money cannot be refunded there: services that are charged before they run are not sold for it. */
  canRefund: boolean;
}

/**
 * Payment by the Machine Payments Protocol, while it is on: the methods in order of preference. It buys the services
 * that declare `mpp`, at `/mpp/<path>`.
 */
export interface MppOffer {
  methods: readonly [MppMethod, ...MppMethod[]];
}

export interface MppMethod {
  method: 'tempo' | 'evm';
  chainId: number;
  /** The token's address. Every token that is taken has 6 decimals. */
  currency: string;
  recipient: string;
  /** False when money cannot be refunded there: services that are charged before they run are not sold for it. */
  canRefund: boolean;
}

export interface TrialTerms {
  creditsUsd: string;
  lifetimeDays: number;
  /** An address gets one key in this many days. */
  onePerDays: number;
}

export interface CreditTier {
  amountUsd: number;
  label: string;
}

/** The shop's identity, as documents state it at their top. */
export function shopOf({ shop: { name, contactEmail, logoUrl } }: DiscoveryContext) {
  return { name, contact: contactEmail, logo: logoUrl };
}

/** Whether the app serves this now. Paths may be written with `{name}` or `:name`. */
export function serves(context: DiscoveryContext, method: string, path: string): boolean {
  const wanted = asTemplate(path);
  return context.routes.some((route) => route.method === method && asTemplate(route.path) === wanted);
}

/** The address of the vault's own manifest, where this server offers one. */
export const YIELD_MANIFEST = '/api/yield/manifest';
/** The address of the Solana yield portal's own manifest, where this server offers one. */
export const SOLANA_YIELD_MANIFEST = '/api/solana-yield/manifest';

/** Fastify's `:name` as OpenAPI's `{name}`. */
export function asTemplate(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}');
}

/** The service to try first: cheap and reliable. Null when nothing is for sale. */
export function firstService(context: DiscoveryContext): Service | null {
  return cheapestForSale(context, () => true);
}

/** `first-call` if it is for sale and wanted, else the cheapest that is; null when none is. */
export function cheapestForSale(
  context: DiscoveryContext,
  wanted: (service: Service) => boolean,
): Service | null {
  const forSale = context.services.filter(
    (service) => wanted(service) && context.availability(service).available,
  );
  const cheapest = forSale.toSorted((a, b) => Number(a.priceUsd) - Number(b.priceUsd))[0];
  return forSale.find(({ path }) => path === 'first-call') ?? cheapest ?? null;
}

/**
 * Everything that may change between two renderings, in one string: the same fingerprint gives the same documents. A
 * network's recipient is configured and cannot change; which networks are offered can.
 */
export function fingerprintOf(context: DiscoveryContext): string {
  const states = context.services.map((service) => {
    const { reason, message, chains } = context.availability(service);
    return `${reason ?? ''}:${message ?? ''}:${chains}`;
  });
  const networks = context.rails.x402?.networks.map(({ network }) => network) ?? [];
  const trial = context.trial === null ? 'no trial' : 'trial';
  const measuredAt = context.figures.measuredAtMs() ?? 'never';
  return `${dayOf(context)}|${measuredAt}|${trial}|${context.routes.length}|${networks.join()}|${states.join('|')}`;
}

/** The lowest and the highest price on the list, as decimal strings; null when nothing is on it. */
export function priceRange(services: readonly Service[]): { minUsd: string; maxUsd: string } | null {
  const prices = services.map(({ priceUsd }) => priceUsd).toSorted((a, b) => Number(a) - Number(b));
  const [minUsd, maxUsd] = [prices[0], prices.at(-1)];
  return minUsd === undefined || maxUsd === undefined ? null : { minUsd, maxUsd };
}
