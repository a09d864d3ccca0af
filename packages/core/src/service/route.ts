/** A service that is called at an address of its own, in the form that its seller's API has. */

/** A call as it came, before anything of it is understood. */
export interface SentCall {
  rawBody: Buffer | undefined;
  /** The request at the route's address; null where the call came as a JSON object, such as the arguments of a tool. */
  http: SentRequest | null;
}

/** A request as its caller wrote it. */
export interface SentRequest {
  /** Path and query. */
  url: string;
  /** Names and values in turn, none of them joined or left out. */
  rawHeaders: readonly string[];
}

/** A call as it is understood, whichever way it came. */
export interface ReadCall {
  /** The input of the service's `run`. */
  input: unknown;
  /** The digest that a payment is bound to: the same for all ways to write the same call. */
  fingerprint: Buffer;
  /** The price of this very call. */
  priceMicros: bigint;
  /** The address that is bought, from its slash on. */
  address: string;
  /**
   * What the keys of an account are asked for this call; absent where all have the list price and no bounds.
   *
   * @throws ServiceFailure 400 for a call that has no price for these keys; nothing is charged
   */
  keyTerms?(accountId: bigint): KeyTerms;
}

/** The bounds and gifts that a seller gives to a key, counted together with all keys that were bought with its credit. */
export interface CallBounds {
  /** How many calls of a day (UTC) cost nothing, for keys whose credit was ever paid for. */
  readonly freeCallsPerDay: number;
  /** The most calls that begin in a minute, by the clock; null: no bound. */
  readonly callsPerMinute: number | null;
  /** The most calls that begin on a day (UTC); null: no bound. */
  readonly callsPerDay: number | null;
}

/** The price that a key is asked for one call. Wallets pay the list price. */
export interface KeyTerms extends CallBounds {
  readonly priceMicros: bigint;
}

export interface ServiceRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The public address from its slash on, with names for what varies: `/v1/stations/:id`. */
  readonly address: string;
  /**
   * Reads a call. The same bytes always give the same price, and `run` sends the bytes that were read.
   *
   * @throws ServiceFailure 400 for a call that cannot be understood or priced; nothing is charged
   */
  read(call: SentCall): ReadCall;
  readonly shown: ShownRoute;
}

/** A route as documents show it. */
export interface ShownRoute {
  /** JSON Schemas of its parts; null where its seller tells none. */
  readonly path: Readonly<Record<string, unknown>> | null;
  readonly query: Readonly<Record<string, unknown>> | null;
  readonly body: Readonly<Record<string, unknown>> | null;
  readonly answer: Readonly<Record<string, unknown>> | null;
  /** Further headers of the caller that count, in lower case. */
  readonly headers: readonly string[];
  /** A call that works: path and query, headers, and the body; undefined: it has none. */
  readonly example: { url: string; headers: Readonly<Record<string, string>>; body: unknown };
  /** Null where all calls cost the same. */
  readonly prices: { lowestUsd: string; highestUsd: string; decidedBy: string } | null;
  /** The bounds that each key has beside the price; absent where it is nothing. */
  readonly bounds?: CallBounds;
}
