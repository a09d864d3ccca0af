/** An operator's acts on card money, with the sandbox's card provider behind them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

const TOKEN = 'an-operators-token-of-the-tests';

let world: CardWorld;
before(async () => {
  world = await startCardWorld({ environment: { ADMIN_TOKENS: `desk:${TOKEN}` } });
});
after(() => world.stop());

async function ask(path: string, body?: unknown, key: string = randomUUID()) {
  const response = await fetch(`${world.server.url}/admin/api/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'idempotency-key': key },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await jsonOf(response) };
}

/** A key that was bought by card, with its account and order as the operator finds them by e-mail. */
async function bought(amountUsd: number, email: string) {
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', { amountUsd, email }));
  await world.pay(opened.checkoutUrl);
  const status = await jsonOf(
    fetch(
      `${world.server.url}/api/m2m/credits/checkout/status/${opened.sessionId}?token=${opened.retrievalToken}`,
    ),
  );
  const { body: found } = await ask(`keys?q=${encodeURIComponent(email)}`);
  assert.equal(found.keys.length, 1);
  const account: string = found.keys[0].accountId;
  const { body } = await ask(`accounts/${account}`);
  return { apiKey: String(status.apiKey), account, orderId: String(body.cardOrders[0].orderId) };
}

test('a payment is found by e-mail and goes back in parts; repeated it goes back once, and the books agree', async () => {
  const { apiKey, account, orderId } = await bought(10, 'somebody@example.com');
  const key = randomUUID();
  const part = { reason: 'half of it was of no use', orderId, amountUsd: '4' };
  const twice = await Promise.all([1, 2].map(() => ask(`accounts/${account}/refund-order`, part, key)));
  for (const { status, body } of twice) assert.deepEqual([status, body.act.state], [200, 'done']);
  assert.equal((await ask(`accounts/${account}/refund-order`, part, key)).body.repeated, true);
  assert.equal((await world.me(apiKey)).balanceUsd, '6.000000');
  assert.equal((await ask(`accounts/${account}`)).body.spentUsd, '0.000000', 'what went back was not spent');
  await world.assertBooks();

  const tooMuch = await ask(`accounts/${account}/refund-order`, { ...part, amountUsd: '6.01' });
  assert.deepEqual(
    [tooMuch.status, tooMuch.body.code, tooMuch.body.leftUsd],
    [409, 'REFUND_REFUSED', '6.000000'],
  );
  const rest = await ask(`accounts/${account}/refund-order`, {
    reason: 'and the rest',
    orderId,
    amountUsd: null,
  });
  assert.deepEqual([rest.status, rest.body.act.amountUsd], [200, '6.000000']);
  assert.equal((await world.me(apiKey)).balanceUsd, '0.000000');
  const nothing = await ask(`accounts/${account}/refund-order`, {
    reason: 'once more',
    orderId,
    amountUsd: null,
  });
  assert.equal(nothing.body.code, 'REFUND_REFUSED');
  const { body } = await ask(`accounts/${account}`);
  assert.deepEqual(
    body.acts.map(({ act, state, reason }: Record<string, string>) => [act, state, reason]),
    [
      ['refund_order', 'done', 'and the rest'],
      ['refund_order', 'done', 'half of it was of no use'],
    ],
  );
  await world.settle();
  await world.assertBooks();
});

test('credit by an operator pays first what the account owes, and ends its freeze', async () => {
  const { apiKey, account, orderId } = await bought(5, 'debtor@example.com');
  assert.equal((await world.server.call('ping', apiKey)).status, 200);
  await ask(`accounts/${account}/refund-order`, { reason: 'all of it', orderId, amountUsd: null });
  const owing = await ask(`accounts/${account}`);
  assert.deepEqual([owing.body.owedUsd, owing.body.freezes[0]?.cause], ['0.250000', 'debt']);
  const { body: overview } = await ask('overview?days=1');
  assert.deepEqual([overview.money.owed.byCustomersUsd, overview.money.owed.customers], ['0.250000', 1]);

  const refused = await ask(`accounts/${account}/unfreeze`, { reason: 'let it go on' });
  assert.equal(refused.body.code, 'NOT_FROZEN', 'a debt is no freeze of an operator');
  assert.equal((await ask(`accounts/${account}/grant`, { reason: 'for peace', amountUsd: '1' })).status, 200);
  const { body } = await ask(`accounts/${account}`);
  assert.deepEqual([body.owedUsd, body.freezes, body.balanceUsd], ['0.000000', [], '0.750000']);
  assert.equal((await world.server.call('ping', apiKey)).status, 200);
  await world.assertBooks();
});

test('a refund that the provider does not answer stays open, and is gone on with', async () => {
  const { apiKey, account, orderId } = await bought(5, 'patient@example.com');
  const key = randomUUID();
  const all = { reason: 'all of it', orderId, amountUsd: null };
  const fault = { on: 'api', fault: 'drop-after', times: 20, method: 'POST', path: '/v1/refunds' };
  await world.control('POST', '/faults', fault);
  const first = await ask(`accounts/${account}/refund-order`, all, key);
  assert.deepEqual([first.status, first.body.code], [503, 'REFUND_OUTCOME_UNKNOWN']);
  const [open] = (await ask('overview?days=1')).body.openActs;
  assert.deepEqual([open.actId, open.state, open.orderId], [first.body.actId, 'asked', orderId]);
  await world.control('DELETE', '/faults');
  const gone = await ask(`acts/${open.actId}/go-on`, {});
  assert.deepEqual([gone.status, gone.body.act.state], [200, 'done']);
  assert.equal((await ask(`accounts/${account}/refund-order`, all, key)).body.act.state, 'done');
  assert.equal((await world.me(apiKey)).balanceUsd, '0.000000');
  await world.assertBooks();
});

test('a refund whose answer was lost is gone on with after days, and goes back once', async () => {
  const { apiKey, account, orderId } = await bought(5, 'forgotten@example.com');
  const fault = { on: 'api', fault: 'drop-after', times: 20, method: 'POST', path: '/v1/refunds' };
  await world.control('POST', '/faults', fault);
  const part = { reason: 'a part of it', orderId, amountUsd: '1' };
  const lost = await ask(`accounts/${account}/refund-order`, part);
  assert.equal(lost.body.code, 'REFUND_OUTCOME_UNKNOWN');
  await world.control('DELETE', '/faults');
  // By then the provider has forgotten the request, and would do it anew.
  await world.control('POST', '/clock', { advanceSeconds: 3 * 86_400 });
  const gone = await ask(`acts/${lost.body.actId}/go-on`, {});
  assert.deepEqual([gone.status, gone.body.act.state], [200, 'done']);
  assert.equal((await world.me(apiKey)).balanceUsd, '4.000000');
  await world.assertBooks();
});
