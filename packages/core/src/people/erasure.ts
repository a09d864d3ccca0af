/**
 * Takes a person out of the database: what identifies them goes or is replaced, rule by rule of what each part declares, and what the
 * books need stays without them. Stopped at any point, it goes on when it is asked for again.
 */
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database } from '../db/connection.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import type { Trail } from '../operator/trail.ts';
import type { Secrets } from '../secrets/secrets.ts';
import type { PersonalData, PersonalTable } from '../words/personal-data.ts';
import { digestOf, type ErasureList, type ListedErasure } from './erasure-list.ts';
import {
  addressesIn,
  boundTo,
  customersOf,
  findPerson,
  isKnown,
  obstaclesOf,
  type Person,
  withBought,
} from './person.ts';

const ROWS_AT_ONCE = 2_000;
/** What a call that was running writes at its end is found by another pass. */
const MOST_PASSES = 5;

export interface ErasureParts {
  sql: Database;
  /** What each part keeps about people. */
  people: readonly PersonalData[];
  secrets: Secrets;
  trail: Trail;
  /** The list that outlasts the database. */
  list: ErasureList;
  /** Has the card provider forget a customer; null: there is no provider. */
  forgetCustomer: ((customer: string) => Promise<void>) | null;
  nowMs(): number;
}

/** The actor that stands in the trail. */
const COMMAND = 'npm run person';

export type Erased =
  | { status: 'unknown' }
  | { status: 'refused'; obstacles: string[] }
  | {
      status: 'erased';
      id: string;
      /** Whether an earlier run had begun it. */
      resumed: boolean;
      /** How many rows of each table went or were changed. */
      rows: ReadonlyMap<string, number>;
      shared: readonly bigint[];
      /** Customers at the card provider that nobody could ask it to forget. */
      customersLeft: readonly string[];
    };

interface Begun {
  id: string;
  at: Date;
  accounts: readonly bigint[];
  customers: readonly string[];
  resumed: boolean;
}

/** Notes in the trail that a person's data was exported, without naming them. */
export async function noteExport(
  { trail, secrets }: Pick<ErasureParts, 'trail' | 'secrets'>,
  person: Person,
  by: string,
): Promise<void> {
  const about = { command: 'person export', by, ...namedBy(secrets, person) };
  await trail.note('export', operator, { address: null, about });
}

/**
 * Erases a person.
 *
 * @param email as somebody wrote it
 * @param options.by who said so; stands in the trail
 * @param options.despite obstacles that somebody has decided about
 * @throws what the card provider throws when it does not answer: the erasure goes on when it is asked for again
 */
export async function erase(
  parts: ErasureParts,
  email: string,
  options: { by: string; despite: readonly string[] },
): Promise<Erased> {
  const { sql, people, nowMs } = parts;
  const tables = people.flatMap((each) => each.tables);
  const found = await findPerson(sql, people, email, nowMs());
  const open = await openErasure(parts, found.email);
  if (open === null) {
    if (!(await isKnown(sql, tables.filter(isErased), found, nowMs()))) return { status: 'unknown' };
    const obstacles = await obstaclesOf(sql, people, found, { despite: options.despite, nowMs: nowMs() });
    if (obstacles.length > 0) return { status: 'refused', obstacles };
  }
  const begun = open ?? (await begin(parts, found, options.by));
  parts.list.add(listed(parts, found.email, begun));
  const accounts = [...new Set([...begun.accounts, ...found.accounts])];
  const person = await withBought(sql, people, { ...found, accounts }, nowMs());
  const rows = await eraseRows(parts, tables, person);
  const customersLeft = parts.forgetCustomer === null ? begun.customers : [];
  for (const customer of begun.customers) await parts.forgetCustomer?.(customer);
  await end(parts, begun, options.by);
  const { id, resumed } = begun;
  return { status: 'erased', id, resumed, rows, shared: found.shared, customersLeft };
}

/** What became of the persons of the list, in a database that was restored. */
export interface Reapplied {
  /** Those that the database knew, and does not any more. */
  erased: number;
  /** What stands in the way of the others. */
  obstacles: readonly string[];
  /** Erasures whose secret is not given any more: nobody can say whom they were about. */
  unreadable: number;
  /** How many erasures the list holds. */
  listed: number;
}

/** Erases again whoever the list or the database names as erased, wherever they stand in it again. */
export async function reapply(parts: ErasureParts, by: string): Promise<Reapplied> {
  const { sql, people, secrets } = parts;
  const known = await sql<ListedErasure[]>`
    select id, secret_id as "secretId", encode(digest, 'hex') as digest from erasures`;
  const listedNow = parts.list.read();
  const all = [...listedNow, ...known];
  const digests = new Set(all.map(({ digest }) => digest));
  const given = new Set(secrets.all.map(({ id }) => id));
  const unreadable = new Set(all.filter(({ secretId }) => !given.has(secretId)).map(({ digest }) => digest));
  const found: string[] = [];
  for await (const email of addressesIn(sql, people))
    if (secrets.all.some((secret) => digests.has(digestOf(secret, email)))) found.push(email);
  const obstacles: string[] = [];
  let erased = 0;
  for (const email of found) {
    const done = await erase(parts, email, { by, despite: everyDecision(people) });
    if (done.status === 'erased') erased += 1;
    if (done.status === 'refused') obstacles.push(...done.obstacles);
  }
  return { erased, obstacles, unreadable: unreadable.size, listed: listedNow.length };
}

/** They were decided about when the person was erased first. */
const everyDecision = (people: readonly PersonalData[]) =>
  people.flatMap(({ obstacles = [] }) => obstacles.flatMap(({ despite }) => despite ?? []));

const operator = { actor: COMMAND, role: null, person: null };

/** How a person is told of where no address may stand. */
function namedBy(secrets: Secrets, { email, accounts }: Pick<Person, 'email' | 'accounts'>) {
  return { person: digestOf(secrets.current, email), accounts: accounts.map(String) };
}

async function openErasure({ sql, secrets }: ErasureParts, email: string): Promise<Begun | null> {
  const digests = secrets.all.map((secret) => digestOf(secret, email));
  const [row] = await sql<{ id: string; began_at: Date; accounts: bigint[]; customers: string[] }[]>`
    select id, began_at, accounts, customers from erasures
    where ended_at is null and encode(digest, 'hex') in ${sql(digests)}`;
  if (row === undefined) return null;
  const { id, began_at: at, accounts, customers } = row;
  return { id, at, accounts: accounts.map(BigInt), customers, resumed: true };
}

/** Writes down what leads to the person's rows, because the first step may take away what led to it. */
async function begin(parts: ErasureParts, person: Person, by: string): Promise<Begun> {
  const { sql, people, secrets, trail, nowMs } = parts;
  const id = newTransferId(nowMs());
  const at = new Date(nowMs());
  await sql.begin(async (transaction) => {
    const customers = await customersOf(transaction, people, person, nowMs());
    await transaction`
      insert into erasures (id, secret_id, digest, began_at, accounts, customers)
      values (${id}, ${secrets.current.id}, decode(${digestOf(secrets.current, person.email)}, 'hex'), ${at.toISOString()},
              ${arrayLiteral(person.accounts)}::text::bigint[], ${arrayLiteral(customers)}::text::text[])
      on conflict do nothing`;
    const about = { command: 'person erase', erasure: id, by, ...namedBy(secrets, person) };
    await trail.note('asked', operator, { address: null, about, on: transaction });
  });
  // Of two at once both have the one that was first.
  const begun = await openErasure(parts, person.email);
  return begun === null
    ? { id, at, accounts: person.accounts, customers: [], resumed: true }
    : { ...begun, resumed: begun.id !== id };
}

async function end({ sql, trail, nowMs }: ErasureParts, { id }: Begun, by: string): Promise<void> {
  await sql.begin(async (transaction) => {
    const { count } = await transaction`
      update erasures set ended_at = ${new Date(nowMs()).toISOString()}, customers = '{}'
      where id = ${id} and ended_at is null`;
    if (count === 0) return;
    const about = { command: 'person erase', erasure: id, by, ended: true };
    await trail.note('asked', operator, { address: null, about, on: transaction });
  });
}

function listed({ secrets }: ErasureParts, email: string, { id, at }: Begun): ListedErasure & { at: string } {
  const { current } = secrets;
  return { id, secretId: current.id, digest: digestOf(current, email), at: at.toISOString() };
}

const isErased = ({ erasure }: PersonalTable) => !('stays' in erasure);

/** Goes over all tables until nothing is left. @returns how many rows of each were changed */
async function eraseRows(
  { sql, nowMs }: ErasureParts,
  tables: readonly PersonalTable[],
  person: Person,
): Promise<Map<string, number>> {
  const rows = new Map<string, number>();
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    let changed = 0;
    for (const rule of tables) {
      const statement = statementOf(rule);
      if (statement === null) continue;
      for (let count = ROWS_AT_ONCE; count === ROWS_AT_ONCE; ) {
        const { text, values } = boundTo(statement, person, nowMs());
        count = (await sql.unsafe(text, values)).count;
        changed += count;
        if (count > 0) rows.set(rule.table, (rows.get(rule.table) ?? 0) + count);
      }
    }
    if (changed === 0) break;
  }
  return rows;
}

/** The statement that treats some rows of a table; null: they stay. */
function statementOf({ table, whose, erasure }: PersonalTable): string | null {
  if ('stays' in erasure) return null;
  // A row's place is its own within a part of a table only, so its owner is asked for again.
  const some = (left: string) =>
    `ctid = any(array(select ctid from ${table} where (${whose}) and ${left} limit ${ROWS_AT_ONCE})) and (${whose})`;
  if ('rows' in erasure) return `delete from ${table} where ${some('true')}`;
  const columns = Object.entries(erasure.set);
  const left = columns.map(([column, value]) => `${column} is distinct from (${value})`).join(' or ');
  return `update ${table} set ${columns.map(([column, value]) => `${column} = (${value})`).join(', ')}
    where ${some(`(${left})`)}`;
}
