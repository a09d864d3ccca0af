import assert from 'node:assert/strict';
import { it } from 'node:test';
import { directions, kalshiTakerFee, midOf, polymarketTakerFee } from './executable-edge.ts';

const FREE = { rate: 0, exponent: 1 };

it('rounds Kalshi’s fee up to the cent, once an order', () => {
  // 0.07 x 0.5 x 0.5 = 0.0175; 0.07 x 0.05 x 0.95 = 0.003325; 0.07 x 0.8 x 0.2 = 0.0112.
  assert.deepEqual(
    [0.5, 0.05, 0.8, 0, 1].map((price) => kalshiTakerFee(price, 1)),
    [0.02, 0.01, 0.02, 0, 0],
  );
  // 322 contracts at 0.44: 0.07 x 322 x 0.44 x 0.56 = 5.553856, which is 1.73 cents each and not 2.
  assert.equal(kalshiTakerFee(0.44, 322), 5.56);
  assert.equal(kalshiTakerFee(0.5, 100), 1.75);
});

it('follows the schedule of a Polymarket market', () => {
  // 100 contracts at 0.50 and a rate of 0.07 cost 1.75 USD in the venue's own table.
  assert.equal(polymarketTakerFee(0.5, { rate: 0.07, exponent: 1 }, 100), 1.75);
  assert.equal(polymarketTakerFee(0.5, FREE, 100), 0);
});

it('works both ways out by hand', () => {
  const one = { bidSize: null, askSize: null };
  const books = [
    { yesBid: 0.4, yesAsk: 0.42 },
    { yesBid: 0.5, yesAsk: 0.53 },
  ] as const;
  const ways = directions({ ...books[0], ...one }, { ...books[1], ...one }, FREE);
  assert.deepEqual(ways, [
    // Yes on Polymarket at 0.42, no on Kalshi at 1 - 0.50, fee 0.0175 rounded up.
    {
      buyYesOn: 'polymarket',
      buyNoOn: 'kalshi',
      yesAsk: 0.42,
      noAsk: 0.5,
      contracts: null,
      fees: 0.02,
      edge: 0.06,
    },
    // Yes on Kalshi at 0.53, no on Polymarket at 1 - 0.40, fee 0.017437 rounded up.
    {
      buyYesOn: 'kalshi',
      buyNoOn: 'polymarket',
      yesAsk: 0.53,
      noAsk: 0.6,
      contracts: null,
      fees: 0.02,
      edge: -0.15,
    },
  ]);
  // An order for as many as there are: 200 contracts at 0.5 are 3.50 USD, and 0.0175 each.
  const [large] = directions(
    { ...books[0], bidSize: 9, askSize: 200.7 },
    { ...books[1], bidSize: 500, askSize: 9 },
    FREE,
  );
  assert.deepEqual([large?.contracts, large?.fees, large?.edge], [200.7, 0.0175, 0.0625]);
});

it('leaves out what cannot be bought, and does not guess an unknown fee', () => {
  const ways = directions(
    { yesBid: null, yesAsk: 0.42, bidSize: null, askSize: 5 },
    { yesBid: 0.5, yesAsk: 0.53, bidSize: 5, askSize: 5 },
    null,
  );
  assert.deepEqual(
    ways.map(({ buyYesOn, fees, edge }) => ({ buyYesOn, fees, edge })),
    [{ buyYesOn: 'polymarket', fees: null, edge: null }],
  );
  assert.equal(midOf({ yesBid: null, yesAsk: 0.42 }), null);
});
