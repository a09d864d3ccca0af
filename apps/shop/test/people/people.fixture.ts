/** Persons whose name stands wherever a customer can put one, by the product's own doors; and a reader of every column. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { CardWorld } from '../cards.fixture.ts';
import type { TestDatabase } from '../database.fixture.ts';
import { register, post as report } from '../devices.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

/** Rows that jobs write down of customers, behind what they did. */
const JOBS_THAT_WRITE = [
  'note-requests',
  'tell-of-key-use',
  'tell-of-low-balances',
  'send-webhooks',
  'finish-sold-keys',
];
const CREDITS = '/api/m2m/credits';
export const TOKEN = 'an-operators-token-of-the-tests';

export interface Customer {
  marker: string;
  email: string;
  key: string;
  sessionId: string;
  accountId: string;
  orderId: string;
}

/** Asks for an act of an operator. */
export function operate(world: CardWorld, path: string, body: object): Promise<Response> {
  const headers = { authorization: `Bearer ${TOKEN}`, 'idempotency-key': randomUUID() };
  return world.post(`/admin/api/${path}`, body, headers);
}

/** Somebody buys credit by card, keeps the card, and leaves their name wherever text is taken. */
export async function customer(world: CardWorld, marker: string, email: string): Promise<Customer> {
  const { server, database } = world;
  const opened = await jsonOf(
    world.post(`${CREDITS}/checkout/session`, {
      amountUsd: 10,
      email,
      keyName: `key of ${marker}`,
      autoRecharge: { enabled: true, thresholdUsd: 1, topUpUsd: 5 },
    }),
  );
  await world.pay(opened.checkoutUrl, { email });
  const { sessionId, retrievalToken } = opened;
  const status = `${server.url}${CREDITS}/checkout/status/${sessionId}?token=${retrievalToken}`;
  let key: string | null = null;
  await until('the key', async () => {
    await world.settle();
    key = (await jsonOf(fetch(status))).apiKey ?? null;
    return key !== null;
  });
  assert(key !== null);
  const [order] = await database.sql<{ id: string; account_id: bigint }[]>`
    select id, account_id from card_orders where session_id = ${sessionId}`;
  assert(order !== undefined);
  const bought: Customer = {
    marker,
    email,
    key,
    sessionId,
    accountId: String(order.account_id),
    orderId: order.id,
  };
  await leaveName(world, bought);
  return bought;
}

async function leaveName(
  world: CardWorld,
  { marker, email, key, sessionId, accountId }: Customer,
): Promise<void> {
  const { server } = world;
  const owned = { 'x-api-key': key };
  const ok = async (response: Promise<Response>) => {
    const got = await response;
    assert(got.ok, `${got.url}: ${got.status} ${await got.clone().text()}`);
    return jsonOf(got);
  };
  await ok(
    world.post(
      '/api/webhooks',
      {
        url: `http://127.0.0.1:9/${marker}`,
        events: ['balance.low', 'key.new_address'],
        email,
        lowBalanceUsd: 8,
      },
      owned,
    ),
  );
  const named = { ...owned, 'idempotency-key': `${marker}-call-of-mine-0001` };
  assert.equal((await server.call('ping', key, {}, named)).status, 200);
  await ok(
    server.call('instant-api-key', key, { name: `sold by ${marker}` }, { 'idempotency-key': randomUUID() }),
  );
  await ok(
    server.call(
      'agent-create-wallet',
      key,
      {
        agentId: `agent-${marker}`,
        agentName: `Agent ${marker}`,
        purpose: `pays for ${marker}`,
        networks: ['base'],
      },
      { 'idempotency-key': randomUUID() },
    ),
  );
  const device = await register(server, key, {
    deviceId: `sensor-${marker}`,
    name: `at ${marker}`,
    fleetId: `fleet-${marker}`,
  });
  assert.equal(
    (
      await report(server, device, {
        at: new Date().toISOString(),
        key: `first-${marker}`,
        values: { temperature: 20 },
      })
    ).status,
    200,
  );
  assert.equal((await report(server, device, `{"no report, says ${marker}"}`)).status, 400);
  const message = {
    role: 'user',
    messageId: randomUUID(),
    contextId: `context-${marker}`,
    parts: [{ kind: 'data', data: { skill: 'ping', input: { note: marker } } }],
  };
  await ok(world.post('/a2a', { jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } }, owned));
  await ok(world.post(`${CREDITS}/checkout/mail-key`, { sessionId }));
  await ok(operate(world, `accounts/${accountId}/freeze`, { reason: 'a drill' }));
  await ok(operate(world, `accounts/${accountId}/unfreeze`, { reason: 'it was a drill' }));
  for (const { name, run } of server.app.jobs) if (JOBS_THAT_WRITE.includes(name)) await run();
}

/** The columns that hold text, or bytes that may be text, in the real schema. */
export async function columnsOf({
  sql,
}: TestDatabase): Promise<{ table: string; column: string; type: string }[]> {
  return [
    ...(await sql<{ table: string; column: string; type: string }[]>`
      select c.relname as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and format_type(a.atttypid, a.atttypmod) in ('text', 'text[]', 'jsonb', 'json', 'bytea', 'inet', 'cidr', 'xml')
         or c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and a.attnum > 0 and not a.attisdropped and format_type(a.atttypid, a.atttypmod) like 'character%'
      order by 1, 2`),
  ];
}

/** The columns in which a word stands, whatever its case. */
export async function whereStands(database: TestDatabase, word: string): Promise<string[]> {
  const found: string[] = [];
  for (const { table, column, type } of await columnsOf(database)) {
    const text = type === 'bytea' ? `encode(${column}, 'escape')` : `${column}::text`;
    const [row] = await database.sql.unsafe<object[]>(
      `select 1 from ${table} where position($1 in lower(${text})) > 0 limit 1`,
      [word.toLowerCase()],
    );
    if (row !== undefined) found.push(`${table}.${column}`);
  }
  return found;
}

/** All rows in which a word stands, as text, by table. */
export async function rowsWith(database: TestDatabase, words: readonly string[]): Promise<string[]> {
  const rows: string[] = [];
  const tables = new Set((await columnsOf(database)).map(({ table }) => table));
  for (const table of tables) {
    const some = await database.sql.unsafe<{ row: string }[]>(
      `select to_jsonb(t)::text as row from ${table} t where to_jsonb(t)::text ~ $1`,
      [words.join('|')],
    );
    rows.push(...some.map(({ row }) => `${table} ${row}`));
  }
  return rows.sort();
}
