import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { defineService } from '@farebox/core/service/define';
import { answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import { configuredShop } from './configured.ts';

const folder = mkdtempSync(join(tmpdir(), 'configured-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const OWN = ['nickel', 'dime'].map((path) =>
  defineService({
    path,
    name: path,
    tag: 'Coins',
    priceUsd: '0.05',
    mpp: true,
    summary: 'For tests.',
    input: z.object({}),
    output: z.object({}),
    example: {},
    run: async () => answer({}, { method: 'None.' }),
  }),
);

function shopOf(text: string | null) {
  const file = text === null ? null : join(folder, 'farebox.config.yaml');
  if (file !== null && text !== null) writeFileSync(file, text);
  return configuredShop({ file, own: OWN, tags: {}, environment: {}, version: '0', nowMs: () => 0 });
}

test('a shop without a file sells what it has', async () => {
  const shop = await shopOf(null);
  assert.deepEqual([shop.services, shop.withheld, shop.tags, shop.routes], [OWN, [], {}, null]);
});

test('the file sets prices of services, takes them off sale and out of MPP, and adds routes behind them', async () => {
  const shop = await shopOf(`
upstreams: { api: { url: "http://127.0.0.1:9", prefix: "/" } }
routes: { "GET /v1/now": { upstream: api, price: "0.01", tags: [Clocks] } }
services:
  nickel: { price: "0.070001", mpp: false }
  dime: { available: false }
`);
  assert.deepEqual(
    shop.services.map(({ path, priceUsd, mpp }) => [path, priceUsd, mpp]),
    [
      ['nickel', '0.070001', false],
      ['dime', '0.05', true],
      ['get-v1-now', '0.01', true],
    ],
  );
  assert.deepEqual([shop.withheld, Object.keys(shop.tags)], [['dime'], ['Clocks']]);
  await shop.routes?.close();
});

test('a header that never passes is refused where a route names it', async () => {
  for (const named of ['requestHeaders: [x-request-id]', 'answerHeaders: [idempotent-replayed]']) {
    const shop = shopOf(`
upstreams: { api: { url: "http://127.0.0.1:9", prefix: "/" } }
routes: { "POST /m": { upstream: api, price: "0.01", ${named} } }
`);
    await assert.rejects(
      shop,
      /POST \/m"\]\.(requestHeaders\[0\]: it is never sent on|answerHeaders\[0\]: it never comes back)/,
    );
  }
});

test('a file that is wrong is refused at the start, with each line', async () => {
  const wrong = shopOf(`
upstreams: { api: { url: "http://127.0.0.1:9", prefix: "/" } }
routes:
  "POST /m": { upstream: api, metered: { unit: bytes, price: "0.01" } }
  "POST /n": { upstream: api, price: 0.10 }
services: { nickle: { price: "0.01" } }
`);
  await assert.rejects(wrong, (error: Error) => {
    assert.equal(error.constructor.name, 'StartError');
    for (const line of [/yaml:4:\d+ .*metered/, /yaml:5:\d+ .*price: .*"0\.10"/])
      assert.match(error.message, line);
    return true;
  });
});
