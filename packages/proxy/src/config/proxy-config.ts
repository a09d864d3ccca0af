/** A configuration as the server uses it: checked, with everything resolved, and never changed. */
import type { CallBounds } from '@farebox/core/service/route';
import type { Method, PathPattern } from './route-key.ts';

/** A secret that is sent to an upstream. It is in no field, so that no log and no copy of the object holds it. */
export interface Credential {
  readonly kind: 'header' | 'query';
  /** The name of the header, in lower case, or of the parameter. */
  readonly name: string;
  /** The environment variable that holds it. */
  readonly variable: string;
  /** The whole value to send, with its scheme. */
  reveal(): string;
}

export interface Upstream {
  readonly name: string;
  /** Scheme, host and port, such as `http://127.0.0.1:9000`. */
  readonly origin: string;
  /** The beginning of all paths of the API, without a slash at its end; empty for none. */
  readonly basePath: string;
  /** The beginning of the public paths that is cut off, without a slash at its end; empty for none. */
  readonly prefix: string;
  readonly credentials: readonly Credential[];
  readonly fixedHeaders: readonly (readonly [name: string, value: string])[];
  readonly timeouts: { readonly headersMs: number; readonly idleMs: number; readonly wholeMs: number };
  readonly concurrency: number;
  readonly keepAlive: boolean;
  /** Null: calls never fail at once. */
  readonly breaker: { readonly failures: number; readonly openMs: number } | null;
}

/** A server that answers routes of its own, and asks here for each call. */
export interface Gate {
  readonly name: string;
  /** Its public address, without a slash at its end. */
  readonly url: string;
  readonly secret: Credential;
}

/** The part of a request that decides its price. */
export type PriceSource =
  | { readonly kind: 'field'; readonly names: readonly string[] }
  | { readonly kind: 'header' | 'query' | 'path'; readonly name: string };

export interface PriceRule {
  readonly source: PriceSource;
  /** Prices of single values in micro-USD; null where tiers decide. */
  readonly prices: ReadonlyMap<string, bigint> | null;
  /** From the lowest to the highest; null where single values decide. */
  readonly tiers: readonly { readonly upTo: number; readonly priceMicros: bigint }[] | null;
  /** The price of every other value; null: such a call is refused. */
  readonly defaultMicros: bigint | null;
  /** The price where nothing decides; null: such a call is refused. */
  readonly absentMicros: bigint | null;
  readonly lowestMicros: bigint;
  readonly highestMicros: bigint;
}

/** A price by what comes out, of which the most is reserved. */
export interface MeterRule {
  readonly measure:
    | { readonly kind: 'bytes' }
    /** The names of the field, from the outermost one on; of `items`, none where the answer itself is the list. */
    | { readonly kind: 'items' | 'usage'; readonly path: readonly string[] };
  /** The price of `per` of them. */
  readonly priceMicros: bigint;
  readonly per: bigint;
  readonly atMostMicros: bigint;
  /** The price of an answer that does not tell the number, or tells one that is none. */
  readonly whenUnmeasuredMicros: bigint;
}

export type Sale =
  | { readonly kind: 'free' }
  | { readonly kind: 'fixed'; readonly priceMicros: bigint }
  | { readonly kind: 'metered'; readonly meter: MeterRule }
  | { readonly kind: 'by'; readonly rule: PriceRule };

/** A seller's word for what counts as an answer. */
export interface SuccessRule {
  readonly status: readonly number[];
  /** Media types such as `application/json` or `image/*`; null: any. */
  readonly contentType: readonly string[] | null;
  readonly has: readonly (readonly string[])[];
  readonly hasNot: readonly (readonly string[])[];
  readonly equals: readonly {
    readonly path: readonly string[];
    readonly value: string | number | boolean | null;
  }[];
  readonly lastEvent: string | null;
  readonly mayEndByClose: boolean;
  readonly minBytes: number;
}

/** What keys of a plan are asked and given at a route. */
export interface RoutePlan {
  readonly sale: Sale;
  readonly bounds: CallBounds;
}

export type JsonSchema = { readonly [keyword: string]: unknown };

export interface Route {
  /** The key as it is written: `GET /v1/stations/:id`. */
  readonly key: string;
  readonly method: Method;
  readonly path: PathPattern;
  /** Where its gate answers: an upstream that is never asked, and names the gate. */
  readonly upstream: Upstream;
  /** Null: its upstream answers. */
  readonly gate: Gate | null;
  readonly sale: Sale;
  /** What each key is given beside the price. */
  readonly bounds: CallBounds;
  /** What keys of single accounts are asked and given, by the numbers of the accounts. */
  readonly plans: ReadonlyMap<string, RoutePlan>;
  readonly effect: 'read' | 'write';
  readonly upstreamKnowsIdempotencyKey: boolean;
  readonly success: SuccessRule;
  /** Further headers of the caller that are sent on, in lower case; the one that decides the price among them. */
  readonly requestHeaders: readonly string[];
  readonly answerHeaders: readonly string[];
  readonly answer: 'kept' | 'streamed';
  readonly stream: { readonly maxOpen: number; readonly maxMs: number };
  readonly maxRequestBytes: number;
  readonly maxAnswerBytes: number;
  /** The longest that the whole call may take: of a streamed answer its stream. */
  readonly timeoutMs: number;
  readonly name: string;
  readonly summary: string | null;
  readonly tags: readonly string[];
  readonly example: RouteExample | null;
  readonly request: {
    readonly query: JsonSchema | null;
    readonly path: JsonSchema | null;
    readonly body: JsonSchema | null;
  };
  readonly response: JsonSchema | null;
}

export interface RouteExample {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: it has none. */
  readonly body: unknown;
}

/** A change of a service that the server ships with. Null: as it ships. */
export interface HouseServiceRule {
  readonly priceMicros: bigint | null;
  readonly isAvailable: boolean | null;
  readonly isSoldByMpp: boolean | null;
}

export interface ProxyConfig {
  readonly upstreams: readonly Upstream[];
  readonly gates: readonly Gate[];
  /** In the order of the file. */
  readonly routes: readonly Route[];
  readonly services: ReadonlyMap<string, HouseServiceRule>;
  /** All of it as it is written, as JSON: two files that mean the same have the same. It holds no secrets. */
  readonly written: string;
}
