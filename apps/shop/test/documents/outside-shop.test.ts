/** The packed packages alone: a shop that is built outside of this repository, from the archives that `npm run pack` makes. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { pack } from '../../../../scripts/pack.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';
import { link, unpack } from '../unpacked.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const folder = mkdtempSync(join(tmpdir(), 'farebox-outside-'));
const modules = join(folder, 'node_modules');

describe('a shop outside of the repository', () => {
  let database: TestDatabase;
  let shop: ChildProcess;
  let url: string;

  before(async () => {
    const [processes = '', core = ''] = pack(['process', 'core'], join(folder, 'archives'));
    unpack(processes, 'packages/process', modules);
    unpack(core, 'packages/core', modules);
    for (const each of ['zod', '@types/node', 'undici-types'])
      link(join(ROOT, 'node_modules', each), join(modules, each));
    const made = spawnSync(process.execPath, [join(modules, '@farebox/core/dist/commands/new.js')], {
      cwd: folder,
      encoding: 'utf8',
    });
    assert.equal(made.status, 0, made.stderr);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
    database = await openTestDatabase();
  });
  after(async () => {
    shop?.kill('SIGKILL');
    await database?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('is the one that the document shows, and is not written over', () => {
    const document = readFileSync(join(ROOT, 'docs/building-a-shop.md'), 'utf8');
    const [, text = ''] = /^```ts\n([\s\S]*?)^```/m.exec(document) ?? [];
    assert.equal(readFileSync(join(folder, 'shop.ts'), 'utf8'), text);
    const program = join(modules, '@farebox/core/dist/commands/new.js');
    for (const [words, said] of [
      [[], /shop\.ts is there already/],
      [['shop.js'], /ends in \.ts/],
      [['a.ts', 'b.ts'], /name one file/],
    ] as const) {
      const again = spawnSync(process.execPath, [program, ...words], { cwd: folder, encoding: 'utf8' });
      assert.equal(again.status, 2);
      assert.match(again.stderr, said);
    }
  });

  test('fits the types of the packages', () => {
    const settings = { extends: join(ROOT, 'tsconfig.json'), compilerOptions: { incremental: false } };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...settings, include: ['shop.ts'] }));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const done = spawnSync(process.execPath, [tsc, '--project', folder], { encoding: 'utf8' });
    assert.equal(done.status, 0, done.stdout);
  });

  test('its list has three lines', () => {
    const text = readFileSync(join(folder, 'shop.ts'), 'utf8');
    const [, list = ''] = /const parts: Part\[\] = \[\n([\s\S]*?)\n {2}\];/.exec(text) ?? [];
    assert.equal(list.split('\n').length, 3);
  });

  test('starts, and is ready', async () => {
    shop = fork(join(folder, 'shop.ts'), {
      cwd: folder,
      env: {
        ...SURROUNDINGS,
        DATABASE_URL: database.url,
        FAREBOX_SECRET: 'a-secret-of-a-shop-outside-of-the-repository',
        PORT: String(await freePort()),
        TRIAL_ALLOW_INTERNAL: 'true',
        LOG_LEVEL: 'error',
      },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const ended = once(shop, 'exit').then(([code]) => assert.fail(`it ended with ${code}`));
    const [message] = await Promise.race([once(shop, 'message'), ended]);
    assert.equal(message.ready, true);
    url = message.baseUrl;
  });

  test('sells its service for the credit of a trial key, and keeps nothing for what has no answer', async () => {
    const { apiKey } = await jsonOf(await fetch(`${url}/api/m2m/credits/trial`));
    const buy = (of: unknown) =>
      fetch(`${url}/x402/square-root`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': String(apiKey) },
        body: JSON.stringify({ of }),
      });
    const bought = await buy(2);
    assert.equal(bought.status, 200);
    assert.equal(bought.headers.get('x-credits-used'), '0.0100');
    const remainingMicros = usdToMicros(bought.headers.get('x-credits-remaining') ?? '');
    assert.equal((await jsonOf(bought)).root, Math.SQRT2);
    const refused = await buy(-1);
    const { code, charged } = await jsonOf(refused);
    assert.deepEqual([refused.status, code, charged], [422, 'NO_REAL_ROOT', false]);
    const misshapen = await buy('two');
    assert.equal(misshapen.status, 400);
    const again = await buy(4);
    const leftMicros = usdToMicros(again.headers.get('x-credits-remaining') ?? '');
    assert.equal(remainingMicros - leftMicros, 10_000n);
  });

  test('has nothing that its list does not name', async () => {
    for (const path of ['/yield', '/api/devices', '/x402/token-price', '/mcp', '/api/admin/overview'])
      assert.equal((await fetch(url + path)).status, 404, path);
  });

  test('stops when it is told to', async () => {
    const ended = once(shop, 'exit');
    shop.kill('SIGTERM');
    assert.deepEqual((await ended)[0], 0);
  });
});
