import assert from 'node:assert/strict';
import { it } from 'node:test';
import { OPERATOR } from './declared.ts';
import { marginOf } from './margin.ts';

const DECLARED = [{ service: 'ai-inference', costMicros: 12_000n }];

it('tells what is left of a price, and owns up to a loss', () => {
  const model = { path: 'ai-inference', costsMoney: true };
  assert.deepEqual(marginOf(model, '0.05', DECLARED), {
    costUsd: '0.012',
    marginUsd: '0.038',
    marginPercent: 76,
  });
  assert.deepEqual(marginOf(model, '0.01', DECLARED), {
    costUsd: '0.012',
    marginUsd: '-0.002',
    marginPercent: -20,
  });
});

it('takes what asks no source that costs money for free, and knows nothing of one that nobody declared', () => {
  assert.deepEqual(marginOf({ path: 'ping', costsMoney: false }, '0.25', DECLARED), {
    costUsd: '0.00',
    marginUsd: '0.25',
    marginPercent: 100,
  });
  assert.deepEqual(marginOf({ path: 'other-model', costsMoney: true }, '0.25', DECLARED), {
    costUsd: null,
    marginUsd: null,
    marginPercent: null,
  });
  const off = marginOf({ path: 'ai-inference', costsMoney: true }, null, DECLARED);
  assert.deepEqual([off.costUsd, off.marginUsd], ['0.012', null]);
});

it('reads costs by service, and refuses what it cannot read', () => {
  const { shape } = OPERATOR.variables.serviceCosts;
  assert.deepEqual(shape.parse('ai-inference=0.012, ping=0'), [
    { service: 'ai-inference', costMicros: 12_000n },
    { service: 'ping', costMicros: 0n },
  ]);
  for (const wrong of ['ping', 'ping=-1', 'ping=1e3', 'Ping=1', 'ping=0.0000001'])
    assert.equal(shape.safeParse(wrong).success, false, wrong);
});
