/**
 * Every way in which card money moves, and every way in which it goes wrong; then nothing that opens anything stands in
 * the log or in the database: no key, no token, no card, no secret of the provider's.
 */
import assert from 'node:assert/strict';
import { createHmac, randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import Stripe from 'stripe';
import { type CardWorld, startCardWorld, WEBHOOK_SECRET } from '../cards.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import type { TestServer } from '../server.fixture.ts';

const OPERATOR = 'the-operators-token-of-the-secret-test';
/** An American Express card has a security code of four digits, which does not stand in a text by chance. */
const CARD = { number: '3782 822463 10005', cvc: '7391' };
const DECLINED = '4000 0000 0000 9995';
const CHECKOUT = '/api/m2m/credits/checkout';
const PURCHASE = '/api/m2m/credits/purchase';

let world: CardWorld;
let replica: TestServer;
const secrets = new Map<string, string>();
before(async () => {
  world = await startCardWorld({
    environment: {
      ADMIN_TOKENS: `desk:${OPERATOR}`,
      SMTP_URL: 'smtp://127.0.0.1:1',
      MAIL_FROM: 'credits@farebox.test',
    },
  });
  replica = await world.open();
  secrets.set('the provider’s secret key', world.environment.CARD_PROVIDER_KEY);
  secrets.set('the webhook secret', WEBHOOK_SECRET);
  secrets.set('the operator’s token', OPERATOR);
  for (const [name, number] of [
    ['the card', CARD.number],
    ['the declined card', DECLINED],
  ] as const) {
    secrets.set(name, number);
    secrets.set(`${name}, in one`, number.replaceAll(' ', ''));
  }
});
after(async () => {
  await replica.close();
  await world.stop();
});

/** Reads a response, whatever it is, and remembers the keys in it. */
async function told(response: Promise<Response>, status: number | readonly number[]) {
  const reply = await response;
  const text = await reply.text();
  assert([status].flat().includes(reply.status), `${reply.url.split('?')[0]}: ${reply.status} ${text}`);
  const body = JSON.parse(text);
  if (typeof body.apiKey === 'string') secrets.set(`API key ${secrets.size}`, body.apiKey);
  return body;
}

const fault = (special: object) => world.control('POST', '/faults', { on: 'api', ...special });
const calm = () => world.control('DELETE', '/faults');

async function checkout(body: object) {
  const opened = await told(world.post(`${CHECKOUT}/session`, body), 200);
  secrets.set(`retrieval token ${secrets.size}`, opened.retrievalToken);
  const status = (token = opened.retrievalToken, to = world.server) =>
    fetch(`${to.url}${CHECKOUT}/status/${opened.sessionId}?token=${token}`);
  return { ...opened, askStatus: status };
}

async function keyOf(bought: { askStatus: () => Promise<Response> }): Promise<string> {
  let apiKey: string | undefined;
  await until('the key', async () => {
    ({ apiKey } = await told(bought.askStatus(), 200));
    return apiKey !== undefined;
  });
  return apiKey ?? '';
}

async function paymentMethod(token: string): Promise<string> {
  const { hostname, port } = new URL(world.provider.url);
  const stripe = new Stripe(world.environment.CARD_PROVIDER_KEY, {
    host: hostname,
    port,
    protocol: 'http',
    telemetry: false,
  });
  return (await stripe.paymentMethods.create({ type: 'card', card: { token } })).id;
}

test('a person pays: declined, then well, with a card that is kept; the agent asks rightly and wrongly', async () => {
  const bought = await checkout({
    amountUsd: 5,
    email: 'owner@example.com',
    keyName: 'secret keeper',
    autoRecharge: { enabled: true, thresholdUsd: 5, topUpUsd: 5 },
  });
  await told(bought.askStatus(), 200);
  await told(bought.askStatus('0'.repeat(32)), 403);
  await told(bought.askStatus(''), 401);
  // Where there is nothing: the address, with its token, is a line of no log.
  await told(fetch(`${world.server.url}${CHECKOUT}/statuses/x?token=${bought.retrievalToken}`), 404);
  await told(fetch(`${world.server.url}${CHECKOUT}/status/nothing?token=${bought.retrievalToken}`), 400);
  await world.pay(bought.checkoutUrl, { number: DECLINED });
  await told(bought.askStatus(), 200);
  await world.pay(bought.checkoutUrl, CARD);
  const key = await keyOf(bought);
  await told(world.server.call('ping', key, { message: key }), 200);
  await told(bought.askStatus(bought.retrievalToken, replica), 200);
  for (const [headers, status] of [
    [{ 'x-api-key': key }, 200],
    [{ authorization: `Bearer ${key}` }, 200],
    [{ authorization: `Bearer ${key}x` }, 401],
  ] as const)
    await told(fetch(`${world.server.url}/api/keys/me`, { headers }), status);
  await told(fetch(`${world.server.url}${CHECKOUT}/summary/${bought.sessionId}?token=${key}`), 200);
  await until('the balance to be refilled', async () => {
    await world.server.app.cards?.recharges.run();
    await world.settle();
    return (await world.me(key)).balanceUsd > '9';
  });
  await told(world.post('/api/keys/me/rotate', {}, { 'x-api-key': key }), 200);
});

test('a package of the legacy family', async () => {
  const opened = await told(world.post('/api/gpt/credits/create-session', { package: 'pro' }), 200);
  const [, token = ''] = String(opened.sessionId).split('.');
  if (token !== '') secrets.set('legacy token', token);
  const status = () => fetch(`${world.server.url}/api/gpt/credits/status?session=${opened.sessionId}`);
  await told(status(), 200);
  await world.pay(opened.checkoutUrl, CARD);
  await until('the key', async () => (await told(status(), 200)).apiKey !== undefined);
  await told(
    fetch(`${world.server.url}/api/gpt/credits/status?session=${opened.sessionId}x`),
    [400, 403, 404],
  );
});

test('an agent buys: well, again, otherwise, declined, with an unknown outcome, and with what is no card', async () => {
  const secret = (name: string) => {
    const key = randomUUID();
    secrets.set(`idempotency key, ${name}`, key);
    return key;
  };
  const paymentMethodId = await paymentMethod('tok_visa');
  const body = { paymentMethodId, amountUsd: 5, idempotencyKey: secret('bought') };
  const { apiKey } = await told(world.post(PURCHASE, body), 200);
  await told(world.post(PURCHASE, body, {}, replica), 200);
  await told(world.post(PURCHASE, { ...body, amountUsd: 10 }), 409);
  await told(world.post(PURCHASE, { ...body, idempotencyKey: apiKey }), 400);
  await told(
    world.post(PURCHASE, { ...body, idempotencyKey: secret('no card'), paymentMethodId: CARD.number }),
    400,
  );
  await told(world.post(PURCHASE, { ...body, card: CARD, idempotencyKey: 'x' }), 400);
  const declined = await paymentMethod('tok_chargeDeclinedInsufficientFunds');
  await told(
    world.post(PURCHASE, { ...body, paymentMethodId: declined, idempotencyKey: secret('declined') }),
    402,
  );
  const gone = { ...body, paymentMethodId: 'pm_that_is_gone', idempotencyKey: secret('gone') };
  await told(world.post(PURCHASE, gone), [400, 402, 404]);
  for (const kind of ['error-after', 'drop-after', 'garbage', 'rate-limit']) {
    await fault({ fault: kind, path: '/v1/payment_intents', method: 'POST', times: 2 });
    const one = { ...body, paymentMethodId: await paymentMethod('tok_mastercard') };
    const unknown = { ...one, idempotencyKey: secret(kind) };
    await told(world.post(PURCHASE, unknown, { 'x-api-key': apiKey }), [200, 503]);
    await calm();
    await told(world.post(PURCHASE, unknown, { 'x-api-key': apiKey }), [200, 402, 409, 503]);
  }
  await told(world.server.call('ping', apiKey), 200);
});

test('what goes wrong: the provider, the database, messages, and operators', async () => {
  for (const kind of ['error-before', 'garbage', 'drop-before', 'rate-limit']) {
    await fault({ fault: kind, times: 4 });
    await told(world.post(`${CHECKOUT}/session`, { amountUsd: 5 }), [200, 503]);
    await calm();
  }
  const bought = await checkout({ amountUsd: 5, keyName: 'of the outage' });
  await world.pay(bought.checkoutUrl, CARD);
  // A failing statement: what it was about must not be told of it.
  await world.database.sql`alter table card_orders rename to card_orders_away`;
  try {
    await told(bought.askStatus(), 500);
    await told(world.post(`${CHECKOUT}/session`, { amountUsd: 5 }), 500);
    const purchase = { paymentMethodId: await paymentMethod('tok_amex'), amountUsd: 5 };
    const idempotencyKey = randomUUID();
    secrets.set('idempotency key of the outage', idempotencyKey);
    await told(world.post(PURCHASE, { ...purchase, idempotencyKey }), [500, 503]);
  } finally {
    await world.database.sql`alter table card_orders_away rename to card_orders`;
  }
  const key = await keyOf(bought);
  await told(world.server.call('ping', key), 200);
  const text = JSON.stringify({
    id: 'evt_1',
    type: 'charge.refunded',
    created: 1,
    note: key,
    data: { object: {} },
  });
  const atS = Math.floor(Date.now() / 1_000);
  const mac = createHmac('sha256', WEBHOOK_SECRET).update(`${atS}.${text}`).digest('hex');
  for (const signature of [`t=${atS},v1=${mac}`, WEBHOOK_SECRET, '', `t=1,v1=${mac}`])
    await told(world.present({ body: Buffer.from(text), signature }), [200, 400]);

  const [order] = await world.database.sql<{ id: string; account_id: bigint; payment_intent_id: string }[]>`
    select id, account_id, payment_intent_id from card_orders where session_id = ${bought.sessionId}`;
  assert(order !== undefined);
  const operate = (act: string, body: object, token = OPERATOR) =>
    world.post(`/admin/api/accounts/${order.account_id}/${act}`, body, {
      authorization: `Bearer ${token}`,
      'idempotency-key': randomUUID(),
    });
  await told(operate('grant', { amountUsd: '1', reason: 'of kindness' }), 200);
  await told(operate('grant', { amountUsd: '1', reason: 'of kindness' }, `${OPERATOR}x`), 401);
  await told(operate('refund-order', { orderId: order.id, amountUsd: '1', reason: 'asked for' }), 200);
  const search = await fetch(`${world.server.url}/admin/api/keys?q=${key}`, {
    headers: { authorization: `Bearer ${OPERATOR}` },
  });
  await search.text();
  const dispute = await world.control('POST', '/disputes', { paymentIntent: order.payment_intent_id });
  await world.settle();
  await told(world.server.call('ping', key), [200, 402]);
  await world.control('POST', `/disputes/${dispute.id}`, { status: 'lost' });
  await until('the loss', async () => {
    await world.settle();
    return (await world.me(key)).frozenUsd === '0.000000';
  });
  await told(world.server.call('ping', key), [200, 402]);
});

test('none of it stands in the log or in the database', async () => {
  await world.settle();
  const log = [...world.server.log, ...replica.log].join('\n');
  const tables = await world.database.sql<{ name: string }[]>`
    select quote_ident(table_name) as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`;
  const rows: string[] = [];
  for (const { name } of tables) {
    const found = await world.database.sql.unsafe<{ row: string }[]>(`select t::text as row from ${name} t`);
    rows.push(...found.map(({ row }) => `${name} ${row}`));
  }
  const kept = rows.join('\n');
  assert(log.includes('card order') && kept.includes('card_orders (') && kept.includes('mails ('));
  assert(secrets.size >= 20, `${secrets.size} secrets were used`);

  for (const [name, secret] of secrets) {
    const bytes = Buffer.from(secret);
    for (const [how, text] of [
      ['as it is', secret],
      ['in base 64', bytes.toString('base64').replace(/=+$/, '')],
      ['in hexadecimal', bytes.toString('hex')],
      ['escaped', encodeURIComponent(secret)],
    ] as const) {
      assert(!log.includes(text), `${name} stands in the log, ${how}`);
      assert(!kept.includes(text), `${name} is kept in the database, ${how}`);
    }
  }
  for (const text of [log, kept])
    assert.doesNotMatch(text, /(?<![\w.:+-])7391(?![\w.:+-])/, 'the security code');
  // Half of a key is as good as none; but none of its halves is kept either.
  for (const [name, secret] of secrets) {
    if (!name.startsWith('API key')) continue;
    assert(!kept.includes(secret.slice(12, 44)) && !log.includes(secret.slice(12, 44)), `half of ${name}`);
    assert(kept.includes(secret.slice(0, 12)), 'its beginning is what it is known by');
  }
});
