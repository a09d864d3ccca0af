/**
 * Buys one tool call: asks the price, keeps to the limits, pays, and gets the answer. One request has one payment until it is
 * answered, whatever is lost on the way: a server takes a payment once, and answers it again for nothing.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inUsd, microsOf } from './money.ts';
import { type Payer, termsOf } from './pay.ts';
import type { Purchase, Spending } from './spending.ts';
import { AnswerLost, Refused, type Upstream, type UpstreamResult } from './upstream.ts';

const PRICE_TIMEOUT_MS = 20_000;
/** No service takes longer, the settlement of its payment included. */
const CALL_TIMEOUT_MS = 120_000;
/** All attempts together, beside the time that the last one takes. */
const TRYING_MS = 60_000;
const PAUSES_MS = [250, 1_000, 2_500, 5_000];
const MAX_PAUSE_MS = 15_000;

export interface ToolCall {
  name: string;
  arguments: Record<string, unknown>;
  /** By which the caller names the purchase, so that it can be repeated; null when it does not. */
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
  /** Of the server, so that another server is never sent what one was paid with. */
  url: URL;
  nowMs: () => number;
  log(line: string): void;
}

export function createBuyer(parts: BuyerParts): Buyer {
  return {
    async buy(call) {
      const request = fingerprint(parts, call);
      const open = parts.spending().openFor(request);
      if (open !== null) {
        const result = await present(parts, open, call, false);
        if (!isRefusedPayment(result)) return result;
        // No payment of this request is in flight any more: it is bought anew.
      }
      return buyAnew(parts, call, request);
    },
  };
}

async function buyAnew(parts: BuyerParts, call: ToolCall, request: string): Promise<UpstreamResult | null> {
  const { payer, spending, log } = parts;
  const unpaid = await askPrice(parts, call);
  const terms = termsOf(unpaid);
  if (terms === null) return unpaid;
  const quote = payer.quote(terms, call.named);
  if (typeof quote === 'string')
    return noted(unpaid, 'CANNOT_PAY', `${call.name} cannot be paid for: ${quote}.`);
  const agreed = withinLimits(parts, call, quote.micros, request);
  if (agreed === 'pending') return null;
  if (agreed !== 'within' && agreed !== 'yes') return agreed;
  const { id, meta, micros } = await quote.pay();
  const opened = spending().open(
    { id, request, payment: JSON.stringify(meta), micros },
    agreed === 'yes' ? null : parts.limits.maxDayMicros,
  );
  // Between the question and here another process may have spent the rest.
  if (opened === 'above') return refusal('ABOVE_LIMIT', aboveDay(parts, call, micros));
  if (opened === 'full')
    return refusal(
      'TOO_MANY_OPEN',
      'Too many purchases wait for their answers. Repeat one of them, or wait ten minutes.',
    );
  log(`buys ${call.name} for ${inUsd(micros)} USD`);
  return present(parts, opened, call, opened.id === id);
}

/** Without a credential: costs nothing, and is told the price before anything else. */
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
    ? `${call.name} costs ${inUsd(micros)} USD, which is more than a call may cost without asking (${inUsd(maxCallMicros)} USD).`
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
  return `${call.name} costs ${inUsd(micros)} USD, and with it today's calls would come to more than ${inUsd(limits.maxDayMicros)} USD: ${inUsd(spending().todayMicros())} USD are spent or held.`;
}

/**
 * Sends a purchase until its end is known, as far as the time allows. Each time it is the same payment.
 *
 * @param isNew false when it may have been sent before, by an earlier call or by another that runs now
 */
async function present(
  parts: BuyerParts,
  purchase: Purchase,
  call: ToolCall,
  isNew: boolean,
): Promise<UpstreamResult> {
  const { upstream, payer, nowMs, spending, log } = parts;
  const meta = JSON.parse(purchase.payment);
  const giveUpAtMs = nowMs() + TRYING_MS;
  const params = { name: call.name, arguments: call.arguments, _meta: meta };
  spending().sending(purchase.id);
  let last = 'it gave no answer';
  for (let attempt = 0; ; attempt += 1) {
    // What a server does not do now says nothing of what it did the first time.
    const isFirst = isNew && attempt === 0;
    let pauseMs = PAUSES_MS[Math.min(attempt, PAUSES_MS.length - 1)] ?? 0;
    try {
      const result = await upstream.ask('tools/call', {
        params,
        apiKey: payer.apiKey,
        timeoutMs: CALL_TIMEOUT_MS,
        signal: call.signal,
        onProgress: call.onProgress,
      });
      // Whoever asked has gone: the answer stays bought, for when the same is asked again.
      if (call.signal.aborted) return result;
      const outcome = outcomeOf(result);
      if (outcome !== 'unknown') {
        if (isFirst || outcome !== 'uncharged') record(parts, purchase, meta, outcome, result);
        return result;
      }
      last = messageOf(result);
      pauseMs = Math.max(pauseMs, Math.min(retryAfterMsOf(result), MAX_PAUSE_MS));
    } catch (error) {
      if (call.signal.aborted) throw error;
      if (!(error instanceof AnswerLost) && !(error instanceof Refused)) throw error;
      if (isFirst && error instanceof Refused && error.retryAfterMs === null && hasDoneNothing(error)) {
        record(parts, purchase, meta, 'uncharged', {});
        throw error;
      }
      if (error instanceof Refused) pauseMs = Math.max(pauseMs, error.retryAfterMs ?? 0);
      last = error.message;
    }
    if (nowMs() + pauseMs > giveUpAtMs || pauseMs > MAX_PAUSE_MS)
      return refusal(
        'ANSWER_LOST',
        `The answer to ${call.name} did not arrive: ${last}. It may be paid for. Call it again with the same arguments: the same payment of ${inUsd(purchase.micros)} USD is sent, and is taken once.`,
        null,
      );
    log(`asks for ${call.name} again, with the same payment: ${last}`);
    await sleep(pauseMs, undefined, { signal: call.signal });
  }
}

/** What JSON-RPC answers to a message that it cannot take. Other codes of its own may follow a charge. */
const NOT_TAKEN: readonly number[] = [-32_700, -32_600, -32_601, -32_602];
const REQUEST_TIMEOUT = 408;
const hasDoneNothing = ({ code }: Refused) =>
  code > 0 ? code !== REQUEST_TIMEOUT : NOT_TAKEN.includes(code);

type Outcome = 'paid' | 'refused' | 'uncharged' | 'unknown';

/** What became of the payment, as the server says it. */
function outcomeOf(result: UpstreamResult): Outcome {
  if (isRefusedPayment(result)) return 'refused';
  if (result.isError !== true) return 'paid';
  const { charged } = bodyOf(result);
  if (charged === false) return 'uncharged';
  // An answer that was bought and is not kept any more. Any other is of a service that failed after its payment, which the
  // same payment has tried again, or of an end that nobody knows yet.
  return told(result).status === 409 ? 'paid' : 'unknown';
}

/** A price as the answer to a payment: it does not pay, and none of its kind is in flight. */
const isRefusedPayment = (result: UpstreamResult) => termsOf(result) !== null;

/** Writes down how it ended. While the file cannot be written the purchase stays open, and counts: no answer is lost to that. */
function record(
  { spending, payer, nowMs, log }: BuyerParts,
  purchase: Purchase,
  meta: Record<string, unknown>,
  outcome: Exclude<Outcome, 'unknown'>,
  result: UpstreamResult,
): void {
  try {
    const endsAtMs = payer.endsAtMs(meta, nowMs());
    if (outcome === 'paid') {
      const micros = chargedMicros(payer, purchase, result);
      spending().settle({ ...purchase, micros }, told(result).replayed === 'true');
    } else if (endsAtMs === null) spending().release(purchase.id);
    else spending().hold(purchase.id, endsAtMs, outcome === 'uncharged');
  } catch (error) {
    log(`cannot write down what was spent: ${error instanceof Error ? error.message : 'it failed'}`);
  }
}

/** What a key was charged may be more than the price that was told before; what a wallet signed is what it pays. */
function chargedMicros(payer: Payer, { micros }: Purchase, result: UpstreamResult): bigint {
  const charged = payer.apiKey === null ? null : microsOf(String(told(result).creditsUsedUsd));
  return charged !== null && charged > micros ? charged : micros;
}

const objectOf = (value: unknown) =>
  (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
const bodyOf = (result: UpstreamResult) => objectOf(result.structuredContent);
const told = (result: UpstreamResult) => objectOf(objectOf(result._meta)['farebox/call']);
const messageOf = (result: UpstreamResult) => String(bodyOf(result).message ?? 'its end is not known');
const retryAfterMsOf = (result: UpstreamResult) => (Number(told(result).retryAfterSeconds) || 0) * 1_000;

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

/** What is the same purchase: the same question to the same server, with the same money. */
function fingerprint({ url, payer }: BuyerParts, { name, arguments: input, named }: ToolCall): string {
  const said = JSON.stringify([url.href, payer.name, name, named, inOrder(input)]);
  return createHash('sha256').update(said).digest('hex');
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const sorted = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, each]) => [key, inOrder(each)]);
  return Object.fromEntries(sorted);
}
