/**
 * Calls of guests in the database, where every replica finds them:
 *
 *   begun ─► the guest's word lies here ─► the replica that runs the call has it ─► over
 *         └────────── by the same replica ──────────▲
 *   begun, or the word lies here ─► over: nobody runs the call any more
 *
 * The first word about a call counts, and each of these steps is taken by one of all that try.
 */
import { arrayLiteral } from '@farebox/core/db/array-literal';
import type { Database } from '@farebox/core/db/connection';

/** Status and headers of an answer, or why a call is given up. */
export type StoredWord =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: readonly string[];
      readonly callerLeft: boolean;
    }
  | { readonly kind: 'release'; readonly why: string };

/** The answer that the caller of a call gets. */
export interface GateOutcome {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** In base64; null: the bytes that the guest sent. */
  readonly body: string | null;
}

export interface GateStanding {
  readonly state: 'begun' | 'said' | 'taken' | 'over';
  readonly isOpen: boolean;
  readonly outcome: GateOutcome | null;
}

export type GateStore = ReturnType<typeof createGateStore>;

const STATES = ['begun', 'said', 'taken', 'over'] as const;
/** How long the outcome of a call is told again. */
const OUTCOME_MS = 600_000;

export function createGateStore(sql: Database, nowMs: () => number) {
  const at = (inMs: number) => new Date(nowMs() + inMs).toISOString();
  return {
    async begin(runId: string, gate: string, openMs: number): Promise<void> {
      await sql`
        insert into gate_calls (run_id, gate, open_until, expires_at)
        values (${runId}, ${gate}, ${at(openMs)}, ${at(openMs + OUTCOME_MS)})`;
    },

    /** Claims the end of a call that runs in this process. @returns false when something was said before, or it is too late */
    async take(runId: string, gate: string): Promise<boolean> {
      const taken = await sql`
        update gate_calls set state = 2
        where run_id = ${runId} and gate = ${gate} and state = 0 and open_until > ${at(0)}`;
      return taken.count === 1;
    },

    /** Leaves a word for the replica that runs a call. @returns false as `take` does */
    async say(runId: string, gate: string, said: StoredWord, body: Buffer): Promise<boolean> {
      const noted = await sql`
        update gate_calls set state = 1, said = ${JSON.stringify(said)}::text::jsonb, body = ${body}
        where run_id = ${runId} and gate = ${gate} and state = 0 and open_until > ${at(0)}`;
      return noted.count === 1;
    },

    /** Takes the words that were left for calls of this process. */
    async hear(runIds: readonly string[]): Promise<{ runId: string; said: StoredWord; body: Buffer }[]> {
      const heard = await sql<{ run_id: string; said: StoredWord; body: Buffer }[]>`
        update gate_calls set state = 2
        where run_id = any(${arrayLiteral([...runIds])}::text::uuid[]) and state = 1
        returning run_id, said, body`;
      return heard.map(({ run_id: runId, said, body }) => ({ runId, said, body }));
    },

    /** Notes what the caller gets. The word of the guest is not kept longer. */
    async end(runId: string, outcome: GateOutcome): Promise<void> {
      await sql`
        update gate_calls
        set state = 3, outcome = ${JSON.stringify(outcome)}::text::jsonb, said = null, body = null,
            expires_at = ${at(OUTCOME_MS)}
        where run_id = ${runId} and state <> 3`;
    },

    /** Ends a call whose time is over and that nobody has taken, so that nobody ever will. @returns whether this did */
    async giveUp(runId: string, outcome: GateOutcome): Promise<boolean> {
      const ended = await sql`
        update gate_calls set state = 3, outcome = ${JSON.stringify(outcome)}::text::jsonb, said = null, body = null
        where run_id = ${runId} and state < 2 and open_until <= ${at(0)}`;
      return ended.count === 1;
    },

    /** @returns null for a call that this gate never had, or long ago */
    async look(runId: string, gate: string): Promise<GateStanding | null> {
      const [row] = await sql<{ state: number; is_open: boolean; outcome: GateOutcome | null }[]>`
        select state, open_until > ${at(0)} as is_open, outcome from gate_calls
        where run_id = ${runId} and gate = ${gate}`;
      if (row === undefined) return null;
      return { state: STATES[row.state] ?? 'over', isOpen: row.is_open, outcome: row.outcome };
    },

    /** Deletes what has expired, at most `limit` of it. @returns how many were deleted */
    async dropExpired(limit: number): Promise<number> {
      const calls = await sql`
        with old as (select run_id from gate_calls where expires_at <= ${at(0)} limit ${limit} for update skip locked)
        delete from gate_calls c using old where c.run_id = old.run_id`;
      return calls.count;
    },
  };
}

export type GateMessages = ReturnType<typeof createGateMessages>;

/** Messages of guests that were accepted: none is accepted twice, on whichever replica. */
export function createGateMessages(sql: Database, nowMs: () => number) {
  return {
    /** Notes a message. @returns false when it came before */
    async isNew(gate: string, nonce: string, untilMs: number): Promise<boolean> {
      const noted = await sql`
        insert into gate_messages (gate, nonce, expires_at)
        values (${gate}, ${nonce}, ${new Date(untilMs).toISOString()}) on conflict do nothing`;
      return noted.count === 1;
    },

    /** Deletes what has expired, at most `limit` of it. @returns how many were deleted */
    async dropExpired(limit: number): Promise<number> {
      const dropped = await sql`
        with old as (
          select gate, nonce from gate_messages where expires_at <= ${new Date(nowMs()).toISOString()}
          limit ${limit} for update skip locked
        )
        delete from gate_messages m using old where m.gate = old.gate and m.nonce = old.nonce`;
      return dropped.count;
    },
  };
}
