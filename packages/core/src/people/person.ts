/** A person in the database: which rows are theirs, what an export shows of them, and why they cannot be erased now. */
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import type { PersonalData, PersonalTable } from '../words/personal-data.ts';

const ROWS_AT_ONCE = 200;
const ADDRESSES_AT_ONCE = 1_000;

/** A person, as far as the database knows one by an e-mail address. */
export interface Person {
  /** In lower case. */
  email: string;
  /** Accounts that are known by this address alone. */
  accounts: readonly bigint[];
  /** Accounts that are known by other addresses too: only the rows with this address in them are the person's. */
  shared: readonly bigint[];
  /** Accounts whose keys the person's accounts bought, for whomever. */
  bought: readonly bigint[];
}

/** A query about a person, with the values that it names. */
export function boundTo(
  query: string,
  { email, accounts, bought }: Omit<Person, 'shared'>,
  nowMs: number,
): { text: string; values: string[] } {
  const known = {
    email: { cast: 'text', value: email },
    mention: { cast: 'text', value: mentionOf(email) },
    accounts: { cast: 'text::bigint[]', value: arrayLiteral(accounts) },
    bought: { cast: 'text::bigint[]', value: arrayLiteral(bought) },
    now: { cast: 'text::timestamptz', value: new Date(nowMs).toISOString() },
  };
  const values: string[] = [];
  const text = query.replace(
    /(?<!:):(email|mention|accounts|bought|now)\b/g,
    (_, name: keyof typeof known) => {
      const { cast, value } = known[name];
      values.push(value);
      return `$${values.length}::${cast}`;
    },
  );
  return { text, values };
}

/** Finds an address as a whole, in a text in lower case: neither a longer name before it, nor a longer domain behind it. */
function mentionOf(email: string): string {
  const literal = email.replace(/[^a-z0-9@]/g, (character) => `\\${character}`);
  return `(?<![a-z0-9.!#$%&'*+/=?^_\`{|}~-])${literal}(?![a-z0-9-]|\\.[a-z0-9])`;
}

/** Finds whose accounts are known by an address. @param email as somebody wrote it */
export async function findPerson(
  sql: Database | Transaction,
  parts: readonly PersonalData[],
  email: string,
  nowMs: number,
): Promise<Person> {
  const nobody = { email: email.trim().toLowerCase(), accounts: [], bought: [] };
  const rows = await ask<{ account_id: bigint; own: boolean }>(
    sql,
    `with known (account_id, email) as (
       select account_id, lower(email) from (${union(parts.flatMap(({ known = [] }) => known))}) k
       where account_id is not null and email is not null
     ) select account_id, bool_and(email = :email) as own from known
       where account_id in (select account_id from known where email = :email) group by 1 order by 1`,
    nobody,
    nowMs,
  );
  const accounts = rows.filter(({ own }) => own).map(({ account_id: id }) => id);
  const shared = rows.filter(({ own }) => !own).map(({ account_id: id }) => id);
  return withBought(sql, parts, { email: nobody.email, accounts, shared }, nowMs);
}

/** Adds the accounts whose keys were bought with a person's credit. */
export async function withBought(
  sql: Database | Transaction,
  parts: readonly PersonalData[],
  person: Omit<Person, 'bought'>,
  nowMs: number,
): Promise<Person> {
  const query = `select distinct account_id from (${union(parts.flatMap(({ bought = [] }) => bought))}) b
    where account_id is not null order by 1`;
  const rows = await ask<{ account_id: bigint }>(sql, query, { ...person, bought: [] }, nowMs);
  return { ...person, bought: rows.map(({ account_id: id }) => id) };
}

/** The card provider's names of a person. */
export async function customersOf(
  sql: Database | Transaction,
  parts: readonly PersonalData[],
  person: Person,
  nowMs: number,
): Promise<string[]> {
  const query = `select distinct customer from (${union(parts.flatMap(({ customers = [] }) => customers))}) c
    where customer is not null order by 1`;
  const rows = await ask<{ customer: string }>(sql, query, person, nowMs);
  return rows.map(({ customer }) => customer);
}

/** All addresses of people that stand in columns of their own, each once. */
export async function* addressesIn(
  sql: Database,
  parts: readonly PersonalData[],
): AsyncGenerator<string, void, undefined> {
  const queries = parts.flatMap(({ known = [], addresses = [] }) => [
    ...known.map((query) => `select email from (${query}) k`),
    ...addresses,
  ]);
  for (let last = ''; ; ) {
    const rows = await sql.unsafe<{ email: string }[]>(
      `select distinct lower(email) collate "C" as email from (${union(queries)}) a
       where lower(email) collate "C" > $1 order by 1 limit ${ADDRESSES_AT_ONCE}`,
      [last],
    );
    for (const { email } of rows) yield email;
    if (rows.length < ADDRESSES_AT_ONCE) return;
    last = rows.at(-1)?.email ?? '';
  }
}

/**
 * Why a person cannot be erased now, in sentences; none: nothing stands in the way.
 *
 * @param despite words of obstacles that somebody has decided about
 */
export async function obstaclesOf(
  sql: Database | Transaction,
  parts: readonly PersonalData[],
  person: Person,
  options: { despite: readonly string[]; nowMs: number },
): Promise<string[]> {
  const found: string[] = [];
  for (const { despite, sql: query, say } of parts.flatMap(({ obstacles = [] }) => obstacles)) {
    if (despite !== null && options.despite.includes(despite)) continue;
    const text = `select to_jsonb(o) as row from (${query} limit 1) o`;
    const [first] = await ask<{ row: Record<string, string> }>(sql, text, person, options.nowMs);
    if (first === undefined) continue;
    const { row } = first;
    found.push(despite === null ? say(row) : `${say(row)} Or say --despite ${despite}.`);
  }
  return found;
}

/**
 * Writes everything that the database holds about a person, as one JSON document, in one snapshot and a few rows at a time.
 *
 * @param write takes the next piece of the text
 *
 * @example `{"person":"…","exportedAt":"…","accounts":["1015"],"sharedAccounts":[],"data":[{"table":"mails","what":"…","rows":[…]}]}`
 */
export async function writeExport(
  sql: Database,
  parts: readonly PersonalData[],
  person: Person,
  options: { nowMs: number; write(text: string): void },
): Promise<void> {
  const { nowMs, write } = options;
  const head = JSON.stringify({
    person: person.email,
    exportedAt: new Date(nowMs).toISOString(),
    accounts: person.accounts.map(String),
    sharedAccounts: person.shared.map(String),
  });
  write(`${head.slice(0, -1)},"data":[`);
  await sql.begin('isolation level repeatable read read only', async (transaction) => {
    let begin = '\n';
    for (const rule of parts.flatMap(({ tables }) => tables)) {
      const { table, what } = rule;
      let between = `${begin}${JSON.stringify({ table, what }).slice(0, -1)},"rows":[\n`;
      let isFound = false;
      for await (const row of rowsOf(transaction, rule, person, nowMs)) {
        write(`${between}${row}`);
        between = ',\n';
        isFound = true;
      }
      if (isFound) write(']}');
      if (isFound) begin = ',\n';
    }
  });
  write('\n]}\n');
}

/** The rows of a table that are a person's, as JSON, without what an export leaves out. */
async function* rowsOf(
  transaction: Transaction,
  { table, whose, withheld = [] }: PersonalTable,
  person: Person,
  nowMs: number,
): AsyncGenerator<string, void, undefined> {
  const left = withheld.map((column) => `'${column}'`).join(', ');
  const query = `declare shown no scroll cursor for
    select (to_jsonb(t) - array[${left}]::text[])::text as row from ${table} t where ${whose}`;
  const { text, values } = boundTo(query, person, nowMs);
  await transaction.unsafe(text, values);
  for (;;) {
    const rows = await transaction.unsafe<{ row: string }[]>(`fetch ${ROWS_AT_ONCE} from shown`);
    for (const { row } of rows) yield row;
    if (rows.length < ROWS_AT_ONCE) break;
  }
  await transaction.unsafe('close shown');
}

/** Whether any row is about a person. */
export async function isKnown(
  sql: Database | Transaction,
  tables: readonly PersonalTable[],
  person: Person,
  nowMs: number,
): Promise<boolean> {
  if (person.accounts.length > 0) return true;
  for (const { table, whose } of tables) {
    const found = await ask(sql, `select 1 from ${table} where ${whose} limit 1`, person, nowMs);
    if (found.length > 0) return true;
  }
  return false;
}

async function ask<Row extends object>(
  sql: Database | Transaction,
  query: string,
  person: Omit<Person, 'shared'>,
  nowMs: number,
): Promise<Row[]> {
  const { text, values } = boundTo(query, person, nowMs);
  return [...(await sql.unsafe<Row[]>(text, values))];
}

const union = (queries: readonly string[]) => queries.join('\nunion all\n');
