/** Holds that an operator sees every queue of work of a server in which no part is off. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

const QUEUES = [
  ...[
    'mails',
    'card-events',
    'webhook-messages',
    'data-lists',
    'law-pages',
    'undelivered-calls',
    'topups',
    'sold-keys',
  ],
  ...['solana-claims', 'solana-payments', 'solana-fees'],
];

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database, services: [], environment: EVERYTHING_ON });
});
after(async () => {
  await server?.close();
  await database?.close();
});

async function figures(name: string): Promise<ReadonlyMap<string, number>> {
  const headers = { authorization: `Bearer ${EVERYTHING_ON.METRICS_TOKEN}` };
  const text = await (await fetch(`${server.url}/metrics`, { headers })).text();
  const lines = text.matchAll(new RegExp(`^${name}\\{queue="([^"]+)"\\} (\\S+)$`, 'gm'));
  return new Map([...lines].map(([, queue = '', value]) => [queue, Number(value)]));
}

test('of every queue it is shown how much waits and since when: nothing while it is empty', async () => {
  for (const name of ['farebox_queue_depth', 'farebox_queue_oldest_seconds'])
    assert.deepEqual(
      [...(await figures(name))].toSorted(),
      QUEUES.map((queue) => [queue, 0]).toSorted(),
      name,
    );
  await database.sql`
    insert into mails (id, recipient, subject, body, created_at, next_at) values
      (gen_random_uuid(), 'a@example.com', 's', 'b', now() - interval '1 hour', now() + interval '1 hour'),
      (gen_random_uuid(), 'a@example.com', 's', 'b', now(), now() + interval '1 hour')`;
  assert.equal((await figures('farebox_queue_depth')).get('mails'), 2);
  const seconds = (await figures('farebox_queue_oldest_seconds')).get('mails');
  assert(seconds !== undefined && seconds >= 3_590, `${seconds}`);
});
