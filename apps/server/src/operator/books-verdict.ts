/** Whether the books balance, as it was found last: proving reads all there is, so its end is kept for who asks. */
import type { Database } from '../db/connection.ts';
import { type Books, proveBooks } from '../ledger/books.ts';

export const BOOKS_PROVED_EVERY_MS = 15 * 60_000;
/** A proof that was cut off keeps others from proving for so long. */
const LEASE_MS = 15 * 60_000;
const VERDICTS_KEPT_MS = 30 * 86_400_000;

export interface BooksVerdict {
  startedAt: Date;
  endedAt: Date;
  books: Books;
}

export interface BooksVerdicts {
  /** The last one; null: they were never proved. */
  last(): Promise<BooksVerdict | null>;
  /** Proves them now. @returns null while somebody else does, here or on another replica */
  prove(): Promise<BooksVerdict | null>;
  /** The job's round: proves them unless that was done lately, by whichever replica. */
  proveIfDue(): Promise<void>;
  /** Since when somebody is proving them; null: nobody is. */
  provingSince(): Promise<Date | null>;
}

export function createBooksVerdicts(sql: Database, nowMs: () => number): BooksVerdicts {
  const at = (afterMs = 0) => new Date(nowMs() + afterMs).toISOString();

  async function last(): Promise<BooksVerdict | null> {
    const [row] = await sql<{ started_at: Date; ended_at: Date; books: Record<string, unknown> }[]>`
      select started_at, ended_at, books from books_verdicts order by id desc limit 1`;
    return row === undefined
      ? null
      : { startedAt: row.started_at, endedAt: row.ended_at, books: withBigints(row.books) };
  }

  async function prove(): Promise<BooksVerdict | null> {
    const startedAtMs = nowMs();
    // A row and not a lock of the session: no connection is held while the proof needs one.
    const leased = await sql`
      update books_proof set leased_until = ${at(LEASE_MS)} where leased_until <= ${at()} returning one`;
    if (leased.length === 0) return null;
    try {
      const books = await proveBooks(sql);
      await sql`
        insert into books_verdicts (started_at, ended_at, balanced, books)
        values (${new Date(startedAtMs).toISOString()}, ${at()}, ${books.balanced}, ${asJson(books)}::text::jsonb)`;
      await sql`delete from books_verdicts where ended_at < ${at(-VERDICTS_KEPT_MS)}`;
      return { startedAt: new Date(startedAtMs), endedAt: new Date(nowMs()), books };
    } finally {
      await sql`update books_proof set leased_until = '-infinity'`;
    }
  }

  return {
    last,
    prove,
    async proveIfDue() {
      const verdict = await last();
      // A little less than the interval, whose jitter would else skip every other round.
      if (verdict !== null && nowMs() - verdict.endedAt.getTime() < BOOKS_PROVED_EVERY_MS / 2) return;
      await prove();
    },
    async provingSince() {
      const [row] = await sql<{ leased_until: Date }[]>`
        select leased_until from books_proof where leased_until > ${at()}`;
      return row === undefined ? null : new Date(row.leased_until.getTime() - LEASE_MS);
    },
  };
}

/** JSON has no whole numbers of that size: they travel as text that says what it is. */
function asJson(books: Books): string {
  return JSON.stringify(books, (_, value) => (typeof value === 'bigint' ? { int: String(value) } : value));
}

function withBigints(stored: Record<string, unknown>): Books {
  return JSON.parse(JSON.stringify(stored), (_, value) =>
    typeof value === 'object' && value !== null && typeof value.int === 'string' ? BigInt(value.int) : value,
  );
}
