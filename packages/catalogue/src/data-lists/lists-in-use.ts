/** Lists as services use them: the content that is kept, within its bound of age. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Database } from '@farebox/core/db/connection';
import type { Source } from '@farebox/core/words/answer';
import { sourceUnavailable, type UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { addressKey, type ListInUse, type ListName, type Lists } from '../services/listed-parties.ts';
import {
  TOKEN_LIST_NAMES,
  type TokenListInUse,
  type TokenListName,
  type TokenLists,
} from '../services/listed-tokens.ts';
import type { EvmChainName } from '../upstreams/adapters/evm-chains.ts';
import type { ListedParty } from '../upstreams/adapters/published-list.ts';
import type { PublishedToken } from '../upstreams/adapters/token-list.ts';
import { type DataListName, definitionOf, LIST_NAMES } from './definitions.ts';
import { type ListRow, tooOld } from './list-row.ts';

/** The time for which a process believes what it last saw in the database. */
const SEEN_MS = 5_000;
const MAX_CONTENT_BYTES = 256 * 1024 * 1024;

/** A version of a list, with its entries prepared for lookups. */
interface Loaded {
  sha256: string;
  prepared: unknown;
  source: Source;
}

/** What is kept of a list, and may be used. */
interface Kept<Prepared> {
  title: string;
  publishedAt: string;
  confirmedAt: string;
  sha256: string;
  prepared: Prepared;
  source: Source;
}

/** The lists in the database, each of whose versions is read once. */
export class KeptLists {
  readonly configured: readonly DataListName[];
  readonly #sql: Database;
  readonly #nowMs: () => number;
  readonly #seen = new Map<DataListName, { row: ListRow | undefined; atMs: number }>();
  readonly #loaded = new Map<DataListName, Promise<Loaded>>();

  constructor(sql: Database, parts: { configured: readonly DataListName[]; nowMs: () => number }) {
    this.configured = parts.configured;
    this.#sql = sql;
    this.#nowMs = parts.nowMs;
  }

  /**
   * The current version of a list.
   *
   * @param prepare makes of its entries what lookups need; the same for each reading of a list
   * @throws UpstreamUnavailable when it is not configured, was never fetched, or is older than its maximum age
   */
  async current<Entry, Prepared>(
    name: DataListName,
    prepare: (entries: readonly Entry[]) => Prepared,
  ): Promise<Kept<Prepared>> {
    if (!this.configured.includes(name)) throw this.#refusal(name, 'not configured');
    const row = await this.#look(name);
    const old = tooOld(name, row, this.#nowMs());
    if (old !== null) throw this.#refusal(name, old);
    const { published_at, confirmed_at, sha256 } = row ?? {};
    if (!published_at || !confirmed_at || !sha256) throw this.#refusal(name, 'not fetched yet');
    const content = await this.#contentOf(name, sha256.toString('hex'), prepare);
    const { title, upstream } = definitionOf(name);
    const [publishedAt, confirmedAt] = [published_at.toISOString(), confirmed_at.toISOString()];
    return {
      title,
      publishedAt,
      confirmedAt,
      sha256: content.sha256,
      prepared: content.prepared as Prepared,
      source: {
        ...content.source,
        name: upstream,
        asOf: publishedAt,
        retrievedAt: confirmedAt,
        cached: true,
      },
    };
  }

  /** Looks at the database anew when the list is asked for next. */
  forget(name: DataListName): void {
    this.#seen.delete(name);
  }

  async #look(name: DataListName): Promise<ListRow | undefined> {
    const known = this.#seen.get(name);
    if (known !== undefined && this.#nowMs() - known.atMs < SEEN_MS) return known.row;
    const [row] = await this.#sql<ListRow[]>`
      select name, published_at, confirmed_at, sha256, parties, failures, failure from data_lists
      where name = ${name}`;
    this.#seen.set(name, { row, atMs: this.#nowMs() });
    return row;
  }

  /** The content of a list, read once for each of its versions. */
  async #contentOf<Entry>(
    name: DataListName,
    sha256: string,
    prepare: (entries: readonly Entry[]) => unknown,
  ): Promise<Loaded> {
    const known = this.#loaded.get(name);
    const found = await known?.catch(() => undefined);
    if (found?.sha256 === sha256) return found;
    // Somebody else may have begun while this waited.
    const current = this.#loaded.get(name);
    if (current !== undefined && current !== known) return current;
    const loading = this.#load(name, prepare);
    this.#loaded.set(name, loading);
    loading.catch(() => this.#loaded.delete(name));
    return loading;
  }

  async #load<Entry>(name: DataListName, prepare: (entries: readonly Entry[]) => unknown): Promise<Loaded> {
    const [row] = await this.#sql<{ sha256: Buffer; content: Buffer; source: unknown }[]>`
      select sha256, content, source from data_lists where name = ${name} and content is not null`;
    if (row === undefined) throw new Error(`the list ${name} is gone`);
    const json = await promisify(gunzip)(row.content, { maxOutputLength: MAX_CONTENT_BYTES });
    const entries: Entry[] = JSON.parse(json.toString('utf8'));
    const source = keptSource.parse(row.source);
    return { sha256: row.sha256.toString('hex'), prepared: prepare(entries), source };
  }

  #refusal(name: DataListName, message: string): UpstreamUnavailable {
    const { upstream, title } = definitionOf(name);
    const isConfigured = this.configured.includes(name);
    const reason = isConfigured ? 'upstream_down' : 'not_configured';
    return sourceUnavailable(upstream, reason, `${title}: ${message}`, isConfigured ? 60_000 : 3_600_000);
  }
}

/** The lists of parties among those that are kept. */
export class ListsInUse implements Lists {
  readonly configured: readonly ListName[];
  readonly #kept: KeptLists;

  constructor(kept: KeptLists) {
    this.#kept = kept;
    this.configured = LIST_NAMES.filter((name) => kept.configured.includes(name));
  }

  async current(name: ListName): Promise<ListInUse> {
    const { prepared, ...facts } = await this.#kept.current(name, heldParties);
    return {
      name,
      ...facts,
      parties: prepared.parties,
      holdersOf: (address) => prepared.holders.get(addressKey(address)) ?? [],
    };
  }
}

/** The lists of tokens among those that are kept. */
export class TokenListsInUse implements TokenLists {
  readonly configured: readonly TokenListName[];
  readonly #kept: KeptLists;

  constructor(kept: KeptLists) {
    this.#kept = kept;
    this.configured = TOKEN_LIST_NAMES.filter((name) => kept.configured.includes(name));
  }

  async current(name: TokenListName): Promise<TokenListInUse> {
    const { prepared, ...facts } = await this.#kept.current(name, tokensByChain);
    return { name, ...facts, entries: prepared.entries, on: (chain) => prepared.byChain.get(chain) ?? [] };
  }
}

function heldParties(parties: readonly ListedParty[]) {
  return { parties, holders: holdersIn(parties) };
}

function tokensByChain(tokens: readonly PublishedToken[]) {
  const byChain = new Map<EvmChainName, PublishedToken[]>();
  for (const token of tokens) {
    const others = byChain.get(token.chain);
    if (others === undefined) byChain.set(token.chain, [token]);
    else others.push(token);
  }
  return { entries: tokens.length, byChain };
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
