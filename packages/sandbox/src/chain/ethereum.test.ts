/** The chain with Ethereum's id, which is only read, and the keeper process that runs several nodes. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPublicClient, http, parseAbi, parseEther } from 'viem';
import { mainnet } from 'viem/chains';
import { isAlive } from '../../../process/src/is-alive.mjs';
import { ETHEREUM, TOKEN_MESSENGER } from './addresses.ts';
import { startAnvil } from './anvil.ts';
import { type ReadChain, startEthereum } from './chain.ts';
import { ethPriceUsd } from './market-price.ts';
import { connect } from './node.ts';
import { NodeKeeper } from './node-keeper.ts';
import { runningOn } from './state-files.ts';
import { tradeToMarket } from './uniswap.ts';

let folder: string;
let chain: ReadChain;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-ethereum-'));
  chain = await startEthereum({ stateDir: join(folder, 'kept') });
});
after(async () => {
  await chain.stop();
  rmSync(folder, { recursive: true, force: true });
});

const reader = () => createPublicClient({ chain: mainnet, transport: http(chain.url, { retryCount: 0 }) });

/** How far a pool's quote for 1 WETH is from the market's price, as a fraction of that price; negative below it. */
async function awayFromMarket(fee: number): Promise<number> {
  const { result } = await reader().simulateContract({
    address: '0x61fFE014bA17989E743c5F6cB21bF9697530B21e',
    abi: parseAbi([
      'struct Query { address tokenIn; address tokenOut; uint256 amountIn; uint24 fee; uint160 sqrtPriceLimitX96; }',
      'function quoteExactInputSingle(Query query) returns (uint256, uint160, uint32, uint256)',
    ]),
    functionName: 'quoteExactInputSingle',
    args: [
      {
        tokenIn: '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2',
        tokenOut: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
        amountIn: parseEther('1'),
        fee,
        sqrtPriceLimitX96: 0n,
      },
    ],
  });
  return Number(result[0]) / 1e6 / ethPriceUsd(Date.now()) - 1;
}

test('the chain is Ethereum to a reader: code, domains and pools are where Ethereum has them', async () => {
  const client = reader();
  assert.equal(await client.getChainId(), 1);
  const usdc = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
  const abi = parseAbi([
    'function DOMAIN_SEPARATOR() view returns (bytes32)',
    'function usdc() view returns (address)',
    'function localDomain() view returns (uint32)',
    'function getPool(address, address, uint24) view returns (address)',
    'function token0() view returns (address)',
  ]);
  // What wallets compute for USDC on Ethereum.
  assert.equal(
    await client.readContract({ address: usdc, abi, functionName: 'DOMAIN_SEPARATOR' }),
    '0x06c37168a7db5138defc7866392bb87a741f9b3d104deb5094588ce041cae335',
  );
  const [burns, domain] = await client.multicall({
    contracts: [
      { address: TOKEN_MESSENGER, abi, functionName: 'usdc' },
      { address: TOKEN_MESSENGER, abi, functionName: 'localDomain' },
    ],
  });
  assert.deepEqual([burns.result, domain.result], [usdc, 0]);
  const pools = {
    500: '0x88e6A0c2dDD26FEEb64F039a2c41296FcB3f5640',
    3000: '0x8ad599c3A0ff1De082011EFDDc58f1908eb6e6D8',
  } as const;
  for (const [fee, pool] of Object.entries(pools)) {
    const found = await client.readContract({
      address: '0x1F98431c8aD98523631AE4a59f267346ea31F984',
      abi,
      functionName: 'getPool',
      args: [ETHEREUM.weth, usdc, Number(fee)],
    });
    assert.equal(found, pool);
    // Token 0 is USDC here; on Base it is WETH.
    assert.equal(await client.readContract({ address: pool, abi, functionName: 'token0' }), usdc);
    assert(Math.abs(await awayFromMarket(Number(fee))) < 0.01);
  }
});

test('a restart keeps its blocks, and brings the pools back to the market from either side', async () => {
  for (const factor of [1.1, 0.9]) {
    const node = connect(chain.url, ETHEREUM);
    await tradeToMarket(node, factor * ethPriceUsd(Date.now()));
    const away = await awayFromMarket(3_000);
    assert(Math.abs(away - (factor - 1)) < 0.01, String(away));
    const { number, hash } = await reader().getBlock();
    await chain.stop();
    chain = await startEthereum({ stateDir: join(folder, 'kept') });
    assert.equal((await reader().getBlock({ blockNumber: number })).hash, hash);
    for (const fee of [500, 3_000]) assert(Math.abs(await awayFromMarket(fee)) < 0.01);
  }
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(10);
}

test('one process keeps several nodes: each ends by itself, all end with it, and it ends with the last', async () => {
  const keeper = new NodeKeeper();
  const start = (name: string, port = 0) =>
    startAnvil({ stateDir: join(folder, name), port, chainId: 31_337 }, keeper);
  const answers = async (url: string) =>
    fetch(url, { method: 'POST', body: '{}' }).then(
      () => true,
      () => false,
    );
  const [one, two] = await Promise.all([start('one'), start('two')]);
  const { keeperPid } = runningOn(join(folder, 'one')) ?? assert.fail();
  assert.equal(runningOn(join(folder, 'two'))?.keeperPid, keeperPid);

  await one.stop();
  assert.deepEqual([await answers(one.url), await answers(two.url)], [false, true]);
  assert.equal(runningOn(join(folder, 'one')), null);
  await assert.rejects(start('three', Number(new URL(two.url).port)), /did not start: .*in use/is);
  const again = await start('one');
  assert.equal(
    runningOn(join(folder, 'one'))?.keeperPid,
    keeperPid,
    'a folder is free as soon as its node ended',
  );

  // When one node is killed, the others run on.
  process.kill(runningOn(join(folder, 'one'))?.node?.pid ?? assert.fail(), 'SIGKILL');
  assert.match(await again.died, /its node ended with SIGKILL/);
  assert(await answers(two.url));
  await two.stop();
  assert(!isAlive(keeperPid), 'nobody is left to keep');

  const [three, four] = await Promise.all([start('one'), start('two')]);
  const next = runningOn(join(folder, 'one'))?.keeperPid ?? assert.fail();
  process.kill(next, 'SIGKILL');
  assert.deepEqual(
    await Promise.all([three.died, four.died]),
    Array(2).fill('its process ended with SIGKILL'),
  );
  await until(() => !isAlive(next));
  while ((await answers(three.url)) || (await answers(four.url))) await sleep(10);
});
