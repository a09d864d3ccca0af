/** The packed client in a project of its own, which has nothing else installed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { pack } from '../../../../scripts/pack.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const folder = mkdtempSync(join(tmpdir(), 'farebox-package-'));
const home = join(folder, 'node_modules/farebox');
const MAX_CORE_BYTES = 15_000;
let manifest: {
  exports: Record<string, string | { types: string; default: string }>;
  bin: Record<string, string>;
};

before(() => {
  const [archive = ''] = pack(['client'], join(folder, 'archives'));
  mkdirSync(home, { recursive: true });
  const done = spawnSync('tar', ['-xzf', archive, '--strip-components=1', '-C', home], { encoding: 'utf8' });
  assert.equal(done.status, 0, done.stderr);
  manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
});
after(() => rmSync(folder, { recursive: true, force: true }));

function run(code: string) {
  return spawnSync(process.execPath, ['--input-type=module', '-e', code], { cwd: folder, encoding: 'utf8' });
}

/** The files of the package that a file imports before anything is called, itself among them. */
function graphOf(file: string, known = new Set<string>()): Set<string> {
  if (known.has(file)) return known;
  known.add(file);
  const text = readFileSync(file, 'utf8');
  for (const [, name = ''] of text.matchAll(/^(?:import|export) (?:[^;]*? from )?'([^']+)'/gm)) {
    assert.ok(name.startsWith('.'), `${file} imports ${name}: a browser has only what is in the package`);
    graphOf(join(dirname(file), name), known);
  }
  return known;
}

const codeOf = (face: string) => {
  const found = manifest.exports[face];
  return join(home, typeof found === 'object' ? found.default : (found ?? ''));
};

test('its core, its wallets and its tools begin with nothing but the package, and the core is small', () => {
  for (const face of ['./x402', './mpp', './tools', './buying']) graphOf(codeOf(face));
  const core = [...graphOf(codeOf('.'))].map((file) => readFileSync(file, 'utf8')).join('\n');
  // As far as it can be known without a bundler, which shortens names too: without comments, indentation and imports of its own.
  const lines = core.replaceAll(/^\s*(\/\/.*|\/?\*.*|import .*)$/gm, '').replaceAll(/^\s+/gm, '');
  const bytes = gzipSync(lines).byteLength;
  assert.ok(bytes < MAX_CORE_BYTES, `${bytes} bytes`);
});

test('it runs without any other package, and says which one a wallet needs', () => {
  const done = run(`
    import { createFarebox, FareboxError } from 'farebox';
    import { fileStore } from 'farebox/node';
    import { x402Wallet } from 'farebox/x402';
    const farebox = createFarebox({ url: 'http://127.0.0.1:9', apiKey: 'fbx_live_test', limits: {}, store: fileStore('kept') });
    const error = await farebox.call('ping').catch((error) => error);
    console.log(error instanceof FareboxError, error.code, error.charged);
    console.log((await x402Wallet({ evm: '0x${'1'.repeat(64)}' }).catch((error) => error)).message);
  `);
  assert.equal(done.status, 0, done.stderr);
  assert.match(done.stdout, /^true SERVER_AWAY false\n.*npm install @x402\/core\n$/);
  const program = spawnSync(process.execPath, [join(home, manifest.bin.farebox ?? ''), '--help'], {
    encoding: 'utf8',
  });
  assert.equal(program.status, 0, program.stderr);
  assert.match(program.stdout, /farebox call SERVICE/);
});

test('its types tell what a service takes and answers', () => {
  for (const each of ['@types/node', 'undici-types']) {
    mkdirSync(dirname(join(folder, 'node_modules', each)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', each), join(folder, 'node_modules', each), 'junction');
  }
  const code = `
    import { createFarebox, fromOpenApi, type Services } from 'farebox';
    const farebox = createFarebox();
    const price: number | null = (await farebox.call('token-price', { symbol: 'ETH' })).price;
    await farebox.call('ping');
    const { receipt } = await farebox.buy('ping', { message: 'a' }, { id: 'one' });
    const usd: string | undefined = receipt?.amountUsd;
    const cost: '10.00' = null as never as Services['smart-contract-audit']['usd'];
    // @ts-expect-error: a field of another type
    await farebox.call('ping', { message: 5 });
    // @ts-expect-error: no such service
    await farebox.call('no-such-service');
    // @ts-expect-error: a required field is missing
    await farebox.call('wallet-risk');
    interface Paths {
      '/own/{id}': { post: { requestBody: { content: { 'application/json': { a: number } } }; responses: { 200: { content: { 'application/json': { b: string } } } } } };
    }
    const own = fromOpenApi<Paths>('https://farebox.example');
    const b: string = (await own.post('/own/{id}', { a: 1 }, { path: { id: 7 } })).output.b;
    // @ts-expect-error: no such route
    await own.get('/own/{id}');
    console.log(price, usd, cost, b);
  `;
  writeFileSync(join(folder, 'program.ts'), code);
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2024',
    strict: true,
    noEmit: true,
    types: ['node'],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }));
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const done = spawnSync(process.execPath, [tsc, '--project', folder], { encoding: 'utf8' });
  assert.equal(done.status, 0, done.stdout);
});
