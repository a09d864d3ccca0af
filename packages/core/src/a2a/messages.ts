/** Reads what a message asks for, and who pays for it. Nothing is guessed from its words. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { isDeeperThan } from '../http/json-depth.ts';
import { readJson } from '../http/json-text.ts';
import { Problem } from '../http/problem.ts';
import { presentedApiKey } from '../keys/api-key.ts';
import type { Headers } from '../paid-call/rail.ts';
import { RpcError } from './errors.ts';
import type { PaidBy } from './tasks.ts';
import type { Version } from './wire.ts';

const MAX_DEPTH = 64;
const MAX_PARTS = 50;
const MAX_ID = 128;
const MAX_ISSUES = 20;

const id = z.string().min(1).max(MAX_ID);
const record = z.record(z.string(), z.unknown());
/** Clients write what is absent as an empty text too. */
const optionalId = z
  .string()
  .max(MAX_ID)
  .optional()
  .transform((text) => (text === undefined || text === '' ? null : text));
/** How much is wanted of a history that is not kept: anything that could be one is taken, and nothing comes of it. */
const historyLength = z.int().min(0).optional();

const sent = z.object({
  message: z.object({
    messageId: z.string().min(1).max(255),
    role: z.enum(['user', 'ROLE_USER'], { error: 'must be user (ROLE_USER in 1.0)' }),
    taskId: optionalId,
    contextId: optionalId,
    parts: z.array(record).min(1).max(MAX_PARTS),
    metadata: record.optional(),
  }),
  configuration: z
    .object({ blocking: z.boolean().optional(), returnImmediately: z.boolean().optional(), historyLength })
    .optional(),
  metadata: record.optional(),
});

const byId = z.object({ id, historyLength });
/** Those of the protocol, of which a task here has some. */
const STATES = [
  ...['UNSPECIFIED', 'SUBMITTED', 'WORKING', 'COMPLETED', 'FAILED', 'CANCELED'],
  ...['INPUT_REQUIRED', 'REJECTED', 'AUTH_REQUIRED'],
].map((state) => `TASK_STATE_${state}`);
const listed = z.object({
  contextId: optionalId,
  status: z.enum(['', ...STATES]).optional(),
  pageSize: z.int().min(1).max(100).optional(),
  pageToken: z.string().max(100).optional(),
  historyLength,
  statusTimestampAfter: z.iso.datetime({ offset: true }).optional(),
  includeArtifacts: z.boolean().optional(),
});

export interface Message {
  id: string;
  taskId: string | null;
  contextId: string | null;
  /** The texts of the message, one after the other. */
  text: string;
  /** The data parts. */
  data: readonly unknown[];
  /** The metadata of the message and, for a name that it lacks, of the request. */
  metadata: Readonly<Record<string, unknown>>;
  /** The caller waits for the end. */
  isBlocking: boolean;
}

/**
 * Reads the parameters of `message/send` and its kin.
 *
 * @throws RpcError with the path of each field that is wrong; for files, which no service takes
 */
export function readMessage(params: unknown, version: Version): Message {
  const { message, configuration = {}, metadata = {} } = fitting(sent, params);
  const { blocking = true, returnImmediately = false } = configuration;
  const { texts, data } = contentOf(message.parts);
  return {
    id: message.messageId,
    taskId: message.taskId,
    contextId: message.contextId,
    text: texts.join('\n'),
    data,
    metadata: { ...metadata, ...message.metadata },
    isBlocking: version === '0.3' ? blocking : !returnImmediately,
  };
}

type SentPart = Readonly<Record<string, unknown>>;

/** @throws RpcError for a part that no service takes */
function contentOf(parts: readonly SentPart[]): { texts: readonly string[]; data: readonly unknown[] } {
  const [only] = parts;
  const written = parts.length === 1 && typeof only?.text === 'string' ? wishWrittenAs(only.text) : null;
  if (written !== null) return { texts: [], data: [written] };
  const texts: string[] = [];
  const data: unknown[] = [];
  for (const [index, part] of parts.entries()) {
    if (typeof part.text === 'string') texts.push(part.text);
    else if (part.data !== undefined) data.push(part.data);
    else
      throw new RpcError(
        'CONTENT_TYPE_NOT_SUPPORTED',
        `message.parts.${index} is neither text nor data. Send {"skill":…,"input":{…}} as a data part.`,
        { fields: [{ field: `message.parts.${index}`, message: 'must be a text or a data part' }] },
      );
  }
  return { texts, data };
}

/**
 * A text that as a whole is a JSON object with `skill`, which is then as good as a data part: clients that have texts alone
 * send the card's examples so.
 *
 * @returns null for any other text
 * @throws RpcError where the object could not come as a data part, or names its skill more than once
 */
function wishWrittenAs(text: string): Record<string, unknown> | null {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{') || !trimmed.endsWith('}')) return null;
  const value = jsonIn(trimmed);
  if (!isObject(value) || !Object.hasOwn(value, 'skill')) return null;
  if (isDeeperThan(value, MAX_DEPTH)) throw wrongText(`may be nested ${MAX_DEPTH} deep at most`);
  if (timesNamed('skill', trimmed) > 1) throw wrongText('must name one skill, once');
  return value;
}

/** @throws RpcError for JSON with text that can neither be stored nor sent on */
function jsonIn(text: string): unknown {
  try {
    return readJson(Buffer.from(text));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { fields } = error.details;
    // What is no JSON at all is a text like any other.
    if (!Array.isArray(fields) || fields.length === 0) return undefined;
    throw wrongText('must not hold NUL or half of a surrogate pair');
  }
}

/** How often the outermost object of a text that is JSON has a name. Of two of a name, a reader of JSON sees the last alone. */
function timesNamed(name: string, json: string): number {
  let depth = 0;
  let times = 0;
  for (const [token] of json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"\s*:?|[{}[\]]/g)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (depth === 1 && token.endsWith(':') && JSON.parse(token.slice(0, -1)) === name) times += 1;
  }
  return times;
}

function wrongText(what: string): RpcError {
  return new RpcError('INVALID_PARAMS', `params.message.parts.0.text ${what}.`, {
    fields: [{ field: 'message.parts.0.text', message: what }],
  });
}

/** @throws RpcError */
export const readTaskId = (params: unknown): string => fitting(byId, params).id;

/** @throws RpcError */
export const readListing = (params: unknown) => fitting(listed, params ?? {});

function fitting<Shape extends z.ZodType>(shape: Shape, params: unknown): z.output<Shape> {
  if (isDeeperThan(params, MAX_DEPTH))
    throw new RpcError('INVALID_PARAMS', `params may be nested ${MAX_DEPTH} deep at most.`);
  const parsed = shape.safeParse(params);
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues
    .slice(0, MAX_ISSUES)
    .map(({ path, message }) => ({ field: path.join('.'), message }));
  const [first] = fields;
  throw new RpcError('INVALID_PARAMS', `params.${first?.field ?? ''}: ${first?.message ?? 'invalid'}.`, {
    fields,
  });
}

/** The wish of a message, as far as it says so. */
export interface Wish {
  /** A skill by its id or the name of its tool; null: none is named. */
  skill: string | null;
  /** null: none is given. */
  input: Record<string, unknown> | null;
  /** Several skills are named. */
  isAmbiguous: boolean;
}

/**
 * The skill and its input: a data part `{ skill, input }` or a text that is one, or `skill` in the metadata with the input beside it or as the data
 * part.
 */
export function wishOf({ data, metadata }: Message): Wish {
  const objects = data.filter(isObject);
  const named = objects.flatMap(({ skill, input }) => (typeof skill === 'string' ? [{ skill, input }] : []));
  const skills = new Set(named.map(({ skill }) => skill));
  const [first] = named;
  if (first !== undefined)
    return { skill: first.skill, input: objectOf(first.input), isAmbiguous: skills.size > 1 };
  const { skill } = metadata;
  const input = objectOf(metadata.input) ?? objects[0] ?? null;
  return { skill: typeof skill === 'string' ? skill : null, input, isAmbiguous: false };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** null for what is none, but for something that was given and is no object: the paid call tells what is wrong with it. */
function objectOf(value: unknown): Record<string, unknown> | null {
  if (value === undefined || value === null) return null;
  return value as Record<string, unknown>;
}

/** https://github.com/x402-foundation/x402/blob/main/specs/transports-v2/a2a.md */
export const X402 = {
  status: 'x402.payment.status',
  required: 'x402.payment.required',
  payload: 'x402.payment.payload',
  receipts: 'x402.payment.receipts',
  error: 'x402.payment.error',
} as const;

/** Whether the parameters of a message, which nobody has checked yet, have an x402 payment where one belongs. */
export function mentionsPayment(params: unknown): boolean {
  if (!isObject(params)) return false;
  const { message, metadata } = params;
  const all = [metadata, isObject(message) ? message.metadata : undefined];
  return all.some((each) => isObject(each) && each[X402.payload] !== undefined);
}

/** The payer's proof in a message, in the headers that rails read. */
export interface Credential {
  by: PaidBy;
  headers: Headers;
  /** The digest that makes it this payment. */
  digest: Buffer;
  /** The network that an x402 payment names. */
  network: string | null;
}

/**
 * The credential of a message: an x402 payment in its metadata, which comes before the key of the connection. With a key the
 * message's id is the name of the purchase.
 *
 * @returns null when it carries none
 */
export function credentialOf({ id: messageId, metadata }: Message, connection: Headers): Credential | null {
  const payload = metadata[X402.payload];
  if (payload !== undefined) {
    const header =
      typeof payload === 'string' ? payload : Buffer.from(JSON.stringify(payload)).toString('base64');
    const accepted = isObject(payload) ? (objectOf(payload.accepted)?.network ?? payload.network) : null;
    return {
      by: 'x402',
      headers: { 'payment-signature': header },
      digest: digestOf('x402', canonical(payload)),
      network: typeof accepted === 'string' ? accepted.slice(0, 100) : null,
    };
  }
  const key = presentedApiKey(connection);
  if (key === null) return null;
  const digest = digestOf('message', messageId);
  const name = `a2a.${digest.toString('base64url')}`;
  return { by: 'key', headers: { 'x-api-key': key, 'idempotency-key': name }, digest, network: null };
}

/** The key by which a message that begins a task is known when it comes again: who sent it, its id, and what it asks for. */
export function messageKeyOf(sender: string, messageId: string, asked: unknown): Buffer {
  return digestOf('begins', sender, messageId, canonical(asked));
}

/** Each part is bounded by its length, so that no two lists of parts are one text. */
function digestOf(...parts: readonly string[]): Buffer {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:${part}`);
  return hash.digest();
}

/** The same JSON in whichever order its names came. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isObject(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
