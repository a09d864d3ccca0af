/** The contracts' own tests, which forge runs: each of them is one here. They are compiled first, which takes a minute. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { before, test } from 'node:test';
import { type Address, encodeFunctionData, type Hex, keccak256, parseAbi } from 'viem';
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts';
import { SEED } from '../packages/sandbox/src/accounts.fixture.ts';
import { BUILDERS } from '../packages/sandbox/src/chain/accounts.ts';
import { startAnvil } from '../packages/sandbox/src/chain/anvil.ts';
import { startEvmChain } from '../packages/sandbox/src/chain/chain.ts';
import { fund } from '../packages/sandbox/src/chain/faucet.ts';
import { AAVE_CONFIGURATOR } from '../packages/sandbox/src/chain/lending/addresses.ts';
import { buildLending } from '../packages/sandbox/src/chain/lending/build.ts';
import { readManifest, readSnapshot } from '../packages/sandbox/src/chain/lending/snapshot.ts';
import { connect, transact } from '../packages/sandbox/src/chain/node.ts';
import { deploy } from './deploy.ts';
import { buildAll, runForge } from './forge.ts';
import { NotDeployable, readSetup, type Setup } from './setup.ts';

const DRILLS = parseAbi([
  'function setReservePause(address asset, bool paused)',
  'function sandboxPause(bool supply, bool withdraw, bool transfer)',
]);

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
    chainId: 8453,
    name: 'Farebox USDC',
    symbol: 'fbUSDC',
    active: 'compound',
    usdc: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    aavePool: '0xA238Dd80C259a72e81d7e4664a9801593F98d1c5',
    comet: '0xb125E6687d4313864e53df431d5425969c15Eb2F',
    metaMorpho: '0xbeeF010f9cb27031ad51e3333f9aF9C6B1228183',
    roles: { owner, keeper, guardian, feeRecipient },
    fees: { entryBps: 50, performanceBps: 1_500 },
    limits: { maxShareBps: 6_000, maxOfLiquidityBps: 5_000, cooldownSeconds: 21_600 },
  };
  const recordFile = join(folder, 'vault.deployed.json');
  let said = '';
  const run = (change: Partial<Parameters<typeof deploy>[0]> = {}) =>
    deploy({
      rpcUrl: chain.url,
      setup,
      key,
      send: false,
      recordFile,
      say(line) {
        said += `${line}\n`;
      },
      ...change,
    });
  const sent = () => node.getTransactionCount({ address: deployer });

  const refused = (change: Parameters<typeof run>[0], why: RegExp) =>
    assert.rejects(
      run({ send: true, ...change }),
      (error: Error) => error instanceof NotDeployable && why.test(error.message),
      String(why),
    );
  const nobody = '0x0000000000000000000000000000000000000000';
  const weth = '0x4200000000000000000000000000000000000006';

  await t.test('what must not be deployed is refused: another chain, token or lender', async () => {
    await refused({ rpcUrl: other.url }, /the node serves 1/);
    await refused({ setup: { ...setup, chainId: 1 } }, /the setup names 1/);
    await refused({ setup: { ...setup, usdc: weth } }, /is not USDC/);
    await refused({ setup: { ...setup, metaMorpho: weth } }, /metaMorpho does not answer/);
    await refused({ setup: { ...setup, comet: setup.metaMorpho } }, /comet does not answer/);
    // A vault of ours, and a Morpho Vault V2, are ERC-4626 vaults of USDC and no MetaMorpho.
    await refused({ setup: { ...setup, metaMorpho: chain.vault } }, /is no MetaMorpho.*Morpho Vault V2/);
    await refused(
      { setup: { ...setup, metaMorpho: chain.vault, vouchedFor: ['metaMorpho'] } },
      /is no MetaMorpho/,
    );
    assert.equal(await sent(), 0);
  });

  await t.test('a lender that nobody published takes a word, and is proven all the same', async () => {
    // The same code at another address: it has no market, so it takes nothing.
    const copy: Address = '0x00000000000000000000000000000000000c0ffe';
    const code = await node.getCode({ address: setup.metaMorpho });
    await node.setCode({ address: copy, bytecode: code ?? '0x' });
    await refused({ setup: { ...setup, metaMorpho: copy } }, /none of those that are published.*vouchedFor/);
    await refused(
      { setup: { ...setup, metaMorpho: copy, vouchedFor: ['metaMorpho'] } },
      /morpho.*(would not take a deposit|would not)/,
    );
    assert.equal(await sent(), 0);
  });

  await t.test(
    'roles that could not act, contracts that nobody vouches for, and a keeper who is owner too',
    async () => {
      const withRole = (change: Partial<Setup['roles']>, more: Partial<Setup> = {}) => ({
        setup: { ...setup, roles: { ...setup.roles, ...change }, ...more },
      });
      await refused(withRole({ keeper: nobody }), /keeper is not an address/);
      await refused(withRole({ owner: setup.usdc }), /owner .* nobody who could act/);
      await refused(withRole({ feeRecipient: setup.comet }), /feeRecipient .* nobody who could act/);
      await refused(
        withRole({ guardian: '0x0000000000000000000000000000000000000004' }),
        /guardian .* nobody/,
      );
      await refused(withRole({ keeper: chain.vault }), /keeper is a contract/);
      await refused(withRole({ owner: chain.vault }), /owner .* is a contract.*vouchedFor/);
      await refused(withRole({ keeper: owner }), /keeper and owner are one/);
      await refused(withRole({ keeper: guardian }), /keeper and guardian are one/);
      said = '';
      await run(withRole({ owner: chain.permitDeposit }, { vouchedFor: ['owner'] }));
      assert.match(said, /owner is a contract/);
      assert.equal(await sent(), 0);
    },
  );

  await t.test('fees and limits beyond what is sane', async () => {
    const limited = (limits: Partial<Setup['limits']>, more: Partial<Setup> = {}) => ({
      setup: { ...setup, limits: { ...setup.limits, ...limits }, ...more },
    });
    await refused({ setup: { ...setup, fees: { entryBps: 101, performanceBps: 0 } } }, /fees.entryBps/);
    await refused(
      { setup: { ...setup, fees: { entryBps: 0, performanceBps: 2_501 } } },
      /fees.performanceBps/,
    );
    await refused({ setup: { ...setup, fees: { entryBps: 0.5, performanceBps: 0 } } }, /fees.entryBps/);
    await refused(limited({ maxShareBps: 3_333 }), /sum to 99\.99 %/);
    await refused(limited({ maxShareBps: 6_001 }), /maxShareBps is above 6000.*vouchedFor/);
    await refused(limited({ maxShareBps: 10_001 }, { vouchedFor: ['maxShareBps'] }), /maxShareBps must be/);
    await refused(limited({ maxOfLiquidityBps: 10_000 }), /maxOfLiquidityBps is above/);
    await refused(limited({ maxOfLiquidityBps: 0 }), /maxOfLiquidityBps must be/);
    await refused(limited({ cooldownSeconds: 0 }), /cooldownSeconds must be/);
    await refused(limited({ cooldownSeconds: 8 * 86_400 }), /cooldownSeconds is above/);
    await run(limited({ maxShareBps: 10_000 }, { vouchedFor: ['maxShareBps'] }));
    await run(limited({ maxShareBps: 3_334 }));
    const file = join(folder, 'short.json');
    const { limits: _, ...short } = setup;
    writeFileSync(file, JSON.stringify(short));
    assert.deepEqual(readSetup(file).limits, setup.limits, 'what it leaves out is what is usual');
    assert.equal(await sent(), 0);
  });

  await t.test(
    'a protocol that takes nothing, hands nothing over or pays nothing out is found before',
    async () => {
      const drills: [RegExp, Address, Address, Hex][] = [
        [
          /aave would not take a deposit/,
          ...([BUILDERS.lender.address, AAVE_CONFIGURATOR] as const),
          encodeFunctionData({ abi: DRILLS, functionName: 'setReservePause', args: [setup.usdc, true] }),
        ],
        [
          /compound would not take a deposit/,
          ...([BUILDERS.borrower.address, setup.comet] as const),
          encodeFunctionData({ abi: DRILLS, functionName: 'sandboxPause', args: [true, false, false] }),
        ],
        [
          /hand over a part in kind: NotHandedOver/,
          ...([BUILDERS.borrower.address, setup.comet] as const),
          encodeFunctionData({ abi: DRILLS, functionName: 'sandboxPause', args: [false, false, true] }),
        ],
        [
          /pay the rest out: NotEnoughLiquidity/,
          ...([BUILDERS.borrower.address, setup.comet] as const),
          encodeFunctionData({ abi: DRILLS, functionName: 'sandboxPause', args: [false, true, false] }),
        ],
      ];
      for (const [why, from, to, data] of drills) {
        const id = await node.snapshot();
        await transact(node, { from, to, data });
        await refused({}, why);
        await node.revert({ id });
      }
      assert.equal(await sent(), 0);
    },
  );

  await t.test('who cannot pay the seed makes no vault', async () => {
    await refused({}, /holds 0 units of USDC, and the vault’s seed takes 1000000/);
    assert.equal(await sent(), 0);
    await fund(chain.url, deployer, { usdcMicros: 1_000_000n, ethWei: 10n ** 18n });
  });

  await t.test('without --send it is tried, and the addresses are those that it then has', async () => {
    said = '';
    const plan = await run();
    assert.match(said, /Nothing was sent/);
    assert.match(said, /Proven in a simulation/);
    assert.match(said, /Steakhouse USDC.*curator 0x/);
    assert.match(said, /24 h after they were announced, and keeps 10 %/);
    assert.equal(await sent(), 0);
    assert(!existsSync(recordFile));

    // The first transaction is signed and written down, and the process dies before it is sent.
    const proxied = dying(chain.url, 'eth_sendRawTransaction');
    await assert.rejects(run({ send: true, rpcUrl: await proxied.url }));
    proxied.close();
    assert.equal(JSON.parse(readFileSync(recordFile, 'utf8')).contracts[0].block, null);
    assert.equal(await sent(), 0);

    // And it dies again, after both are made: before the seed is in.
    const later = dying(chain.url, 'eth_sendRawTransaction', 3);
    await assert.rejects(run({ send: true, rpcUrl: await later.url }));
    later.close();
    assert.equal(await sent(), 3);
    const done = await run({ send: true });
    assert.equal(await sent(), 4, 'two contracts, an approval and the seed');
    for (const [index, each] of done.contracts.entries()) {
      assert.equal(each.address, plan.contracts[index]?.address);
      assert.equal(keccak256((await node.getCode({ address: each.address })) ?? '0x'), each.codeHash);
    }
    assert.deepEqual(JSON.parse(readFileSync(recordFile, 'utf8')), JSON.parse(JSON.stringify(done)));
    assert(!readFileSync(recordFile, 'utf8').includes(key.slice(2)) && !said.includes(key.slice(2)));
    const [vault, helper] = done.contracts;
    assert(vault && helper);
    const ask = {
      abi: parseAbi([
        'function keeper() view returns (address)',
        'function vault() view returns (address)',
        'function seeded() view returns (bool)',
        'function balanceOf(address account) view returns (uint256)',
      ]),
    };
    assert.equal(await node.readContract({ ...ask, address: vault.address, functionName: 'seeded' }), true);
    const dead: Address = '0x000000000000000000000000000000000000dEaD';
    const seed = await node.readContract({
      ...ask,
      address: vault.address,
      functionName: 'balanceOf',
      args: [dead],
    });
    assert(seed > 999n * 10n ** 9n && seed <= 10n ** 12n, `${seed}, the shares of 1 USDC, have no key`);
    assert.equal(await node.readContract({ ...ask, address: vault.address, functionName: 'keeper' }), keeper);
    assert.equal(
      await node.readContract({ ...ask, address: helper.address, functionName: 'vault' }),
      vault.address,
    );
  });

  await t.test('done again, nothing more is sent; another setup or key is another deployment', async () => {
    await run({ send: true });
    assert.equal(await sent(), 4);
    await assert.rejects(
      run({ send: true, setup: { ...setup, name: 'Other' } }),
      /another setup or another key/,
    );
    await assert.rejects(run({ send: true, key: generatePrivateKey() }), /another setup or another key/);
  });
});

/** A way to a node that breaks at one method, after it worked so many times. */
function dying(to: string, method: string, times = 0) {
  let left = times;
  const server = createServer(async (request, response) => {
    const body = await text(request);
    if (body.includes(`"${method}"`)) {
      if (left === 0) return void request.socket.destroy();
      left -= 1;
    }
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
