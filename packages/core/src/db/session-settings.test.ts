/** What stands between a server and PostgreSQL, as a pooler of connections does: the server starts only where its settings pass. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { StartError } from '@farebox/process/start-error';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { openDatabase } from './open.ts';
import { createStartPatience } from './start-patience.ts';

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

type Parameters = readonly (readonly [name: string, value: string])[];

/** Opens the database by way of a pooler. @param pass what becomes of the settings that a connection begins with; an error: what it answers */
async function openBy(pass: (parameters: Parameters) => Parameters | string, query = '') {
  const target = new URL(database.url);
  const sockets = new Set<Socket>();
  const pooler = createServer((client) => {
    sockets.add(client);
    client.on('error', () => {});
    client.once('data', (bytes) => {
      const words = bytes.subarray(8, -2).toString().split('\0');
      const parameters = words.flatMap((name, at) =>
        at % 2 === 0 ? [[name, words[at + 1] ?? ''] as const] : [],
      );
      const passed = pass(parameters);
      if (typeof passed === 'string') return client.end(errorMessage(passed));
      const server = dial(Number(target.port), target.hostname);
      sockets.add(server);
      server.on('error', () => {});
      const text = `${passed.flat().join('\0')}\0\0`;
      const start = Buffer.alloc(8);
      start.writeInt32BE(8 + Buffer.byteLength(text), 0);
      bytes.copy(start, 4, 4, 8);
      server.write(Buffer.concat([start, Buffer.from(text)]));
      client.pipe(server).pipe(client);
    });
  });
  pooler.listen(0, '127.0.0.1');
  await once(pooler, 'listening');
  const url = new URL(database.url);
  url.host = `127.0.0.1:${(pooler.address() as AddressInfo).port}`;
  url.search = query;
  const waited: unknown[] = [];
  try {
    const config = { databaseUrl: url.href, databaseMaxConnections: 3, dataDir: '/nowhere' };
    const patience = createStartPatience({ waits: (error) => waited.push(error) });
    const opened = await openDatabase(config, { exclusive: true, patience }).catch((error: unknown) => error);
    if (opened instanceof Error) return { error: opened, waited };
    await (opened as Awaited<ReturnType<typeof openDatabase>>).close();
    return { error: null, waited };
  } finally {
    for (const socket of sockets) socket.destroy();
    pooler.close();
  }
}

/** PostgreSQL's ErrorResponse, with severity, code and text. */
function errorMessage(text: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C08P01\0M${text}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(4 + fields.length, 1);
  return Buffer.concat([head, fields]);
}

test('where the settings of a session pass, a server starts', async () => {
  const names: string[] = [];
  const { error } = await openBy((parameters) => {
    names.push(...parameters.map(([name]) => name));
    return parameters;
  });
  assert.equal(error, null);
  assert(names.includes('statement_timeout') && names.includes('lock_timeout'), names.join());
});

test('what the address of the database asks for itself is taken as PostgreSQL takes it', async () => {
  const { error } = await openBy(
    (parameters) => parameters,
    'statement_timeout=10s&search_path="$user", public&jit=false',
  );
  assert.equal(error, null);
});

test('a pooler that refuses the settings of a session ends the start at once, with what to do', async () => {
  const { error, waited } = await openBy(() => 'unsupported startup parameter: statement_timeout');
  assert(error instanceof StartError, String(error));
  assert.match(
    error.message,
    /refuses the settings of a session: statement_timeout\. Name PostgreSQL itself/,
  );
  assert.deepEqual(waited, []);
});

for (const name of [
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
  'TimeZone',
  'jit',
])
  test(`a pooler that drops ${name} in silence ends the start at once, with what to do`, async () => {
    await database.sql.unsafe(`alter database ${new URL(database.url).pathname.slice(1)} set jit = on`);
    await database.sql.unsafe(
      `alter database ${new URL(database.url).pathname.slice(1)} set timezone = 'Asia/Kathmandu'`,
    );
    const { error, waited } = await openBy((parameters) => parameters.filter(([each]) => each !== name));
    assert(error instanceof StartError, String(error));
    assert.match(error.message, new RegExp(`drops settings of a session: ${name}\\. Name PostgreSQL itself`));
    assert.deepEqual(waited, []);
  });

test('any other error of a start is waited over as before', async () => {
  let refusals = 0;
  const { error, waited } = await openBy((parameters) => {
    refusals += 1;
    return refusals === 1 ? 'the server is not there' : parameters;
  });
  assert.deepEqual([error, waited.length], [null, 1]);
});
