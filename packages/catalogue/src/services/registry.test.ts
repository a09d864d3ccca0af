import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { supplyOf } from '../../../core/src/service/supply.ts';
import { UPSTREAMS, type UpstreamName } from '../upstreams/index.ts';
import { defineService } from './define.ts';
import { loadServices } from './registry.ts';

const folder = mkdtempSync(join(tmpdir(), 'farebox-registry-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const DEFINE = pathToFileURL(join(import.meta.dirname, 'define.ts'));
const ZOD = import.meta.resolve('zod');

/** A file that exports a service as a reader of the documentation would write it. */
function service(path: string, tag: string, exported = 'export default'): string {
  return `
    import { z } from '${ZOD}';
    import { defineService } from '${DEFINE}';
    ${exported} defineService({
      path: '${path}', name: 'It', tag: '${tag}', priceUsd: '0.01', summary: 'What it is.',
      input: z.object({}), output: z.object({}), example: {}, run: async () => ({}),
    });`;
}

let roots = 0;
function load(files: Record<string, string>) {
  roots += 1;
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, String(roots), path);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, text);
  }
  return loadServices(join(folder, String(roots)));
}

describe('a file below the folder of a tag', () => {
  test('is sold, and the folder of shared code is not searched', async () => {
    const sold = await load({
      'ai-services/a.ts': service('a', 'AI Services'),
      'ai-services/a.test.ts': 'throw new Error();',
      'iot-depin/b.ts': service('b', 'IoT & DePIN'),
      'shared/chain/c.ts': 'export const c = 1;',
    });
    assert.deepEqual(
      sold.map(({ path }) => path),
      ['b', 'a'],
    );
  });

  test('that exports no service is refused instead of being ignored', async () => {
    const files = { 'banking/a.ts': service('a', 'Banking', 'export const a =') };
    await assert.rejects(load(files), /banking\/a\.ts: its default export must be a service/);
  });

  test('of a tag that there is none of is refused', async () => {
    await assert.rejects(load({ 'other/a.ts': service('a', 'Other') }), /other\/a\.ts: Other is no tag/);
  });

  test('that belongs to another tag is refused', async () => {
    const files = { 'banking/a.ts': service('a', 'Premium') };
    await assert.rejects(load(files), /banking\/a\.ts: services with the tag Premium stand in premium\//);
  });
});

test('a service costs the operator money where one of the upstreams that it asks does', async () => {
  const sold = await loadServices();
  assert.deepEqual(
    sold.filter(({ costsMoney }) => costsMoney).map(({ path }) => path),
    ['ai-inference'],
  );
  const about = { path: 'it', name: 'It', tag: 'Banking', priceUsd: '0.01', summary: 'It.', example: {} };
  const fields = { input: z.object({}), output: z.object({}) };
  const run = () => Promise.reject(new Error('nobody asks it'));
  const costly = (asks: Pick<Parameters<typeof defineService>[0], 'needs' | 'uses'>) =>
    defineService({ ...about, ...fields, ...asks, run }).costsMoney;
  assert.equal(costly({ needs: [['base', 'ai']] }), true);
  assert.equal(costly({ needs: ['base'], uses: ['ai'] }), true);
  assert.equal(costly({ needs: [['base', 'polygon']], uses: ['coingecko'] }), false);
});

test('what the news source allows in an hour bounds the four services that ask it', async () => {
  const health = (name: string) => {
    const { requestsPerMinute } = UPSTREAMS[name as UpstreamName];
    return { requestsPerHour: requestsPerMinute * 60 };
  };
  const bounded = (await loadServices()).flatMap((service) => {
    const supply = supplyOf(service, health);
    return supply?.source === 'gdelt' ? [[service.path, supply.answersPerHour]] : [];
  });
  // 12 requests a minute; two of them for an answer that reads two days or two currencies.
  assert.deepEqual(Object.fromEntries(bounded), {
    'token-sentiment': 720,
    'stock-sentiment': 720,
    'sentiment-analysis': 360,
    'forex-sentiment': 360,
  });
});
