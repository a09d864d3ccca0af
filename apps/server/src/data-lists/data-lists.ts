/**
 * Lists that others publish: fetched by a job, kept in the database with their date and hash, handed to services within
 * their bound of age. Any number of replicas fetch a list once.
 */
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import type { Database } from '../db/connection.ts';
import { addressKey, type ListInUse, type ListName, type Lists } from '../services/listed-parties.ts';
import type { UpstreamName, Upstreams } from '../upstreams/index.ts';
import { InvalidList, type ListedParty } from '../upstreams/published-list.ts';
import type { Source } from '../words/answer.ts';
import { sourceUnavailable, UpstreamUnavailable } from '../words/failure.ts';
import { LIST_NAMES, LISTS } from './definitions.ts';

/** A good list is asked for again after this; one that could not be fetched sooner. */
const EVERY_MS = 6 * 3_600_000;
const RETRIES_MS = [1, 3, 10, 30, 60].map((minutes) => minutes * 60_000);
/** Longer than fetching and reading the longest list can take. */
const LEASE_MS = 10 * 60_000;
/** A list that has lost more than a fifth of its entries at once is taken for one that was cut off. */
const LEAST_SHARE_KEPT = 0.8;
/** For how long a process believes what it last saw in the database. */
const SEEN_MS = 5_000;
const MOST_FAILURE_CHARACTERS = 300;
const MAX_CONTENT_BYTES = 256 * 1024 * 1024;

/** Where a list stands, for the operator. */
export interface ListState {
  name: ListName;
  title: string;
  /** `unusable`: never fetched, or older than its bound. */
  state: 'usable' | 'unusable';
  publishedAt: string | null;
  confirmedAt: string | null;
  sha256: string | null;
  parties: number | null;
  failures: number;
  failure: string | null;
}

/** What became of one fetch. */
export interface ListReport {
  list: ListName;
  outcome: 'replaced' | 'confirmed' | 'refused' | 'failed';
  reason?: string;
}

export interface DataLists {
  lists: Lists;
  /** Fetches what is due, one list after the other, and says how many were fetched or confirmed. */
  fetchDue(stopping?: AbortSignal): Promise<number>;
  states(): Promise<ListState[]>;
}

interface Row {
  name: ListName;
  published_at: Date | null;
  confirmed_at: Date | null;
  sha256: Buffer | null;
  parties: number | null;
  failures: number;
  failure: string | null;
}

interface Loaded {
  sha256: string;
  parties: readonly ListedParty[];
  holders: ReadonlyMap<string, readonly ListedParty[]>;
  source: Source;
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
  const { upstreams, nowMs, report } = parts;
  const configured = LIST_NAMES.filter((name) => parts.isConfigured(LISTS[name].upstream));
  const at = (inMs = 0) => new Date(nowMs() + inMs).toISOString();
  const seen = new Map<ListName, { row: Row | undefined; atMs: number }>();
  const loaded = new Map<ListName, Promise<Loaded>>();

  async function look(name: ListName): Promise<Row | undefined> {
    const known = seen.get(name);
    if (known !== undefined && nowMs() - known.atMs < SEEN_MS) return known.row;
    const [row] = await sql<Row[]>`
      select name, published_at, confirmed_at, sha256, parties, failures, failure from data_lists
      where name = ${name}`;
    seen.set(name, { row, atMs: nowMs() });
    return row;
  }

  async function load(name: ListName): Promise<Loaded> {
    const [row] = await sql<{ sha256: Buffer; content: Buffer; source: unknown }[]>`
      select sha256, content, source from data_lists where name = ${name} and content is not null`;
    if (row === undefined) throw new Error(`the list ${name} is gone`);
    const json = await promisify(gunzip)(row.content, { maxOutputLength: MAX_CONTENT_BYTES });
    const parties: ListedParty[] = JSON.parse(json.toString('utf8'));
    const holders = new Map<string, ListedParty[]>();
    for (const party of parties) {
      for (const { address } of party.addresses) {
        const key = addressKey(address);
        const others = holders.get(key);
        if (others === undefined) holders.set(key, [party]);
        else if (!others.includes(party)) others.push(party);
      }
    }
    return { sha256: row.sha256.toString('hex'), parties, holders, source: keptSource.parse(row.source) };
  }

  /** The content of a list, read once for each of its versions. */
  async function contentOf(name: ListName, sha256: string): Promise<Loaded> {
    const known = loaded.get(name);
    const found = await known?.catch(() => undefined);
    if (found?.sha256 === sha256) return found;
    // Somebody else may have begun while this waited.
    const current = loaded.get(name);
    if (current !== undefined && current !== known) return current;
    const loading = load(name);
    loaded.set(name, loading);
    loading.catch(() => loaded.delete(name));
    return loading;
  }

  function refusal(name: ListName, message: string): UpstreamUnavailable {
    const { upstream, title } = LISTS[name];
    const reason = configured.includes(name) ? 'upstream_down' : 'not_configured';
    return sourceUnavailable(
      upstream,
      reason,
      `${title}: ${message}`,
      reason === 'upstream_down' ? 60_000 : 3_600_000,
    );
  }

  const lists: Lists = {
    configured,
    async current(name): Promise<ListInUse> {
      if (!configured.includes(name)) throw refusal(name, 'not configured');
      const row = await look(name);
      const old = tooOld(name, row, nowMs());
      if (old !== null) throw refusal(name, old);
      const { published_at, confirmed_at, sha256 } = row ?? {};
      if (!published_at || !confirmed_at || !sha256) throw refusal(name, 'not fetched yet');
      const content = await contentOf(name, sha256.toString('hex'));
      return {
        name,
        title: LISTS[name].title,
        publishedAt: published_at.toISOString(),
        confirmedAt: confirmed_at.toISOString(),
        sha256: content.sha256,
        parties: content.parties,
        holdersOf: (address) => content.holders.get(addressKey(address)) ?? [],
        source: {
          ...content.source,
          name: LISTS[name].upstream,
          asOf: published_at.toISOString(),
          retrievedAt: confirmed_at.toISOString(),
          cached: true,
        },
      };
    },
  };

  /** Takes up a list that is due: until its lease ends it is this call's. */
  async function claim(lease: string): Promise<Row | undefined> {
    const [row] = await sql<Row[]>`
      update data_lists set lease = ${lease}, next_at = ${at(LEASE_MS)}
      where name = (
        select name from data_lists where next_at <= ${at()} and name = any(${configured as string[]})
        order by next_at limit 1 for update skip locked
      )
      returning name, published_at, confirmed_at, sha256, parties, failures, failure`;
    return row;
  }

  async function fetchOne(row: Row, lease: string, stopping: AbortSignal | undefined): Promise<boolean> {
    const { name } = row;
    const fail = async (outcome: 'failed' | 'refused', why: string) => {
      const reason = why.slice(0, MOST_FAILURE_CHARACTERS);
      const pauseMs = RETRIES_MS[Math.min(row.failures, RETRIES_MS.length - 1)];
      await sql`
        update data_lists set lease = null, next_at = ${at(pauseMs)}, failures = failures + 1, failure = ${reason}
        where name = ${name} and lease = ${lease}`;
      report({ list: name, outcome, reason });
      return false;
    };
    try {
      const { value: file, source } = await LISTS[name].fetch(upstreams, stopping);
      if (row.sha256 !== null && row.sha256.toString('hex') === file.sha256) {
        await sql`
          update data_lists set lease = null, next_at = ${at(EVERY_MS)}, failures = 0, failure = null,
                 confirmed_at = ${at()}
          where name = ${name} and lease = ${lease}`;
        report({ list: name, outcome: 'confirmed' });
        return true;
      }
      const { publishedAt, parties } = await LISTS[name].read(file);
      const doubt = doubtOf(row, publishedAt, parties.length, nowMs());
      if (doubt !== null) return await fail('refused', doubt);
      const content = await promisify(gzip)(JSON.stringify(parties));
      const { url, sandbox, licence } = source;
      await sql`
        update data_lists set lease = null, next_at = ${at(EVERY_MS)}, failures = 0, failure = null,
               published_at = ${publishedAt}, confirmed_at = ${at()}, sha256 = ${Buffer.from(file.sha256, 'hex')},
               parties = ${parties.length}, content = ${content}, source = ${sql.json({ url, sandbox, ...(licence === undefined ? {} : { licence }) })}
        where name = ${name} and lease = ${lease}`;
      report({ list: name, outcome: 'replaced' });
      return true;
    } catch (error) {
      if (error instanceof InvalidList) return await fail('refused', error.message);
      if (error instanceof UpstreamUnavailable || stopping?.aborted === true) {
        return await fail('failed', error instanceof Error ? error.message : 'stopped');
      }
      await fail('failed', 'a fault of this server');
      throw error;
    } finally {
      seen.delete(name);
    }
  }

  return {
    lists,
    async fetchDue(stopping) {
      let fetched = 0;
      for (const name of configured) {
        await sql`insert into data_lists (name, next_at) values (${name}, ${at()}) on conflict (name) do nothing`;
      }
      for (let taken = 0; taken < configured.length && stopping?.aborted !== true; taken++) {
        const lease = randomUUID();
        const row = await claim(lease);
        if (row === undefined) break;
        if (await fetchOne(row, lease, stopping)) fetched += 1;
      }
      return fetched;
    },
    async states() {
      const rows = await sql<Row[]>`
        select name, published_at, confirmed_at, sha256, parties, failures, failure from data_lists`;
      return configured.map((name) => {
        const row = rows.find((each) => each.name === name);
        return {
          name,
          title: LISTS[name].title,
          state: tooOld(name, row, nowMs()) === null ? 'usable' : 'unusable',
          publishedAt: row?.published_at?.toISOString() ?? null,
          confirmedAt: row?.confirmed_at?.toISOString() ?? null,
          sha256: row?.sha256?.toString('hex') ?? null,
          parties: row?.parties ?? null,
          failures: row?.failures ?? 0,
          failure: row?.failure ?? null,
        };
      });
    },
  };
}

/** What a list remembers of where it came from. */
const keptSource = z
  .object({ url: z.string(), sandbox: z.boolean(), licence: z.string().optional() })
  .transform(
    ({ url, sandbox, licence }): Source => ({
      name: '',
      url,
      asOf: null,
      retrievedAt: '',
      cached: true,
      sandbox,
      ...(licence === undefined ? {} : { licence }),
    }),
  );

/** Why a list must not be used; null when it may. */
function tooOld(name: ListName, row: Row | undefined, nowMs: number): string | null {
  if (row?.published_at == null || row.confirmed_at === null) return 'not fetched yet';
  const { confirmedWithinMs, publishedWithinMs } = LISTS[name];
  const days = (ms: number) => Math.floor(ms / 86_400_000);
  const confirmedMs = nowMs - row.confirmed_at.getTime();
  if (confirmedMs > confirmedWithinMs) {
    return `the copy here was last confirmed ${days(confirmedMs)} days ago, and may be ${days(confirmedWithinMs)} days old`;
  }
  const publishedMs = nowMs - row.published_at.getTime();
  if (publishedMs > publishedWithinMs) {
    return `it was published ${days(publishedMs)} days ago, and may be ${days(publishedWithinMs)} days old`;
  }
  return null;
}

/** Why a new list must not take the place of the one in use; null when it may. */
function doubtOf(row: Row, publishedAt: string, parties: number, nowMs: number): string | null {
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
