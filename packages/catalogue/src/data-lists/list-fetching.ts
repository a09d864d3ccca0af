/** Fetches lists that are due. Any number of replicas fetch a list once: whoever takes it up has a lease. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Database } from '@farebox/core/db/connection';
import { type Held, LeasedQueue, type WatchedQueue } from '@farebox/core/db/leased-queue';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { InvalidList } from '../upstreams/adapters/published-list.ts';
import type { Upstreams } from '../upstreams/index.ts';
import { type DataListName, definitionOf } from './definitions.ts';
import type { ListRow } from './list-row.ts';

/** A good list is asked for again after this; one that could not be fetched sooner. */
const EVERY_MS = 6 * 3_600_000;
const RETRIES_MS = [1, 3, 10, 30, 60].map((minutes) => minutes * 60_000);
/** Longer than fetching and reading the longest list can take. */
const LEASE_MS = 10 * 60_000;
/** A list that has lost more than a fifth of its entries at once is taken for one that was cut off. */
const LEAST_SHARE_KEPT = 0.8;
const MOST_FAILURE_CHARACTERS = 300;

/** The outcome of one fetch. */
export interface ListReport {
  list: DataListName;
  outcome: 'replaced' | 'confirmed' | 'refused' | 'failed';
  reason?: string;
}

interface FetchingParts {
  upstreams: Upstreams;
  configured: readonly DataListName[];
  nowMs(): number;
  report(report: ListReport): void;
}

/** A file as its upstream gives it. */
type Fetched = Awaited<ReturnType<ReturnType<typeof definitionOf>['fetch']>>;

export class ListFetching {
  readonly #sql: Database;
  readonly #parts: FetchingParts;
  readonly #queue: LeasedQueue<ListRow>;

  constructor(sql: Database, parts: FetchingParts) {
    this.#sql = sql;
    this.#parts = parts;
    this.#queue = openQueue(sql, parts);
  }

  /** The lists that are due. */
  get queue(): WatchedQueue {
    return this.#queue;
  }

  /** Makes a row for each list that has none: it is due at once. */
  async prepare(): Promise<void> {
    for (const name of this.#parts.configured)
      await this.#sql`
        insert into data_lists (name, next_at) values (${name}, ${this.#at()}) on conflict (name) do nothing`;
  }

  /** Takes up a list that is due. */
  async claim(): Promise<Held<ListRow> | undefined> {
    const [held] = await this.#queue.claim(1);
    return held;
  }

  /** Fetches a list that was taken up. @returns whether it was fetched or confirmed. @throws a fault of ours */
  async fetch(row: Held<ListRow>, stopping: AbortSignal | undefined): Promise<boolean> {
    try {
      const fetched = await definitionOf(row.name).fetch(this.#parts.upstreams, stopping);
      if (row.sha256 !== null && row.sha256.toString('hex') === fetched.value.sha256)
        return await this.#confirm(row);
      return await this.#replace(row, fetched);
    } catch (error) {
      if (error instanceof InvalidList) return await this.#fail(row, 'refused', error.message);
      if (error instanceof UpstreamUnavailable || stopping?.aborted === true) {
        const why = error instanceof Error ? error.message : 'stopped';
        return await this.#fail(row, 'failed', why);
      }
      await this.#fail(row, 'failed', 'a fault of this server');
      throw error;
    }
  }

  /** The publisher still has the version that is kept. */
  async #confirm(row: Held<ListRow>): Promise<true> {
    await this.#queue.settle(row, { set: { failures: 0, failure: null, confirmed_at: this.#at() } });
    this.#parts.report({ list: row.name, outcome: 'confirmed' });
    return true;
  }

  /** Puts a new version in the place of the one in use, unless there is a doubt about it. */
  async #replace(row: Held<ListRow>, { value: file, source }: Fetched): Promise<boolean> {
    const { name } = row;
    const { publishedAt, entries } = await definitionOf(name).read(file);
    const doubt = doubtOf(row, publishedAt, entries.length, this.#parts.nowMs());
    if (doubt !== null) return this.#fail(row, 'refused', doubt);
    const content = await promisify(gzip)(JSON.stringify(entries));
    const { url, sandbox, licence } = source;
    const from = this.#sql.json({ url, sandbox, ...(licence === undefined ? {} : { licence }) });
    await this.#queue.settle(row, {
      set: {
        failures: 0,
        failure: null,
        published_at: publishedAt,
        confirmed_at: this.#at(),
        sha256: Buffer.from(file.sha256, 'hex'),
        parties: entries.length,
        content,
        source: from,
      },
    });
    this.#parts.report({ list: name, outcome: 'replaced' });
    return true;
  }

  async #fail(row: Held<ListRow>, outcome: 'failed' | 'refused', why: string): Promise<false> {
    const reason = why.slice(0, MOST_FAILURE_CHARACTERS);
    const failures = row.failures + 1;
    await this.#queue.backOff(row, { afterMs: pauseMs(failures), set: { failures, failure: reason } });
    this.#parts.report({ list: row.name, outcome, reason });
    return false;
  }

  #at(inMs = 0): string {
    return new Date(this.#parts.nowMs() + inMs).toISOString();
  }
}

/** @param failures how many fetches in a row failed */
function pauseMs(failures: number): number {
  return RETRIES_MS[Math.min(failures, RETRIES_MS.length) - 1] ?? EVERY_MS;
}

function openQueue(sql: Database, { configured, nowMs }: FetchingParts): LeasedQueue<ListRow> {
  return new LeasedQueue(
    sql,
    {
      name: 'data-lists',
      table: 'data_lists',
      key: ['name'],
      columns: ['published_at', 'confirmed_at', 'sha256', 'parties', 'failures', 'failure'],
      attempts: null,
      leaseMs: LEASE_MS,
      backOffMs: pauseMs,
      mostAttempts: null,
      settled: { againAfterMs: EVERY_MS },
      givenUpAt: null,
      only: (on) => on`name = any(${configured as string[]})`,
      since: 'next_at',
      waiting: (on, now) => on`next_at <= ${now}`,
    },
    nowMs,
  );
}

/** Why a new list must not take the place of the one in use; null when it may. */
function doubtOf(row: ListRow, publishedAt: string, parties: number, nowMs: number): string | null {
  if (parties === 0) return 'it is empty';
  // A day is a matter of the time zone; more is a clock that is wrong, or a date that was read wrongly.
  if (Date.parse(publishedAt) > nowMs + 2 * 86_400_000) return `it says it was published at ${publishedAt}`;
  if (row.published_at !== null && Date.parse(publishedAt) < row.published_at.getTime()) {
    return `it was published at ${publishedAt}, before the one in use`;
  }
  if (row.parties !== null && parties < row.parties * LEAST_SHARE_KEPT) {
    return `it has ${parties} entries, the one in use ${row.parties}`;
  }
  return null;
}
