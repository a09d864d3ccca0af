/** The versions of what is sold, in the database: each content of the file, each set of operators' rules, and who serves which. */
import { createHash } from 'node:crypto';
import type { Database, Transaction } from '../db/connection.ts';

/** `file`: the content of the file. `rules`: the operators' rules for the shop's own services. */
export type VersionKind = 'file' | 'rules';

/** A version without its content. */
export interface VersionHead {
  /** Grows from version to version, of both kinds together. */
  readonly number: bigint;
  readonly kind: VersionKind;
  /** SHA-256 of the content, in hexadecimal digits. */
  readonly sha256: string;
  readonly madeAtMs: number;
  readonly madeBy: string;
  /** Why, in an operator's words; null: it came from the file. */
  readonly reason: string | null;
  readonly actId: string | null;
}

export interface Version extends VersionHead {
  /** JSON. */
  readonly content: string;
}

/** The newest version of each kind; null: there is none. */
export interface Newest {
  readonly file: bigint | null;
  readonly rules: bigint | null;
}

/** Which versions a process serves. */
export interface Standing {
  readonly replica: bigint;
  readonly host: string;
  readonly file: bigint | null;
  readonly rules: bigint | null;
  /** The version that it does not accept; null with a reason: its own file. */
  readonly refused: bigint | null;
  /** Null: it refuses nothing. */
  readonly reason: string | null;
}

const VERSIONS_A_PAGE = 50;
const MOST_REPLICAS = 200;

interface HeadRow {
  number: bigint;
  kind: VersionKind;
  digest: Buffer;
  made_at: Date;
  made_by: string;
  reason: string | null;
  act_id: string | null;
}

interface StandingRow {
  replica: bigint;
  host: string;
  file_version: bigint | null;
  rules_version: bigint | null;
  refused_version: bigint | null;
  reason: string | null;
}

export type VersionStore = ReturnType<typeof createVersionStore>;

export function createVersionStore(sql: Database, nowMs: () => number) {
  return { ...versionReader(sql), ...versionWriter(sql, nowMs), ...standingsIn(sql, nowMs) };
}

function versionReader(sql: Database) {
  const heads = async (which: ReturnType<Database>): Promise<VersionHead[]> =>
    (
      await sql<HeadRow[]>`
        select v.number, v.kind, v.digest, v.made_at, v.made_by, v.act_id, a.reason from stock_versions v
        left join operator_acts a on a.id = v.act_id ${which}`
    ).map(headOf);

  return {
    async newest(): Promise<Newest> {
      const [row] = await sql<Newest[]>`
        select (select max(number) from stock_versions where kind = 'file') as file,
               (select max(number) from stock_versions where kind = 'rules') as rules`;
      return { file: row?.file ?? null, rules: row?.rules ?? null };
    },

    async byNumber(number: bigint): Promise<Version | null> {
      const [head] = await heads(sql`where v.number = ${String(number)}`);
      const [row] = await sql<
        { content: string }[]
      >`select content from stock_versions where number = ${String(number)}`;
      return head === undefined || row === undefined ? null : { ...head, content: row.content };
    },

    /** The versions of the file between two others, the newest first, at most `limit`. */
    between(above: bigint | null, below: bigint, limit: number): Promise<VersionHead[]> {
      return heads(sql`
        where v.kind = 'file' and v.number > ${String(above ?? 0n)} and v.number < ${String(below)}
        order by v.number desc limit ${limit}`);
    },

    /** The newest versions of both kinds, at most 50. `after`: the number of the last one seen. */
    list(after: bigint | null): Promise<VersionHead[]> {
      return heads(sql`
        where ${after === null ? sql`true` : sql`v.number < ${String(after)}`}
        order by v.number desc limit ${VERSIONS_A_PAGE}`);
    },

    async hasContent(kind: VersionKind, content: string): Promise<boolean> {
      const rows = await sql`
        select 1 from stock_versions where kind = ${kind} and digest = ${digestOf(content)} limit 1`;
      return rows.length > 0;
    },
  };
}

function versionWriter(sql: Database, nowMs: () => number) {
  return {
    /** Adds a content of the file, unless it is the newest already. @returns its number */
    addFile(content: string, madeBy: string): Promise<bigint> {
      return sql.begin(async (transaction) => {
        await inTurn(transaction);
        const [newest] = await transaction<{ number: bigint; digest: Buffer }[]>`
          select number, digest from stock_versions where kind = 'file' order by number desc limit 1`;
        if (newest?.digest.equals(digestOf(content)) === true) return newest.number;
        return insert(transaction, nowMs(), { kind: 'file', content, madeBy, actId: null });
      });
    },

    /**
     * Adds the operators' rules, within the transaction of the act that changes them.
     *
     * @param change makes the new rules of those before; null: there are none
     */
    async addRules(
      transaction: Transaction,
      { actId, actor }: { actId: string; actor: string },
      change: (before: string | null) => string,
    ): Promise<bigint> {
      await inTurn(transaction);
      const [newest] = await transaction<{ content: string }[]>`
        select content from stock_versions where kind = 'rules' order by number desc limit 1`;
      const content = change(newest?.content ?? null);
      return insert(transaction, nowMs(), { kind: 'rules', content, madeBy: actor, actId });
    },
  };
}

/** Which processes serve what. */
function standingsIn(sql: Database, nowMs: () => number) {
  return {
    /** Notes what this process serves. */
    async note({ replica, host, file, rules, refused, reason }: Standing): Promise<void> {
      await sql`
        insert into stock_replicas (replica, host, file_version, rules_version, refused_version, reason, noted_at)
        select ${String(replica)}, ${host}, ${textOf(file)}, ${textOf(rules)}, ${textOf(refused)}, ${reason}, ${timeOf(nowMs())}
        from replicas where id = ${String(replica)}
        on conflict (replica) do update set file_version = excluded.file_version, rules_version = excluded.rules_version,
          refused_version = excluded.refused_version, reason = excluded.reason, noted_at = excluded.noted_at`;
    },

    /** The processes that live, and which versions each serves. */
    async standings(): Promise<Standing[]> {
      const rows = await sql<StandingRow[]>`
        select s.* from stock_replicas s join replicas r on r.id = s.replica
        where r.ended_at is null order by s.replica limit ${MOST_REPLICAS}`;
      return rows.map((row) => ({
        replica: row.replica,
        host: row.host,
        file: row.file_version,
        rules: row.rules_version,
        refused: row.refused_version,
        reason: row.reason,
      }));
    },
  };
}

async function insert(
  transaction: Transaction,
  madeAtMs: number,
  {
    kind,
    content,
    madeBy,
    actId,
  }: { kind: VersionKind; content: string; madeBy: string; actId: string | null },
): Promise<bigint> {
  const [row] = await transaction<{ number: bigint }[]>`
    insert into stock_versions (number, kind, content, digest, made_at, made_by, act_id)
    select coalesce(max(number), 0) + 1, ${kind}, ${content}, ${digestOf(content)}, ${timeOf(madeAtMs)}::timestamptz, ${madeBy}, ${actId}
    from stock_versions returning number`;
  if (row === undefined) throw new Error('a version got no number');
  return row.number;
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** Versions are written one after the other, so that a higher number is never seen before a lower one. */
async function inTurn(transaction: Transaction): Promise<void> {
  await transaction`lock table stock_versions in share row exclusive mode`;
}

function digestOf(content: string): Buffer {
  return createHash('sha256').update(content).digest();
}

function textOf(value: bigint | null): string | null {
  return value === null ? null : String(value);
}

function headOf(row: HeadRow): VersionHead {
  return {
    number: row.number,
    kind: row.kind,
    sha256: row.digest.toString('hex'),
    madeAtMs: row.made_at.getTime(),
    madeBy: row.made_by,
    reason: row.reason,
    actId: row.act_id,
  };
}
