/**
 * An endpoint of the legacy family is a service of the registry under an older name, with its own price, the parameters
 * that its clients send, and the fields that they read. Everything else, including every number, is the service's.
 */
import { z } from 'zod';
import { usdToMicros } from '../ledger/money.ts';
import type { RunContext, Service } from '../service/define.ts';
import { exampleAnswerOf } from '../service/example-answer.ts';
import { type Answer, answer } from '../words/answer.ts';
import { ServiceFailure } from '../words/failure.ts';
import { creditsOf } from './credits.ts';

/** The things that an endpoint builds its answer from. */
export interface Asked<Fields> {
  /** The service's answer. */
  answered: Promise<Fields>;
  /** The service's input, as it was read from the request. */
  input: Readonly<Record<string, unknown>>;
  nowMs(): number;
  /**
   * Asks a second service for what the first one does not provide. Null, with a note in the answer, when that service
   * is not there or cannot answer, so that the first answer is still sold.
   */
  beside<Reads extends z.ZodObject>(
    service: string,
    body: Record<string, unknown>,
    reads: Reads,
  ): Promise<z.output<Reads> | null>;
}

interface EndpointDefinition<Reads extends z.ZodObject> {
  /** The path below `/api/gpt/`. */
  path: string;
  /** The path of the service in the registry. */
  service: string;
  /** The interface's price of a call; null: free. It applies even if the service itself has another price. */
  priceUsd: string | null;
  /** The meaning of a missing parameter in the legacy family, under the service's names. */
  defaults?: Record<string, unknown>;
  /** Other names of parameters: `{ alias: 'field of the service' }`. */
  aliases?: Record<string, string>;
  /** Parameters with narrower bounds than the service's. */
  narrowed?: Record<string, z.ZodType>;
  /**
   * The fields that are read from the service's answer. Without it an answer that is not JSON is passed on unchanged.
   */
  reads?: Reads;
  shape?(asked: Asked<z.output<Reads>>): Promise<Record<string, unknown>>;
}

/** An endpoint without its type parameters. */
export interface LegacyEndpoint {
  readonly path: string;
  readonly service: string;
  readonly priceUsd: string | null;
  /** The endpoint as a service that can be sold, made from the service that it stands for. */
  made(service: Service, registry: ReadonlyMap<string, Service>): Service;
  /** An example answer in its form, as `exampleAnswerOf` makes those of services; empty when the service has none. */
  exampleAnswer(service: Service): Promise<Readonly<Record<string, unknown>>>;
}

/** Declares an endpoint. */
export function defineEndpoint<Reads extends z.ZodObject>(
  definition: EndpointDefinition<Reads>,
): LegacyEndpoint {
  const { path, priceUsd, reads, shape, defaults = {}, aliases = {}, narrowed = {} } = definition;
  return {
    path,
    service: definition.service,
    priceUsd,
    async exampleAnswer(service) {
      const read = reads?.safeParse(exampleAnswerOf(service));
      if (read?.success !== true) return {};
      return { ...(await shape?.(exampleAsked(service, read.data))), ...chargeOf(priceUsd) };
    },
    made(service, registry) {
      checkFit(`/api/gpt/${path}`, service, {
        inputs: [...Object.keys(defaults), ...Object.values(aliases), ...Object.keys(narrowed)],
        outputs: Object.entries<z.ZodType>(reads?.shape ?? {}).flatMap(([name, field]) =>
          z.safeParse(field, undefined).success ? [] : [name],
        ),
      });
      assertShapes(`/api/gpt/${path}`, service, reads !== undefined && shape !== undefined);
      const input = Object.keys(narrowed).length === 0 ? service.input : service.input.safeExtend(narrowed);
      return {
        ...service,
        // A call of this family has a path of its own, so a payment for it buys nothing at the other addresses, nor the
        // reverse.
        path: `gpt/${path}`,
        priceUsd: priceUsd ?? '0.00',
        featured: false,
        mpp: false,
        stream: null,
        input,
        output: z.looseObject({}),
        aliases: { ...service.aliases, ...aliases },
        adapt(body) {
          const named = { ...defaults, ...body };
          return readTexts(input, service.adapt === undefined ? named : service.adapt(named));
        },
        async run(input, context) {
          if (reads === undefined || shape === undefined) return runDeclared(service, input, context);
          const notes: string[] = [];
          const answers: Answer<unknown>[] = [];
          const first = service.run(input, context).then((made) => {
            answers.unshift(made);
            return reads.parse(service.output.parse(made.fields));
          });
          const fields = await shape({
            answered: first,
            input: { ...Object(input) },
            nowMs: context.nowMs,
            async beside(name, body, wanted) {
              const made = await askBeside(registry.get(name), body, context);
              if (made === null) notes.push(`${name} could not be asked: what it tells is null here.`);
              else answers.push(made);
              return made === null ? null : wanted.parse(made.fields);
            },
          });
          return answer(
            { ...fields, ...chargeOf(priceUsd) },
            {
              method: answers.map(({ method }) => method).join(' '),
              sources: answers.flatMap(({ sources }) => sources),
              notes: [...answers.flatMap((made) => made.notes), ...notes],
            },
          );
        },
      };
    },
  };
}

/** Runs a service and reads its answer as it declares it, so that what outsiders wrote is cleaned. */
async function runDeclared(
  service: Service,
  input: unknown,
  context: RunContext,
): Promise<Answer<Record<string, unknown>>> {
  const made = await service.run(input, context);
  if (service.mediaType !== 'application/json') return made;
  return { ...made, fields: service.output.parse(made.fields) };
}

/** The things that an example is built from: the service's own example, without a second service. */
function exampleAsked<Fields>(service: Service, fields: Fields): Asked<Fields> {
  return {
    answered: Promise.resolve(fields),
    input: { ...Object(service.example) },
    nowMs: () => 0,
    beside: async () => null,
  };
}

/** `creditsCharged` is in USD, as the clients of this family read it; `credits` counts tenths of a dollar, rounded up. */
function chargeOf(priceUsd: string | null): Record<string, unknown> {
  if (priceUsd === null) return {};
  return { creditsCharged: Number(priceUsd), credits: creditsOf(usdToMicros(priceUsd)) };
}

async function askBeside(
  service: Service | undefined,
  body: Record<string, unknown>,
  context: RunContext,
): Promise<Answer<Record<string, unknown>> | null> {
  const input = service?.input.safeParse(body);
  if (service === undefined || input?.success !== true) return null;
  try {
    return await runDeclared(service, input.data, context);
  } catch (error) {
    if (error instanceof ServiceFailure) return null;
    throw error;
  }
}

/** @throws when a JSON answer is not reshaped, or an answer that is not JSON is */
function assertShapes(endpoint: string, { mediaType }: Service, shapes: boolean): void {
  const isJson = mediaType === 'application/json';
  if (isJson === shapes) return;
  throw new Error(
    `${endpoint} (legacy/endpoints.ts) ${shapes ? 'cannot shape' : 'shapes nothing of'} ${mediaType}`,
  );
}

/** @throws when the service lacks an input or output field that the endpoint needs */
function checkFit(endpoint: string, service: Service, needed: { inputs: string[]; outputs: string[] }): void {
  const missing = [
    ...needed.inputs.filter((name) => !Object.hasOwn(service.input.shape, name)),
    ...needed.outputs.filter((name) => !Object.hasOwn(service.output.shape, name)),
  ];
  if (missing.length > 0)
    throw new Error(`${endpoint} (legacy/endpoints.ts) needs of ${service.path}: ${missing.join(', ')}`);
}

/**
 * A query holds only text. Text that does not fit its field is read as what it can mean: yes or no, a number, a list.
 */
function readTexts(input: z.ZodObject, body: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(body).map(([name, value]) => {
    const field = Object.hasOwn(input.shape, name) ? input.shape[name] : undefined;
    if (field === undefined || typeof value !== 'string') return [name, value];
    const meanings = [value, ...meaningsOf(value.trim())];
    return [name, meanings.find((meaning) => z.safeParse(field, meaning).success) ?? value];
  });
  return Object.fromEntries(entries);
}

function meaningsOf(text: string): unknown[] {
  return [
    ...(/^(true|false)$/i.test(text) ? [text.toLowerCase() === 'true'] : []),
    ...(/^-?\d+(\.\d+)?$/.test(text) ? [Number(text)] : []),
    ...(text === '' ? [] : [text.split(',').map((part) => part.trim())]),
  ];
}
