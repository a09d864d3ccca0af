import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { configuredShop } from './configured.ts';

test('what no call would keep to is refused at the start, with its route', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'configured-'));
  const file = join(folder, 'farebox.config.yaml');
  try {
    for (const [sale, why] of [
      ['metered: { unit: bytes, price: "0.01", ceiling: "1", unmeasured: "0.5" }', 'metered'],
      ['price: "0.01", freeCallsPerDay: 5', 'freeCallsPerDay'],
      ['price: "0.01", quota: { callsPerMinute: 5 }', 'quota'],
      ['price: "0.01", quota: { callsPerDay: 5 }', 'quota'],
      ['price: "0.01", accounts: { "7": { price: "0.005" } }', 'accounts'],
    ] as const) {
      await writeFile(
        file,
        `upstreams: { api: { url: "http://127.0.0.1:9", prefix: "/" } }
routes: { "POST /m": { upstream: api, ${sale} } }
`,
      );
      const shop = configuredShop({ file: () => file, environment: {}, version: '0', nowMs: () => 0 });
      await assert.rejects(shop.services([]), new RegExp(`POST /m: .*${why} yet`));
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
