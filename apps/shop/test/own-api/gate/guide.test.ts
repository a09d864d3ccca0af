/** docs/gate.md: its servers run as they are written, and its table of errors is whole. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { freePort } from '../../../../../packages/process/src/free-port.ts';
import { openTestDatabase, type TestDatabase } from '../../database.fixture.ts';
import { until } from '../../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../../server.fixture.ts';
import { SURROUNDINGS } from '../../surroundings.fixture.ts';
import { routesOf } from '../own-api.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../../..');
const GUIDE = readFileSync(join(ROOT, 'docs/gate.md'), 'utf8');
const SECRET = 'a-secret-of-the-guide-and-of-this-shop';

const blocks = (language: string): string[] =>
  [...GUIDE.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, block = '']) => block,
  );

let database: TestDatabase;
let shop: TestServer;
let folder: string;
before(async () => {
  database = await openTestDatabase();
  const [file = ''] = blocks('yaml');
  shop = await startTestServer({
    pools: database,
    services: [],
    routes: () => routesOf(file, { env: { SHOP_A_SECRET: SECRET } }),
  });
  // Where the packages that it imports are found.
  const cache = join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  folder = mkdtempSync(join(cache, 'gate-guide-'));
});
after(async () => {
  await shop?.close();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

const [FASTIFY = '', HONO = '', EXPRESS = ''] = blocks('js');
const SERVERS = {
  Fastify: FASTIFY,
  Hono: HONO,
  'Express 5': EXPRESS,
  'Express 4': EXPRESS.replace("from 'express'", "from 'express-4'"),
};

for (const [name, program] of Object.entries(SERVERS))
  test(`the server of ${name} sells its route as it is written`, async () => {
    assert.match(program, /fare\('POST \/v1\/forecast'\)/);
    const file = join(folder, `${name}.mjs`);
    writeFileSync(file, program);
    const port = await freePort();
    const server: ChildProcess = spawn(process.execPath, [file], {
      env: { ...SURROUNDINGS, FAREBOX_URL: shop.url, SHOP_A_SECRET: SECRET, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    try {
      const ask = (headers: Record<string, string> = {}) =>
        fetch(`http://127.0.0.1:${port}/v1/forecast`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: '{"place":"here"}',
        });
      await until('the server listens', () =>
        ask().then(
          ({ status }) => status === 402,
          () => false,
        ),
      );
      const bought = await ask({ 'x-api-key': await shop.key('1') });
      assert.deepEqual([bought.status, bought.headers.get('x-credits-used')], [200, '0.0200']);
      const { place, celsius, buyer } = await jsonOf(bought);
      assert.deepEqual([place, celsius], ['here', 12.5]);
      assert.match(buyer, /^[0-9a-f]{64}$/);
    } finally {
      server.kill('SIGKILL');
    }
  });

test('it names each code that a guest or its caller can get', () => {
  const folders = ['packages/proxy/src/gate/read-message.ts', 'packages/proxy/src/gate/desk.ts'];
  const sources = [...folders, 'packages/gate/src/calls.ts'].map((path) =>
    readFileSync(join(ROOT, path), 'utf8'),
  );
  const codes = sources.flatMap((text) =>
    [...text.matchAll(/'((?:GATE|FAREBOX)_[A-Z_]+)'/g)].map(([, code = '']) => code),
  );
  assert.ok(codes.length >= 8);
  assert.deepEqual(
    codes.filter((code) => !GUIDE.includes(`\`${code}\``)),
    [],
  );
});
