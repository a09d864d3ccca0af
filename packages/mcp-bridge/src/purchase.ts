/** Buys one tool call: the client's engine, which asks, pays and repeats, behind the words of MCP. */
import {
  type Book,
  type Bought,
  type Buyable,
  createBuyer as createEngine,
  type Door,
  type Limits as EngineLimits,
  microsOf,
  type Outcome,
  type Payer,
  type Reading,
  type Signed,
} from 'farebox/buying';
import { termsOf } from './pay.ts';
import type { Spending } from './spending.ts';
import type { Upstream, UpstreamResult } from './upstream.ts';

const PRICE_TIMEOUT_MS = 20_000;
const LIMITS_WORDS =
  'This client cannot ask a person. The limits are FAREBOX_MAX_USD_PER_CALL and FAREBOX_MAX_USD_PER_DAY of the bridge.';

export interface ToolCall {
  name: string;
  arguments: Record<string, unknown>;
  /** The caller's name for the purchase, so that it can be repeated; null when it does not. */
  named: string | null;
  signal: AbortSignal;
  onProgress(told: Record<string, unknown>): void;
  /** Asks the person, with the price in the question. */
  confirm: Confirm;
}

export type Confirm = Buyable['confirm'];

export interface Limits extends EngineLimits {
  maxCallMicros: bigint;
  maxDayMicros: bigint;
}

export interface Buyer {
  /** @returns the result for the caller; null when the person is to be asked first */
  buy(call: ToolCall): Promise<UpstreamResult | null>;
}

export interface BuyerParts {
  upstream: Upstream;
  payer: Payer;
  /** Opens the file on first use, and throws while it cannot be used. */
  spending: () => Spending;
  limits: Limits;
  /** Address of the server, so that another server is never sent what one was paid with. */
  url: URL;
  nowMs: () => number;
  log(line: string): void;
}

/** A tool call as the engine knows it, too. */
interface SoldCall extends Buyable {
  call: ToolCall;
}

export function createBuyer({ upstream, payer, spending, limits, url, nowMs, log }: BuyerParts): Buyer {
  const engine = createEngine<SoldCall, UpstreamResult>({
    door: mcpDoor(upstream, payer),
    payer,
    book: () => bookOf(spending()),
    limits,
    limitsWords: LIMITS_WORDS,
    asksPrice: true,
    // Without the toolset: it says what is listed, and not what is sold.
    url: url.origin + url.pathname,
    nowMs,
    log,
  });
  return {
    async buy(call) {
      const { name, arguments: input } = soldBy(call);
      const { named, signal, confirm } = call;
      return resultOf(await engine.buy({ service: name, input, named, signal, confirm, call }));
    },
  };
}

/** The file of the bridge as the engine's book: it has no limits by service. */
function bookOf(spending: Spending): Book {
  return {
    ...spending,
    open: (purchase, { dayMicros }) => spending.open(purchase, dayMicros),
    // The bridge's door never asks to be asked again.
    denied: () => undefined,
  };
}

function mcpDoor(upstream: Upstream, payer: Payer): Door<SoldCall, UpstreamResult> {
  return {
    askPrice: ({ call: { name, arguments: input, signal } }) =>
      upstream.ask('tools/call', { params: { name, arguments: input }, timeoutMs: PRICE_TIMEOUT_MS, signal }),
    send: ({ call: { name, arguments: input, signal, onProgress } }, signed: Signed, timeoutMs) => {
      const params = { name, arguments: input, _meta: { ...signed } };
      return upstream.ask('tools/call', { params, apiKey: payer.apiKey, timeoutMs, signal, onProgress });
    },
    read: readingOf,
  };
}

function readingOf(result: UpstreamResult): Reading {
  const { creditsUsedUsd, replayed, retryAfterSeconds } = told(result);
  const { message } = bodyOf(result);
  const terms = termsOf(result);
  return {
    terms,
    outcome: terms === null ? outcomeOf(result) : 'refused',
    asksAgain: false,
    retryAfterMs: secondsOf(retryAfterSeconds) * 1_000,
    replayed: replayed === 'true',
    chargedMicros: typeof creditsUsedUsd === 'string' ? microsOf(creditsUsedUsd) : null,
    message: typeof message === 'string' ? message : 'its end is not known',
  };
}

function outcomeOf(result: UpstreamResult): Outcome {
  if (result.isError !== true) return 'paid';
  if (bodyOf(result).charged === false) return 'uncharged';
  // An answer that was bought and is not kept any more. Any other is of a service that failed after its payment, which the
  // same payment has tried again, or of an end that nobody knows yet.
  return told(result).status === 409 ? 'paid' : 'unknown';
}

function resultOf(bought: Bought<UpstreamResult>): UpstreamResult | null {
  if (bought.kind === 'answer') return bought.answer;
  if (bought.kind === 'pending') return null;
  const { code, message, charged, unpaid } = bought;
  return unpaid === undefined ? refusal(code, message, charged) : noted(unpaid, code, message);
}

const secondsOf = (value: unknown) =>
  typeof value === 'string' || typeof value === 'number' ? Number(value) || 0 : 0;
const objectOf = (value: unknown) =>
  (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
const bodyOf = (result: UpstreamResult) => objectOf(result.structuredContent);
const told = (result: UpstreamResult) => objectOf(objectOf(result._meta)['farebox/call']);

/** A result of the bridge itself, in the form of the server's errors. */
export function refusal(code: string, message: string, charged: false | null = false): UpstreamResult {
  const structuredContent = { error: code, message, code, charged };
  return {
    isError: true,
    structuredContent,
    content: [{ type: 'text', text: JSON.stringify(structuredContent) }],
  };
}

/** The price as it came, for a caller that can pay by itself, and why the bridge does not. */
function noted(unpaid: UpstreamResult, code: string, message: string): UpstreamResult {
  const structuredContent = { ...bodyOf(unpaid), bridge: { code, message } };
  return {
    ...unpaid,
    structuredContent,
    content: [{ type: 'text', text: JSON.stringify(structuredContent) }],
  };
}

/** The tool that buys any service by its name. */
const ANY_SERVICE = 'call_service';

/** The tool of what is bought, and its arguments: those that `call_service` names, or the call as it stands. */
function soldBy({ name, arguments: given }: Pick<ToolCall, 'name' | 'arguments'>) {
  const { service, input = {}, ...others } = given;
  if (name !== ANY_SERVICE || typeof service !== 'string' || Object.keys(others).length > 0)
    return { name, arguments: given };
  return { name: service.replaceAll('-', '_').slice(0, 100), arguments: objectOf(fromText(input)) };
}

/** Some models write an object as text. */
function fromText(input: unknown): unknown {
  if (typeof input !== 'string') return input;
  try {
    return JSON.parse(input);
  } catch {
    return { text: input };
  }
}
