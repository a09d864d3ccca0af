/**
 * Buys one call: asks the price, keeps to the limits, pays, and gets the answer. One request has one payment until it is
 * answered, whatever is lost on the way: a server takes a payment once, and answers it again for nothing.
 */
import { digestOf } from '../digest.ts';
import { inOrder } from '../json.ts';
import { inUsd } from '../money.ts';
import { type Awaitable, costs, type Payer, type Payment, type Signed, signedIn } from '../payer.ts';
import type { Book, Purchase, Send } from './book.ts';
import { AnswerLost, type Door, type Outcome, type Reading, Refused } from './door.ts';
import { pause } from './pause.ts';

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

/** A call as the buyer knows it; a door knows more of it. */
export interface Buyable {
  /** The service that is bought, and what it is asked. */
  service: string;
  input: Record<string, unknown>;
  /** The caller's name for the purchase, so that it can be repeated; null when it does not. */
  named: string | null;
  signal: AbortSignal;
  /**
   * Asks the person about a call that is above a limit.
   *
   * @param name of the question: of this request at this price, so that a yes to one is none to another
   * @returns `pending` when the answer comes with a call of its own; `cannot` when there is nobody to be asked
   */
  confirm(question: string, micros: bigint, name: string): Awaitable<'yes' | 'no' | 'pending' | 'cannot'>;
}

/** The most that may be spent without asking; null where there is no limit. */
export interface Limits {
  maxCallMicros: bigint | null;
  maxDayMicros: bigint | null;
  /** By service, for a day. */
  maxServiceMicros?: Readonly<Record<string, bigint>>;
}

/** The word of the buyer itself on why there is no answer. */
export interface Refusal<Answer> {
  kind: 'refusal';
  code:
    | 'ANSWER_LOST'
    | 'SERVER_AWAY'
    | 'ABOVE_LIMIT'
    | 'DECLINED'
    | 'TOO_MANY_OPEN'
    | 'CANNOT_PAY'
    | 'NOT_A_SANDBOX'
    | 'SANDBOX_REFUSED';
  message: string;
  /** Null: nobody knows yet. */
  charged: false | null;
  /** The price as it came, where that is all that came. */
  unpaid?: Answer;
}

/**
 * `isFirst`: nothing was sent for this question before the one time that it was answered. `micros`: the price that was agreed to, 0
 * where none was asked. `pending`: the person is to be asked first.
 */
export type Bought<Answer> =
  | { kind: 'answer'; answer: Answer; isFirst: boolean; micros: bigint }
  | { kind: 'pending' }
  | Refusal<Answer>;

export interface Buyer<Call extends Buyable, Answer> {
  buy(call: Call): Promise<Bought<Answer>>;
  /** Whether a purchase of this call waits for its answer. */
  isOpen(call: Call): Promise<boolean>;
}

export interface BuyerParts<Call extends Buyable, Answer> {
  door: Door<Call, Answer>;
  payer: Payer;
  /** Opens the book on first use, and throws while it cannot be used. */
  book: () => Book;
  limits: Limits;
  /** How the limits are raised, in words for whoever meets one. */
  limitsWords: string;
  /** Whether the price is asked though a key would pay whatever it is. */
  asksPrice: boolean;
  /** Address of the server, so that another server is never sent what one was paid with. */
  url: string;
  nowMs: () => number;
  log(line: string): void;
  /** Told of an answer before its purchase is struck off: a process that dies in between is told of it again. */
  answered?(call: Call, answer: Answer, micros: bigint): Promise<void>;
}

export function createBuyer<Call extends Buyable, Answer>(
  parts: BuyerParts<Call, Answer>,
): Buyer<Call, Answer> {
  return {
    async buy(call) {
      const request = await fingerprint(parts, call);
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        const open = await parts.book().openFor(request);
        if (open !== null) {
          const bought = await present(parts, open, call);
          // A payment that is refused, or that another call gave up, is not sent any more: the request is bought anew.
          if (bought !== 'given up' && !isRefusedPayment(parts, bought)) return bought;
        }
        const bought = await buyAnew(parts, call, request);
        if (bought === 'given up') continue;
        const isFirst = open === null && round === 0;
        return bought.kind === 'answer' ? { ...bought, isFirst: bought.isFirst && isFirst } : bought;
      }
      return refusal(
        'ANSWER_LOST',
        `${call.service} was asked for by several calls at once, and was not answered. It may be paid for. Call it again with the same arguments.`,
        null,
      );
    },
    isOpen: async (call) => (await parts.book().openFor(await fingerprint(parts, call))) !== null,
  };
}

async function buyAnew<Call extends Buyable, Answer>(
  parts: BuyerParts<Call, Answer>,
  call: Call,
  request: string,
): Promise<Bought<Answer> | 'given up'> {
  const quoted = await quoteFor(parts, call);
  if ('kind' in quoted) return quoted;
  const agreed = await withinLimits(parts, call, quoted.micros, request);
  if (agreed === 'pending') return { kind: 'pending' };
  if (agreed !== 'within' && agreed !== 'yes') return agreed;
  const payment = await quoted.pay();
  const text = JSON.stringify(payment.signed);
  if (text.length > MAX_PAYMENT_CHARACTERS)
    return refusal('CANNOT_PAY', `${call.service} cannot be paid for: its terms are too long.`);
  const opened = await parts
    .book()
    .open(purchaseOf(call, request, payment, text), dayLimits(parts, call, agreed));
  // Between the question and here another call may have spent the rest.
  if (opened === 'above') return refusal('ABOVE_LIMIT', await aboveDay(parts, call, payment.micros));
  if (opened === 'full')
    return refusal(
      'TOO_MANY_OPEN',
      'Too many purchases wait for their answers. Repeat one of them, or try again in ten minutes.',
    );
  parts.log(`buys ${call.service}${payment.micros === 0n ? '' : ` for ${inUsd(payment.micros)} USD`}`);
  return present(parts, opened, call);
}

function purchaseOf(call: Buyable, request: string, { id, micros }: Payment, payment: string): Purchase {
  return { id, request, payment, micros, service: call.service, kept: call.named !== null };
}

function dayLimits(
  { limits }: Pick<BuyerParts<never, never>, 'limits'>,
  { service }: Buyable,
  agreed: 'within' | 'yes',
): { dayMicros: bigint | null; serviceMicros: bigint | null } {
  if (agreed === 'yes') return { dayMicros: null, serviceMicros: null };
  return { dayMicros: limits.maxDayMicros, serviceMicros: serviceLimit(limits, service) };
}

const serviceLimit = ({ maxServiceMicros = {} }: Limits, service: string): bigint | null =>
  Object.hasOwn(maxServiceMicros, service) ? (maxServiceMicros[service] ?? null) : null;

/** @returns how the call would be paid, or its answer without a payment, or why there is neither */
async function quoteFor<Call extends Buyable, Answer>(
  { door, payer, asksPrice, nowMs }: BuyerParts<Call, Answer>,
  call: Call,
): Promise<{ micros: bigint; pay(): Promise<Payment> } | Bought<Answer>> {
  const unasked = asksPrice ? null : payer.unasked(call.named);
  if (unasked !== null) return unasked;
  let unpaid: Answer;
  try {
    unpaid = await door.askPrice(call);
  } catch (error) {
    if (!(error instanceof AnswerLost)) throw error;
    call.signal.throwIfAborted();
    return refusal(
      'SERVER_AWAY',
      `The server did not tell the price: ${error.message}. Nothing was paid. Try again later.`,
    );
  }
  const { terms } = door.read(unpaid);
  if (terms === null) return { kind: 'answer', answer: unpaid, isFirst: true, micros: 0n };
  const quote = payer.quote(terms, call.named, nowMs());
  if ('pay' in quote) return quote;
  return { ...refusal(quote.code, `${call.service} cannot be paid for: ${quote.why}.`), unpaid };
}

async function withinLimits<Call extends Buyable, Answer>(
  parts: BuyerParts<Call, Answer>,
  call: Call,
  micros: bigint,
  request: string,
): Promise<'within' | 'yes' | 'pending' | Refusal<Answer>> {
  const { maxCallMicros } = parts.limits;
  const aboveCall = maxCallMicros !== null && micros > maxCallMicros;
  if (!aboveCall && !(await isAboveDay(parts, call, micros))) return 'within';
  const why = aboveCall
    ? `${costs(call.service, micros)}, which is more than a call may cost without asking (${inUsd(maxCallMicros)} USD).`
    : await aboveDay(parts, call, micros);
  const said = await call.confirm(`${why} Buy it?`, micros, `buy-${micros}-${request.slice(0, 16)}`);
  if (said === 'yes' || said === 'pending') return said;
  if (said === 'no') return refusal('DECLINED', `${why} The person who was asked did not agree.`);
  return refusal('ABOVE_LIMIT', `${why} ${parts.limitsWords}`);
}

async function isAboveDay<Call extends Buyable, Answer>(
  { book, limits }: BuyerParts<Call, Answer>,
  { service }: Call,
  micros: bigint,
): Promise<boolean> {
  const ofService = serviceLimit(limits, service);
  return (
    (limits.maxDayMicros !== null && (await book().todayMicros()) + micros > limits.maxDayMicros) ||
    (ofService !== null && (await book().todayMicros(service)) + micros > ofService)
  );
}

async function aboveDay<Call extends Buyable, Answer>(
  { book, limits }: BuyerParts<Call, Answer>,
  { service }: Call,
  micros: bigint,
): Promise<string> {
  const total = await book().todayMicros();
  const { maxDayMicros } = limits;
  if (maxDayMicros !== null && total + micros > maxDayMicros)
    return `${costs(service, micros)}, and with it today's calls would come to more than ${inUsd(maxDayMicros)} USD: ${inUsd(total)} USD are spent or held.`;
  const ofService = await book().todayMicros(service);
  return `${costs(service, micros)}, and with it today's calls of ${service} would come to more than ${inUsd(serviceLimit(limits, service) ?? 0n)} USD: ${inUsd(ofService)} USD are spent or held.`;
}

/**
 * Sends a purchase until its end is known, as far as the time allows. Each time it is the same payment.
 *
 * @returns `given up` when another call, which sends the same purchase, was told that it is not paid for
 */
async function present<Call extends Buyable, Answer>(
  parts: BuyerParts<Call, Answer>,
  purchase: Purchase,
  call: Call,
): Promise<Bought<Answer> | 'given up'> {
  const { nowMs, book, log } = parts;
  const signed = signedIn(purchase.payment);
  const giveUpAtMs = nowMs() + TRYING_MS;
  const lost = (why: string): Bought<Answer> =>
    refusal(
      'ANSWER_LOST',
      `The answer to ${call.service} did not arrive: ${why}. It may be paid for. Call it again with the same arguments: the same payment${purchase.micros === 0n ? '' : ` of ${inUsd(purchase.micros)} USD`} is sent, and is taken once.`,
      null,
    );
  for (let attempt = 0, why = ''; ; attempt += 1) {
    let send: Send | null;
    try {
      send = await book().sending(purchase.id, CALL_TIMEOUT_MS + ON_ITS_WAY_MS);
    } catch (error) {
      // Before the first time nothing has left.
      if (attempt === 0) throw error;
      return lost(why);
    }
    if (send === null) return 'given up';
    const leastMs = PAUSES_MS[Math.min(attempt, PAUSES_MS.length - 1)] ?? 0;
    const isInTime = (waitMs: number) => nowMs() + Math.max(leastMs, waitMs) <= giveUpAtMs;
    const told = await sendOnce(parts, { purchase, signed, send, isInTime }, call);
    if ('answer' in told)
      return { kind: 'answer', answer: told.answer, isFirst: attempt === 0, micros: purchase.micros };
    ({ why } = told);
    if (!isInTime(told.waitMs)) return lost(why);
    log(`asks for ${call.service} again, with the same payment: ${why}`);
    await pause(Math.max(leastMs, told.waitMs), call.signal);
  }
}

/** Why there is no answer yet, and for how long to wait. */
interface Lost {
  why: string;
  waitMs: number;
}

/** A payment on its way. */
interface Leaving {
  purchase: Purchase;
  signed: Signed;
  send: Send;
  /** Whether there is time to send it again after a wait. */
  isInTime(waitMs: number): boolean;
}

/**
 * @returns the answer, or why there is none
 * @throws Refused when the server did nothing
 */
async function sendOnce<Call extends Buyable, Answer>(
  parts: BuyerParts<Call, Answer>,
  leaving: Leaving,
  call: Call,
): Promise<{ answer: Answer } | Lost> {
  const { door } = parts;
  let outcome: Outcome = 'unknown';
  try {
    const answer = await door.send(call, leaving.signed, CALL_TIMEOUT_MS);
    const reading = door.read(answer);
    // Whoever asked has gone: the answer stays bought, for when the same is asked again.
    if (!call.signal.aborted) outcome = reading.outcome;
    if (outcome === 'uncharged' && reading.asksAgain && leaving.isInTime(reading.retryAfterMs)) {
      await parts.book().denied(leaving.send);
      return { why: reading.message, waitMs: reading.retryAfterMs };
    }
    if (outcome === 'paid') await parts.answered?.(call, answer, leaving.purchase.micros);
    await record(parts, call, leaving, outcome, reading);
    if (call.signal.aborted || outcome !== 'unknown') return { answer };
    return { why: reading.message, waitMs: Math.min(reading.retryAfterMs, MAX_PAUSE_MS) };
  } catch (error) {
    const isRefused = error instanceof Refused;
    if (isRefused && !call.signal.aborted && error.retryAfterMs === null && hasDoneNothing(error))
      outcome = 'uncharged';
    const isGivenUp = await record(parts, call, leaving, outcome, null);
    if (call.signal.aborted || isGivenUp || !(isRefused || error instanceof AnswerLost)) throw error;
    // A wait that is too long is none: the same call may be made again.
    return { why: error.message, waitMs: isRefused ? (error.retryAfterMs ?? 0) : 0 };
  }
}

/** The error codes of JSON-RPC for a message that it cannot take. Other codes of its own may follow a charge. */
const NOT_TAKEN: readonly number[] = [-32_700, -32_600, -32_601, -32_602];
const REQUEST_TIMEOUT = 408;
const hasDoneNothing = ({ code }: Refused) =>
  code > 0 ? code !== REQUEST_TIMEOUT : NOT_TAKEN.includes(code);

/** A price as the answer to a payment: the server has looked, and it has bought nothing. */
const isRefusedPayment = <Call extends Buyable, Answer>(
  { door }: BuyerParts<Call, Answer>,
  bought: Bought<Answer>,
) => bought.kind === 'answer' && door.read(bought.answer).terms !== null;

/**
 * Writes down how it ended. While the book cannot be written the purchase stays open, and counts: no answer is lost to that.
 *
 * @returns whether the purchase is given up
 */
async function record<Call extends Buyable, Answer>(
  parts: BuyerParts<Call, Answer>,
  call: Call,
  { purchase, signed, send }: Leaving,
  outcome: Outcome,
  reading: Pick<Reading, 'replayed' | 'chargedMicros'> | null,
): Promise<boolean> {
  const { book, payer, nowMs, log } = parts;
  try {
    if (outcome === 'unknown') await book().lost(send);
    else if (outcome === 'paid') {
      const again = reading?.replayed === true;
      const micros = chargedMicros(payer, purchase, reading?.chargedMicros ?? null);
      // A repeat does not say what it cost then, and a key may have paid without having asked.
      const known = again && micros === 0n ? await priceOf(parts, call) : micros;
      await book().settle({ ...purchase, micros: known }, again);
    } else return await book().giveUp(send, { outcome, endsAtMs: payer.endsAtMs(signed, nowMs()) });
  } catch (error) {
    log(`cannot write down what was spent: ${error instanceof Error ? error.message : 'it failed'}`);
  }
  return false;
}

/** The price of a call now; 0 when the server does not say. */
async function priceOf<Call extends Buyable, Answer>(
  { door }: BuyerParts<Call, Answer>,
  call: Call,
): Promise<bigint> {
  const unpaid = await door.askPrice(call).catch(() => null);
  return unpaid === null ? 0n : (door.read(unpaid).terms?.priceMicros ?? 0n);
}

/** The amount charged: a key may pay more than the price that was told before, a wallet pays what it signed. */
function chargedMicros(payer: Payer, { micros }: Purchase, charged: bigint | null): bigint {
  return payer.apiKey !== null && charged !== null && charged > micros ? charged : micros;
}

function refusal(
  code: Refusal<never>['code'],
  message: string,
  charged: false | null = false,
): Refusal<never> {
  return { kind: 'refusal', code, message, charged };
}

/** Identifies a purchase: the same question to the same server, with the same money, whichever door it goes through. */
async function fingerprint(
  { url, payer }: Pick<BuyerParts<never, never>, 'url' | 'payer'>,
  { service, named, input }: Buyable,
): Promise<string> {
  return digestOf(JSON.stringify([url, payer.name, service, named, inOrder(input)]));
}
