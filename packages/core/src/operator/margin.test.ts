import assert from 'node:assert/strict';
import { it } from 'node:test';
import { OPERATOR } from './declared.ts';
import { marginOf } from './margin.ts';

const COSTS = { declared: [{ service: 'ai-inference', costMicros: 12_000n }], measured: [] };

it('tells what is left of a price, and owns up to a loss', () => {
  const model = { path: 'ai-inference', costsMoney: true, needs: ['ai'] };
  assert.deepEqual(marginOf(model, '0.05', COSTS), {
    costUsd: '0.012',
    costFrom: 'declared',
    marginUsd: '0.038',
    marginPercent: 76,
  });
  assert.deepEqual(marginOf(model, '0.01', COSTS), {
    costUsd: '0.012',
    costFrom: 'declared',
    marginUsd: '-0.002',
    marginPercent: -20,
  });
});

it('takes what asks no source that costs money for free, and knows nothing of one that nobody declared', () => {
  assert.deepEqual(marginOf({ path: 'ping', costsMoney: false, needs: [] }, '0.25', COSTS), {
    costUsd: '0.00',
    costFrom: 'declared',
    marginUsd: '0.25',
    marginPercent: 100,
  });
  assert.deepEqual(marginOf({ path: 'other-model', costsMoney: true, needs: ['ai'] }, '0.25', COSTS), {
    costUsd: null,
    costFrom: null,
    marginUsd: null,
    marginPercent: null,
  });
  const off = marginOf({ path: 'ai-inference', costsMoney: true, needs: ['ai'] }, null, COSTS);
  assert.deepEqual([off.costUsd, off.marginUsd], ['0.012', null]);
});

it('counts what replies of sources told, rounded up, where nobody declared it', () => {
  const measured = [
    { source: 'ai', requests: 3n, costMicros: 10_000n },
    { source: 'another', requests: 1n, costMicros: 9_999_999n },
  ];
  const model = { path: 'other-model', costsMoney: true, needs: [['ai', 'reserve'], 'frankfurter'] };
  assert.deepEqual(marginOf(model, '0.05', { ...COSTS, measured }), {
    costUsd: '0.003334',
    costFrom: 'measured',
    marginUsd: '0.046666',
    marginPercent: 93.3,
  });
  const declared = marginOf({ ...model, path: 'ai-inference' }, '0.05', { ...COSTS, measured });
  assert.deepEqual([declared.costUsd, declared.costFrom], ['0.012', 'declared']);
  const free = marginOf({ ...model, costsMoney: false }, '0.05', { ...COSTS, measured });
  assert.equal(free.costUsd, '0.00');
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
