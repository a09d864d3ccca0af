import type { Address, Hex } from 'viem';
import { z } from 'zod';
import type { Answer, ContentAnswer } from '../words/answer.ts';
import type { ChainName } from '../words/chain-names.ts';
import type { Choice } from '../words/choices.ts';
import type { RailName } from '../words/rail-names.ts';
import type { MeteredPrice } from './metered.ts';
import type { ServiceRoute } from './route.ts';

/** The facts that every service is told about the call that it answers. About money it learns only what it may print. */
export interface CallFacts {
  callId: string;
  /**
   * Names the order. The same payment, or the same Idempotency-Key of an account, has the same one whenever it comes again, also
   * where an earlier call for it was given back. Without either it is the call's id.
   */
  orderId: string;
  rail: RailName;
  /** The name by which shares of what all callers use are counted, whichever key or wallet pays. Not to be printed. */
  caller: string;
  /** A name of the payer that is safe to print: a key's prefix, a wallet's address. */
  payer: string;
  priceMicros: bigint;
  /** Where the payment settles, such as `eip155:8453`; null when it moves inside the ledger. */
  network: string | null;
}

/** One line of the catalog as a service may show it. */
export interface CatalogLine {
  path: string;
  name: string;
  tag: string;
  priceUsd: string;
  summary: string;
  example: Record<string, unknown>;
  featured: boolean;
  available: boolean;
  /** The service whose second name this is; null: none. Counts leave it out. */
  aliasOf: string | null;
  /** Those of the chains it reads that can be read now. */
  chains: readonly ChainName[];
}

/** A wallet that is kept for an agent, as a service may show it: never with its private key. */
export interface ManagedWallet {
  walletId: string;
  agentId: string;
  agentName: string | null;
  purpose: string | null;
  /** One address for each network: the same on all EVM chains, another on Solana. In catalog order of the chains. */
  addresses: { network: ChainName; address: string }[];
  createdAtMs: number;
}

/** The managed wallets of whoever pays for this call, and of nobody else. Case does not count in an agentId. */
export interface Custody {
  /**
   * Keeps an agentId for this call for a minute, before its payment settles on a chain.
   *
   * @returns the wallet, if the payer has it already, on all these networks; null: there is something to buy
   * @throws ServiceFailure 503 `WALLET_IN_PROGRESS` while another payment of the payer is about to buy it
   */
  claim(request: {
    callId: string;
    agentId: string;
    networks: readonly ChainName[];
  }): Promise<ManagedWallet | null>;
  /**
   * Makes the payer's wallet for an agent. If there is one, networks that it lacks are added to it.
   *
   * @returns `bought`: what this call made, also when it is run again; `nothing`: the wallet was there, with all these
   *   networks, and must not be paid for. `walletSecret`: what its owner may later export or delete the wallet with; only in
   *   the call that made the wallet (when that call is run again, the earlier secret, which nobody got, ends); otherwise null
   */
  walletFor(request: {
    callId: string;
    agentId: string;
    agentName: string | null;
    purpose: string | null;
    networks: readonly ChainName[];
  }): Promise<{
    wallet: ManagedWallet;
    bought: 'wallet' | 'networks' | 'nothing';
    walletSecret: string | null;
  }>;
}

export interface RegisteredIdentity {
  /** The registry's id of the agent; ids start at 0. */
  tokenId: bigint;
  /** The owner of the identity: the requested one, or else the registrar's own address. */
  owner: Address;
  agentUri: string;
  registerTransaction: Hex;
  /** Null when the registrar keeps the identity. */
  transferTransaction: Hex | null;
}

/** ERC-8004 identities, registered for whoever pays for this call. Case does not count in an agentId. */
export interface Identities {
  readonly chainId: number;
  readonly registry: Address;
  /**
   * Keeps an agentId for this call for a minute, before its payment settles on a chain.
   *
   * @throws noAnswer `IDENTITY_EXISTS` when the payer registered this agentId before, in another call
   * @throws ServiceFailure 503 `IDENTITY_IN_PROGRESS` while another call registers it, or is about to pay for it
   */
  claim(request: { callId: string; agentId: string }): Promise<void>;
  /**
   * Registers an agent and gives the identity to `owner`. The same call may run again, and then finds its own
   * transactions.
   *
   * @param request.agentUri the address of the registration file, or the file itself as a `data:` URI
   * @param request.owner null: the registrar keeps the identity
   * @throws noAnswer `IDENTITY_EXISTS` when the payer registered this agentId before, in another call
   * @throws ServiceFailure 503 while another call registers it, 502 when the registry refuses
   */
  register(request: {
    callId: string;
    agentId: string;
    agentUri: string;
    owner: Address | null;
  }): Promise<RegisteredIdentity>;
}

/** Keys that are sold to whoever pays for this call. */
export interface KeySales {
  /**
   * The key that this call buys. It holds its credit once the call is captured, and is useless before. When the same
   * call runs again, it gets the same key.
   *
   * @returns `trial`: what of it is trial credit, and when that expires; null: none is
   * @throws noAnswer `NEW_CARD_KEYS_LIMIT` when new card credit has bought as many keys as it may in a day
   */
  keyFor(request: { callId: string; label: string | null; amountMicros: bigint }): Promise<{
    apiKey: string;
    prefix: string;
    trial: { usd: string; isAll: boolean; endsAtMs: number } | null;
  }>;
}

/** The abilities of the house for any service beyond asking sources, if the operator has configured it. A catalogue may have more. */
export interface HouseCapabilities {
  custody: Custody;
  identities: Identities;
  keySales: KeySales;
}

/** The context that every service gets to answer a call with. */
export type CallContext = {
  /** Everything on sale, in catalog order. */
  catalog(): readonly CatalogLine[];
  call: CallFacts;
  /** The public address of this server, without a trailing slash. */
  baseUrl: string;
  version: string;
  /** Aborted when the call's deadline has passed. Pass it to every wait. */
  signal: AbortSignal;
  /** The time in milliseconds since 1970. Services never read the system clock themselves. */
  nowMs(): number;
};

/**
 * The context that a service's `run` gets.
 *
 * @typeParam Apis the sources that it may ask, by name
 * @typeParam Able the capabilities that there are: one is there for services that `require` it, and for those that `mayUse`
 *   it where the house has it
 */
export type RunContext<Apis extends object = object, Able extends object = object> = CallContext & {
  upstreams: Apis;
} & { [Name in keyof Able]?: Able[Name] | undefined };

/** The same as the paid call hands it to any service: capabilities by their names. */
export type AnyRunContext = RunContext & { readonly [capability: string]: unknown };

/** One source, or a list of sources of which one is enough. */
export type Need<Name extends string = string> = Name | readonly Name[];
type NeededName<N> = N extends string ? N : N extends readonly (infer M extends string)[] ? M : never;
type NameOf<Of extends object> = Extract<keyof Of, string>;
/** What a service gets that asks these sources and requires these capabilities. */
type ContextOf<
  Apis extends object,
  Able extends object,
  Needs extends readonly Need[],
  Uses extends readonly string[],
  Requires extends readonly string[],
> = RunContext<Pick<Apis, Extract<NeededName<Needs[number]> | Uses[number], keyof Apis>>, Able> &
  Pick<Able, Extract<Requires[number], keyof Able>>;

/** A piece of a streamed answer: one event of its stream. */
export interface Piece {
  /** For example `delta`: lower-case words and dashes. `result` and `error` are reserved. */
  event: string;
  data: Readonly<Record<string, unknown>>;
}

/** How a service streams its answer: events in the house's own form, or bytes as another server sends them. */
export type ServiceStream = EventStream | ByteStream;

/** Server-sent events, whose last one has the whole answer. What is short enough is kept for repeats. */
export interface EventStream {
  readonly form: 'events';
  /** The field of the input that asks for a stream with `true`. */
  readonly field: string;
  /** The longest that the service may take for all pieces, without the time that its reader takes. */
  readonly timeoutMs: number;
  run(input: unknown, context: AnyRunContext): AsyncGenerator<Piece, Answer<Record<string, unknown>>>;
}

/** The answer to each call at the service's own address. It is not kept; elsewhere `run` gathers it. */
export interface ByteStream {
  readonly form: 'bytes';
  /** As in `EventStream`. */
  readonly timeoutMs: number;
  /** The longest that its reader may keep it waiting, in all. */
  readonly readerMs: number;
  readonly mostBytes: number;
  /** Resolves once the answer has begun. @throws ServiceFailure when there is none */
  run(input: unknown, context: AnyRunContext): Promise<StreamedContent>;
}

/** An answer whose end is not known yet. */
export interface StreamedContent extends Omit<ContentAnswer, 'content' | 'costMicros'> {
  /** Tells the cost of all that has come of it so far, in micro-USD, where its service is metered. */
  costMicros?(): bigint;
  /**
   * Yields the pieces that leave at once, and returns the one that leaves once the price is taken.
   *
   * @throws ServiceFailure when the rest does not come
   */
  pieces: AsyncGenerator<Buffer, Buffer>;
}

export interface ServiceDefinition<
  Input extends z.ZodObject,
  Output extends z.ZodObject,
  Needs extends readonly Need[],
  Uses extends readonly string[],
  Requires extends readonly string[],
  Apis extends object = object,
  Able extends object = HouseCapabilities,
> {
  /** The path below `/x402/`: also the service's id. */
  path: string;
  name: string;
  /** Its category, in the words of the catalog. */
  tag: string;
  /** The price of one call in USD, as a decimal string with at most six places. */
  priceUsd: string;
  /** One sentence: what the caller gets. At most 200 characters. */
  summary: string;
  /** Words by which people ask for it and that stand nowhere else here. Search reads them; they are not shown. */
  keywords?: string;
  featured?: boolean;
  /** The body of a request, in the interface's field names. Every field has a `.describe()` with its unit. */
  input: Input;
  /** The fields of the answer, at its top level. Provenance is added by the house. */
  output: Output;
  /** A body that works. It is shown in every document, and the tests buy it. */
  example: z.input<Input>;
  /** Other spellings that existing clients send: `{ alias: 'canonicalField' }`. Snake case needs no entry. */
  aliases?: Record<string, Extract<keyof z.input<Input>, string>>;
  /** The choices of a caller whose body does not fit, the same for every caller: the error lists it. */
  choices?: readonly Choice[];
  /** Adapts body shapes that no alias covers. It gets the body after aliasing, and must not throw. */
  adapt?: (body: Record<string, unknown>) => Record<string, unknown>;
  /** Sources without which there is no answer. If one is missing, the service is not for sale. */
  needs?: Needs;
  /** Sources that add to the answer but may be missing. */
  uses?: Uses;
  /** Requests of a source that one answer takes, where it is not one, or where the source is one of several that are all asked. */
  requestsOf?: { readonly [Name in NameOf<Apis>]?: number };
  /** Capabilities without which the service is not for sale. */
  requires?: Requires;
  /** Capabilities that add to the answer but may be missing. */
  mayUse?: readonly NameOf<Able>[];
  /** Set where running it may cost the operator money, as with a hosted model. */
  costsMoney?: boolean;
  /**
   * The answer holds a secret of the caller's. The copy kept for repeats is encrypted, and a payment on a chain gets
   * the answer only with a claim, which is on no chain. A function decides it by the input.
   */
  secretAnswer?: true | ((input: z.output<Input>) => boolean);
  /** Whether it is sold at `/mpp/<path>` too. */
  mpp?: true;
  /** `read`: may run before its payment has settled. `write`: has a lasting effect, so it is charged before it runs. */
  effect?: 'read' | 'write';
  /** The longest that a call may take: 20 s by default. A door may have its own bound: HTTP has 25 s. */
  timeoutMs?: number;
  /**
   * Refuses what the service could not answer, before a payment on a chain settles for a call with a lasting effect. It
   * throws what `run` would throw, and nothing is charged. A call on credit is refused by `run` itself, uncharged.
   */
  beforeSettling?(
    input: z.output<Input>,
    context: ContextOf<Apis, Able, Needs, Uses, Requires>,
  ): Promise<void>;
  run(
    input: z.output<Input>,
    context: ContextOf<Apis, Able, Needs, Uses, Requires>,
  ): Promise<Answer<z.input<Output>>>;
  /** The same answer as a stream, for callers that send `field: true`. `run` is used where a door cannot stream. */
  stream?: {
    field: Extract<keyof z.input<Input>, string>;
    /** 120 s by default. */
    timeoutMs?: number;
    /** Yields the pieces as they come, and returns the same answer that `run` would return. */
    run(
      input: z.output<Input>,
      context: ContextOf<Apis, Able, Needs, Uses, Requires>,
    ): AsyncGenerator<Piece, Answer<z.input<Output>>>;
  };
}

/** A service without its type parameters, as the registry and the paid call see it. */
export interface Service {
  readonly path: string;
  /** The path of the service whose second name this is, sold at both and counted once. */
  readonly aliasOf?: string;
  readonly name: string;
  readonly tag: string;
  readonly priceUsd: string;
  readonly summary: string;
  readonly keywords: string;
  readonly featured: boolean;
  readonly input: z.ZodObject;
  /** The fields of its answer; empty when the answer is not JSON. */
  readonly output: z.ZodObject;
  /** The type of its answer with parameters, such as `text/csv; charset=utf-8`. */
  readonly contentType: string;
  /** The same without parameters; `application/json` when the answer has the fields of `output`. */
  readonly mediaType: string;
  readonly example: Record<string, unknown>;
  readonly aliases: Readonly<Record<string, string>>;
  readonly choices: readonly Choice[];
  readonly adapt: ((body: Record<string, unknown>) => Record<string, unknown>) | undefined;
  readonly needs: readonly Need[];
  readonly uses: readonly string[];
  /** Requests of a source that one answer takes, where it is not one. */
  readonly requestsOf?: Readonly<Record<string, number>>;
  readonly requires: readonly string[];
  readonly mayUse: readonly string[];
  /** Whether running it may cost the operator money. */
  readonly costsMoney: boolean;
  /** Whether any of its answers may hold a secret. */
  readonly secretAnswer: boolean;
  /** Whether the answer to this input holds a secret. */
  isSecret(input: unknown): boolean;
  readonly mpp: boolean;
  readonly effect: 'read' | 'write';
  readonly timeoutMs: number;
  readonly stream: ServiceStream | null;
  /** Set where the cost of a call follows from its answer, and an account's credit alone pays for it; null: it is known before. */
  readonly metered: MeteredPrice | null;
  /** Its own address and form over HTTP; null: it is a POST of its input as JSON. */
  readonly route: ServiceRoute | null;
  /** What is refused before a payment on a chain settles; null: nothing is. */
  readonly beforeSettling: ((input: unknown, context: AnyRunContext) => Promise<void>) | null;
  run(input: unknown, context: AnyRunContext): Promise<Answer<Record<string, unknown>>>;
}

/**
 * The longest that any service may take. Its price stays reserved that long, and nobody else continues its payment
 * meanwhile.
 */
const LONGEST_SERVICE_MS = 300_000;
/** The longest that another server may take for a stream. */
const LONGEST_STREAM_MS = 3_600_000;
const JSON_TYPE = 'application/json; charset=utf-8';

/** How services are declared that ask certain sources and use certain capabilities. */
export type ServiceDefiner<Apis extends object, Able extends object> = <
  Input extends z.ZodObject,
  Output extends z.ZodObject,
  const Needs extends readonly Need<NameOf<Apis>>[] = [],
  const Uses extends readonly NameOf<Apis>[] = [],
  const Requires extends readonly NameOf<Able>[] = [],
>(
  definition: ServiceDefinition<Input, Output, Needs, Uses, Requires, Apis, Able>,
) => Service;

/** The same for services whose answer is not JSON. */
export type ContentServiceDefiner<Apis extends object, Able extends object> = <
  Input extends z.ZodObject,
  const Needs extends readonly Need<NameOf<Apis>>[] = [],
  const Uses extends readonly NameOf<Apis>[] = [],
  const Requires extends readonly NameOf<Able>[] = [],
>(
  definition: ContentDefinition<Input, Needs, Uses, Requires, Apis, Able>,
) => Service;

/**
 * Makes the functions that declare the services of a catalogue which has sources of its own.
 *
 * @typeParam Apis its sources, by the names that services need them by
 * @typeParam Able the capabilities that it may use
 * @param costsMoney whether asking a source costs the operator money
 */
export function definersFor<Apis extends object, Able extends object = HouseCapabilities>({
  costsMoney,
}: {
  costsMoney(source: NameOf<Apis>): boolean;
}): { defineService: ServiceDefiner<Apis, Able>; defineContentService: ContentServiceDefiner<Apis, Able> } {
  const isCostly = (source: string) => costsMoney(source as NameOf<Apis>);
  return {
    defineService: (definition) => serviceOf(definition as AnyDefinition, isCostly),
    defineContentService: (definition) => contentServiceOf(definition as AnyContent, isCostly),
  };
}

const WITHOUT_SOURCES = definersFor<Record<never, never>>({ costsMoney: () => false });

/**
 * Declares a service. The declaration is all there is to write: routes, validation, prices, every document and every
 * count are rendered from it.
 *
 * @example
 * ```ts
 * import { defineService } from '@farebox/core/service/define';
 * import { answer } from '@farebox/core/words/answer';
 * import { z } from 'zod';
 *
 * const echo = defineService({
 *   path: 'echo',
 *   name: 'Echo',
 *   tag: 'Words',
 *   priceUsd: '0.01',
 *   summary: 'Your own words.',
 *   input: z.object({ words: z.string().max(100).describe('Any words') }),
 *   output: z.object({ words: z.string().describe('The same words') }),
 *   example: { words: 'hello' },
 *   run: async ({ words }) => answer({ words }, { method: 'As they came.', sources: [] }),
 * });
 * echo.priceUsd; // '0.01'
 * ```
 */
export const defineService = WITHOUT_SOURCES.defineService;

/**
 * Declares a service whose answer is not JSON. It is sold, stored and replayed like any other, byte for byte. Its
 * provenance is in the header `x-provenance`.
 *
 * @throws Error when `contentType` is not a media type, or is JSON, which needs `defineService`
 */
export const defineContentService = WITHOUT_SOURCES.defineContentService;

/** A declaration without its type parameters: the paid call passes to `run` what `input` parsed. */
type AnyDefinition = Omit<
  ServiceDefinition<z.ZodObject, z.ZodObject, readonly Need[], readonly string[], readonly string[]>,
  'run' | 'stream' | 'beforeSettling' | 'secretAnswer' | 'mayUse' | 'aliases' | 'example'
> & {
  aliases?: Readonly<Record<string, string>>;
  example: unknown;
  mayUse?: readonly string[];
  secretAnswer?: true | ((input: unknown) => boolean);
  beforeSettling?: NonNullable<Service['beforeSettling']>;
  route?: ServiceRoute;
  metered?: MeteredPrice;
  run: Service['run'];
  stream?: { field: string; timeoutMs?: number; run: EventStream['run'] };
};
type AnyContent = Omit<AnyDefinition, 'output' | 'run' | 'stream'> & {
  contentType: string;
  stream?: Omit<ByteStream, 'form'>;
  run(input: unknown, context: AnyRunContext): Promise<ContentAnswer>;
};

function serviceOf(definition: AnyDefinition, isCostly: (source: string) => boolean): Service {
  const { secretAnswer = false, timeoutMs = 20_000, needs = [], uses = [], stream } = definition;
  for (const each of [timeoutMs, stream?.timeoutMs ?? 1])
    if (!(each >= 1 && each <= LONGEST_SERVICE_MS))
      throw new Error(`${definition.path}: timeoutMs must be 1 to ${LONGEST_SERVICE_MS}`);
  return {
    path: definition.path,
    name: definition.name,
    tag: definition.tag,
    priceUsd: definition.priceUsd,
    summary: definition.summary,
    keywords: definition.keywords ?? '',
    featured: definition.featured ?? false,
    input: definition.input,
    output: definition.output,
    contentType: JSON_TYPE,
    mediaType: 'application/json',
    example: definition.example as Record<string, unknown>,
    aliases: definition.aliases ?? {},
    choices: definition.choices ?? [],
    adapt: definition.adapt,
    needs,
    uses,
    ...(definition.requestsOf === undefined
      ? {}
      : { requestsOf: definition.requestsOf as Readonly<Record<string, number>> }),
    requires: definition.requires ?? [],
    mayUse: definition.mayUse ?? [],
    costsMoney: definition.costsMoney ?? [...needs.flat(), ...uses].some(isCostly),
    secretAnswer: secretAnswer !== false,
    isSecret: (input) => (typeof secretAnswer === 'function' ? secretAnswer(input) : secretAnswer),
    mpp: definition.mpp ?? false,
    effect: definition.effect ?? 'read',
    timeoutMs,
    stream:
      stream === undefined
        ? null
        : { form: 'events', field: stream.field, timeoutMs: stream.timeoutMs ?? 120_000, run: stream.run },
    metered: definition.metered ?? null,
    route: definition.route ?? null,
    beforeSettling: definition.beforeSettling ?? null,
    run: (input, context) => definition.run(input, context),
  };
}

/** A service whose answer is a text or bytes, such as a table or a picture, instead of JSON. */
export type ContentDefinition<
  Input extends z.ZodObject,
  Needs extends readonly Need[],
  Uses extends readonly string[],
  Requires extends readonly string[],
  Apis extends object = object,
  Able extends object = HouseCapabilities,
> = Omit<
  ServiceDefinition<Input, z.ZodObject, Needs, Uses, Requires, Apis, Able>,
  'output' | 'run' | 'stream'
> & {
  /** The type of its answer, such as `image/png`. A text type without a charset is in UTF-8. */
  contentType: string;
  /** Its own address and form over HTTP, whose answers may then have any type. */
  route?: ServiceRoute;
  /** How its price follows from its answer, each of which then says what it costs. */
  metered?: MeteredPrice;
  /** How the same answer leaves at that address as it comes; left out where it is sent whole. */
  stream?: Omit<ByteStream, 'form'>;
  run(input: z.output<Input>, context: ContextOf<Apis, Able, Needs, Uses, Requires>): Promise<ContentAnswer>;
};

/** Made once: a shop may sell thousands of routes. */
const NO_FIELDS = z.object({});

function contentServiceOf(definition: AnyContent, isCostly: (source: string) => boolean): Service {
  const { contentType, run, stream, ...rest } = definition;
  const mediaType = /^[a-z]+\/[a-z0-9][a-z0-9.+-]*(?=$|;)/.exec(contentType)?.[0];
  if (mediaType === undefined || !/^[!-~ ]{1,100}$/.test(contentType))
    throw new Error(`${definition.path}: ${contentType} is no media type, such as text/csv or image/png`);
  const isOurs = mediaType === 'application/json' || mediaType === 'text/event-stream';
  if (isOurs && rest.route === undefined)
    throw new Error(`${definition.path}: ${mediaType} is for defineService`);
  if (stream !== undefined && !(stream.timeoutMs >= 1 && stream.timeoutMs <= LONGEST_STREAM_MS))
    throw new Error(`${definition.path}: a stream may take 1 to ${LONGEST_STREAM_MS} ms`);
  const isBare = mediaType.startsWith('text/') && !contentType.includes('charset=');
  const made = run as unknown as Service['run'];
  return {
    ...serviceOf({ ...rest, output: NO_FIELDS, run: made }, isCostly),
    contentType: isBare ? `${mediaType}; charset=utf-8` : contentType,
    mediaType,
    stream: stream === undefined ? null : { form: 'bytes', ...stream },
  };
}
