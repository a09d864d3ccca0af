import type { z } from 'zod';
import type { UpstreamName, Upstreams } from '../upstreams/index.ts';
import type { Answer } from './answer.ts';

/** The categories of the catalog, in the order in which the catalog shows them. */
export const TAGS = [
  'Onboarding',
  'Discovery',
  'Trading Intelligence',
  'Execution',
  'Premium',
  'Real Estate',
  'Banking',
  'Investment',
  'Market Intelligence',
  'Prediction Markets',
  'Satellite Intelligence',
  'IoT & DePIN',
  'AI Services',
] as const;
export type Tag = (typeof TAGS)[number];

/** What every service is told about the call it answers; nothing about money beyond what it may print. */
export interface CallFacts {
  callId: string;
  rail: 'credits' | 'x402' | 'mpp';
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
  tag: Tag;
  priceUsd: string;
  summary: string;
  example: Record<string, unknown>;
  featured: boolean;
  available: boolean;
}

export interface RunContext<Needed extends UpstreamName> {
  upstreams: Pick<Upstreams, Needed>;
  /** Everything on sale, in catalog order. */
  catalog(): readonly CatalogLine[];
  call: CallFacts;
  /** The public address of this server, without a trailing slash. */
  baseUrl: string;
  version: string;
  /** Aborted when the call's deadline has passed. Hand it to every wait. */
  signal: AbortSignal;
  /** The time, in milliseconds since 1970. Services never ask the system clock themselves. */
  nowMs(): number;
}

/** One source, or a list of which one is enough. */
export type Need = UpstreamName | readonly UpstreamName[];
type NeededName<N> = N extends UpstreamName
  ? N
  : N extends readonly (infer M extends UpstreamName)[]
    ? M
    : never;

export interface ServiceDefinition<
  Input extends z.ZodObject,
  Output extends z.ZodObject,
  Needs extends readonly Need[],
  Uses extends readonly UpstreamName[],
> {
  /** The path below `/x402/`: also the service's id. */
  path: string;
  name: string;
  tag: Tag;
  /** The price of one call in USD, as a decimal string with at most six places. */
  priceUsd: string;
  /** One sentence: what the caller gets. At most 200 characters. */
  summary: string;
  featured?: boolean;
  /** The body of a request, in the interface's field names. Every field has a `.describe()` with its unit. */
  input: Input;
  /** The fields of the answer, at its top level. Provenance is added by the house. */
  output: Output;
  /** A body that works, shown in every document and bought by the tests. */
  example: z.input<Input>;
  /** Other spellings that existing clients send: `{ alias: 'canonicalField' }`. Snake case needs no entry. */
  aliases?: Record<string, Extract<keyof z.input<Input>, string>>;
  /** Last resort for body shapes that no alias covers. Gets the body after aliasing; must not throw. */
  adapt?: (body: Record<string, unknown>) => Record<string, unknown>;
  /** Sources without which there is no answer: if one is missing the service is not sold. */
  needs?: Needs;
  /** Sources that add to the answer but may be missing. */
  uses?: Uses;
  /** `read`: may run before it is paid for. `write`: leaves something behind, so it is paid for first. */
  effect?: 'read' | 'write';
  /** The longest a call may take; 20 s unless said otherwise, 25 s at most. */
  timeoutMs?: number;
  run(
    input: z.output<Input>,
    context: RunContext<NeededName<Needs[number]> | Uses[number]>,
  ): Promise<Answer<z.input<Output>>>;
}

/** A service with its types folded away, as the registry and the paid call see it. */
export interface Service {
  readonly path: string;
  readonly name: string;
  readonly tag: Tag;
  readonly priceUsd: string;
  readonly summary: string;
  readonly featured: boolean;
  readonly input: z.ZodObject;
  readonly output: z.ZodObject;
  readonly example: Record<string, unknown>;
  readonly aliases: Readonly<Record<string, string>>;
  readonly adapt: ((body: Record<string, unknown>) => Record<string, unknown>) | undefined;
  readonly needs: readonly Need[];
  readonly uses: readonly UpstreamName[];
  readonly effect: 'read' | 'write';
  readonly timeoutMs: number;
  run(input: unknown, context: RunContext<UpstreamName>): Promise<Answer<Record<string, unknown>>>;
}

/**
 * Declares a service. The declaration is all there is: routes, validation, prices, every document and every
 * count are rendered from it. Put the result as the default export of `services/<tag>/<path>.ts`.
 */
export function defineService<
  Input extends z.ZodObject,
  Output extends z.ZodObject,
  const Needs extends readonly Need[] = [],
  const Uses extends readonly UpstreamName[] = [],
>(definition: ServiceDefinition<Input, Output, Needs, Uses>): Service {
  const timeoutMs = definition.timeoutMs ?? 20_000;
  if (timeoutMs > 25_000) throw new Error(`${definition.path}: timeoutMs must be at most 25,000`);
  return {
    path: definition.path,
    name: definition.name,
    tag: definition.tag,
    priceUsd: definition.priceUsd,
    summary: definition.summary,
    featured: definition.featured ?? false,
    input: definition.input,
    output: definition.output,
    example: definition.example as Record<string, unknown>,
    aliases: definition.aliases ?? {},
    adapt: definition.adapt,
    needs: definition.needs ?? [],
    uses: definition.uses ?? [],
    effect: definition.effect ?? 'read',
    timeoutMs,
    // The pipeline hands over what `input` parsed, so the two types meet here and nowhere else.
    run: (input, context) =>
      definition.run(
        input as z.output<Input>,
        context as unknown as RunContext<NeededName<Needs[number]> | Uses[number]>,
      ) as Promise<Answer<Record<string, unknown>>>,
  };
}
