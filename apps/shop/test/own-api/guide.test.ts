/** docs/your-own-api.md is read and done in five minutes: its commands do what it shows, and each of its examples is a configuration. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { readConfigText } from '../../../../packages/proxy/src/config/load.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { routesOf } from './own-api.fixture.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../../../docs/your-own-api.md'), 'utf8');
/** The first section is what a newcomer reads and does. */
const FIRST = GUIDE.slice(0, GUIDE.indexOf('\n## From OpenAPI'));
const WORDS_A_MINUTE = 200;
/** `npm start` on a machine where everything is installed, and the other commands, generously. */
const MINUTES_OF_COMMANDS = 1.5;

const blocks = (language: string, text = GUIDE): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, block = '']) => block,
  );

let database: TestDatabase;
let api: ChildProcess;
let server: TestServer;
let port: number;

before(async () => {
  database = await openTestDatabase();
  port = await freePort();
  const [command = ''] = blocks('sh', FIRST);
  const program = /^node -e '(.*)'$/m.exec(command)?.[1] ?? '';
  assert.match(program, /listen\(9000\)/);
  api = spawn(process.execPath, ['-e', program.replace('9000', String(port))], { stdio: 'ignore' });
  await until('the API answers', () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    ),
  );
  const [file = ''] = blocks('yaml', FIRST);
  server = await startTestServer({
    pools: database,
    services: [],
    routes: () => routesOf(file.replace('9000', String(port))),
  });
});
after(async () => {
  await server?.close();
  api?.kill();
  await database?.close();
});

test('the first section is read and done in five minutes', () => {
  const words = FIRST.split(/\s+/).filter((word) => /\w/.test(word)).length;
  const minutes = words / WORDS_A_MINUTE + MINUTES_OF_COMMANDS;
  assert(minutes < 5, `${minutes} minutes`);
  const [file = ''] = blocks('yaml', FIRST);
  assert(file.trim().split('\n').length <= 10, 'ten lines');
});

test('its requests are answered as it shows', async () => {
  const [shown = ''] = blocks('console', FIRST);
  const at = (path: string, key?: string) =>
    fetch(server.url + path, key === undefined ? {} : { headers: { 'x-api-key': key } });
  const unpaid = await jsonOf(at('/v1/stations/7'));
  assert(shown.includes(`"message":"${unpaid.message.split('. ')[0]}.`), unpaid.message);
  const bought = await at('/v1/stations/7', await server.key('200'));
  const expected = ['x-credits-used', 'x-credits-remaining'].map(
    (name) => `${name}: ${bought.headers.get(name)}`,
  );
  assert.deepEqual(
    expected.filter((line) => !shown.includes(line)),
    [],
  );
  assert(shown.includes(await bought.text()));
  assert(shown.includes(await (await at('/v1/health')).text()));
  const lost = await jsonOf(at('/v1/secrets'));
  assert(shown.includes(`"error":"${lost.error}","message":"${lost.message}"`), JSON.stringify(lost));
});

test('each of its examples is a configuration', () => {
  const surroundings = { env: { WEATHER_TOKEN: 'a-token-of-the-tests' }, serviceNames: null };
  const upstream = (name: string) => `  ${name}: { url: "http://127.0.0.1:9000", prefix: "/" }\n`;
  const indented = (text: string) => text.replace(/^(?=.)/gm, '  ');
  let read = 0;
  for (const block of blocks('yaml')) {
    if (block.startsWith('#')) continue;
    const isWhole = /^(upstreams|services):/.test(block);
    const isOfPlans = block.startsWith('plans:');
    const isRoutes = block.startsWith('"');
    const names = [...block.matchAll(/^ +upstream: (\w+)/gm)].map(([, name = '']) => name);
    const whole = isWhole
      ? block
      : isOfPlans
        ? `upstreams:\n${names.map(upstream).join('')}${block}`
        : isRoutes
          ? `upstreams:\n${[...new Set(names)].map(upstream).join('')}routes:\n${indented(block)}`
          : `upstreams:\n${indented(block)}`;
    readConfigText(whole, 'guide.yaml', surroundings);
    read += 1;
  }
  assert(read >= 5, String(read));
});
