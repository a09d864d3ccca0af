/** Clients that published generators make of the whole openapi.json: they compile in strict mode, and buy. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { installApart } from '../kept-apart.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';

/** 157 packages, 112 MB, most of a minute; they need Node 22.18, which runs the tests. */
const modules = installApart(import.meta.dirname, 'the generators of clients');
const skip = modules === null && 'NOT TESTED: the package registry cannot be reached to install generators';
if (typeof skip === 'string') process.stderr.write(`\n*** ${skip} ***\n\n`);

const ORVAL = `
const input = './openapi.json';
export default {
  fetch: { input, output: { target: './orval-fetch.ts', client: 'fetch' } },
  zod: { input, output: { target: './orval-zod.ts', client: 'zod' } },
};`;
const COMPILER = {
  compilerOptions: {
    strict: true,
    target: 'es2022',
    module: 'commonjs',
    moduleResolution: 'node10',
    esModuleInterop: true,
    lib: ['es2022', 'dom', 'dom.iterable'],
    skipLibCheck: true,
    types: [],
    outDir: 'out',
  },
  files: ['buy.ts'],
};
/**
 * Buys by each client what has a list of lists, and reads a field below both. The types are part of the test: \`string\` is
 * asked for where a generator that saw no schema says \`unknown\`.
 */
const BUY = `
import createClient from 'openapi-fetch';
import type { paths } from './types';
import { polymarketEvents } from './hey';
import { polymarketEvents as byOrval } from './orval-fetch';
import * as schemas from './orval-zod';

declare const process: { argv: string[]; stdout: { write(text: string): void } };
const [, , baseUrl = '', key = ''] = process.argv;
const headers = { 'X-API-KEY': key };
const body = { limit: 1 };

async function main(): Promise<Record<string, string | number>> {
  const typed = await createClient<paths>({ baseUrl, headers }).POST('/x402/polymarket-events', { body });
  if (typed.data === undefined) throw new Error(JSON.stringify(typed.error));
  const byTypes: string | undefined = typed.data.events[0]?.markets[0]?.question;

  const { data, error } = await polymarketEvents({ baseUrl, headers, body });
  if (data === undefined) throw new Error(JSON.stringify(error));
  const byHey: string | undefined = data.events[0]?.markets[0]?.question;

  const ordinary = globalThis.fetch;
  globalThis.fetch = (path, init) => ordinary(new URL(String(path), baseUrl), init);
  const answer = await byOrval(body, undefined, { headers });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.data));
  const byFetch: string | undefined = answer.data.events[0]?.markets[0]?.question;

  const parsed = schemas.PolymarketEventsResponse.parse(answer.data);
  const byZod: string | undefined = parsed.events[0]?.markets[0]?.question;
  return { byTypes: byTypes ?? '', byHey: byHey ?? '', byFetch: byFetch ?? '', byZod: byZod ?? '' };
}
main().then((bought) => process.stdout.write(JSON.stringify(bought)));
`;

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let folder: string;
before(async () => {
  if (modules === null) return;
  folder = mkdtempSync(join(tmpdir(), 'farebox-generated-'));
  [database, upstreams] = await Promise.all([openTestDatabase(), startUpstreams()]);
  server = await startTestServer({
    pools: database,
    upstreamsUrl: upstreams.url,
    environment: EVERYTHING_ON,
  });
});
after(async () => {
  if (modules === null) return;
  rmSync(folder, { recursive: true, force: true });
  await server?.close();
  await Promise.all([database?.close(), upstreams?.stop()]);
});

/** Runs a program in the folder with the Node of this process, beside which the server goes on answering. */
async function run(program: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, program), ...args], {
    cwd: folder,
  }).catch(({ stdout, stderr }) => assert.fail(`${program}: ${stdout}${stderr}`));
  return stdout;
}

test('orval, openapi-typescript and hey-api make clients that compile and buy', { skip }, async () => {
  assert.ok(modules !== null);
  symlinkSync(modules, join(folder, 'node_modules'), 'junction');
  const document = await (await fetch(`${server.url}/openapi.json`)).text();
  for (const [name, text] of Object.entries({
    'openapi.json': document,
    'orval.config.mjs': ORVAL,
    'tsconfig.json': JSON.stringify(COMPILER),
    'package.json': JSON.stringify({ type: 'commonjs' }),
    'buy.ts': BUY,
  })) {
    writeFileSync(join(folder, name), text);
  }
  await run('node_modules/orval/dist/bin/orval.mjs', '--config', 'orval.config.mjs');
  await run('node_modules/openapi-typescript/bin/cli.js', 'openapi.json', '--output', 'types.ts');
  await run('node_modules/@hey-api/openapi-ts/bin/run.js', '--input', 'openapi.json', '--output', 'hey');
  await run('node_modules/typescript/bin/tsc', '--project', '.');

  const body = { limit: 1 };
  const key = await server.key('3');
  const { events } = await jsonOf(server.call('polymarket-events', key, body));
  const question = events[0].markets[0].question;
  assert.ok(question.length > 0);
  const bought = JSON.parse(await run('out/buy.js', server.url, key));
  assert.deepEqual(bought, { byTypes: question, byHey: question, byFetch: question, byZod: question });
});
