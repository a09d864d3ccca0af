/**
 * Buys one tool call: asks the price, keeps to the limits, pays, and gets the answer. One request has one payment until it is
 * answered, whatever is lost on the way: a server takes a payment once, and answers it again for nothing.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inUsd, microsOf } from './money.ts';
import { type Payer, termsOf } from './pay.ts';
import type { Purchase, Send, Spending } from './spending.ts';
import { AnswerLost, Refused, type Upstream, type UpstreamResult } from './upstream.ts';

const PRICE_TIMEOUT_MS = 20_000;
/** No service takes longer, the settlement of its payment included. */
const CALL_TIMEOUT_MS = 120_000;
/** Beyond that, for a process that is slow. */
const ON_ITS_WAY_MS = 30_000;
/** All attempts together, beside the time that the last one takes. */
const TRYING_MS = 60_000;
const PAUSES_MS = [250, 1_000, 2_500, 5_000];
const MAX_PAUSE_MS = 15_000;
/** Each time another call has given the same purchase up while this one was at it. */
const MAX_ROUNDS = 3;
/** The longest payment: a signature has a few hundred characters, and what a server wants repeated in it some thousands. */
const MAX_PAYMENT_CHARACTERS = 65_536;

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

/**
 * @param name of the question: of this request at this price, so that a yes to one is none to another
 * @returns `pending` when the answer comes with a call of its own; `cannot` when there is nobody to be asked
 */
export type Confirm = (question: string, micros: bigint, name: string) => 'yes' | 'no' | 'pending' | 'cannot';

export interface Limits {
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

export function createBuyer(parts: BuyerParts): Buyer {
  return {
    async buy(call) {
      const request = fingerprint(parts, call);
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        const open = parts.spending().openFor(request);
        if (open !== null) {
          const result = await present(parts, open, call);
          // A payment that is refused, or that another call gave up, is not sent any more: the request is bought anew.
          if (result !== 'given up' && !isRefusedPayment(result)) return result;
        }
        const result = await buyAnew(parts, call, request);
        if (result !== 'given up') return result;
      }
      return refusal(
        'ANSWER_LOST',
        `${soldBy(call).name} was asked for by several calls at once, and was not answered. It may be paid for. Call it again with the same arguments.`,
        null,
      );
    },
  };
}

async function buyAnew(
  parts: BuyerParts,
  call: ToolCall,
  request: string,
): Promise<UpstreamResult | null | 'given up'> {
  const { payer, spending, log } = parts;
  const unpaid = await askPrice(parts, call);
  const terms = termsOf(unpaid);
  if (terms === null) return unpaid;
  const quote = payer.quote(terms, call.named);
  if (typeof quote === 'string')
    return noted(unpaid, 'CANNOT_PAY', `${soldBy(call).name} cannot be paid for: ${quote}.`);
  const agreed = withinLimits(parts, call, quote.micros, request);
  if (agreed === 'pending') return null;
  if (agreed !== 'within' && agreed !== 'yes') return agreed;
  const { id, meta, micros } = await quote.pay();
  const payment = JSON.stringify(meta);
  if (payment.length > MAX_PAYMENT_CHARACTERS)
    return noted(unpaid, 'CANNOT_PAY', `${soldBy(call).name} cannot be paid for: its terms are too long.`);
  const opened = spending().open(
    { id, request, payment, micros },
    agreed === 'yes' ? null : parts.limits.maxDayMicros,
  );
  // Between the question and here another process may have spent the rest.
  if (opened === 'above') return refusal('ABOVE_LIMIT', aboveDay(parts, call, micros));
  if (opened === 'full')
    return refusal(
      'TOO_MANY_OPEN',
      'Too many purchases wait for their answers. Repeat one of them, or try again in ten minutes.',
    );
  log(`buys ${soldBy(call).name} for ${inUsd(micros)} USD`);
  return present(parts, opened, call);
}

/** Asks the price by a call without a credential, which costs nothing. */
async function askPrice({ upstream }: BuyerParts, call: ToolCall): Promise<UpstreamResult> {
  const params = { name: call.name, arguments: call.arguments };
  try {
    return await upstream.ask('tools/call', { params, timeoutMs: PRICE_TIMEOUT_MS, signal: call.signal });
  } catch (error) {
    if (!(error instanceof AnswerLost)) throw error;
    return refusal(
      'SERVER_AWAY',
      `The server did not tell the price: ${error.message}. Nothing was paid. Try again later.`,
    );
  }
}

function withinLimits(
  parts: BuyerParts,
  call: ToolCall,
  micros: bigint,
  request: string,
): 'within' | 'yes' | 'pending' | UpstreamResult {
  const { maxCallMicros, maxDayMicros } = parts.limits;
  const aboveCall = micros > maxCallMicros;
  if (!aboveCall && parts.spending().todayMicros() + micros <= maxDayMicros) return 'within';
  const why = aboveCall
    ? `${soldBy(call).name} costs ${inUsd(micros)} USD, which is more than a call may cost without asking (${inUsd(maxCallMicros)} USD).`
    : aboveDay(parts, call, micros);
  const said = call.confirm(`${why} Buy it?`, micros, `buy-${micros}-${request.slice(0, 16)}`);
  if (said === 'yes' || said === 'pending') return said;
  if (said === 'no') return refusal('DECLINED', `${why} The person who was asked did not agree.`);
  return refusal(
    'ABOVE_LIMIT',
    `${why} This client cannot ask a person. The limits are FAREBOX_MAX_USD_PER_CALL and FAREBOX_MAX_USD_PER_DAY of the bridge.`,
  );
}

function aboveDay({ spending, limits }: BuyerParts, call: ToolCall, micros: bigint): string {
  return `${soldBy(call).name} costs ${inUsd(micros)} USD, and with it today's calls would come to more than ${inUsd(limits.maxDayMicros)} USD: ${inUsd(spending().todayMicros())} USD are spent or held.`;
}

/**
 * Sends a purchase until its end is known, as far as the time allows. Each time it is the same payment.
 *
 * @returns `given up` when another call, which sends the same purchase, was told that it is not paid for
 */
async function present(
  parts: BuyerParts,
  purchase: Purchase,
  call: ToolCall,
): Promise<UpstreamResult | 'given up'> {
  const { nowMs, spending, log } = parts;
  const meta = JSON.parse(purchase.payment);
  const giveUpAtMs = nowMs() + TRYING_MS;
  const lost = (why: string) =>
    refusal(
      'ANSWER_LOST',
      `The answer to ${soldBy(call).name} did not arrive: ${why}. It may be paid for. Call it again with the same arguments: the same payment of ${inUsd(purchase.micros)} USD is sent, and is taken once.`,
      null,
    );
  for (let attempt = 0, last = ''; ; attempt += 1) {
    let send: Send | null;
    try {
      send = spending().sending(purchase.id, CALL_TIMEOUT_MS + ON_ITS_WAY_MS);
    } catch (error) {
      // Before the first time nothing has left.
      if (attempt === 0) throw error;
      return lost(last);
    }
    if (send === null) return 'given up';
    const heard = await sendOnce(parts, { purchase, meta, send }, call);
    if ('result' in heard) return heard.result;
    last = heard.lost;
    const pauseMs = Math.max(PAUSES_MS[Math.min(attempt, PAUSES_MS.length - 1)] ?? 0, heard.waitMs);
    if (nowMs() + pauseMs > giveUpAtMs || pauseMs > MAX_PAUSE_MS) return lost(last);
    log(`asks for ${soldBy(call).name} again, with the same payment: ${last}`);
    await sleep(pauseMs, undefined, { signal: call.signal });
  }
}

/** A payment on its way. */
interface Leaving {
  purchase: Purchase;
  meta: Record<string, unknown>;
  send: Send;
}

/**
 * @returns the result, or why there is none and for how long to wait
 * @throws Refused when the server did nothing
 */
async function sendOnce(
  parts: BuyerParts,
  leaving: Leaving,
  call: ToolCall,
): Promise<{ result: UpstreamResult } | { lost: string; waitMs: number }> {
  const { upstream, payer } = parts;
  const params = { name: call.name, arguments: call.arguments, _meta: leaving.meta };
  let outcome: Outcome = 'unknown';
  try {
    const result = await upstream.ask('tools/call', {
      params,
      apiKey: payer.apiKey,
      timeoutMs: CALL_TIMEOUT_MS,
      signal: call.signal,
      onProgress: call.onProgress,
    });
    // Whoever asked has gone: the answer stays bought, for when the same is asked again.
    if (!call.signal.aborted) outcome = outcomeOf(result);
    record(parts, leaving, outcome, result);
    if (call.signal.aborted || outcome !== 'unknown') return { result };
    return { lost: messageOf(result), waitMs: Math.min(retryAfterMsOf(result), MAX_PAUSE_MS) };
  } catch (error) {
    const isRefused = error instanceof Refused;
    if (isRefused && !call.signal.aborted && error.retryAfterMs === null && hasDoneNothing(error))
      outcome = 'uncharged';
    const isGivenUp = record(parts, leaving, outcome, {});
    if (call.signal.aborted || isGivenUp || !(isRefused || error instanceof AnswerLost)) throw error;
    return { lost: error.message, waitMs: isRefused ? (error.retryAfterMs ?? 0) : 0 };
  }
}

/** The error codes of JSON-RPC for a message that it cannot take. Other codes of its own may follow a charge. */
const NOT_TAKEN: readonly number[] = [-32_700, -32_600, -32_601, -32_602];
const REQUEST_TIMEOUT = 408;
const hasDoneNothing = ({ code }: Refused) =>
  code > 0 ? code !== REQUEST_TIMEOUT : NOT_TAKEN.includes(code);

type Outcome = 'paid' | 'refused' | 'uncharged' | 'unknown';

/** The outcome of a payment, as the server says it. */
function outcomeOf(result: UpstreamResult): Outcome {
  if (isRefusedPayment(result)) return 'refused';
  if (result.isError !== true) return 'paid';
  const { charged } = bodyOf(result);
  if (charged === false) return 'uncharged';
  // An answer that was bought and is not kept any more. Any other is of a service that failed after its payment, which the
  // same payment has tried again, or of an end that nobody knows yet.
  return told(result).status === 409 ? 'paid' : 'unknown';
}

/** A price as the answer to a payment: the server has looked, and it has bought nothing. */
const isRefusedPayment = (result: UpstreamResult) => termsOf(result) !== null;

/**
 * Writes down how it ended. While the file cannot be written the purchase stays open, and counts: no answer is lost to that.
 *
 * @returns whether the purchase is given up
 */
function record(
  { spending, payer, nowMs, log }: BuyerParts,
  { purchase, meta, send }: Leaving,
  outcome: Outcome,
  result: UpstreamResult,
): boolean {
  try {
    if (outcome === 'unknown') spending().lost(send);
    else if (outcome === 'paid') {
      const micros = chargedMicros(payer, purchase, result);
      spending().settle({ ...purchase, micros }, told(result).replayed === 'true');
    } else return spending().giveUp(send, { outcome, endsAtMs: payer.endsAtMs(meta, nowMs()) });
  } catch (error) {
    log(`cannot write down what was spent: ${error instanceof Error ? error.message : 'it failed'}`);
  }
  return false;
}

/** The amount charged: a key may pay more than the price that was told before, a wallet pays what it signed. */
function chargedMicros(payer: Payer, { micros }: Purchase, result: UpstreamResult): bigint {
  const { creditsUsedUsd } = told(result);
  const charged =
    payer.apiKey === null || typeof creditsUsedUsd !== 'string' ? null : microsOf(creditsUsedUsd);
  return charged !== null && charged > micros ? charged : micros;
}

const objectOf = (value: unknown) =>
  (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
const bodyOf = (result: UpstreamResult) => objectOf(result.structuredContent);
const told = (result: UpstreamResult) => objectOf(objectOf(result._meta)['farebox/call']);
function messageOf(result: UpstreamResult): string {
  const { message } = bodyOf(result);
  return typeof message === 'string' ? message : 'its end is not known';
}
function retryAfterMsOf(result: UpstreamResult): number {
  const { retryAfterSeconds: seconds } = told(result);
  return typeof seconds === 'string' || typeof seconds === 'number' ? (Number(seconds) || 0) * 1_000 : 0;
}

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

/** Identifies a purchase: the same question to the same server, with the same money, whichever tool asks it. */
function fingerprint({ url, payer }: BuyerParts, call: ToolCall): string {
  const { name, arguments: input } = soldBy(call);
  // Without the toolset: it says what is listed, and not what is sold.
  const said = JSON.stringify([url.origin + url.pathname, payer.name, name, call.named, inOrder(input)]);
  return createHash('sha256').update(said).digest('hex');
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

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const sorted = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, each]) => [key, inOrder(each)]);
  return Object.fromEntries(sorted);
}
