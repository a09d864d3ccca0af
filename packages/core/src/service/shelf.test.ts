import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { answer } from '../words/answer.ts';
import { defineService, type Service } from './define.ts';
import { Shelf, type Stock } from './shelf.ts';

function coin(path: string, priceUsd: string): Service {
  return defineService({
    path,
    name: path,
    tag: 'Coins',
    priceUsd,
    summary: 'For tests.',
    input: z.object({}),
    output: z.object({}),
    example: {},
    run: async () => answer({}, { method: 'None.' }),
  });
}

const stockOf = (...services: readonly Service[]): Stock => ({ services, tags: {}, leftOut: [] });

function stage(...services: readonly Service[]) {
  const clock = { nowMs: 1_000_000 };
  return { clock, shelf: new Shelf(stockOf(...services), () => clock.nowMs) };
}

test('another table is in force at once and whole, and the one before it stays as it was', () => {
  const [cheap, dear, dime] = [coin('nickel', '0.05'), coin('nickel', '0.07'), coin('dime', '0.10')];
  const { shelf } = stage(cheap, dime);
  const { services } = shelf;
  shelf.put({ services: [dear], tags: { Coins: 'Metal.' }, leftOut: ['dime'] });
  assert.deepEqual([shelf.services, shelf.tags, shelf.leftOut], [[dear], { Coins: 'Metal.' }, ['dime']]);
  assert.deepEqual(
    [shelf.find('nickel'), shelf.find('dime'), shelf.firstCall.path],
    [dear, undefined, 'nickel'],
  );
  assert.deepEqual(services, [cheap, dime]);
});

test('an earlier price is honoured for six minutes, whatever else is exchanged meanwhile', () => {
  const [first, second, third] = ['0.05', '0.07', '0.06'].map((price) => coin('nickel', price)) as [
    Service,
    Service,
    Service,
  ];
  const dime = coin('dime', '0.10');
  const { clock, shelf } = stage(first, dime);
  shelf.put(stockOf(second, dime));
  clock.nowMs += 100_000;
  shelf.put(stockOf(third, dime));
  assert.deepEqual([shelf.honoured(third), shelf.honoured(dime)], [[second, first], []]);
  clock.nowMs += 260_000;
  assert.deepEqual(shelf.honoured(third), [second]);
  clock.nowMs += 100_000;
  assert.deepEqual(shelf.honoured(third), []);
  shelf.put(stockOf(second, dime), clock.nowMs - 359_999);
  assert.deepEqual(shelf.honoured(second), [third], 'what another process has replaced counts from then on');
});

test('what is sold no more is known until twenty tables later, and not while something is sold in its place', () => {
  const [nickel, again, dime] = [coin('nickel', '0.05'), coin('nickel', '0.05'), coin('dime', '0.10')];
  const { shelf } = stage(nickel, dime);
  assert.equal(shelf.gone('nickel'), undefined);
  shelf.put(stockOf(dime));
  assert.deepEqual(
    [shelf.gone('nickel'), shelf.gone('dime'), shelf.gone('cent')],
    [nickel, undefined, undefined],
  );
  shelf.put(stockOf(dime, again));
  assert.equal(shelf.gone('nickel'), undefined);
  shelf.put(stockOf(dime));
  for (let put = 0; put < 19; put++) shelf.put(stockOf(coin('dime', '0.10')));
  assert.equal(shelf.gone('nickel'), again);
  shelf.put(stockOf(coin('dime', '0.10')));
  assert.equal(shelf.gone('nickel'), undefined);
});

test('a table that changes nothing takes no place among the earlier ones', () => {
  const [nickel, dime] = [coin('nickel', '0.05'), coin('dime', '0.10')];
  const { shelf } = stage(nickel, dime);
  shelf.put(stockOf(dime));
  for (let put = 0; put < 30; put++) shelf.put(stockOf(dime));
  assert.equal(shelf.gone('nickel'), nickel);
});

test('what is sold elsewhere is no service of this shop, and its earlier prices are honoured too', () => {
  const [nickel, cheap, dear] = [coin('nickel', '0.05'), coin('far', '0.10'), coin('far', '0.20')];
  const stockWith = (service: Service) => ({
    ...stockOf(nickel),
    elsewhere: [{ service, baseUrl: 'https://far.example' }],
  });
  const shelf = new Shelf(stockWith(cheap), () => 0);
  shelf.put(stockWith(dear));
  assert.deepEqual([shelf.find('far'), shelf.services, shelf.honoured(dear)], [undefined, [nickel], [cheap]]);
  shelf.put(stockOf(nickel));
  assert.equal(shelf.gone('far'), undefined, 'it was never bought here');
});

test('a newer service is looked for, and one that stayed or left is none', async () => {
  const [nickel, dear, dime] = [coin('nickel', '0.05'), coin('nickel', '0.07'), coin('dime', '0.10')];
  const { shelf } = stage(nickel, dime);
  assert.equal(await shelf.newer(nickel), null, 'nobody told how to look');
  let next = stockOf(dear);
  shelf.lookBy(async () => shelf.put(next));
  assert.equal(await shelf.newer(nickel), dear);
  assert.equal(await shelf.newer(dear), null);
  assert.equal(await shelf.newer(dime), null, 'it left');
  next = stockOf(nickel, dime);
  assert.equal(await shelf.newer(dear), nickel);
  assert.deepEqual(shelf.soldBefore, []);
});
