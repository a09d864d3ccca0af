/** The answers to a gate's server: a call begins with the paid call, waits for the guest's word, and ends with the paid call. */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Problem } from '@farebox/core/http/problem';
import { presentedApiKey } from '@farebox/core/keys/api-key';
import { priceInUsd } from '@farebox/core/ledger/money';
import type { PaidCall } from '@farebox/core/paid-call/paid-call';
import type { PaidAnswer } from '@farebox/core/paid-call/sale';
import type { AskedGuest, GuestRequest, GuestWord } from '../sell/gate-service.ts';
import type { GateRoute, OpenGate } from '../sell/open-routes.ts';
import type { GateOutcome, GateStore, StoredWord } from './gate-store.ts';
import { type BeginMessage, refused } from './read-message.ts';
import { givenUp, type Heard, type WaitingCalls, wordOf } from './waiting-calls.ts';

/** How often the outcome of a call that another replica runs is looked for, and for how long beyond the guest's time. */
const LOOK_MS = 100;
const LOOK_BEYOND_MS = 15_000;

export interface DeskParts {
  store: GateStore;
  waiting: WaitingCalls<Ended>;
  nowMs(): number;
}

/** The end of a paid call. */
export interface Ended {
  outcome: GateOutcome;
  arrived: PaidAnswer['arrived'];
}

/** A message as it came in. */
export interface Arrival {
  requestId: string;
  /** The address that the message came from. */
  address: string;
  /** Whether its sender has left without an answer. */
  gone(): boolean;
  onGone(left: () => void): void;
}

export interface DeskAnswer {
  message: Readonly<Record<string, unknown>>;
  /** Told whether the answer has reached the guest. */
  arrived?: PaidAnswer['arrived'];
}

/** A call between its begin and its end. */
class GuestCall {
  readonly ended: Promise<Ended>;
  readonly #desk: DeskParts;
  readonly #gate: string;
  #asked: AskedGuest | null = null;
  #heard: Heard | null = null;
  #end: (ended: Ended) => void = () => {};

  constructor(desk: DeskParts, gate: string) {
    this.#desk = desk;
    this.#gate = gate;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** Whether the guest was told to answer. */
  get isRunning(): boolean {
    return this.#asked !== null;
  }

  get callerLeft(): boolean {
    return this.#heard?.word.kind === 'answer' && this.#heard.word.callerLeft;
  }

  /** Waits for the guest. @param told called when it can be told to answer */
  async ask(asked: AskedGuest, told: (asked: AskedGuest) => void): Promise<GuestWord> {
    this.#heard = await this.#desk.waiting.wait(asked, { gate: this.#gate, ended: this.ended }, () => {
      this.#asked = asked;
      told(asked);
    });
    return this.#heard.word;
  }

  /** Notes what became of the call, for whichever replica is asked. */
  async end(answer: PaidAnswer): Promise<PaidAnswer> {
    if (this.#asked === null) return answer;
    const word = this.#heard?.word;
    const outcome = outcomeOf(answer, word?.kind === 'answer' ? word.body : null);
    // Whoever asks for what could not be noted is told that the outcome is unknown.
    await this.#desk.store.end(this.#asked.runId, outcome).catch(() => {});
    this.#end({ outcome, arrived: answer.arrived });
    if (this.#heard?.isAwaitedHere !== true) answer.arrived?.(true);
    return answer;
  }
}

/** Begins a call, as far as it goes without the guest: to an answer for the caller, or to the word that it is paid for. */
export async function begin(
  desk: DeskParts,
  { open, paidCall }: { open: OpenGate; paidCall: PaidCall },
  message: BeginMessage,
  arrival: Arrival,
): Promise<DeskAnswer> {
  const { route, service } = routeOf(open, message);
  const gate = open.gate.name;
  const headers = headersOf(message.headers);
  const call = new GuestCall(desk, gate);
  let told: (asked: AskedGuest) => void = () => {};
  const running = new Promise<AskedGuest>((resolve) => {
    told = resolve;
  });
  const sent: GuestRequest = {
    url: message.url,
    rawHeaders: message.headers,
    ask: (asked) => call.ask(asked, told),
  };
  const handled = paidCall
    .handle({
      service,
      // The terms, whatever credential came: nothing is bought by a HEAD.
      headers: message.method === 'HEAD' ? {} : headers,
      rawBody: message.body ?? undefined,
      sent,
      address: message.address ?? arrival.address,
      requestId: arrival.requestId,
      dryRun: 'no',
      // The guest sees its caller, and says with the answer whether it has left.
      gone: () => (call.isRunning ? call.callerLeft : arrival.gone()),
      delivery: { request: null, cancelled() {} },
      assertMayBuy() {},
    })
    .then((answer) => call.end(answer));
  const first = await Promise.race([handled, running]);
  if (!('runId' in first))
    return { message: { do: 'answer', ...outcomeOf(first, null) }, arrived: first.arrived };
  // A guest that leaves now was never told that it may answer.
  arrival.onGone(() => desk.waiting.find(first.runId, gate)?.hear(givenUp('its server has left')));
  return {
    message: {
      do: 'run',
      call: first.runId,
      callId: first.callId,
      caller: callerOf(gate, headers, first),
      price: priceInUsd(first.priceMicros),
      idempotencyKey: first.idempotencyKey,
      passes: route.requestHeaders,
      withinMs: first.timeoutMs,
    },
  };
}

/** The route that a guest means. Its price is the route's: a guest names none. @throws Problem for another gate's */
function routeOf({ gate, table }: OpenGate, { route: key, method, url }: BeginMessage): GateRoute {
  const found = table.match(method === 'HEAD' ? 'GET' : method, url);
  if (found === null || 'refused' in found || found.route.route.key !== key)
    throw notItsRoute(gate.name, key);
  return found.route;
}

function notItsRoute(gate: string, key: string): Problem {
  return refused(404, 'GATE_ROUTE_UNKNOWN', `${gate} has no route ${key} here that fits the request.`);
}

/** Headers as a request has them: the first credential counts, and other values are joined. */
function headersOf(flat: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let index = 0; index + 1 < flat.length; index += 2) {
    const name = (flat[index] ?? '').toLowerCase();
    if (name === '__proto__') continue;
    const value = flat[index + 1] ?? '';
    const before = Object.hasOwn(headers, name) ? headers[name] : undefined;
    if (before === undefined) headers[name] = value;
    else if (name !== 'authorization') headers[name] = `${before}, ${value}`;
  }
  return headers;
}

/** Names a caller to one guest. A key has 256 random bits, so that its digest tells nothing of it. */
function callerOf(gate: string, headers: Record<string, string>, { rail, payer }: AskedGuest): string {
  const name = rail === 'credits' ? presentedApiKey(headers) : `${rail} ${payer}`;
  return createHash('sha256')
    .update(JSON.stringify(['caller of a gate', gate, name]))
    .digest('hex');
}

/**
 * Takes a guest's word about a call, which may run on another replica, and waits for what becomes of it. The same word again gets
 * the same answer.
 *
 * @throws Problem 404 for a call that is not this gate's
 */
export async function conclude(
  { store, waiting, nowMs }: DeskParts,
  gate: string,
  { call, said, body }: { call: string; said: StoredWord; body: Buffer },
): Promise<DeskAnswer> {
  const here = waiting.find(call, gate);
  if (here !== null && (await store.take(call, gate))) {
    here.hear({ word: wordOf(said, body), isAwaitedHere: true });
    const { outcome, arrived } = await here.ended;
    return { message: { do: 'answer', ...outcome }, arrived };
  }
  if (here === null) await store.say(call, gate, said, body);
  const untilMs = nowMs() + LOOK_BEYOND_MS;
  for (;;) {
    const standing = await store.look(call, gate);
    if (standing === null) throw refused(404, 'GATE_CALL_UNKNOWN', 'There is no such call.');
    if (standing.outcome !== null) return { message: { do: 'answer', ...standing.outcome } };
    if (!standing.isOpen && standing.state !== 'taken') await store.giveUp(call, UNCHARGED);
    else if (nowMs() > untilMs) return { message: { do: 'answer', ...UNKNOWN } };
    else await sleep(LOOK_MS);
  }
}

function problemOutcome(code: string, message: string, more: object): GateOutcome {
  const body = Buffer.from(JSON.stringify({ error: code, message, code, ...more }));
  return {
    status: 503,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
    body: body.toString('base64'),
  };
}

const UNCHARGED = problemOutcome(
  'GATE_CALL_OVER',
  'The answer came when the call was over. Nothing was charged.',
  { charged: false },
);
const UNKNOWN = problemOutcome(
  'OUTCOME_UNKNOWN',
  'It is not known yet whether this call was charged. Repeat the same request with the same Idempotency-Key or payment.',
  { retryAfterSeconds: 5 },
);

/** An answer as a guest is told it. @param own the bytes that the guest has sent, which it need not get again */
function outcomeOf({ status, headers, body }: PaidAnswer, own: Buffer | null): GateOutcome {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return { status, headers, body: own?.equals(bytes) ? null : bytes.toString('base64') };
}
