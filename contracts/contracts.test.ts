/** The contracts' own tests, which forge runs: each of them is one here. They are compiled first, which takes a minute. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { before, test } from 'node:test';
import { keccak256, parseAbi } from 'viem';
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts';
import { SEED } from '../packages/sandbox/src/accounts.fixture.ts';
import { startAnvil } from '../packages/sandbox/src/chain/anvil.ts';
import { startEvmChain } from '../packages/sandbox/src/chain/chain.ts';
import { buildLending } from '../packages/sandbox/src/chain/lending/build.ts';
import { readManifest, readSnapshot } from '../packages/sandbox/src/chain/lending/snapshot.ts';
import { connect } from '../packages/sandbox/src/chain/node.ts';
import { deploy, NotDeployable, type Setup } from './deploy.ts';
import { buildAll, runForge } from './forge.ts';

/** What the tests of the contracts run on, and what is compared with the sandbox's. */
before(async () => assert(await buildAll()));

/** Of forge's report: what became of each test, by suite and name. */
type Report = Record<string, { test_results: Record<string, { status: string; reason: string | null }> }>;

test('the vault keeps its promises over the real protocols', async (t) => {
  const { output } = await runForge(['test', '--json', '--no-match-contract', 'GasMeasure'], {
    shows: 'nothing',
  });
  const start = output.indexOf('{');
  assert(start >= 0, `forge reported nothing: ${output.slice(-2_000)}`);
  const report: Report = JSON.parse(output.slice(start));
  let count = 0;
  for (const [suite, { test_results }] of Object.entries(report)) {
    for (const [name, { status, reason }] of Object.entries(test_results)) {
      count += 1;
      await t.test(`${suite.split(':').at(-1)}: ${name}`, () =>
        assert.equal(status, 'Success', reason ?? ''),
      );
    }
  }
  assert(count > 80, `only ${count} tests were run`);
});

test('what the sandbox has of lending protocols and vault is what these sources make', async () => {
  const { snapshot, manifest } = await buildLending();
  const remedy = 'write it anew with npm run sandbox:build-chain';
  assert.deepEqual(readManifest(), manifest, remedy);
  assert.deepEqual(readSnapshot(), snapshot, remedy);
});

test('a vault is deployed to the right chain alone: first tried, then written down, read back, and gone on with', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-deploy-'));
  const chain = await startEvmChain({ seed: SEED, stateDir: null });
  const other = await startAnvil({ stateDir: null, port: 0, chainId: 1 });
  t.after(async () => {
    await Promise.all([chain.stop(), other.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });
  const node = connect(chain.url);
  const key = generatePrivateKey();
  const { address: deployer } = privateKeyToAccount(key);
  await node.setBalance({ address: deployer, value: 10n ** 18n });
  const [owner, keeper, guardian, feeRecipient] = Array.from({ length: 4 }, () =>
    privateKeyToAddress(generatePrivateKey()),
  );
  assert(owner && keeper && guardian && feeRecipient);
  const setup: Setup = {
    ...{ chainId: 8453, name: 'Farebox USDC', symbol: 'fbUSDC', active: 'compound' },
    usdc: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    aavePool: '0xA238Dd80C259a72e81d7e4664a9801593F98d1c5',
    comet: '0xb125E6687d4313864e53df431d5425969c15Eb2F',
    metaMorpho: '0xbeeF010f9cb27031ad51e3333f9aF9C6B1228183',
    roles: { owner, keeper, guardian, feeRecipient },
    fees: { entryBps: 50, performanceBps: 1_500 },
    limits: { maxShareBps: 10_000, maxOfLiquidityBps: 5_000, cooldownSeconds: 21_600 },
  };
  const recordFile = join(folder, 'vault.deployed.json');
  let said = '';
  const run = (change: Partial<Parameters<typeof deploy>[0]> = {}) =>
    deploy({
      ...{ rpcUrl: chain.url, setup, key, send: false, recordFile },
      say(line) {
        said += `${line}\n`;
      },
      ...change,
    });
  const sent = () => node.getTransactionCount({ address: deployer });

  await t.test('what must not be deployed is refused', async () => {
    const refused = (change: Parameters<typeof run>[0], why: RegExp) =>
      assert.rejects(
        run({ send: true, ...change }),
        (error: Error) => error instanceof NotDeployable && why.test(error.message),
      );
    await refused({ rpcUrl: other.url }, /the node serves 1/);
    await refused({ setup: { ...setup, chainId: 1 } }, /the setup names 1/);
    const weth = '0x4200000000000000000000000000000000000006';
    await refused({ setup: { ...setup, usdc: weth } }, /is not USDC/);
    await refused({ setup: { ...setup, metaMorpho: weth } }, /metaMorpho does not answer/);
    const morpho = setup.metaMorpho;
    await refused({ setup: { ...setup, comet: morpho } }, /comet does not answer/);
    await refused({ setup: { ...setup, fees: { entryBps: 101, performanceBps: 0 } } }, /cannot be made/);
    const nobody = '0x0000000000000000000000000000000000000000';
    await refused(
      { setup: { ...setup, roles: { ...setup.roles, keeper: nobody } } },
      /keeper is not an address/,
    );
    assert.equal(await sent(), 0);
  });

  await t.test('without --send it is tried, and the addresses are those that it then has', async () => {
    const plan = await run();
    assert.match(said, /Nothing was sent/);
    assert.equal(await sent(), 0);
    assert(!existsSync(recordFile));

    // The first transaction is signed and written down, and the process dies before it is sent.
    const proxied = dying(chain.url, 'eth_sendRawTransaction');
    await assert.rejects(run({ send: true, rpcUrl: await proxied.url }));
    proxied.close();
    assert.equal(JSON.parse(readFileSync(recordFile, 'utf8')).contracts[0].block, null);
    assert.equal(await sent(), 0);

    const done = await run({ send: true });
    assert.equal(await sent(), 2);
    for (const [index, each] of done.contracts.entries()) {
      assert.equal(each.address, plan.contracts[index]?.address);
      assert.equal(keccak256((await node.getCode({ address: each.address })) ?? '0x'), each.codeHash);
    }
    assert.deepEqual(JSON.parse(readFileSync(recordFile, 'utf8')), JSON.parse(JSON.stringify(done)));
    assert(!readFileSync(recordFile, 'utf8').includes(key.slice(2)) && !said.includes(key.slice(2)));
    const [vault, helper] = done.contracts;
    assert(vault && helper);
    const ask = {
      abi: parseAbi(['function keeper() view returns (address)', 'function vault() view returns (address)']),
    };
    assert.equal(await node.readContract({ ...ask, address: vault.address, functionName: 'keeper' }), keeper);
    assert.equal(
      await node.readContract({ ...ask, address: helper.address, functionName: 'vault' }),
      vault.address,
    );
  });

  await t.test('done again, nothing more is sent; another setup or key is another deployment', async () => {
    await run({ send: true });
    assert.equal(await sent(), 2);
    await assert.rejects(
      run({ send: true, setup: { ...setup, name: 'Other' } }),
      /another setup or another key/,
    );
    await assert.rejects(run({ send: true, key: generatePrivateKey() }), /another setup or another key/);
  });
});

/** A way to a node that breaks at one method. */
function dying(to: string, method: string) {
  const server = createServer(async (request, response) => {
    const body = await text(request);
    if (body.includes(`"${method}"`)) return void request.socket.destroy();
    const answer = await fetch(to, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    response.setHeader('content-type', 'application/json');
    response.end(await answer.text());
  }).listen(0, '127.0.0.1');
  return {
    url: once(server, 'listening').then(() => {
      const address = server.address();
      assert(typeof address === 'object' && address !== null);
      return `http://127.0.0.1:${address.port}`;
    }),
    close: () => server.close(),
  };
}

test('the contracts are formatted', async () => {
  const { exitCode, output } = await runForge(
    ['fmt', '--check', 'contracts/src', 'contracts/test', 'contracts/sandbox'],
    { shows: 'nothing' },
  );
  assert.equal(exitCode, 0, output);
});
