import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTestDatabase } from './database.fixture.ts';
import { startTestServer, startUpstreams } from './server.fixture.ts';
import { startTestChain } from './chain.fixture.ts';
import { loadServices } from '../src/services/registry.ts';
test('e2e', async () => {
  const [database, upstreams, chain, services] = await Promise.all([openTestDatabase(), startUpstreams(), startTestChain(), loadServices()]);
  const server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url, environment: { UPSTREAM_BASE_BASE_URL: chain.url } });
  try {
    const key = await server.key('100');
    for (const p of ['gas-price-oracle','token-metadata','dex-liquidity','batch-quote','approval-manager']) {
      const s = services.find((x) => x.path === p);
      assert(s);
      for (const body of [s.example, {}, { limit: -1 }, { tokenAddress: 7, chain: [] }, { walletAddress: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', chain: 'base', action: 'list' }, { tokens: ['WETH'], chain: 'base' }]) {
        const r = await server.call(p, key, body);
        console.log(p, JSON.stringify(body).slice(0, 60), r.status, (await r.text()).slice(0, body === s.example ? 2500 : 250));
      }
    }
  } finally { await server.close(); await chain.stop(); await upstreams.stop(); await database.close(); }
});
