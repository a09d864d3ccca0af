/**
 * Which request paid for which call, for whoever asks for help with the id of a request. Only requests that paid on a chain
 * are noted, and those that failed on our side: the calls of a key are found by its account. A note waits in memory, and a
 * job writes it down, so no call waits for it.
 */
import { arrayLiteral } from '../../db/array-literal.ts';
import type { Database } from '../../db/connection.ts';
import type { CallReport } from './outcome.ts';

const DAY_MS = 86_400_000;
/** Notes that wait at most; more are left out. */
const MOST_WAITING = 5_000;
/** Notes of one process in a day (UTC). A flood of failures must not fill the database. */
const MOST_A_DAY = 50_000;
const LONGEST_REASON = 200;
/** In one call of `forget`. */
export const NOTES_FORGOTTEN_AT_ONCE = 5_000;

export interface RequestNotes {
  /** Costs a look into memory. */
  note(report: CallReport): void;
  /** Writes down what was noted. What cannot be written is kept for the next round. */
  flush(): Promise<void>;
  /** Forgets the oldest, and says how many. */
  forget(): Promise<number>;
}

interface Note extends Pick<CallReport, 'requestId' | 'service' | 'rail' | 'outcome' | 'status' | 'callId'> {
  at: string;
  reason: string | null;
}

/** @param retentionDays how long a note is kept */
export function createRequestNotes(sql: Database, nowMs: () => number, retentionDays: number): RequestNotes {
  let waiting: Note[] = [];
  let today = { day: -1, noted: 0 };

  return {
    note(report) {
      if (!isWorthNoting(report) || waiting.length >= MOST_WAITING) return;
      const day = Math.floor(nowMs() / DAY_MS);
      if (today.day !== day) today = { day, noted: 0 };
      if (today.noted >= MOST_A_DAY) return;
      today.noted += 1;
      const { requestId, service, rail, outcome, status, callId, reason } = report;
      const at = new Date(nowMs()).toISOString();
      waiting.push({
        requestId,
        service,
        rail,
        outcome,
        status,
        callId,
        at,
        reason: reason?.slice(0, LONGEST_REASON).toWellFormed() ?? null,
      });
    },

    async flush() {
      const notes = waiting;
      if (notes.length === 0) return;
      waiting = [];
      try {
        await write(sql, notes);
      } catch (error) {
        waiting = [...notes, ...waiting].slice(0, MOST_WAITING);
        throw error;
      }
    },

    async forget() {
      const { count } = await sql`
        delete from paid_requests where request_id in (
          select request_id from paid_requests where at < ${new Date(nowMs() - retentionDays * DAY_MS).toISOString()} order by at
          limit ${NOTES_FORGOTTEN_AT_ONCE} for update skip locked
        )`;
      return count;
    },
  };
}

function isWorthNoting({ rail, status, callId }: CallReport): boolean {
  return status >= 500 || (rail !== 'credits' && rail !== 'none' && callId !== null);
}

async function write(sql: Database, notes: readonly Note[]): Promise<void> {
  const column = (of: (note: Note) => string) => arrayLiteral(notes.map(of));
  await sql`
    insert into paid_requests (request_id, at, service, rail, outcome, status, reason, call_id)
    select id, at, service, rail, outcome, status, nullif(reason, ''), nullif(call_id, '')::uuid
    from unnest(
      ${column((note) => note.requestId)}::text::text[], ${column((note) => note.at)}::text::timestamptz[],
      ${column((note) => note.service)}::text::text[], ${column((note) => note.rail)}::text::text[],
      ${column((note) => note.outcome)}::text::text[], ${column((note) => String(note.status))}::text::smallint[],
      ${column((note) => note.reason ?? '')}::text::text[], ${column((note) => note.callId ?? '')}::text::text[]
    ) as u (id, at, service, rail, outcome, status, reason, call_id)
    on conflict (request_id) do nothing`;
}
