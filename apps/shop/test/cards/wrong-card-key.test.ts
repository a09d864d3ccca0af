/** A server with a card provider's key that is none, or of another account: what was paid meanwhile is not lost. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startCardProvider } from '../../../../packages/sandbox/src/cards/card-provider.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { jsonOf, startTestServer } from '../server.fixture.ts';

const HOUR_MS = 3_600_000;

let world: CardWorld;
let aheadMs = 0;
const nowMs = () => Date.now() + aheadMs;

before(async () => {
  world = await startCardWorld({ nowMs });
});
after(() => world.stop());

/** A replica on the same database, misconfigured. */
function replica(environment: Record<string, string>) {
  return startTestServer({
    pools: world.database,
    environment: { ...world.environment, ...environment },
    upstreamsUrl: world.upstreams.url,
    nowMs,
  });
}

/** A checkout that a person pays, of which the provider's messages do not arrive. */
async function paidUnheard() {
  world.gate(false);
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', { amountUsd: 5 }));
  await world.pay(opened.checkoutUrl);
  return opened;
}

/** What the one who waits is told a little later, by a server that has the right key. */
async function statusOf({ sessionId, retrievalToken }: { sessionId: string; retrievalToken: string }) {
  aheadMs += 10_000;
  const path = `/api/m2m/credits/checkout/status/${sessionId}`;
  return jsonOf(fetch(world.server.url + path, { headers: { 'x-retrieval-token': retrievalToken } }));
}

test('a key that is none: an operator is told, and nothing is given up', async () => {
  const opened = await paidUnheard();
  const wrong = await replica({ CARD_PROVIDER_KEY: 'sk_test_that_nobody_knows' });
  aheadMs += 2 * HOUR_MS;
  assert.equal(await wrong.app.cards?.sweep(), 1);
  assert.match(wrong.log.join(''), /"level":50.*card money/);
  await wrong.close();
  assert.equal((await statusOf(opened)).status, 'paid');
  await world.assertBooks();
});

test('a key of another account, which knows none of our sessions: they are not over', async () => {
  const opened = await paidUnheard();
  const elsewhere = await startCardProvider({
    stateDir: null,
    webhooks: [],
    secretKey: world.environment.CARD_PROVIDER_KEY,
  });
  const wrong = await replica({ CARD_PROVIDER_URL: elsewhere.url });
  aheadMs += 2 * HOUR_MS;
  assert.equal(await wrong.app.cards?.sweep(), 1);
  assert.match(wrong.log.join(''), /"level":50.*card money/);
  await Promise.all([wrong.close(), elsewhere.stop()]);
  assert.equal((await statusOf(opened)).status, 'paid');
  await world.assertBooks();
});

test('a key of another account: a kept card is not forgotten because nobody knows it there', async () => {
  world.gate(true);
  const autoRecharge = { enabled: true, thresholdUsd: 5, topUpUsd: 10 };
  const opened = await jsonOf(
    world.post('/api/m2m/credits/checkout/session', { amountUsd: 5, autoRecharge }),
  );
  await world.pay(opened.checkoutUrl);
  const { apiKey } = await statusOf(opened);
  assert.equal((await world.server.call('ping', apiKey)).status, 200);
  const elsewhere = await startCardProvider({
    stateDir: null,
    webhooks: [],
    secretKey: world.environment.CARD_PROVIDER_KEY,
  });
  const wrong = await replica({ CARD_PROVIDER_URL: elsewhere.url });
  await wrong.app.cards?.recharges.run();
  await Promise.all([wrong.close(), elsewhere.stop()]);
  const { autoRecharge: kept } = await world.me(apiKey);
  assert.deepEqual([kept.enabled, kept.state, kept.disabledReason], [true, 'charging', null]);
  aheadMs += 10 * 60_000;
  await world.settle();
  assert.equal((await world.me(apiKey)).autoRecharge.state, 'idle');
  await world.assertBooks();
});
