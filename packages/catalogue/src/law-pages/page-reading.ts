/** Reads official pages that are due. Any number of replicas read a page once: whoever takes it up has a lease. */
import type { Database } from '@farebox/core/db/connection';
import { type Held, LeasedQueue, type WatchedQueue } from '@farebox/core/db/leased-queue';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { BrokenCircuitError } from 'cockatiel';
import { InvalidReply, StatusError } from '../upstreams/wire-errors.ts';
import { NoVisibleText, visibleTextHash } from './visible-text.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const EVERY_MS = 7 * DAY_MS;
/** After the first reading a page is read once more, to see whether its text stands still. */
const AGAIN_AFTER_MS = DAY_MS;
/** The pauses after one, two and three attempts in a row that failed; then it is a week. */
const RETRIES_MS = [HOUR_MS, 6 * HOUR_MS, DAY_MS];
/** The pause of a page whose server was not asked for it, as it has failed with others. */
const NOT_ASKED_MS = 60_000;
/** Longer than reading a page can take. */
const LEASE_MS = 2 * 60_000;
const MOST_FAILURE_CHARACTERS = 300;

/** The outcome of one reading, for the log. */
export interface PageReport {
  url: string;
  outcome: 'first' | 'same' | 'unsteady' | 'changed' | 'unreadable';
  reason?: string;
}

export interface PageRow {
  url: string;
  first_sha256: Buffer | null;
  first_at: Date | null;
  confirmed_at: Date | null;
  unsteady_since: Date | null;
  changed_at: Date | null;
  read_at: Date | null;
  failures: number;
  failing_since: Date | null;
  status: number | null;
  failure: string | null;
}

export const PAGE_COLUMNS = [
  ...['first_sha256', 'first_at', 'confirmed_at', 'unsteady_since', 'changed_at', 'read_at'],
  ...['failures', 'failing_since', 'status', 'failure'],
] as const;

interface ReadingParts {
  /** The pages to be read, each once. */
  urls: readonly string[];
  /** YYYY-MM-DD: the day on which the rule base was last written. */
  rulesAsOf: string;
  /** @throws UpstreamUnavailable */
  read(url: string, signal: AbortSignal | undefined): Promise<Buffer>;
  nowMs(): number;
  report(report: PageReport): void;
}

export class PageReading {
  readonly #sql: Database;
  readonly #parts: ReadingParts;
  readonly #queue: LeasedQueue<PageRow>;

  constructor(sql: Database, parts: ReadingParts) {
    this.#sql = sql;
    this.#parts = parts;
    this.#queue = openQueue(sql, parts);
  }

  /** The pages that are due. */
  get queue(): WatchedQueue {
    return this.#queue;
  }

  /**
   * Makes the rows those of the rule base: a new page is due at once, one that no rule leads to any more is forgotten, and all notes
   * start anew with a base that was written later. A process that still has an older base changes nothing.
   */
  async prepare(): Promise<void> {
    const { rulesAsOf } = this.#parts;
    const urls = [...this.#parts.urls].sort();
    await this.#sql.begin(async (on) => {
      const [newer] = await on`select 1 from law_pages where rules_as_of > ${rulesAsOf} limit 1`;
      if (newer !== undefined) return;
      await on`delete from law_pages where url <> all(${urls})`;
      await on`
        insert into law_pages (url, rules_as_of, next_at)
        select url, ${rulesAsOf}, ${this.#at()} from unnest(${urls}::text[]) url
        on conflict (url) do update set rules_as_of = excluded.rules_as_of, next_at = excluded.next_at,
          first_sha256 = null, first_at = null, confirmed_at = null, unsteady_since = null, changed_at = null
        where law_pages.rules_as_of < excluded.rules_as_of`;
    });
  }

  /** Takes up a page that is due. */
  async claim(): Promise<Held<PageRow> | undefined> {
    const [held] = await this.#queue.claim(1);
    return held;
  }

  /** Reads a page that was taken up, and notes what became of it. @returns whether it could be read. @throws a fault of ours */
  async read(row: Held<PageRow>, stopping: AbortSignal | undefined): Promise<boolean> {
    let sha256: Buffer;
    try {
      sha256 = await visibleTextHash(await this.#parts.read(row.url, stopping));
    } catch (error) {
      if (stopping?.aborted === true) {
        await this.#queue.giveBack([row]);
        return false;
      }
      if (error instanceof UpstreamUnavailable && wasNotAsked(error)) {
        await this.#queue.backOff(row, { afterMs: NOT_ASKED_MS });
        return false;
      }
      if (error instanceof UpstreamUnavailable || error instanceof NoVisibleText)
        return this.#fail(row, error);
      throw error;
    }
    const { outcome, set, afterMs } = noteOf(row, sha256, this.#at());
    const read = { read_at: this.#at(), failures: 0, failing_since: null, status: null, failure: null };
    const isOurs = await this.#queue.settle(row, { set: { ...read, ...set, next_at: this.#at(afterMs) } });
    if (isOurs) this.#parts.report({ url: row.url, outcome });
    return true;
  }

  async #fail(row: Held<PageRow>, error: UpstreamUnavailable | NoVisibleText): Promise<false> {
    const failures = row.failures + 1;
    const reason = reasonOf(error).slice(0, MOST_FAILURE_CHARACTERS);
    const isOurs = await this.#queue.backOff(row, {
      afterMs: pauseMs(failures),
      set: {
        failures,
        failing_since: row.failing_since?.toISOString() ?? this.#at(),
        status: error.cause instanceof StatusError ? error.cause.status : null,
        failure: reason,
      },
    });
    if (isOurs) this.#parts.report({ url: row.url, outcome: 'unreadable', reason });
    return false;
  }

  #at(inMs = 0): string {
    return new Date(this.#parts.nowMs() + inMs).toISOString();
  }
}

/** What a reading adds to what is known of a page. @param now ISO 8601 */
function noteOf(
  row: PageRow,
  sha256: Buffer,
  now: string,
): { outcome: PageReport['outcome']; set: Record<string, Buffer | string | null>; afterMs: number } {
  const first = { first_sha256: sha256, first_at: now };
  if (row.first_sha256 === null) return { outcome: 'first', set: first, afterMs: AGAIN_AFTER_MS };
  const isSame = row.first_sha256.equals(sha256);
  if (row.confirmed_at === null && !isSame) {
    const unsteady_since = row.unsteady_since?.toISOString() ?? now;
    return { outcome: 'unsteady', set: { ...first, unsteady_since }, afterMs: EVERY_MS };
  }
  if (row.confirmed_at === null)
    return { outcome: 'same', set: { confirmed_at: now, unsteady_since: null }, afterMs: EVERY_MS };
  const changed_at = isSame ? null : (row.changed_at?.toISOString() ?? now);
  return { outcome: isSame ? 'same' : 'changed', set: { changed_at }, afterMs: EVERY_MS };
}

/** Whether the connection refused before it sent anything: that says nothing of the page. */
function wasNotAsked({ reason, cause }: UpstreamUnavailable): boolean {
  if (reason === 'invalid_reply') return false;
  return cause === undefined || cause instanceof BrokenCircuitError;
}

/** Why a page could not be read, in words of ours. */
function reasonOf(error: UpstreamUnavailable | NoVisibleText): string {
  if (error instanceof NoVisibleText) return error.message;
  if (error.cause instanceof StatusError) return `its server answered ${error.cause.status}`;
  return error.cause instanceof InvalidReply ? error.cause.message : error.message;
}

/** @param failures how many attempts in a row failed */
function pauseMs(failures: number): number {
  return RETRIES_MS[failures - 1] ?? EVERY_MS;
}

function openQueue(sql: Database, { urls, nowMs }: ReadingParts): LeasedQueue<PageRow> {
  return new LeasedQueue(
    sql,
    {
      name: 'law-pages',
      table: 'law_pages',
      key: ['url'],
      columns: PAGE_COLUMNS,
      attempts: null,
      leaseMs: LEASE_MS,
      backOffMs: pauseMs,
      mostAttempts: null,
      settled: { againAfterMs: EVERY_MS },
      givenUpAt: null,
      only: (on) => on`url = any(${[...urls]})`,
      since: 'next_at',
      waiting: (on, now) => on`next_at <= ${now}`,
    },
    nowMs,
  );
}
