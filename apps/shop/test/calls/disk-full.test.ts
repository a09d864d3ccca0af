/** A database that answers and takes no writes: no replica is ready, and it is again once a commit works. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database });
});
after(async () => {
  await server?.close();
  await database?.close();
});

const ready = () => fetch(`${server.url}/health/ready`);

test('a commit that fails because the disk is full: 503 at the call and at /health/ready, until one works', async () => {
  const key = await server.key('1');
  assert.equal((await ready()).status, 200);
  await database.sql.unsafe(`
    create function disk_is_full() returns trigger language plpgsql as $$
      begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
    create trigger disk_is_full before insert on calls for each row execute function disk_is_full();`);
  const told = await server.call('ping', key);
  assert.equal(told.status, 503);
  const notReady = await ready();
  assert.equal(notReady.status, 503);
  assert.match((await jsonOf(notReady)).message, /takes no writes/);

  await database.sql.unsafe('drop trigger disk_is_full on calls; drop function disk_is_full');
  assert.equal((await server.call('ping', key)).status, 200);
  assert.equal((await ready()).status, 200);
});
