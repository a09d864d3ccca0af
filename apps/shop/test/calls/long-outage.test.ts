/** A server that was away for longer than the card provider remembers what happened. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

const DAY_S = 86_400;

let world: CardWorld;
let aheadMs = 0;

before(async () => {
  world = await startCardWorld({ nowMs: () => Date.now() + aheadMs });
});
after(() => world.stop());

test('forty days away: what went back meanwhile is taken back, and then nobody looks again', async () => {
  const { cards } = world.server.app;
  assert(cards !== null);
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', { amountUsd: 25 }));
  await world.pay(opened.checkoutUrl);
  await world.settle();
  const status = `/api/m2m/credits/checkout/status/${opened.sessionId}?token=${opened.retrievalToken}`;
  const { apiKey } = await jsonOf(fetch(world.server.url + status));
  await cards.inbox.catchUp();

  world.gate(false);
  const { payment_intent: paymentIntent } = await jsonOf(
    fetch(`${world.provider.url}/v1/checkout/sessions/${opened.sessionId}`, {
      headers: { authorization: `Bearer ${world.environment.CARD_PROVIDER_KEY}` },
    }),
  );
  await world.control('POST', '/refunds', { paymentIntent, amountCents: 1_000 });
  await world.control('POST', '/clock', { advanceSeconds: 40 * DAY_S });
  aheadMs += 40 * DAY_S * 1_000;

  // The list is empty by then, as the provider's is after thirty days.
  await world.database.sql`delete from card_events`;
  await cards.inbox.catchUp();
  await world.database.sql`delete from card_events`;
  aheadMs += 60_000;
  assert.equal(await cards.sweep(), 1);
  assert.equal((await world.me(apiKey)).balanceUsd, '15.000000');
  await world.assertBooks();

  aheadMs += DAY_S * 1_000;
  assert.equal(await cards.sweep(), 0);
  await cards.inbox.catchUp();
  assert.equal(await cards.sweep(), 0, 'the list goes back far enough again');
});
