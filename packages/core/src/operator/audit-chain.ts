/**
 * The logs of operators as lines of JSON, and the proof that such lines are whole: each carries SHA-256 of the digest before it and of
 * its own content, as the database made it.
 */
import { createHash } from 'node:crypto';
import type { Database } from '../db/connection.ts';

const ROWS_AT_ONCE = 500;
const BEGINNING = '0'.repeat(64);

/** The columns that a digest covers, in their order; `number` are those that JSON has as numbers. */
const CHAINS = {
  acts: {
    columns: [
      ...[
        'number',
        'id',
        'at',
        'actor',
        'act',
        'account_id',
        'key_id',
        'order_id',
        'call_id',
        'amount_micros',
      ],
      ...['reason', 'transfer_id', 'idempotency_digest', 'request_digest'],
    ],
    numbers: ['number', 'account_id', 'key_id', 'amount_micros'],
  },
  trail: {
    columns: ['number', 'at', 'kind', 'actor', 'issuer', 'subject', 'email', 'role', 'address', 'about'],
    numbers: ['number'],
  },
} as const;
type ChainName = keyof typeof CHAINS;

/** A row of a log: the columns of `CHAINS` as text, and its digest. */
type AuditRow = Readonly<Record<string, string | null>>;

/**
 * Both logs, the oldest row first, a line each; the line behind the last row of a log says where it ends.
 *
 * @example A line: `{"chain":"trail","number":"1","at":"2026-11-29T00:00:00.000000","kind":"sign_in",…,"sha256":"…"}`
 */
export async function* auditLines(sql: Database): AsyncGenerator<string> {
  for (const chain of ['acts', 'trail'] as const) {
    let last: { number: string; sha256: string } = { number: '0', sha256: BEGINNING };
    for (;;) {
      const rows = await rowsAfter(sql, chain, last.number);
      for (const row of rows) {
        yield `${JSON.stringify({ chain, ...row })}\n`;
        last = { number: row.number ?? '', sha256: row.sha256 ?? '' };
      }
      if (rows.length < ROWS_AT_ONCE) break;
    }
    yield `${JSON.stringify({ chain, end: true, ...last })}\n`;
  }
}

function rowsAfter(sql: Database, chain: ChainName, after: string): Promise<AuditRow[]> {
  return chain === 'acts'
    ? sql<AuditRow[]>`
        select number::text, id::text, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at, actor, act,
               account_id::text, key_id::text, order_id::text, call_id::text, amount_micros::text, reason, transfer_id::text,
               encode(idempotency_digest, 'hex') as idempotency_digest, encode(request_digest, 'hex') as request_digest,
               encode(digest, 'hex') as sha256
        from operator_acts a where a.number > ${after} order by a.number limit ${ROWS_AT_ONCE}`
    : sql<AuditRow[]>`
        select number::text, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at, kind, actor, issuer, subject,
               email, role, address, about, encode(digest, 'hex') as sha256
        from operator_trail t where t.number > ${after} order by t.number limit ${ROWS_AT_ONCE}`;
}

/** The end of a log, as its last line says it: what a later export must still hold. */
interface AuditEnd {
  number: string;
  sha256: string;
}

export interface AuditVerdict {
  /** How many rows each log has; null: the lines do not hold it to its end. */
  rows: Record<ChainName, number | null>;
  ends: Partial<Record<ChainName, AuditEnd>>;
  /** Where the first fault is, in words; null: the logs are whole. */
  finding: string | null;
}

/**
 * Proves that lines of `auditLines` are whole: none was changed, removed, added, or put elsewhere, and the end is there.
 *
 * @param earlier the ends that an earlier export had: a log that was rewritten since, or cut off before them, does not have them any more
 */
export async function verifyAudit(
  lines: AsyncIterable<string> | Iterable<string>,
  earlier: Partial<Record<ChainName, AuditEnd>> = {},
): Promise<AuditVerdict> {
  const rows: Record<ChainName, number | null> = { acts: null, trail: null };
  const ends: Partial<Record<ChainName, AuditEnd>> = {};
  const last: Record<ChainName, AuditEnd> = {
    acts: { number: '0', sha256: BEGINNING },
    trail: { number: '0', sha256: BEGINNING },
  };
  const missing = new Map(Object.entries(earlier).filter(([, { number }]) => number !== '0'));
  const found = (finding: string): AuditVerdict => ({ rows, ends, finding });
  let lineNumber = 0;
  for await (const line of lines) {
    lineNumber += 1;
    if (line.trim() === '') continue;
    const row = rowOf(line);
    if (row === null) return found(`line ${lineNumber} is no line of an audit log`);
    const { chain } = row;
    const at = `line ${lineNumber}, row ${row.number} of the log ${chain},`;
    if (ends[chain] !== undefined) return found(`${at} stands behind the end of its log`);
    if (row.end) {
      if (row.number !== last[chain].number || row.sha256 !== last[chain].sha256)
        return found(`${at} says that the log ends there, and the row before it is ${last[chain].number}`);
      rows[chain] = Number(row.number);
      ends[chain] = { number: row.number, sha256: row.sha256 };
      continue;
    }
    if (BigInt(row.number) !== BigInt(last[chain].number) + 1n)
      return found(`${at} follows row ${last[chain].number}: a row is missing, or out of its place`);
    if (digestOf(last[chain].sha256, chain, row.columns) !== row.sha256)
      return found(`${at} was changed, or the one before it was`);
    last[chain] = { number: row.number, sha256: row.sha256 };
    const kept = missing.get(chain);
    if (kept?.number !== row.number) continue;
    if (kept.sha256 !== row.sha256) return found(`${at} is not the row that the earlier export ended with`);
    missing.delete(chain);
  }
  const [gone] = missing.keys();
  if (gone !== undefined)
    return found(`the log ${gone} ends before the row that the earlier export ended with`);
  const cut = (['acts', 'trail'] as const).find((chain) => ends[chain] === undefined);
  return cut === undefined
    ? { rows, ends, finding: null }
    : found(`the log ${cut} is cut off: its end is missing`);
}

interface AuditLine {
  chain: ChainName;
  number: string;
  sha256: string;
  end: boolean;
  columns: AuditRow;
}

/** A line, read; null: it is none of these logs. */
function rowOf(line: string): AuditLine | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const fields = new Map<string, unknown>(Object.entries(value));
  const chain = fields.get('chain');
  const number = fields.get('number');
  const sha256 = fields.get('sha256');
  if ((chain !== 'acts' && chain !== 'trail') || typeof number !== 'string' || typeof sha256 !== 'string')
    return null;
  if (!/^\d{1,19}$/.test(number)) return null;
  const columns: Record<string, string | null> = {};
  for (const name of CHAINS[chain].columns) {
    const text = fields.get(name) ?? null;
    if (text !== null && typeof text !== 'string') return null;
    columns[name] = text;
  }
  return { chain, number, sha256, end: fields.get('end') === true, columns };
}

/** The digest of a row, made as the triggers of the two tables make it: over the text of a `jsonb` array of its columns. */
function digestOf(before: string, chain: ChainName, columns: AuditRow): string {
  const numbers: readonly string[] = CHAINS[chain].numbers;
  const written = CHAINS[chain].columns.map((name) => {
    const text = columns[name] ?? null;
    if (text === null) return 'null';
    return numbers.includes(name) ? text : JSON.stringify(text);
  });
  return createHash('sha256')
    .update(Buffer.from(before, 'hex'))
    .update(`[${written.join(', ')}]`)
    .digest('hex');
}
