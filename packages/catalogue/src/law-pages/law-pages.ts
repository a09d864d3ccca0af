/**
 * The official pages that the rules of the compliance base lead to: read by a job about once a week, so that an operator and the
 * buyer of an answer learn which have changed since the base was written. Any number of replicas read a page once.
 */
import type { Database } from '@farebox/core/db/connection';
import type { WatchedQueue } from '@farebox/core/db/leased-queue';
import type { LawPageChange, LawPageChanges } from '../services/law-page-changes.ts';
import type { UpstreamParts } from '../upstreams/http.ts';
import { PAGE_COLUMNS, PageReading, type PageReport, type PageRow } from './page-reading.ts';
import { PageSites, type PagesAt } from './page-sites.ts';

/** For how long a process believes what it last saw of changes. */
const SEEN_MS = 60_000;

/** Where an official page stands, for the operator. */
export interface LawPageState {
  url: string;
  /** The ids of the rules that lead to it. */
  rules: readonly string[];
  /**
   * `not_read`: never since the base was written. `read_once`: whether its text stands still is not known yet. `unsteady`: its text
   * differs each time, so that a change cannot be told. `same` and `changed`: beside when it was first read.
   */
  state: 'not_read' | 'read_once' | 'unsteady' | 'same' | 'changed';
  /** Times in ISO 8601; null: never. */
  firstReadAt: string | null;
  lastReadAt: string | null;
  changedAt: string | null;
  unsteadySince: string | null;
  unreadableSince: string | null;
  /** The HTTP status of the last attempt that failed, where it had one. */
  status: number | null;
  failure: string | null;
}

/** The pages at a glance. */
export interface LawPagesSummary {
  /** YYYY-MM-DD */
  rulesAsOf: string;
  /** Whether this server reads them. */
  isOn: boolean;
  pages: number;
  changed: number;
  unreadable: number;
  unsteady: number;
  notRead: number;
}

export interface LawPages extends LawPageChanges {
  /** Whether this server reads the pages. */
  readonly isOn: boolean;
  /** The pages that are due. */
  queue: WatchedQueue;
  /** Reads what is due, one page after the other, and says how many could be read. */
  readDue(stopping?: AbortSignal): Promise<number>;
  /** Each page, in the order of the rules. */
  states(): Promise<{ rulesAsOf: string; pages: LawPageState[] }>;
  summary(): Promise<LawPagesSummary>;
  close(): Promise<void>;
}

/** @param parts.at where the pages are read; null: nowhere */
export function createLawPages(
  sql: Database,
  parts: {
    rules: readonly { id: string; url: string }[];
    rulesAsOf: string;
    at: PagesAt | null;
    site: UpstreamParts;
    nowMs(): number;
    report(report: PageReport): void;
  },
): LawPages {
  const { rules, rulesAsOf, at, nowMs } = parts;
  const byUrl = Map.groupBy(rules, ({ url }) => url);
  const urls = [...byUrl.keys()];
  const sites = at === null ? null : new PageSites(at, parts.site);
  const reading = new PageReading(sql, {
    ...parts,
    urls: sites === null ? [] : urls,
    read: (url, signal) => readAt(sites, url, signal),
  });
  let seen: { changes: ReadonlyMap<string, LawPageChange>; atMs: number } | null = null;

  const states = async () => ({ rulesAsOf, pages: await readStates(sql, byUrl, rulesAsOf) });

  return {
    isOn: sites !== null,
    queue: reading.queue,
    states,

    async readDue(stopping) {
      if (sites === null) return 0;
      let read = 0;
      await reading.prepare();
      for (let taken = 0; taken < urls.length && stopping?.aborted !== true; taken++) {
        const row = await reading.claim();
        if (row === undefined) break;
        if (await reading.read(row, stopping)) read += 1;
      }
      return read;
    },

    summary: async () => summaryOf(await states(), sites !== null),

    async changed() {
      if (seen !== null && nowMs() - seen.atMs < SEEN_MS) return seen.changes;
      const changes = await readChanges(sql, urls, rulesAsOf);
      seen = { changes, atMs: nowMs() };
      return changes;
    },

    close: async () => void (await sites?.close()),
  };
}

async function readStates(
  sql: Database,
  byUrl: ReadonlyMap<string, readonly { id: string }[]>,
  rulesAsOf: string,
): Promise<LawPageState[]> {
  const rows = await sql<PageRow[]>`
    select ${sql(['url', ...PAGE_COLUMNS])} from law_pages where rules_as_of = ${rulesAsOf}`;
  const known = new Map(rows.map((row) => [row.url, row]));
  return [...byUrl].map(([url, rules]) => {
    const ids = rules.map(({ id }) => id);
    return stateOf(url, ids, known.get(url));
  });
}

function summaryOf(
  { rulesAsOf, pages }: { rulesAsOf: string; pages: readonly LawPageState[] },
  isOn: boolean,
): LawPagesSummary {
  const count = (matches: (page: LawPageState) => boolean) => pages.filter(matches).length;
  return {
    rulesAsOf,
    isOn,
    pages: pages.length,
    changed: count(({ state }) => state === 'changed'),
    unreadable: count(({ unreadableSince }) => unreadableSince !== null),
    unsteady: count(({ state }) => state === 'unsteady'),
    notRead: count(({ state }) => state === 'not_read'),
  };
}

async function readChanges(
  sql: Database,
  urls: readonly string[],
  rulesAsOf: string,
): Promise<ReadonlyMap<string, LawPageChange>> {
  const rows = await sql<{ url: string; first_at: Date; changed_at: Date }[]>`
    select url, first_at, changed_at from law_pages
    where changed_at is not null and rules_as_of = ${rulesAsOf} and url = any(${[...urls]})`;
  return new Map(
    rows.map(({ url, first_at, changed_at }) => [
      url,
      { firstReadAt: first_at.toISOString(), changedAt: changed_at.toISOString() },
    ]),
  );
}

function readAt(sites: PageSites | null, url: string, signal: AbortSignal | undefined): Promise<Buffer> {
  if (sites === null) throw new Error('official pages are not read here');
  return sites.read(url, signal);
}

function stateOf(url: string, rules: readonly string[], row: PageRow | undefined): LawPageState {
  const at = (date: Date | null | undefined) => date?.toISOString() ?? null;
  return {
    url,
    rules,
    state: wordOf(row),
    firstReadAt: at(row?.first_at),
    lastReadAt: at(row?.read_at),
    changedAt: at(row?.changed_at),
    unsteadySince: at(row?.unsteady_since),
    unreadableSince: at(row?.failing_since),
    status: row?.status ?? null,
    failure: row?.failure ?? null,
  };
}

function wordOf(row: PageRow | undefined): LawPageState['state'] {
  if (row?.first_at == null) return 'not_read';
  if (row.changed_at !== null) return 'changed';
  if (row.confirmed_at !== null) return 'same';
  return row.unsteady_since === null ? 'read_once' : 'unsteady';
}
