/** Whether the books balance, as it was found last: proving reads all there is, so its end is kept for who asks. */
import type { Database, Pools } from '../db/connection.ts';
import { type Books, ProofUnwanted, proveBooks } from '../ledger/books.ts';
import { closableDay, closeDays } from '../ledger/closed-days.ts';
import type { Audited } from '../ledger/rule.ts';

export const BOOKS_PROVED_EVERY_MS = 15 * 60_000;
/** A proof that was cut off keeps others from proving for so long, by the database's clock. */
const LEASE = '30 seconds';
const RENEW_EVERY_MS = 5_000;
/** The application name under which the database shows a proof, with its number. */
const SESSION = 'farebox books proof';
const VERDICTS_KEPT_MS = 30 * 86_400_000;

export interface BooksVerdict {
  startedAt: Date;
  endedAt: Date;
  books: Books;
}

/** A verdict of now. */
export interface NewVerdict extends BooksVerdict {
  /** Why a day that is complete may have stayed open: the books balance all the same. Null: none did. */
  notClosed: Error | null;
}

export interface BooksVerdicts {
  /** The last one; null: they were never proved. */
  last(): Promise<BooksVerdict | null>;
  /**
   * Proves them now, and closes days that were complete before it began if they balance.
   *
   * @param reads whether to take the balances of closed days as given
   * @returns null while somebody else does, here or on another replica, or when they took over
   */
  prove(reads?: 'everything' | 'open days'): Promise<NewVerdict | null>;
  /**
   * The job's round: proves them unless that was done lately, by whichever replica.
   *
   * @throws also, once the verdict is written down, why no day was closed
   */
  proveIfDue(): Promise<void>;
  /** Since when somebody is proving them; null: nobody is. */
  provingSince(): Promise<Date | null>;
}

/** @param given.books what must hold of the money that each part keeps */
export function createBooksVerdicts(
  { sql, patient, books: parts }: Pick<Pools, 'sql' | 'patient'> & { books: readonly Audited[] },
  nowMs: () => number,
): BooksVerdicts {
  const at = (afterMs = 0) => new Date(nowMs() + afterMs).toISOString();

  /** @returns the number of the proof; null: somebody else is at it */
  async function begin(): Promise<string | null> {
    // A row and not a lock of the session: a session may break and its proof go on, or the other way round.
    const [row] = await sql<{ number: bigint }[]>`
      update books_proof
      set number = number + 1, leased_until = clock_timestamp() + ${LEASE}::interval, started_at = ${at()}
      where leased_until <= clock_timestamp() returning number`;
    if (row === undefined) return null;
    // One that has lost its lease may still read, for whoever is frozen: there is one proof at a time.
    await sql`
      select pg_cancel_backend(pid) from pg_stat_activity
      where datname = current_database() and usename = current_user and application_name like ${`${SESSION} %`}
        and application_name <> ${`${SESSION} ${row.number}`}`;
    return String(row.number);
  }

  /** Writes the verdict down, unless the lease is over: whoever was frozen knows of no change since. */
  async function publish(number: string, startedAt: Date, books: Books): Promise<boolean> {
    const published = await sql`
      with ours as (
        update books_proof set leased_until = '-infinity'
        where number = ${number} and leased_until > clock_timestamp() returning one
      )
      insert into books_verdicts (started_at, ended_at, balanced, books)
      select ${startedAt.toISOString()}, ${at()}, ${books.balanced}, ${asJson(books)}::text::jsonb from ours
      returning id`;
    return published.length === 1;
  }

  async function prove(reads: 'everything' | 'open days' = 'open days'): Promise<NewVerdict | null> {
    const number = await begin();
    if (number === null) return null;
    const startedAt = new Date(nowMs()); // Once it is ours: whoever proved them before may have held the row.
    let ours = true;
    const renew = async () => {
      const { count } = await sql`
        update books_proof set leased_until = clock_timestamp() + ${LEASE}::interval
        where number = ${number} and leased_until > clock_timestamp()`;
      ours = count === 1;
    };
    // One that fails is made up for by the next; if none succeeds, the lease is over and nothing is written down.
    const renewing = setInterval(() => void renew().catch(() => {}), RENEW_EVERY_MS);
    try {
      const { books, notClosed } = await proveAndClose(
        patient,
        parts,
        reads,
        `${SESSION} ${number}`,
        () => ours,
      );
      if (!(await publish(number, startedAt, books))) return null;
      await sql`delete from books_verdicts where ended_at < ${at(-VERDICTS_KEPT_MS)}`;
      return { startedAt, endedAt: new Date(nowMs()), books, notClosed };
    } catch (error) {
      const released = await sql`
        update books_proof set leased_until = '-infinity' where number = ${number} returning one`.catch(
        () => null,
      );
      // Whoever has taken over ended what was still reading.
      if (error instanceof ProofUnwanted || released?.length === 0) return null;
      throw error;
    } finally {
      clearInterval(renewing);
    }
  }

  return {
    last: () => lastVerdict(sql),
    prove,
    async proveIfDue() {
      const verdict = await lastVerdict(sql);
      // A little less than the interval, whose jitter would else skip every other round.
      if (verdict !== null && nowMs() - verdict.endedAt.getTime() < BOOKS_PROVED_EVERY_MS / 2) return;
      const proved = await prove();
      if (proved !== null && proved.notClosed !== null) throw proved.notClosed;
    },
    async provingSince() {
      const [row] = await sql<{ started_at: Date | null }[]>`
        select started_at from books_proof where leased_until > clock_timestamp()`;
      return row?.started_at ?? null;
    },
  };
}

async function lastVerdict(sql: Database): Promise<BooksVerdict | null> {
  const [row] = await sql<{ started_at: Date; ended_at: Date; books: Record<string, unknown> }[]>`
    select started_at, ended_at, books from books_verdicts order by id desc limit 1`;
  return row === undefined
    ? null
    : { startedAt: row.started_at, endedAt: row.ended_at, books: withBigints(row.books) };
}

/** Proves the books and, if they balance, closes the days that were complete before the proof began. */
async function proveAndClose(
  patient: Database,
  parts: readonly Audited[],
  reads: 'everything' | 'open days',
  name: string,
  wanted: () => boolean,
): Promise<Pick<NewVerdict, 'books' | 'notClosed'>> {
  let notClosed: Error | null = null;
  const closing = async <T>(step: () => Promise<T>) => {
    try {
      return await step();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      notClosed = new Error(`no day of the books was closed: ${why}`, { cause: error });
      return null;
    }
  };
  const closable = await closing(() => closableDay(patient));
  const books = await proveBooks(patient, parts, { name, wanted }, reads);
  if (books.balanced && closable !== null) await closing(() => closeDays(patient, closable, wanted));
  return { books, notClosed };
}

/** JSON has no whole numbers of that size: they travel as text that says what it is. */
function asJson(books: Books): string {
  return JSON.stringify(books, (_, value) => (typeof value === 'bigint' ? { int: String(value) } : value));
}

function withBigints(stored: Record<string, unknown>): Books {
  return JSON.parse(JSON.stringify(stored), (_, value: unknown) =>
    typeof value === 'object' && value !== null && 'int' in value && typeof value.int === 'string'
      ? BigInt(value.int)
      : value,
  );
}
