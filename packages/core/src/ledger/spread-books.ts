/**
 * The books of a database that is spread over servers. Most rules hold within a bucket: each is asked of one part of the buckets after the
 * other, of the server that has it, which reads its own tables as one PostgreSQL would, in one snapshot. The others are asked of all.
 */
import type { Database } from '../db/connection.ts';
import { SPREAD_LIKE } from '../db/distribution.ts';
import { HOUSE_BUCKET } from './buckets.ts';
import type { Rule } from './rule.ts';
import { preparedEnded, StillWriting } from './writers-ended.ts';

/** A constraint of accounts bounds their buckets. */
const LAST_BUCKET = 4_095;
/** How often a rule is asked at most, when it finds another thing each time. */
const MOST_LOOKS = 10;
/** The longest wait for commits of several servers: Citus ends what a crash has left within a minute. */
const COMMITS_END_WITHIN_MS = 120_000;

/**
 * Has each server find the transfers of a day by their time, in a transaction that reads days one by one: what a function sets for itself
 * is not sent to other servers. Of a day that was closed before the database was spread, all transfers are sent to the coordinator.
 */
export const BY_TIME = `set local citus.propagate_set_commands = 'local'; set local enable_seqscan = off;
  set local citus.max_intermediate_result_size = -1`;
/** Tables of the coordinator with rows of every account there is: a part is sent those of its accounts, and not all. */
const OF_EVERY_ACCOUNT: ReadonlySet<string> = new Set(['ledger_closed_balances', 'ledger_carried']);

type Row = Record<string, unknown>;

export interface SpreadBooks {
  /** The queries that a rule is on this database, whose findings are its own: none of them, for one of tables of the coordinator, is changed. */
  queriesOf(rule: Pick<Rule, 'name' | 'together'>, sql: string): readonly string[];
  /** The parts of the buckets: each makes a query one of its own rows alone. */
  parts: readonly ((sql: string) => string)[];
  /**
   * Looks for what breaks a rule until it is sure. A commit of several servers is seen on one of them before it is on the others, so a
   * finding counts once it is found again after what was being committed has ended.
   *
   * @param look asks in a snapshot that begins with it
   */
  surely(look: () => Promise<Row | undefined>): Promise<Row | undefined>;
}

/** A table of the database. */
export interface KnownTable {
  name: string;
  /** Spread by bucket, copied to each server, or the coordinator's alone. */
  lies: 'spread' | 'copied' | 'here';
  /** Whether its rows are each of an account. */
  ofAccount: boolean;
}

/** Reads how the database is spread. */
export async function openSpreadBooks(sql: Database): Promise<SpreadBooks> {
  const tables = await sql<KnownTable[]>`
    select c.relname::text as name, case p.partmethod when 'h' then 'spread' when 'n' then 'copied' else 'here' end as lies,
      exists (
        select 1 from pg_attribute a where a.attrelid = c.oid and a.attname = 'account_id' and not a.attisdropped
      ) as "ofAccount"
    from pg_class c left join pg_dist_partition p on p.logicalrelid = c.oid
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`;
  const parts = (await bucketsOfParts(sql)).map(
    (buckets) => (query: string) => ofPart(query, buckets, tables),
  );
  return {
    parts,
    queriesOf({ together }, query) {
      if (together !== undefined) return [collected(query, together)];
      return tables.some(({ name, lies }) => lies === 'spread' && isNamed(query, name))
        ? parts.map((part) => part(query))
        : [query];
    },
    async surely(look) {
      const seen = new Set<string>();
      for (let looks = 1; ; looks++) {
        const row = await look();
        if (row === undefined) return undefined;
        const text = JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value));
        if (seen.has(text) || looks >= MOST_LOOKS) return row;
        seen.add(text);
        // Where a server is silent or something stays prepared, the next look tells what it can.
        await preparedEnded(sql, COMMITS_END_WITHIN_MS).catch((error: unknown) => {
          if (!(error instanceof StillWriting)) throw error;
        });
      }
    },
  };
}

/** Reads which buckets lie together, and so on one server. */
export async function bucketsOfParts(sql: Database): Promise<number[][]> {
  const found = await sql<{ buckets: number[] }[]>`
    select array_agg(b order by b) as buckets from generate_series(0, ${LAST_BUCKET}::integer) b
    group by get_shard_id_for_distribution_column(${SPREAD_LIKE}, b::smallint) order by min(b)`;
  return found.map(({ buckets }) => buckets);
}

/**
 * A query of one part of the buckets, which is one server's. Whatever table it names is the part's: rows of its buckets, and of other
 * tables those of its accounts. Accounts of the house are in each, because transfers of customers name them.
 *
 * @param tables those of the database
 */
export function ofPart(query: string, buckets: readonly number[], tables: readonly KnownTable[]): string {
  const within = `bucket in (${buckets.join(', ')})`;
  const partsAccounts = `select id from ${SPREAD_LIKE} where ${within}`;
  const ofPartsAccounts = `account_id in (${partsAccounts})`;
  const named = tables.filter(({ name }) => isNamed(query, name));
  const reads = (name: string, of: string) => `${name} as not materialized (select * from ${of})`;
  const read = named.flatMap(({ name, lies, ofAccount }) => {
    if (name === SPREAD_LIKE) return [];
    if (lies === 'spread') return [reads(name, `${name} where ${within}`)];
    if (!ofAccount)
      throw new Error(`rows of ${name} are of no account: a rule that names it is asked of all buckets`);
    if (lies === 'copied') return [reads(name, `${name} where ${ofPartsAccounts}`)];
    if (OF_EVERY_ACCOUNT.has(name))
      return [
        `accounts_of_${name} as materialized (${partsAccounts})`,
        `${name} as materialized (select * from ${name} where account_id in (select id from accounts_of_${name}))`,
      ];
    return [
      `sent_${name} as materialized (select * from ${name})`,
      reads(name, `sent_${name} where ${ofPartsAccounts}`),
    ];
  });
  // Last, because those before it look for the part's accounts in the table itself.
  if (named.some(({ name }) => name === SPREAD_LIKE)) {
    const isHouses = buckets.includes(HOUSE_BUCKET);
    if (!isHouses)
      read.unshift(
        `of_house as materialized (select * from ${SPREAD_LIKE} where bucket = ${HOUSE_BUCKET} and house)`,
      );
    read.push(
      reads(
        SPREAD_LIKE,
        `${SPREAD_LIKE} where ${within}${isHouses ? '' : ' union all select * from of_house'}`,
      ),
    );
  }
  return read.length === 0 ? query : `with ${read.join(', ')} select * from (${query}) found`;
}

/** A query that the coordinator answers from its own tables and what it reads of those that are spread. */
function collected(query: string, together: Readonly<Record<string, string>>): string {
  const read = Object.entries(together).map(
    ([table, which]) => `${table} as materialized (select * from ${table} where ${which})`,
  );
  return read.length === 0 ? query : `with ${read.join(', ')} select * from (${query}) found`;
}

function isNamed(query: string, table: string): boolean {
  return new RegExp(`\\b(?:from|join)\\s+${table}\\b`).test(query);
}
