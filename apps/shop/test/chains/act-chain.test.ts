/** The digests over the acts of operators: what the books see of a record that somebody with the database has changed. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const TOKEN = 'act-chain-aB3dE5fG7hJ9kL1mN2pQ4';
let database: TestDatabase;
let servers: TestServer[];
let accounts: string[];
before(async () => {
  database = await openTestDatabase();
  servers = [];
  for (let n = 0; n < 2; n++)
    servers.push(await startTestServer({ pools: database, environment: { ADMIN_TOKENS: `desk:${TOKEN}` } }));
  accounts = await Promise.all(['1', '1', '1'].map(accountWith));
});
after(async () => {
  for (const server of servers) await server.close();
  await database.close();
});

async function accountWith(usd: string): Promise<string> {
  const server = servers[0] ?? assert.fail();
  const known = await server.app.keys.find(await server.key(usd));
  return String(known?.accountId);
}

async function grant(replica: number, account: string | undefined, amountUsd = '1') {
  const response = await fetch(`${servers[replica]?.url}/admin/api/accounts/${account}/grant`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${TOKEN}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    },
    body: JSON.stringify({ reason: 'for the chain', amountUsd }),
  });
  return { status: response.status, body: await jsonOf(response) };
}

const numbers = async () =>
  (await database.sql<{ number: bigint }[]>`select number from operator_acts order by number`).map(
    ({ number }) => Number(number),
  );

const wrong = async () =>
  (await proveBooks(database.patient)).checks.flatMap(({ ok, name }) => (ok ? [] : [name]));

/** Runs a statement as the owner of the database, who switches triggers off. */
async function tamper(statement: string): Promise<void> {
  await database.sql.begin(async (transaction) => {
    await transaction`alter table operator_acts disable trigger user`;
    await transaction.unsafe(statement);
    await transaction`alter table operator_acts enable trigger user`;
  });
}

test('acts at once on two replicas take turns, are numbered without gaps, and refused ones take no number', async () => {
  const done = await Promise.all(
    Array.from({ length: 12 }, (_, n) => grant(n % 2, accounts[n % accounts.length])),
  );
  assert.deepEqual(new Set(done.map(({ status }) => status)), new Set([200]));
  assert.equal((await grant(0, '999999999')).status, 404);
  assert.equal((await grant(1, accounts[0])).status, 200);
  assert.deepEqual(
    await numbers(),
    Array.from({ length: 13 }, (_, n) => n + 1),
  );
  assert.deepEqual(await wrong(), []);

  const listed = await fetch(`${servers[0]?.url}/admin/api/acts`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  const { acts } = await jsonOf(listed);
  const [head] = await database.sql<{ number: bigint; digest: Buffer }[]>`
    select number, digest from operator_acts_head`;
  assert.deepEqual([acts[0].number, acts[0].sha256], ['13', head?.digest.toString('hex')]);
});

test('a row that is changed or removed shows, whichever it is, and no later act hides it', async () => {
  const rows =
    'create table kept_acts as table operator_acts; create table kept_head as table operator_acts_head';
  await database.sql.unsafe(rows);
  const restore = `
    delete from operator_acts; delete from operator_acts_head;
    insert into operator_acts overriding system value select * from kept_acts;
    insert into operator_acts_head select * from kept_head`;
  const last = (await numbers()).length;
  for (const statement of [
    `update operator_acts set reason = 'other' where number = 3`,
    `update operator_acts set actor = 'other' where number = ${last}`,
    `update operator_acts set at = at + interval '1 microsecond' where number = 1`,
    `update operator_acts set key_id = 1 where number = 2`,
    `update operator_acts set request_digest = sha256(request_digest) where number = 2`,
    'delete from operator_acts where number = 1',
    'delete from operator_acts where number = 5',
    `delete from operator_acts where number = ${last}`,
    `update operator_acts set digest = sha256(digest) where number = ${last}`,
    'delete from operator_acts',
  ]) {
    await tamper(statement);
    assert(
      (await wrong()).some((name) => name.startsWith('every act of an operator stands')),
      statement,
    );
    assert.equal((await grant(0, accounts[0])).status, 200);
    assert(
      (await wrong()).some((name) => name.startsWith('every act of an operator stands')),
      statement,
    );
    await tamper(restore);
    assert(!(await wrong()).some((name) => name.startsWith('every act of an operator stands')), 'restored');
  }
  await database.sql.unsafe('drop table kept_acts; drop table kept_head');
});
