/** The packed client on other runtimes, in a bundle, and in libraries of models, and all packages before checkers of packages. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createFarebox } from 'farebox';
import { aiTools, langChainTools } from 'farebox/tools';
import portfolio from '../../../../packages/catalogue/src/services/investment/portfolio-optimization.ts';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { lockOf } from '../../../../packages/process/src/npm-packages.mjs';
import { PACKED, type Packed, pack, workspaceOf } from '../../../../scripts/pack.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { installApart } from '../kept-apart.fixture.ts';
import { sourcesAt, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { link, unpack } from '../unpacked.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const modules = installApart(import.meta.dirname, 'what the client is tried with');
const skip =
  modules === null && 'NOT TESTED: the package registry cannot be reached to install other runtimes';
if (typeof skip === 'string') process.stderr.write(`\n*** ${skip} ***\n\n`);

const bundler = installApart(join(ROOT, 'tools/bundle'), 'what bundles the server');
const skipServer =
  bundler === null && 'NOT TESTED: the package registry cannot be reached to install esbuild';
if (typeof skipServer === 'string') process.stderr.write(`\n*** ${skipServer} ***\n\n`);
const packed = PACKED.filter((name) => name !== 'shop' || skipServer === false);

const folder = mkdtempSync(join(tmpdir(), 'farebox-runtimes-'));
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let archives: string[];
let archive: string;
before(async () => {
  archives = pack(packed, join(folder, 'archives'));
  archive = archiveOf('client');
  if (skip !== false) return;
  [database, upstreams] = await Promise.all([openTestDatabase(), startUpstreams()]);
  server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url });
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
  installed(process.execPath, folder);
});
after(async () => {
  await server?.close();
  await Promise.all([database?.close(), upstreams?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

function archiveOf(name: Packed): string {
  return archives[packed.indexOf(name)] ?? '';
}

/** Installs the client from its archive, and others with it, as npm on this Node does where no registry can be asked. */
function installed(node: string, home: string, ...others: Packed[]): void {
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, 'package.json'), JSON.stringify({ type: 'module' }));
  const args = ['install', '--offline', '--no-audit', '--no-fund', '--loglevel=error', archive];
  args.push(...others.map(archiveOf));
  const PATH = `${dirname(node)}:${process.env.PATH}`;
  const done = spawnSync('npm', args, { cwd: home, encoding: 'utf8', env: { ...process.env, PATH } });
  assert.equal(done.status, 0, done.stderr);
}

async function run(program: string, args: string[], { cwd = folder, env = {} } = {}) {
  const child = spawn(program, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  const [out, error] = [text(child.stdout), text(child.stderr)];
  const [code] = await once(child, 'exit');
  return { code, out: await out, error: await error };
}

/** The program of a runtime's package for this platform; undefined where it has none. */
const programIn = (pattern: string) =>
  globSync(pattern, { cwd: modules ?? '' })
    .map((path) => join(modules ?? '', path))
    .find((path) => existsSync(path));

const SAID = 'hello 0.2500\nFareboxError UNKNOWN_SERVICE false\n';
const given = async (program: string, name: string) => [
  program,
  server.url,
  await server.key('1'),
  join(folder, `kept by ${name}`),
];

/** A payment by each protocol, signed for terms that no server has made. */
const SIGNS = `
  import { mppWallet } from 'farebox/mpp';
  import { x402Wallet } from 'farebox/x402';
  const evm = '0x${'1'.repeat(64)}';
  const offer = { scheme: 'exact', network: 'eip155:8453', amount: '250000', maxTimeoutSeconds: 120, extra: { name: 'USD Coin', version: '2' },
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', payTo: '0x000000000000000000000000000000000000dEaD' };
  const x402 = { x402Version: 2, accepts: [offer] };
  const [quote] = (await x402Wallet({ evm })).quote({ priceMicros: 250000n, sandbox: false, x402, challenges: [] }, Date.now());
  const { signed } = await quote.pay();
  console.log(signed['x402/payment'].payload.signature.length, (await mppWallet({ evm })).way);
`;

for (const [version, pattern] of [
  ['20', 'node-20/bin/node'],
  ['22', 'node-22/bin/node'],
  ['of these tests', null],
] as const)
  test(`is installed into an empty project by Node ${version}, buys there, and signs`, {
    skip,
  }, async (t) => {
    const node = pattern === null ? process.execPath : programIn(pattern);
    if (node === undefined) return t.skip(`Node ${version} has no package for this platform`);
    const home = join(folder, `node ${version}`);
    installed(node, home);
    const bought = await run(node, await given(join(folder, 'program.mjs'), `node ${version}`));
    assert.equal(bought.code, 0, bought.error);
    assert.equal(bought.out, SAID);
    for (const peer of ['viem', 'mppx', '@x402/core', '@x402/evm']) {
      mkdirSync(dirname(join(home, 'node_modules', peer)), { recursive: true });
      symlinkSync(join(ROOT, 'node_modules', peer), join(home, 'node_modules', peer), 'junction');
    }
    const signed = await run(node, ['--input-type=module', '-e', SIGNS], { cwd: home });
    assert.equal(signed.code, 0, signed.error);
    assert.equal(signed.out, '132 mpp\n');
    const program = await run(node, [join(home, 'node_modules/.bin/farebox'), 'price', 'ping', '--json'], {
      cwd: home,
      env: { FAREBOX_URL: server.url, FAREBOX_HOME: join(home, 'home') },
    });
    assert.deepEqual(JSON.parse(program.out), { service: 'ping', usd: '0.25' });
  });

for (const [name, pattern, args] of [
  ['Bun', '@oven/bun-*/bin/bun*', []],
  ['Deno', '@deno/*/deno*', ['run', '-A', '--no-lock']],
] as const)
  test(`buys on ${name}`, { skip }, async (t) => {
    const program = programIn(pattern);
    if (program === undefined) return t.skip(`${name} has no package for this platform`);
    const { code, out, error } = await run(program, [
      ...args,
      ...(await given(join(folder, 'program.mjs'), name)),
    ]);
    assert.equal(code, 0, error);
    assert.equal(out, SAID);
  });

test('programs of the server are run by the command line where they are installed, and else it says how to get them', {
  skip: skipServer,
}, async () => {
  const home = join(folder, 'shop');
  installed(process.execPath, home);
  const env = { FAREBOX_HOME: join(home, 'settings') };
  const farebox = (...words: string[]) =>
    run(process.execPath, [join(home, 'node_modules/.bin/farebox'), ...words], { cwd: home, env });
  for (const [name, from] of [
    ['serve', '@farebox/shop'],
    ['import', '@farebox/shop'],
    ['books', '@farebox/shop'],
    ['new', '@farebox/core'],
    ['mcp', '@farebox/mcp-bridge'],
  ] as const) {
    const { code, error } = await farebox(name);
    assert.equal(code, 4, error);
    assert.ok(error.includes(`${name} is a command of ${from}, which is not installed here`), error);
    assert.match(error, /npm run pack[\s\S]*npm install .*CLONE\/dist\/\S+\.tgz/);
  }
  for (const name of packed)
    if (name !== 'client') unpack(archiveOf(name), workspaceOf(name), join(home, 'node_modules'));
  const openApi = {
    openapi: '3.1.0',
    info: { title: 'W' },
    servers: [{ url: 'http://127.0.0.1:9' }],
    paths: { '/a': { get: {} } },
  };
  writeFileSync(join(home, 'openapi.json'), JSON.stringify(openApi));
  const imported = await farebox('import', 'openapi.json', '--price', '0.05');
  assert.equal(imported.out, 'farebox.config.yaml: 1 route at 0.05 USD\n', imported.error);
  const config = readFileSync(join(home, 'farebox.config.yaml'), 'utf8');
  const [, schema = ''] = /\$schema=(\S+)/.exec(config) ?? [];
  assert.ok(existsSync(join(home, schema)), schema);
  const made = await farebox('new');
  assert.match(made.out, /^shop\.ts: a shop that sells square-root/, made.error);
  assert.match(
    (await farebox('mcp', 'setup')).out,
    /mcpServers[\s\S]*node_modules\/@farebox\/mcp-bridge\/dist\/main\.js/,
  );
  const unconfigured = await farebox('serve');
  assert.equal(unconfigured.code, 2, unconfigured.error);
  assert.match(unconfigured.error, /FAREBOX_SECRET: must be set/);
});

const laterLoad = (file: string) =>
  new RegExp(`import\\("[^"]*/${file.replaceAll('.', '\\.')}"\\)(?:\\.then\\(bundleNames\\))?`, 'g');

test('the server is one package of less than 40 MB, which needs no other and tells no folder of this machine', {
  skip: skipServer,
}, async () => {
  const home = join(folder, 'unpacked');
  unpack(archiveOf('shop'), workspaceOf('shop'), home);
  const shop = join(home, '@farebox/shop');
  const manifest = JSON.parse(readFileSync(join(shop, 'package.json'), 'utf8'));
  assert.deepEqual(
    Object.keys(manifest).filter((key) => /dependencies$/i.test(key)),
    [],
  );
  const files = readdirSync(shop, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
  assert.ok(bytes < 40_000_000, `${bytes} bytes`);
  for (const file of files) {
    assert.doesNotMatch(file, /\.tsx?$/);
    assert.ok(!readFileSync(file).includes(ROOT), file);
  }
  for (const source of ['src/FareboxVault.sol', 'test/Vault.t.sol'])
    assert.ok(existsSync(join(shop, 'contracts', source)), source);
  const chunks = files
    .filter((file) => file.endsWith('.js'))
    .map((file) => [file, readFileSync(file, 'utf8')]);
  for (const [file = '', text = ''] of chunks) {
    // A module of CommonJS has no export but `default` where it is loaded later, and who loads it asks for names.
    if (!/^export default require_\w+\(\);\s*$/m.test(text)) continue;
    const loads = chunks.flatMap(([, code = '']) => code.match(laterLoad(basename(file))) ?? []);
    assert.ok(
      loads.every((load) => load.endsWith('.then(bundleNames)')),
      `${file}: ${loads}`,
    );
  }
  const licences = readFileSync(join(shop, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
  assert.match(licences, /^fastify 5\.[\s\S]*^MIT License$/m);
  const program = join(shop, manifest.bin['farebox-serve']);
  for (const node of [process.execPath, programIn('node-22/bin/node') ?? process.execPath]) {
    const unconfigured = await run(node, [program], { cwd: home });
    assert.equal(unconfigured.code, 2, unconfigured.error);
    assert.match(unconfigured.error, /FAREBOX_SECRET: must be set/);
  }
});

test('the packed server serves, sells, and proves its books from the command line', {
  skip: skipServer,
}, async () => {
  // An empty project with the client and the server alone.
  const home = join(folder, 'server');
  installed(process.execPath, home, 'shop');
  const own = await openTestDatabase();
  const sources = await startUpstreams();
  const port = String(await freePort());
  // What is fetched when an audit is first asked for is here already.
  const compilers = join(ROOT, 'packages/catalogue/tools/compilers');
  link(compilers, join(home, `caches/farebox/compilers-${lockOf(compilers).slice(0, 16)}`));
  const env = {
    ...sourcesAt(sources.url),
    FAREBOX_HOME: join(home, 'settings'),
    FAREBOX_DATA_DIR: join(home, 'data'),
    XDG_CACHE_HOME: join(home, 'caches'),
    DATABASE_URL: own.url,
    FAREBOX_SECRET: 'a-secret-of-the-packed-server-and-of-nothing-else',
    PORT: port,
    TRIAL_ALLOW_INTERNAL: 'true',
    LOG_LEVEL: 'error',
  };
  const program = join(home, 'node_modules/.bin/farebox');
  const serving = spawn(process.execPath, [program, 'serve'], {
    cwd: home,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(serving, 'exit');
  try {
    const url = `http://127.0.0.1:${port}`;
    const isReady = () =>
      fetch(`${url}/health/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(
      'the packed server is ready',
      async () => (await isReady()) || serving.exitCode !== null,
      600_000,
    );
    const farebox = (...words: string[]) => run(process.execPath, [program, ...words], { cwd: home, env });
    assert.equal((await farebox('keys', 'trial')).code, 0);
    const bought = await farebox('call', 'ping', '--message', 'packed', '--json');
    assert.equal(JSON.parse(bought.out).output.echo, 'packed', bought.error);
    await showsItsFiles(url);
    const granting = ['--usd', '50', '--reason', 'to try the packed server', '--json'];
    const granted = await run(
      process.execPath,
      [join(home, 'node_modules/.bin/farebox-grant'), ...granting],
      { cwd: home, env },
    );
    assert.equal(granted.code, 0, granted.error);
    await worksBeside(url, JSON.parse(granted.out).apiKey);
    if (process.platform === 'linux' && process.arch === 'x64') {
      const [server] = readFileSync(`/proc/${serving.pid}/task/${serving.pid}/children`, 'utf8').split(' ');
      assert.match(
        readFileSync(`/proc/${server}/maps`, 'utf8'),
        /@farebox\/shop\/vendor\/secp256k1\/.*\.node/,
      );
    }
    const books = await farebox('books');
    assert.match(books.out, /The books balance\./, books.error);
  } finally {
    serving.kill('SIGINT');
    assert.equal((await ended)[0], 0);
    await Promise.all([own.close(), sources.stop()]);
  }
});

/** Asks for answers that are read from files as the server runs: guides, and pages with what they load. */
async function showsItsFiles(url: string): Promise<void> {
  for (const [path, holds] of [
    ['/docs/guides/x402', /<h1[^>]*>.*x402/],
    ['/docs/guides', /\/docs\/guides\/upgrading/],
    ['/docs/ping', /ping/],
    ['/assets/style.css', /woff2/],
  ] as const) {
    const answer = await fetch(url + path);
    assert.equal(answer.status, 200, path);
    assert.match(await answer.text(), holds, path);
  }
  const style = await (await fetch(`${url}/assets/style.css`)).text();
  for (const [, loaded] of style.matchAll(/url\("?([^")]+)"?\)/g))
    assert.equal((await fetch(new URL(String(loaded), `${url}/assets/`))).status, 200, loaded);
}

/** Buys answers that are not made in the server's own thread: a portfolio in another, and audits in a process, with a compiler and without. */
async function worksBeside(url: string, key: string): Promise<void> {
  const source = (type: string) => `pragma solidity ^0.8.20; contract Till { ${type} total; }`;
  for (const [path, input] of [
    [portfolio.path, portfolio.example],
    ['smart-contract-audit', { sourceCode: source('uint256') }],
    ['smart-contract-audit', { sourceCode: source('Missing') }],
  ] as const) {
    const answer = await fetch(`${url}/x402/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': key },
      body: JSON.stringify(input),
    });
    assert.equal(answer.status, 200, `${path}: ${await answer.clone().text()}`);
  }
}

const bin = (name: string) => join(modules ?? '', '.bin', name);

test('is bundled for the web without its wallets, keeps to its size, and buys from the bundle', {
  skip,
}, async () => {
  const limits = await run(process.execPath, [bin('size-limit')], {
    cwd: import.meta.dirname,
    env: { FAREBOX_PACKAGE: join(folder, 'node_modules/farebox') },
  });
  assert.equal(limits.code, 0, `${limits.out}${limits.error}`);
  const { build } = await moduleOf('esbuild/lib/main.js');
  const code = `
    import { createFarebox } from 'farebox';
    const farebox = createFarebox({ url: process.argv[2], apiKey: process.argv[3] });
    console.log((await farebox.call('ping', { message: 'bundled' })).echo);
  `;
  const outfile = join(folder, 'bundle.mjs');
  const options = { bundle: true, minify: true, format: 'esm', platform: 'browser', metafile: true, outfile };
  const { metafile } = await build({
    ...options,
    stdin: { contents: code, resolveDir: folder },
    logLevel: 'silent',
  });
  for (const file of Object.keys(metafile.inputs))
    assert.doesNotMatch(file, /(x402|mpp|node|tools|cli\/.*)\.js$/, 'what was not imported is not in it');
  const bought = await run(process.execPath, [outfile, server.url, await server.key('1')]);
  assert.deepEqual([bought.out, bought.code], ['bundled\n', 0], bought.error);
});

test('every archive passes the checkers of packages', { skip }, async () => {
  assert.equal(archives.length, packed.length);
  for (const each of archives) {
    const lint = await run(process.execPath, [bin('publint'), each, '--strict']);
    assert.equal(lint.code, 0, `${each}\n${lint.out}`);
    // They are programs, or sources of contracts, and nothing is imported from them.
    if (/farebox-(contracts|shop|mcp-bridge)-/.test(each)) continue;
    // The fare box has a hundred faces, which are all made in the same way.
    const some = each.includes('farebox-core-') ? ['--entrypoints', 'house', 'part', 'service/define'] : [];
    const types = await run(process.execPath, [bin('attw'), each, '--profile', 'esm-only', ...some]);
    assert.equal(types.code, 0, `${each}\n${types.out}`);
  }
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
