/** `npm run probe` against the sandbox's doubles of the sources, and with `--live`, which passes the doubles by. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { DATA_LIST_NAMES, definitionOf } from '../../../../packages/catalogue/src/data-lists/definitions.ts';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { EVM_CHAIN_NAMES } from '../../../../packages/catalogue/src/upstreams/adapters/evm-chains.ts';
import { SOURCES } from '../../../../packages/catalogue/src/upstreams/declared.ts';
import type { UpstreamDefinition } from '../../../../packages/catalogue/src/upstreams/define.ts';
import {
  UPSTREAM_NAMES,
  UPSTREAMS,
  type UpstreamName,
} from '../../../../packages/catalogue/src/upstreams/index.ts';
import { upstreamBaseUrlVariable } from '../../../../packages/core/src/words/upstream-variables.ts';
import { SEED } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { startSolana } from '../../../../packages/sandbox/src/solana/solana.ts';
import {
  UPSTREAM_NAMES as DOUBLE_NAMES,
  SANDBOX_KEYS,
  SANDBOX_SALES,
} from '../../../../packages/sandbox/src/upstreams/server.ts';
import { newWallet, startScriptedNode } from '../../../../packages/yield/src/solana/scripted-node.fixture.ts';
import { programOf } from '../programs.fixture.ts';
import { jsonOf, startUpstreams } from '../server.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const RUN = join(ROOT, 'packages/sandbox/src/run.ts');
const COMMAND = relative(ROOT, programOf('commands/probe'));
const DOUBLES = ['hackernews', 'binance', 'frankfurter', 'kraken', 'firms', 'kalshi'] as const;
/** No name is known, so that a test asks nobody in the world. */
const NO_NAMES = `data:text/javascript,import dns from 'node:dns';
  dns.lookup = (name, options, told) => queueMicrotask(() => (told ?? options)(Object.assign(new Error(name), { code: 'ENOTFOUND' })));`;
const folder = mkdtempSync(join(tmpdir(), 'farebox-probe-'));

let doubles: Awaited<ReturnType<typeof startUpstreams>>;
before(async () => {
  doubles = await startUpstreams();
});
beforeEach(async () => {
  await Promise.all(
    ['faults', 'requests'].map((what) => fetch(`${doubles.url}/__control/${what}`, { method: 'DELETE' })),
  );
});
after(async () => {
  await doubles.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** What the command prints, by source, and its exit code. */
async function probe(environment: Record<string, string>, ...args: string[]) {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--import', NO_NAMES, RUN, COMMAND, ...args],
    {
      env: {
        ...SURROUNDINGS,
        FAREBOX_DATA_DIR: folder,
        SOURCE_TERMS_ACCEPTED: 'binance,kraken',
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk) => (out += chunk));
  child.stderr.on('data', (chunk) => (err += chunk));
  const [code] = await once(child, 'close');
  const lines = new Map(
    out
      .trimEnd()
      .split('\n')
      .map((line) => [line.split(' ')[0] ?? '', line]),
  );
  const line = (name: UpstreamName) => lines.get(name) ?? assert.fail(`no line on ${name}: ${out}${err}`);
  return { code, lines, line, out, err };
}

const at = (name: UpstreamName) => `${doubles.url}/${name}`;
/** These doubles, and no other source. */
const configured = () =>
  Object.fromEntries(
    UPSTREAM_NAMES.map((name) => [
      upstreamBaseUrlVariable(name),
      DOUBLES.some((each) => each === name) ? at(name) : 'none',
    ]),
  );
const strike = (upstream: string, fault: string) =>
  fetch(`${doubles.url}/__control/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ upstream, fault }),
  });

test('says of each source whether its reply fits, and what a source that is not asked wants', async () => {
  const { code, line, lines, err } = await probe(configured());
  assert.equal(code, 0, err);
  assert.deepEqual([...lines.keys()], UPSTREAM_NAMES);
  for (const name of ['hackernews', 'binance', 'frankfurter', 'kraken'] as const)
    assert.match(line(name), new RegExp(`^${name} +fits +\\d+ ms {2}${at(name)}$`));
  assert.match(
    line('firms'),
    /^firms +not configured: set UPSTREAM_FIRMS_API_KEY \(a key is from https:\/\/firms\.modaps\.eosdis\.nasa\.gov\/api\/map_key\/\)$/,
  );
  assert.match(line('kalshi'), /^kalshi +not used, .*\(SOURCE_TERMS_ACCEPTED=kalshi\)/);
  assert.match(line('polygon'), /^polygon +not configured$/);
});

test('every double of the sandbox fits, and a source without one is what a chain is', async () => {
  const { code, line, out } = await probe({
    ...Object.fromEntries(
      UPSTREAM_NAMES.map((name) => [
        upstreamBaseUrlVariable(name),
        DOUBLE_NAMES.includes(name) ? at(name) : 'none',
      ]),
    ),
    ...SANDBOX_KEYS,
    ...SANDBOX_SALES,
    AI_MODEL: 'sandbox-extractive-1',
    SOURCE_TERMS_ACCEPTED: UPSTREAM_NAMES.join(','),
  });
  assert.equal(code, 0, out);
  const chains: string[] = [...EVM_CHAIN_NAMES, 'solana'];
  for (const name of UPSTREAM_NAMES)
    assert.match(line(name), chains.includes(name) ? / +not configured$/ : / +fits +\d+ ms /);
});

test('whatever a service asks is probed, and the lists too', async () => {
  const asked = new Set([
    ...(await loadServices()).flatMap(({ needs, uses }) => [...needs.flat(), ...uses]),
    ...DATA_LIST_NAMES.map((name) => definitionOf(name).upstream),
  ]);
  assert.deepEqual([...asked].sort(), UPSTREAM_NAMES, 'nothing is probed that nobody asks, either');
});

test('one whose reply does not fit, one that is silent and one that fails: exit code 1, and what is wrong with each', async () => {
  await Promise.all([strike('binance', 'html'), strike('frankfurter', 'hang'), strike('kraken', 'status')]);
  const { code, line } = await probe({ ...configured(), ...SANDBOX_KEYS });
  assert.equal(code, 1);
  assert.match(
    line('binance'),
    new RegExp(`^binance +UNFIT +${at('binance')} {2}.*not have the documented shape \\(not JSON\\)$`),
  );
  assert.match(
    line('frankfurter'),
    new RegExp(`^frankfurter +SILENT +${at('frankfurter')} {2}.*no answer within \\d+ ms$`),
  );
  assert.match(line('kraken'), new RegExp(`^kraken +FAILS +${at('kraken')} {2}.*answered 500$`));
  for (const name of ['hackernews', 'firms'] as const)
    assert.match(line(name), new RegExp(`^${name} +fits `), 'a key that it wants is there');
});

test('each node of the yield portal on Solana is asked all that the portal needs, and one that fails is told', async () => {
  const chain = await startSolana({ stateDir: null, seed: SEED });
  const silent = await startScriptedNode(await newWallet());
  silent.state.fault = 'cut';
  try {
    const { code, line, out, err } = await probe({
      ...configured(),
      UPSTREAM_SOLANA_BASE_URL: chain.url,
      SOLANA_YIELD_TREASURY: await newWallet(),
      SOLANA_YIELD_SINCE_SLOT: '0',
      SOLANA_YIELD_FURTHER_NODES: silent.url,
    });
    const told = [...out.matchAll(/^solana-yield node (\d) +(\w+) +(fits|FAILS)/gm)].map(
      ([, node, method, verdict]) => ({ node, method, verdict }),
    );
    const of = (node: string) => told.filter((each) => each.node === node);
    assert(of('1').length >= 12, out + err);
    assert.deepEqual(
      of('2').map(({ method }) => method),
      of('1').map(({ method }) => method),
    );
    assert.equal(of('1').find(({ method }) => method === 'getMultipleAccounts')?.verdict, 'fits');
    assert(of('2').every(({ verdict }) => verdict === 'FAILS'));
    assert(!UPSTREAM_NAMES.some((name) => /UNFIT|SILENT|FAILS/.test(line(name))), out);
    assert.equal(code, 1, 'though every source fits');
  } finally {
    await Promise.all([chain.stop(), silent.stop()]);
  }
});

test('with --live every source is asked at its public address and no double is, whatever a sandbox has noted', async () => {
  const noted = { ...configured(), ...SANDBOX_KEYS, FAREBOX_DATA_DIR: folder };
  writeFileSync(
    join(folder, 'world.json'),
    JSON.stringify({ pid: 0, environment: noted, secrets: ['FAREBOX_SECRET'] }),
  );
  // One that is configured is passed by as well.
  const own = {
    [upstreamBaseUrlVariable('kraken')]: at('kraken'),
    SOURCE_TERMS_ACCEPTED: UPSTREAM_NAMES.join(','),
  };
  const { code, line } = await probe(own, '--live');
  assert.equal(code, 1);
  for (const name of UPSTREAM_NAMES) {
    const { baseUrl, key } = UPSTREAMS[name] as unknown as UpstreamDefinition<unknown>;
    if (baseUrl === null)
      assert.ok(line(name).includes(` not configured: set ${upstreamBaseUrlVariable(name)}`), line(name));
    else if (key === 'required')
      assert.match(line(name), /set UPSTREAM_\w+_API_KEY/, 'no stand-in’s key is sent');
    else assert.ok(line(name).includes(`FAILS   ${baseUrl}  `), line(name));
  }
  const { requests } = await jsonOf(fetch(`${doubles.url}/__control/requests`));
  assert.deepEqual([...new Set(Object.values(requests))], [0]);
});

test('the table of variables says of each key where it is to be had', () => {
  const keyed = UPSTREAM_NAMES.map(
    (name) => UPSTREAMS[name] as unknown as UpstreamDefinition<unknown>,
  ).filter(
    // The operator's own model has its key from where the operator has it.
    ({ key, baseUrl }) => key !== 'none' && baseUrl !== null,
  );
  assert(keyed.length >= 6);
  for (const { name, keyFrom = '' } of keyed) {
    const variable = SOURCES.variables[`UPSTREAM_${name.toUpperCase()}_API_KEY`];
    assert.match(keyFrom, /^https:\/\/\S+$/, name);
    assert(variable?.describe.includes(keyFrom), variable?.describe);
  }
});
