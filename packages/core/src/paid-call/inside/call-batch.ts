/**
 * Many calls in one statement: the calls that begin, are kept and end together go to the database together, in one
 * commit.
 *
 * Two functions do what most calls need (`functions/calls_begin.sql`, `functions/calls_finish.sql`). A third one does
 * what involves a chain (`functions/calls_apply.sql`). A statement names only the functions that its batch needs.
 */
import { arrayLiteral } from '../../db/array-literal.ts';
import type { Database } from '../../db/connection.ts';
import { sqlFunction } from '../../db/functions.ts';
import { fragment, type SqlFragment, templateOf } from '../../db/sql-fragment.ts';
import { HOUSE_ACCOUNTS, isHouseAccount } from '../../ledger/accounts.ts';
import { HOUSE_BUCKET } from '../../ledger/buckets.ts';
import type {
  BeginOutcome,
  CallToBegin,
  CallToFinish,
  CallToKeep,
  FinishOutcome,
  KeepOutcome,
} from './call-steps.ts';

const CALLS_BEGIN = sqlFunction('calls_begin');
const CALLS_FINISH = sqlFunction('calls_finish');
const CALLS_FINISH_APART = sqlFunction('calls_finish_apart');
const CALLS_APPLY = sqlFunction('calls_apply');

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export type CallWork =
  | { kind: 'begin'; call: CallToBegin }
  | { kind: 'keep'; call: CallToKeep }
  | { kind: 'finish'; call: CallToFinish };
/**
 * Another transaction holds a row that this call needs, and nothing was done. The call is tried again, and no caller is
 * told.
 */
type Locked = { status: 'locked' };
/** The account is in another bucket, and nothing was done. The call goes there, and no caller is told. */
type Elsewhere = { status: 'elsewhere' };
export type CallWorkOutcome = BeginOutcome | KeepOutcome | FinishOutcome | Locked | Elsewhere;

export interface BatchSettings {
  /** For how long answers are kept. */
  answerTtlMs: number;
  nowMs: number;
  /** This process, by its row in `replicas`. */
  holder: bigint | null;
  /** The week that all these ids are of, if its functions are there; null, or not given: those of all weeks are called. */
  weekOf?: ((ids: readonly string[]) => string | null) | undefined;
  /** Whether each function goes in a statement of its own, which a database that is spread runs on another server. */
  apart?: boolean;
  /** Any of those servers, for the two functions that run where the bucket is; null, or not given: the coordinator. */
  hot?: Database | null;
}

/** The settings of one statement. Whatever stands in it is durable when it is answered, unless all of it may be lost. */
interface StatementSettings extends BatchSettings {
  /** The bucket of all its calls. */
  bucket: number;
  mayBeLost: boolean;
}

/** What the functions return, as far as they were called; `calls_apply` under its own names. */
interface Answered {
  b_status: number[];
  b_available: bigint[];
  b_answered: string[];
  b_in_flight: bigint[];
  b_known: boolean[];
  seen_at: string;
  k_status: number[];
  f_status: number[];
  f_available: bigint[];
  begin_status: number[];
  begin_available: bigint[];
  begin_answered: string[] | null;
  finish_status: number[];
  finish_available: bigint[];
}

type Cell = Parameters<typeof arrayLiteral>[0][number];

/** One of the functions in the statement. */
interface Part {
  /** Whether any server of a spread database can be asked for it. */
  anywhere: boolean;
  columns: SqlFragment;
  from: SqlFragment;
  /** One outcome for each item of work, in the order of the work. */
  outcomes(answered: Answered): CallWorkOutcome[];
}

/** Whether the call involves no chain: a customer's account pays, and the ledger alone decides. */
export function isPlain({ kind, call }: CallWork): boolean {
  if (kind === 'keep' || isHouseAccount(call.accountId)) return false;
  return kind === 'begin' ? call.onChainIdentity === null : call.settled === undefined;
}

/** Whether its commit need not wait until it is on disk. */
export const mayBeLost = (work: CallWork): boolean => work.kind !== 'finish' && work.call.mayBeLost === true;

/** Whether it takes less than was reserved, which the lean function alone can do. */
const isMeasured = (work: CallWork): boolean => work.kind === 'finish' && work.call.takenMicros !== undefined;

/**
 * Runs a batch, all of it of one bucket: in one statement and one commit unless the functions go apart. Running it again changes nothing. It is durable when this returns, unless
 * all of it may be lost: what takes or keeps a price is never seen before it is durable.
 *
 * @param plainly which of the begins and finishes the two lean functions do
 * @returns one outcome for each item of work, in order
 * @throws the database's error, when nothing was done
 */
export async function applyCalls(
  sql: Database,
  batch: readonly CallWork[],
  settings: BatchSettings,
  plainly: (work: CallWork) => boolean = isPlain,
): Promise<CallWorkOutcome[]> {
  const general: CallWork[] = [];
  const finishes: CallToFinish[] = [];
  const begins: CallToBegin[] = [];
  /** The position in the batch of each part's outcomes. */
  const places: [general: number[], finishes: number[], begins: number[]] = [[], [], []];
  for (const [index, work] of batch.entries()) {
    if (work.kind === 'keep' || !(plainly(work) || isMeasured(work))) {
      general.push(work);
      places[0].push(index);
    } else if (work.kind === 'finish') {
      finishes.push(work.call);
      places[1].push(index);
    } else {
      begins.push(work.call);
      places[2].push(index);
    }
  }
  const bucket = batch[0]?.call.bucket ?? HOUSE_BUCKET;
  if (batch.some(({ call }) => call.bucket !== bucket)) throw new Error('a batch has calls of two buckets');
  const ofStatement = { ...settings, bucket, mayBeLost: batch.every(mayBeLost) };
  const parts = [
    general.length > 0 ? generalPart(general, ofStatement) : null,
    finishes.length > 0 ? finishPart(finishes, ofStatement) : null,
    begins.length > 0 ? beginPart(begins, ofStatement) : null,
  ];
  const asked = parts.filter((part) => part !== null);
  if (asked.length === 0) return [];
  const answered =
    settings.apart === true
      ? await askApart({ sql, hot: settings.hot ?? sql }, asked)
      : await askTogether(sql, asked);
  const outcomes: CallWorkOutcome[] = [];
  for (const [which, part] of parts.entries()) {
    for (const [index, outcome] of part?.outcomes(answered).entries() ?? []) {
      outcomes[places[which]?.[index] ?? -1] = outcome;
    }
  }
  return outcomes;
}

/** Each function by itself, in order, so that the begins can reserve what the finishes release. What was done before one fails stays done. */
async function askApart(
  { sql, hot }: { sql: Database; hot: Database },
  parts: readonly Part[],
): Promise<Answered> {
  const all = {} as Answered;
  for (const part of parts) {
    // Citus hands a call on with its arguments as they are, and has no form for an array that is made of a text.
    const strings = part.from.strings.map((text) => text.replace(/::text::(?=[a-z]+\[\])/g, '::'));
    Object.assign(
      all,
      await askTogether(part.anywhere ? hot : sql, [{ ...part, from: { ...part.from, strings } }]),
    );
  }
  return all;
}

async function askTogether(sql: Database, [first, ...others]: readonly Part[]): Promise<Answered> {
  if (first === undefined) throw new Error('a batch is asked of no function');
  // PostgreSQL runs the left side of an outer join first, so the begins can reserve what the finishes release.
  let { columns, from } = first;
  for (const part of others) {
    columns = fragment`${columns}, ${part.columns}`;
    from = fragment`${from} left join ${part.from} on true`;
  }
  const [answered] = await sql<Answered[]>(...templateOf(fragment`select ${columns} from ${from}`));
  if (answered === undefined) throw new Error('the database answered nothing about calls');
  return answered;
}

/** The function for the week of these calls, or for all weeks. */
function named(name: string, calls: readonly { id: string }[], { weekOf }: BatchSettings): SqlFragment {
  const week = weekOf?.(calls.map(({ id }) => id)) ?? null;
  return { strings: [week === null ? name : `${name}_${week}`], values: [] };
}

function beginPart(calls: readonly CallToBegin[], settings: StatementSettings): Part {
  const column = (pick: (call: CallToBegin) => Cell) => arrayLiteral(calls.map(pick));
  const anyIdentity = calls.some(({ identity }) => identity !== null);
  const anyTerms = calls.some(({ terms }) => terms !== undefined);
  return {
    anywhere: true,
    columns: fragment`b.status as begin_status, b.available as begin_available, b.answered as begin_answered`,
    from: fragment`${named(CALLS_BEGIN, calls, settings)}(
      ${bucketOf(settings)}::smallint, ${column((c) => c.accountId)}::text::bigint[], ${column((c) => c.id)}::text::uuid[],
      ${column((c) => c.keyId)}::text::bigint[], ${column((c) => c.rail)}::text::text[],
      ${column((c) => c.service)}::text::text[], ${column((c) => c.priceMicros)}::text::bigint[],
      ${column((c) => HOUSE_ACCOUNTS[c.revenue])}::text::bigint[], ${column((c) => c.ttlMs)}::text::integer[],
      ${anyIdentity ? column((c) => c.identity) : null}::text::text[],
      ${anyIdentity ? column((c) => hexOf(c.fingerprint)) : null}::text::bytea[],
      ${isoOf(settings.nowMs)}::timestamptz, ${textOf(settings.holder)}::text::bigint,
      ${anyTerms ? column((c) => c.terms?.freeCallsPerDay ?? null) : null}::text::integer[],
      ${anyTerms ? column((c) => c.terms?.callsPerMinute ?? null) : null}::text::integer[],
      ${anyTerms ? column((c) => c.terms?.callsPerDay ?? null) : null}::text::integer[],
      ${String(settings.mayBeLost)}::text::boolean
    ) b`,
    outcomes: (answered) =>
      calls.map(
        (_, index) =>
          quotaOutcome(answered.begin_status[index], settings.nowMs) ??
          beginOutcome(
            answered.begin_status[index],
            answered.begin_available[index],
            answered.begin_answered?.[index],
          ),
      ),
  };
}

function finishPart(calls: readonly CallToFinish[], settings: StatementSettings): Part {
  const column = (pick: (call: CallToFinish) => Cell) => arrayLiteral(calls.map(pick));
  const anyAnswer = calls.some(({ answer }) => answer !== null);
  const anyMeasured = calls.some(({ takenMicros }) => takenMicros !== undefined);
  return {
    anywhere: true,
    columns: fragment`f.status as finish_status, f.available as finish_available`,
    from: fragment`${named(settings.apart === true ? CALLS_FINISH_APART : CALLS_FINISH, calls, settings)}(
      ${bucketOf(settings)}::smallint, ${column((c) => c.accountId)}::text::bigint[], ${column((c) => c.id)}::text::uuid[],
      ${column(phaseOf)}::text::smallint[], ${column((c) => c.outcome)}::text::text[],
      ${anyAnswer ? column((c) => c.answer?.status ?? null) : null}::text::smallint[],
      ${anyAnswer ? column(headersOf) : null}::text::text[],
      ${anyAnswer ? column((c) => c.answer?.body ?? null) : null}::text::text[],
      ${anyMeasured ? column((c) => c.takenMicros ?? null) : null}::text::bigint[],
      ${ttlOf(settings)}::interval, ${isoOf(settings.nowMs)}::timestamptz
    ) f`,
    outcomes: (answered) =>
      calls.map((_, index) => finishOutcome(answered.finish_status[index], answered.finish_available[index])),
  };
}

function generalPart(batch: readonly CallWork[], settings: StatementSettings): Part {
  const begins = batch.filter((work) => work.kind === 'begin').map((work) => work.call);
  const keeps = batch.filter((work) => work.kind === 'keep').map((work) => work.call);
  const finishes = batch.filter((work) => work.kind === 'finish').map((work) => work.call);
  const b = (pick: (call: CallToBegin) => Cell) => arrayLiteral(begins.map(pick));
  const k = (pick: (call: CallToKeep) => Cell) => arrayLiteral(keeps.map(pick));
  const f = (pick: (call: CallToFinish) => Cell) => arrayLiteral(finishes.map(pick));
  return {
    anywhere: false,
    columns: fragment`g.*`,
    from: fragment`${named(
      CALLS_APPLY,
      batch.map(({ call }) => call),
      settings,
    )}(
      ${bucketOf(settings)}::smallint, ${b((c) => c.accountId)}::text::bigint[], ${b((c) => c.id)}::text::uuid[],
      ${b((c) => c.keyId)}::text::bigint[], ${b((c) => c.rail)}::text::text[],
      ${b((c) => c.service)}::text::text[], ${b((c) => c.priceMicros)}::text::bigint[],
      ${b((c) => HOUSE_ACCOUNTS[c.revenue])}::text::bigint[], ${b((c) => c.identity)}::text::text[],
      ${b((c) => c.onChainIdentity)}::text::text[],
      ${b((c) => hexOf(c.fingerprint))}::text::bytea[], ${b((c) => c.ttlMs)}::text::integer[],
      ${b((c) => c.inFlight?.network ?? null)}::text::text[], ${b((c) => c.inFlight?.asset ?? null)}::text::text[],
      ${b((c) => c.inFlight?.payer ?? null)}::text::text[], ${b((c) => c.inFlight?.amountUnits ?? null)}::text::bigint[],
      ${b((c) => c.inFlight?.costsMoney ?? null)}::text::boolean[],
      ${b((c) => c.inFlight?.onlyOneOfUnknown ?? null)}::text::boolean[],
      ${b((c) => c.inFlight?.balance?.units ?? null)}::text::bigint[],
      ${b((c) => c.inFlight?.balance?.since ?? null)}::text::timestamptz[],
      ${k((c) => c.accountId)}::text::bigint[], ${k((c) => c.id)}::text::uuid[],
      ${k((c) => c.rail)}::text::text[], ${k((c) => c.payment.network)}::text::text[],
      ${k((c) => c.payment.asset)}::text::text[], ${k((c) => c.payment.payer)}::text::text[],
      ${k((c) => c.payment.payTo)}::text::text[], ${k((c) => c.payment.amountUnits)}::text::bigint[],
      ${k((c) => JSON.stringify(c.payment.evidence))}::text::text[],
      ${k((c) => isoOf(c.payment.deadAfterMs))}::text::timestamptz[],
      ${k((c) => c.leaseMs)}::text::integer[], ${k((c) => c.answer?.status ?? null)}::text::smallint[],
      ${k(headersOf)}::text::text[], ${k((c) => c.answer?.body ?? null)}::text::text[],
      ${f((c) => c.accountId)}::text::bigint[], ${f((c) => c.id)}::text::uuid[],
      ${f(phaseOf)}::text::smallint[], ${f((c) => c.priceMicros)}::text::bigint[],
      ${f((c) => HOUSE_ACCOUNTS[c.revenue])}::text::bigint[], ${f((c) => c.service)}::text::text[],
      ${f((c) => c.outcome)}::text::text[], ${f((c) => c.settled !== undefined)}::text::boolean[],
      ${f((c) => c.settled?.transaction ?? null)}::text::text[],
      ${f((c) => c.settled?.blockNumber ?? null)}::text::bigint[], ${f((c) => c.answer?.status ?? null)}::text::smallint[],
      ${f(headersOf)}::text::text[], ${f((c) => c.answer?.body ?? null)}::text::text[],
      ${ttlOf(settings)}::interval, ${isoOf(settings.nowMs)}::timestamptz, ${textOf(settings.holder)}::text::bigint,
      ${String(settings.mayBeLost)}::text::boolean
    ) g`,
    outcomes(answered) {
      let begin = 0;
      let keep = 0;
      let finish = 0;
      return batch.map(({ kind }) => {
        if (kind === 'keep') return keepOutcome(answered.k_status[keep++]);
        if (kind === 'begin') {
          const at = begin++;
          return (
            inFlightOutcome(answered.b_status[at], answered.b_in_flight[at], answered.seen_at) ??
            beginOutcome(
              answered.b_status[at],
              answered.b_available[at],
              answered.b_answered[at],
              answered.b_known[at],
            )
          );
        }
        const at = finish++;
        return finishOutcome(answered.f_status[at], answered.f_available[at]);
      });
    },
  };
}

const phaseOf = (call: CallToFinish) => (call.capture ? 3 : 4);

const headersOf = ({ answer }: CallToKeep | CallToFinish) =>
  answer === null ? null : JSON.stringify(answer.headers);

const bucketOf = ({ bucket }: StatementSettings) => String(bucket);

const ttlOf = ({ answerTtlMs }: BatchSettings) => `${answerTtlMs} milliseconds`;

const isoOf = (atMs: number) => new Date(atMs).toISOString();

function textOf(id: bigint | null): string | null {
  return id === null ? null : String(id);
}

function hexOf(bytes: Buffer | null): string | null {
  return bytes === null ? null : `\\x${bytes.toString('hex')}`;
}

function keepOutcome(status: number | undefined): KeepOutcome | Locked {
  if (status === 0) return { status: 'kept' };
  if (status === 1) return { status: 'not_open' };
  if (status === 2) return { status: 'locked' };
  throw unknown(status);
}

function finishOutcome(status: number | undefined, availableMicros = 0n): FinishOutcome | Locked | Elsewhere {
  if (status === 0) return { status: 'done', availableMicros };
  if (status === 1) return { status: 'not_open' };
  if (status === 2) return { status: 'locked' };
  if (status === 3) return { status: 'elsewhere' };
  throw unknown(status);
}

/** What keeps a payment from beginning another call beside those that it has in flight; null when nothing does. */
function inFlightOutcome(status: number | undefined, inFlightUnits = 0n, since: string): BeginOutcome | null {
  if (status === 40) return { status: 'balance_needed', since };
  if (status === 41) return { status: 'balance_exceeded', since, inFlightUnits };
  return status === 42 ? { status: 'one_at_a_time' } : null;
}

/** Which quota keeps a call from beginning, by the clock that it was counted by; null when none does. */
function quotaOutcome(status: number | undefined, nowMs: number): BeginOutcome | null {
  if (status === 14) return { status: 'minute_quota', retryAfterMs: MINUTE_MS - (nowMs % MINUTE_MS) };
  return status === 15 ? { status: 'day_quota', retryAfterMs: DAY_MS - (nowMs % DAY_MS) } : null;
}

function beginOutcome(
  status: number | undefined,
  availableMicros = 0n,
  callId: string | undefined,
  isKnownPayer = true,
): BeginOutcome | Locked | Elsewhere {
  switch (status) {
    case 0:
      return { status: 'authorized', availableMicros, isKnownPayer };
    case 4:
      return { status: 'authorized', availableMicros, isKnownPayer, isFree: true };
    case 1:
      return { status: 'insufficient', availableMicros };
    case 2:
      return { status: 'above_day_cap' };
    case 10:
      return { status: 'key_revoked' };
    case 11:
      return { status: 'key_expired' };
    case 12:
      return { status: 'key_frozen' };
    case 13:
      return { status: 'above_call_cap' };
    case 20:
      if (callId === undefined) throw new Error('an answered call has no id');
      return { status: 'answered', callId };
    case 21:
      return { status: 'running' };
    case 22:
      return { status: 'other_request' };
    case 23:
      if (callId === undefined) throw new Error('a call that is with the chain has no id');
      return { status: 'settling', callId };
    case 30:
      return { status: 'locked' };
    case 31:
      return { status: 'elsewhere' };
    default:
      throw unknown(status);
  }
}

function unknown(status: number | undefined): Error {
  return new Error(`the database answered about a call with the unknown status ${status}`);
}
