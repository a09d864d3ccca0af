/** Lists as services use them: the content that is kept, within its bound of age. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Database } from '@farebox/core/db/connection';
import type { Source } from '@farebox/core/words/answer';
import { sourceUnavailable, type UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { addressKey, type ListInUse, type ListName, type Lists } from '../services/listed-parties.ts';
import type { ListedParty } from '../upstreams/adapters/published-list.ts';
import { LISTS } from './definitions.ts';
import { type ListRow, tooOld } from './list-row.ts';

/** The time for which a process believes what it last saw in the database. */
const SEEN_MS = 5_000;
const MAX_CONTENT_BYTES = 256 * 1024 * 1024;

interface Loaded {
  sha256: string;
  parties: readonly ListedParty[];
  holders: ReadonlyMap<string, readonly ListedParty[]>;
  source: Source;
}

export class ListsInUse implements Lists {
  readonly configured: readonly ListName[];
  readonly #sql: Database;
  readonly #nowMs: () => number;
  readonly #seen = new Map<ListName, { row: ListRow | undefined; atMs: number }>();
  readonly #loaded = new Map<ListName, Promise<Loaded>>();

  constructor(sql: Database, parts: { configured: readonly ListName[]; nowMs: () => number }) {
    this.configured = parts.configured;
    this.#sql = sql;
    this.#nowMs = parts.nowMs;
  }

  async current(name: ListName): Promise<ListInUse> {
    if (!this.configured.includes(name)) throw this.#refusal(name, 'not configured');
    const row = await this.#look(name);
    const old = tooOld(name, row, this.#nowMs());
    if (old !== null) throw this.#refusal(name, old);
    const { published_at, confirmed_at, sha256 } = row ?? {};
    if (!published_at || !confirmed_at || !sha256) throw this.#refusal(name, 'not fetched yet');
    const content = await this.#contentOf(name, sha256.toString('hex'));
    const [asOf, retrievedAt] = [published_at.toISOString(), confirmed_at.toISOString()];
    return {
      name,
      title: LISTS[name].title,
      publishedAt: asOf,
      confirmedAt: retrievedAt,
      sha256: content.sha256,
      parties: content.parties,
      holdersOf: (address) => content.holders.get(addressKey(address)) ?? [],
      source: { ...content.source, name: LISTS[name].upstream, asOf, retrievedAt, cached: true },
    };
  }

  /** Looks at the database anew when the list is asked for next. */
  forget(name: ListName): void {
    this.#seen.delete(name);
  }

  async #look(name: ListName): Promise<ListRow | undefined> {
    const known = this.#seen.get(name);
    if (known !== undefined && this.#nowMs() - known.atMs < SEEN_MS) return known.row;
    const [row] = await this.#sql<ListRow[]>`
      select name, published_at, confirmed_at, sha256, parties, failures, failure from data_lists
      where name = ${name}`;
    this.#seen.set(name, { row, atMs: this.#nowMs() });
    return row;
  }

  /** The content of a list, read once for each of its versions. */
  async #contentOf(name: ListName, sha256: string): Promise<Loaded> {
    const known = this.#loaded.get(name);
    const found = await known?.catch(() => undefined);
    if (found?.sha256 === sha256) return found;
    // Somebody else may have begun while this waited.
    const current = this.#loaded.get(name);
    if (current !== undefined && current !== known) return current;
    const loading = this.#load(name);
    this.#loaded.set(name, loading);
    loading.catch(() => this.#loaded.delete(name));
    return loading;
  }

  async #load(name: ListName): Promise<Loaded> {
    const [row] = await this.#sql<{ sha256: Buffer; content: Buffer; source: unknown }[]>`
      select sha256, content, source from data_lists where name = ${name} and content is not null`;
    if (row === undefined) throw new Error(`the list ${name} is gone`);
    const json = await promisify(gunzip)(row.content, { maxOutputLength: MAX_CONTENT_BYTES });
    const parties: ListedParty[] = JSON.parse(json.toString('utf8'));
    const source = keptSource.parse(row.source);
    return { sha256: row.sha256.toString('hex'), parties, holders: holdersIn(parties), source };
  }

  #refusal(name: ListName, message: string): UpstreamUnavailable {
    const { upstream, title } = LISTS[name];
    const isConfigured = this.configured.includes(name);
    const reason = isConfigured ? 'upstream_down' : 'not_configured';
    return sourceUnavailable(upstream, reason, `${title}: ${message}`, isConfigured ? 60_000 : 3_600_000);
  }
}

/** The listed parties by the addresses that they hold. */
function holdersIn(parties: readonly ListedParty[]): Map<string, ListedParty[]> {
  const holders = new Map<string, ListedParty[]>();
  for (const party of parties) {
    for (const { address } of party.addresses) {
      const key = addressKey(address);
      const others = holders.get(key);
      if (others === undefined) holders.set(key, [party]);
      else if (!others.includes(party)) others.push(party);
    }
  }
  return holders;
}

/** The form in which a list remembers where it came from. */
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
