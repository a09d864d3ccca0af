/** Data about people that is kept for a time is kept for as long as its setting says, and no longer. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

const SETTINGS = {
  MAIL_RETENTION_DAYS: 2,
  REQUEST_RETENTION_DAYS: 1,
  WEBHOOK_RETENTION_DAYS: 7,
  KEY_ADDRESS_RETENTION_DAYS: 8,
  UNPAID_ORDER_RETENTION_DAYS: 30,
};
const JOBS = [
  'forget-mails',
  'forget-requests',
  'forget-webhook-messages',
  'forget-account-events',
  'forget-key-addresses',
  'forget-unpaid-orders',
];

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({
    pools: database,
    environment: {
      ...Object.fromEntries(Object.entries(SETTINGS).map(([name, days]) => [name, String(days)])),
      SMTP_URL: 'smtp://127.0.0.1:9',
      MAIL_FROM: 'shop@farebox.test',
      CARD_PROVIDER_URL: 'http://127.0.0.1:9',
      CARD_PROVIDER_KEY: `sk_test_${'a'.repeat(24)}`,
      CARD_WEBHOOK_SECRET: `whsec_${'b'.repeat(24)}`,
    },
  });
});
after(async () => {
  await server?.close();
  await database?.close();
});

test('jobs forget what is older than its setting, and nothing younger', async () => {
  const { sql } = database;
  const webhook = '00000000-0000-4000-8000-000000000001';
  await sql`
    insert into webhooks (id, account_id, url, events, sealed_secret, created_at)
    values (${webhook}, 1, 'https://hooks.example', '{}', 'sealed', now())`;
  /** A row of each, as old as its setting and a little more or less. */
  const tables: [table: string, days: number, insert: string][] = [
    [
      'mails',
      SETTINGS.MAIL_RETENTION_DAYS,
      `insert into mails (id, recipient, subject, body, created_at, sent_at) values (gen_random_uuid(), '', '', '', $1, $1)`,
    ],
    [
      'paid_requests',
      SETTINGS.REQUEST_RETENTION_DAYS,
      `insert into paid_requests (request_id, at, service, rail, outcome, status) values (gen_random_uuid(), $1, '', '', '', 500)`,
    ],
    [
      'webhook_deliveries',
      SETTINGS.WEBHOOK_RETENTION_DAYS,
      `insert into webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, delivered_at)
       values (gen_random_uuid(), '${webhook}', '', '', $1, $1, $1)`,
    ],
    [
      'account_events',
      SETTINGS.WEBHOOK_RETENTION_DAYS,
      `insert into account_events (account_id, type, data, about_money, created_at) values (1, '', '{}', false, $1)`,
    ],
    [
      'key_addresses',
      SETTINGS.KEY_ADDRESS_RETENTION_DAYS,
      `insert into key_addresses (key_id, digest, seen_at) values (1, decode(md5($1::text), 'hex'), $1)`,
    ],
    [
      'card_orders',
      SETTINGS.UNPAID_ORDER_RETENTION_DAYS,
      `insert into card_orders (id, kind, state, amount_micros, credit_micros, created_at, expires_at)
       values (gen_random_uuid(), 'checkout', 2, 1, 1, $1, $1)`,
    ],
  ];
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
  for (const [, days, insert] of tables)
    for (const hours of [days * 24 + 1, days * 24 - 1])
      await sql.unsafe(insert.replaceAll('$1', `'${hoursAgo(hours)}'::timestamptz`));
  const ran = server.app.jobs.filter(({ name }) => JOBS.includes(name));
  assert.equal(ran.length, JOBS.length);
  for (const { run } of ran) await run();
  for (const [table] of tables) {
    const [row] = await sql.unsafe<{ n: bigint }[]>(`select count(*) as n from ${table}`);
    assert.equal(Number(row?.n), 1, table);
  }
});
