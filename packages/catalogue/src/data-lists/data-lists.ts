/**
 * Lists that others publish: fetched by a job, kept in the database with their date and hash, handed to services within
 * their bound of age. Any number of replicas fetch a list once.
 */
import type { Database } from '@farebox/core/db/connection';
import type { WatchedQueue } from '@farebox/core/db/leased-queue';
import type { Lists } from '../services/listed-parties.ts';
import type { TokenLists } from '../services/listed-tokens.ts';
import type { UpstreamName, Upstreams } from '../upstreams/index.ts';
import { DATA_LIST_NAMES, type DataListName, definitionOf } from './definitions.ts';
import { ListFetching, type ListReport } from './list-fetching.ts';
import { type ListRow, tooOld } from './list-row.ts';
import { KeptLists, ListsInUse, TokenListsInUse } from './lists-in-use.ts';

/** Where a list stands, for the operator. */
export interface ListState {
  name: DataListName;
  title: string;
  /** `unusable`: never fetched, or older than its bound. */
  state: 'usable' | 'unusable';
  publishedAt: string | null;
  confirmedAt: string | null;
  sha256: string | null;
  /** How many entries it has. */
  parties: number | null;
  failures: number;
  failure: string | null;
}

export interface DataLists {
  /** The lists that are due. */
  queue: WatchedQueue;
  lists: Lists;
  tokenLists: TokenLists;
  /** Fetches what is due, one list after the other, and says how many were fetched or confirmed. */
  fetchDue(stopping?: AbortSignal): Promise<number>;
  states(): Promise<ListState[]>;
}

/** Opens the lists whose upstream is configured. */
export function createDataLists(
  sql: Database,
  parts: {
    upstreams: Upstreams;
    isConfigured(upstream: UpstreamName): boolean;
    nowMs(): number;
    report(report: ListReport): void;
  },
): DataLists {
  const { nowMs } = parts;
  const configured = DATA_LIST_NAMES.filter((name) => parts.isConfigured(definitionOf(name).upstream));
  const kept = new KeptLists(sql, { configured, nowMs });
  const fetching = new ListFetching(sql, { ...parts, configured });

  return {
    queue: fetching.queue,
    lists: new ListsInUse(kept),
    tokenLists: new TokenListsInUse(kept),

    async fetchDue(stopping) {
      let fetched = 0;
      await fetching.prepare();
      for (let taken = 0; taken < configured.length && stopping?.aborted !== true; taken++) {
        const row = await fetching.claim();
        if (row === undefined) break;
        const isGood = await fetching.fetch(row, stopping).finally(() => kept.forget(row.name));
        if (isGood) fetched += 1;
      }
      return fetched;
    },

    async states() {
      const rows = await sql<ListRow[]>`
        select name, published_at, confirmed_at, sha256, parties, failures, failure from data_lists`;
      return configured.map((name) => {
        const row = rows.find((each) => each.name === name);
        return stateOf(name, row, nowMs());
      });
    },
  };
}

function stateOf(name: DataListName, row: ListRow | undefined, nowMs: number): ListState {
  return {
    name,
    title: definitionOf(name).title,
    state: tooOld(name, row, nowMs) === null ? 'usable' : 'unusable',
    publishedAt: row?.published_at?.toISOString() ?? null,
    confirmedAt: row?.confirmed_at?.toISOString() ?? null,
    sha256: row?.sha256?.toString('hex') ?? null,
    parties: row?.parties ?? null,
    failures: row?.failures ?? 0,
    failure: row?.failure ?? null,
  };
}
