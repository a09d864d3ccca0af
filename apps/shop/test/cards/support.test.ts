/** Helping customers: finding what they have an id of, telling the story of a call, and giving money back on every rail. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { createSIWxPayload, encodeSIWxHeader } from '@x402/extensions/sign-in-with-x';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import type { PrivateKeyAccount } from 'viem/accounts';
import { z } from 'zod';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

const TOKENS = {
  desk: 'an-operators-token-of-the-tests',
  night: 'another-operators-token-of-the-tests',
  morning: 'a-third-operators-token-of-the-tests',
  noon: 'a-fourth-operators-token-of-the-tests',
  evening: 'a-fifth-operators-token-of-the-tests',
};
const BLOCKS_TO_FINAL = '0x200';

const costly = defineService({
  path: 'costly',
  name: 'Costly',
  tag: 'Discovery',
  priceUsd: '2.00',
  summary: 'For tests.',
  input: z.object({ fails: z.boolean().default(false) }),
  output: z.object({ ok: z.boolean() }),
  example: {},
  async run({ fails }) {
    if (fails) throw new Error('broken on purpose');
    return answer({ ok: true }, { method: 'None.' });
  },
});

const modest = defineService({
  path: 'modest',
  name: 'Modest',
  tag: 'Discovery',
  priceUsd: '1.00',
  summary: 'For tests.',
  input: z.object({}),
  output: z.object({ ok: z.boolean() }),
  example: {},
  run: async () => answer({ ok: true }, { method: 'None.' }),
});

let database: TestDatabase;
let world: PaymentWorld;
let server: TestServer;
before(async () => {
  [database, world] = await Promise.all([openTestDatabase(), startPaymentWorld()]);
  const soldKeys = (await loadServices()).filter(({ path }) => path === 'instant-api-key');
  server = await startTestServer({
    pools: database,
    services: [costly, modest, ...soldKeys],
    environment: {
      ...world.environment,
      ADMIN_TOKENS: Object.entries(TOKENS)
        .map(([name, token]) => `${name}:${token}`)
        .join(','),
      ADMIN_SECOND_ABOVE_USD: '1.50',
    },
  });
});
after(async () => {
  await server.close();
  await world.stop();
  await database.close();
});

// biome-ignore lint/suspicious/noExplicitAny: the boundary at which tests look at whatever came
type Body = any;

async function ask(
  path: string,
  body?: object,
  { who = 'desk', key = randomUUID() }: { who?: keyof typeof TOKENS; key?: string } = {},
): Promise<{ status: number; body: Body }> {
  const response = await fetch(`${server.url}/admin/api/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${TOKENS[who]}`,
      ...(body === undefined ? {} : { 'idempotency-key': key, 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await jsonOf(response) };
}

async function job(name: string): Promise<void> {
  const found = server.app.jobs.find((each) => each.name === name);
  assert(found !== undefined, name);
  await found.run();
}

/** Buys with the field's own client. */
async function buy(
  wallet: PrivateKeyAccount,
  { path }: { path: string } = costly,
): Promise<{ callId: string; transaction: string }> {
  const client = new x402Client()
    .register('eip155:*', new ExactEvmScheme(wallet))
    .setSpendControls({ maxAmountPerPayment: '$5' });
  const paying = wrapFetchWithPayment(fetch, client);
  const bought = await paying(`${server.url}/x402/${path}`, { method: 'POST' });
  assert.equal(bought.status, 200, await bought.clone().text());
  const receipt = JSON.parse(
    Buffer.from(bought.headers.get('payment-response') ?? '', 'base64').toString('utf8'),
  );
  return { callId: String(bought.headers.get('x-call-id')), transaction: receipt.transaction };
}

/** Buries a payment so deep in the chain that it stays. */
async function makeFinal(callId: string): Promise<void> {
  await world.chain.client.request({ method: 'anvil_mine', params: [BLOCKS_TO_FINAL] } as never);
  await database.sql`update settlements set next_at = now() - interval '1 hour' where call_id = ${callId}`;
  await job('watch-settlements');
  const [row] = await database.sql`select final_at from settlements where call_id = ${callId}`;
  assert.notEqual(row?.final_at, null, 'it is final');
}

const find = async (query: string) =>
  (await ask(`find?q=${encodeURIComponent(query)}`)).body.found.map(({ kind, id }: Body) => [kind, id]);

test('a wallet’s call is found by all that its payer can have, its story is told, and nobody else’s is', async () => {
  const wallet = await world.wallet();
  const other = await world.wallet();
  const { callId, transaction } = await buy(wallet);
  await buy(other);
  await job('note-requests');
  for (const query of [
    callId,
    callId.toUpperCase(),
    transaction,
    `  ${transaction} `,
    wallet.address,
    wallet.address.toLowerCase(),
  ])
    assert.deepEqual(await find(query), [['call', callId]], query);
  for (const nothing of [
    '',
    'nothing',
    randomUUID(),
    `0x${'0'.repeat(64)}`,
    `0x${'1'.repeat(40)}`,
    "' or 1=1",
  ])
    assert.deepEqual(await find(nothing), [], nothing);

  const { body: story } = await ask(`calls/${callId}`);
  assert.deepEqual(
    [story.service, story.rail, story.state, story.priceUsd, story.accountId, story.refunded],
    ['costly', 'x402', 'captured', '2.000000', null, false],
  );
  assert.deepEqual(
    [story.payment.payer, story.payment.transaction],
    [wallet.address.toLowerCase(), transaction],
  );
  const told = story.events.map(({ what }: Body) => what);
  assert.deepEqual([...told].sort(), ['answered', 'asked', 'captured', 'settled', 'verified']);
  assert.match(
    story.events.find(({ what }: Body) => what === 'answered').details,
    /^200 captured, request req_/,
  );
  assert.equal((await ask(`calls/${randomUUID()}`)).body.code, 'NO_SUCH_CALL');
  assert.equal((await ask('calls/none')).status, 400);
});

test('a request that failed is found by the id that its answer named', async () => {
  const key = await server.key('5');
  const failed = await server.call('costly', key, { fails: true });
  assert.equal(failed.status, 500);
  const { requestId } = await jsonOf(failed);
  assert.deepEqual(await find(requestId), [], 'nothing is written while the call runs');
  await job('note-requests');
  const { body } = await ask(`find?q=${requestId}`);
  assert.deepEqual([body.found[0].kind, body.found[0].id], ['request', requestId]);
  assert.match(body.found[0].title, /^costly, failed, answered 500/);
  assert.equal(body.found[1]?.kind ?? 'call', 'call');
});

test('a key’s call and a card order are found by their ids', async () => {
  const key = await server.key('5');
  const bought = await server.call('costly', key);
  const callId = String(bought.headers.get('x-call-id'));
  const { accountId } = (await server.app.keys.find(key)) ?? assert.fail();
  const { body } = await ask(`find?q=${callId}`);
  assert.deepEqual(
    body.found.map((each: Body) => [each.kind, each.id, each.accountId]),
    [['call', callId, String(accountId)]],
  );
  const { body: story } = await ask(`calls/${callId}?account=${accountId}`);
  assert.deepEqual([story.rail, story.state, story.payment], ['credits', 'captured', null]);
  assert.equal((await ask(`calls/${callId}`)).body.code, 'NO_SUCH_CALL', 'no chain paid for it');

  const orderId = randomUUID();
  await database.sql`
    insert into card_orders (id, kind, amount_micros, credit_micros, account_id, session_id, payment_intent_id, created_at, expires_at)
    values (${orderId}, 'checkout', 10000000, 10000000, ${String(accountId)}, 'cs_test_support1', 'pi_support1', now(), now())`;
  for (const query of [orderId, 'cs_test_support1', 'pi_support1'])
    assert.deepEqual(await find(query), [['order', orderId]], query);
  await database.sql`delete from card_orders where id = ${orderId}`;
});

test('a key, an account, a task, a webhook, its messages and events, and a device lead to their account', async () => {
  const key = await server.key('5');
  const known = (await server.app.keys.find(key)) ?? assert.fail();
  const account = String(known.accountId);
  await server.app.keys.update(known.id, { label: 'Harbour Office 100%' });
  const bought = await server.call('costly', key);
  const callId = String(bought.headers.get('x-call-id'));
  const [task, webhook, event] = [randomUUID(), randomUUID(), randomUUID()];
  await database.sql`
    insert into a2a_tasks (id, account_id, context_id, service, state, paid_by, call_account_id, call_id, updated_at, expires_at)
    values (${task}, ${account}, 'c', 'costly', 'completed', 'key', ${account}, ${callId}, now(), now() + interval '1 hour')`;
  await database.sql`
    insert into webhooks (id, account_id, url, events, sealed_secret, created_at)
    values (${webhook}, ${account}, 'https://hooks.example/', '{refund.made}', 'sealed', now())`;
  await database.sql`
    insert into account_events (id, account_id, type, data, about_money, created_at)
    values (${event}, ${account}, 'refund.made', '{}', true, now())`;
  const [message] = await database.sql<{ id: string }[]>`
    select id from webhook_deliveries where event_id = ${event}`;
  await database.sql`
    insert into devices (id, owner, name, public, simulated, sensors, public_key, created_at)
    values ('gauge-at-the-pier', ${account}, 'Gauge', true, false, '{}', 'key'::bytea, now())`;
  const all = async (query: string) =>
    (await ask(`find?q=${encodeURIComponent(query)}`)).body.found.map((each: Body) => [
      each.kind,
      each.id,
      each.accountId,
    ]);
  assert.deepEqual(await all(task), [
    ['task', task, account],
    ['call', callId, account],
  ]);
  assert.deepEqual(await all(webhook), [['webhook', webhook, account]]);
  assert.deepEqual(await all(event), [['event', event, account]]);
  assert.deepEqual(await all(String(message?.id)), [['delivery', message?.id, account]]);
  assert.deepEqual(await all('gauge-at-the-pier'), [['device', 'gauge-at-the-pier', account]]);
  for (const query of [key, known.prefix, account, 'harbour office', '100%'])
    assert.deepEqual(await all(query), [['key', known.prefix, account]], query);
  assert.deepEqual(await all('%'), [], 'too short to be anything');
  assert.deepEqual(await all('___'), [], 'no text is a pattern');
});

test('a payment goes back on its chain once, when it is final, agreed to by two', async () => {
  const wallet = await world.wallet(3);
  const { callId } = await buy(wallet);
  const path = `payments/${callId}/refund`;
  const asked = await ask(path, { reason: 'the answer was wrong' }, { key: 'refund-of-a-payment' });
  assert.deepEqual([asked.status, asked.body.proposal?.state], [202, 'waiting']);
  const again = await ask(path, { reason: 'the answer was wrong' }, { key: 'refund-of-a-payment' });
  assert.equal(again.body.proposal.proposalId, asked.body.proposal.proposalId);
  assert.equal(
    (await ask(path, { reason: 'another reason' }, { key: 'refund-of-a-payment' })).body.code,
    'IDEMPOTENCY_KEY_REUSED',
  );
  const { proposalId } = asked.body.proposal;
  const overview = await ask('overview');
  assert.deepEqual(
    overview.body.proposals.map((each: Body) => [each.proposalId, each.amountUsd, each.actor]),
    [[proposalId, '2.000000', 'desk']],
  );
  const approve = (who: keyof typeof TOKENS) => ask(`proposals/${proposalId}/approve`, {}, { who });
  assert.equal((await approve('desk')).body.code, 'SECOND_OPERATOR_NEEDED');
  assert.equal((await approve('night')).body.code, 'PAYMENT_NOT_FINAL');
  const listed = async () =>
    (await ask('proposals')).body.proposals.map((each: Body) => [each.proposalId, each.state]);
  assert.deepEqual(await listed(), [[proposalId, 'waiting']], 'refused for now, it waits again');
  // A process that dies between the agreement and the act leaves it listed.
  await database.sql`
    update operator_proposals set ended = 'approved', ended_by = 'night', ended_at = now() where id = ${proposalId}`;
  assert.deepEqual(await listed(), [[proposalId, 'approved']]);
  await makeFinal(callId);
  const before = await world.balanceOf(wallet.address);
  const both = await Promise.all([approve('night'), approve('night')]);
  for (const { status, body } of both) {
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(
      [body.act.act, body.act.actor, body.act.callId],
      ['refund_payment', 'desk and night', callId],
    );
  }
  assert.equal((await ask(`proposals/${proposalId}/decline`, {})).body.code, 'PROPOSAL_ENDED');
  assert.equal((await ask('proposals')).body.proposals.length, 0);
  await job('pay-refunds');
  await job('pay-refunds');
  assert.equal((await world.balanceOf(wallet.address)) - before, 2_000_000n);
  const second = await ask(path, { reason: 'and once more' });
  const agreed = await ask(`proposals/${second.body.proposal.proposalId}/approve`, {}, { who: 'night' });
  assert.deepEqual([agreed.status, agreed.body.code], [409, 'CALL_ALREADY_REFUNDED']);
  const { body: story } = await ask(`calls/${callId}`);
  assert.equal(story.refunded, true);
  assert(story.events.some(({ what }: Body) => what === 'refunded'));
  const { checks } = await proveBooks(database.patient);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
});

test('a declined refund moves nothing, and what cannot go back is refused with its reason', async () => {
  const key = await server.key('5');
  const bought = await server.call('costly', key);
  const callId = String(bought.headers.get('x-call-id'));
  const { accountId } = (await server.app.keys.find(key)) ?? assert.fail();
  const asked = await ask(`accounts/${accountId}/refund-call`, { reason: 'not wanted', callId });
  assert.equal(asked.status, 202);
  const { proposalId } = asked.body.proposal;
  const declined = await ask(`proposals/${proposalId}/decline`, {}, { who: 'night' });
  assert.deepEqual([declined.body.proposal.state, declined.body.proposal.endedBy], ['declined', 'night']);
  assert.equal(
    (await ask(`proposals/${proposalId}/approve`, {}, { who: 'night' })).body.code,
    'PROPOSAL_ENDED',
  );
  assert.equal((await ask(`proposals/${randomUUID()}/approve`, {})).body.code, 'NO_SUCH_PROPOSAL');
  assert.equal((await server.app.ledger.balance(accountId)).availableMicros, 3_000_000n);

  assert.equal((await ask(`payments/${callId}/refund`, { reason: 'a key paid' })).body.code, 'NO_SUCH_CALL');
  assert.equal((await ask(`payments/${randomUUID()}/refund`, { reason: 'nobody' })).status, 404);
  assert.equal((await ask(`payments/${callId}/refund`, { reason: '' })).status, 400);
});

test('of what was not charged, or bought credit that can still be spent, nothing goes back', async () => {
  const { checks: before } = await proveBooks(database.patient);
  const key = await server.key('5');
  const { accountId } = (await server.app.keys.find(key)) ?? assert.fail();
  const failed = await server.call('costly', key, { fails: true });
  const [{ callId: failedId }] = (await ask(`accounts/${accountId}`)).body.calls;
  const asked = await ask(`accounts/${accountId}/refund-call`, { reason: 'it failed', callId: failedId });
  const { proposalId } = asked.body.proposal;
  const ofKey = await ask(`proposals/${proposalId}/approve`, {}, { who: 'night' });
  assert.deepEqual([failed.status, ofKey.status, ofKey.body.code], [500, 409, 'CALL_NOT_CHARGED']);
  assert.equal((await server.app.ledger.balance(accountId)).availableMicros, 5_000_000n);
  assert.equal((await ask(`proposals/${proposalId}/decline`, {}, { who: 'night' })).status, 200);

  const wallet = await world.wallet(5);
  const { callId } = await buy(wallet, modest);
  await makeFinal(callId);
  // As after a kill between the payment on the chain and the capture.
  await database.sql`update calls set state = 0 where id = ${callId}`;
  const uncaptured = await ask(`payments/${callId}/refund`, { reason: 'it failed' });
  assert.deepEqual([uncaptured.status, uncaptured.body.code], [409, 'CALL_NOT_CHARGED']);
  await database.sql`update calls set state = 1 where id = ${callId}`;

  const sold = await buy(wallet, { path: 'instant-api-key' });
  await makeFinal(sold.callId);
  const ofCredit = await ask(`payments/${sold.callId}/refund`, { reason: 'bought by mistake' });
  assert.deepEqual([ofCredit.status, ofCredit.body.code], [409, 'CALL_SOLD_CREDIT']);
  const rows =
    await database.sql`select 1 from refunds where call_id in ${database.sql([callId, sold.callId])}`;
  assert.equal(rows.length, 0);
  const { checks } = await proveBooks(database.patient);
  assert.deepEqual(checks, before);
});

test('no more than a hundred proposals wait for a second operator', async () => {
  const key = await server.key('1');
  const { accountId } = (await server.app.keys.find(key)) ?? assert.fail();
  const grant = () => ask(`accounts/${accountId}/grant`, { reason: 'for the trouble', amountUsd: '2' });
  const waiting: string[] = [];
  for (let n = (await ask('proposals')).body.proposals.length; n < 100; n++) {
    const { status, body } = await grant();
    assert.equal(status, 202, JSON.stringify(body));
    waiting.push(body.proposal.proposalId);
  }
  const refused = await grant();
  assert.deepEqual([refused.status, refused.body.code], [409, 'TOO_MANY_PROPOSALS']);
  const decline = (id: string) => ask(`proposals/${id}/decline`, {}, { who: 'night' });
  await decline(waiting.pop() ?? '');
  const { status, body } = await grant();
  assert.equal(status, 202, 'one that ended makes room for another');
  for (const id of [...waiting, body.proposal.proposalId]) assert.equal((await decline(id)).status, 200);
  assert.equal((await server.app.ledger.balance(accountId)).availableMicros, 1_000_000n);
});

describe('what one operator gives alone in a day', () => {
  let key: string;
  let account: bigint;
  before(async () => {
    key = await server.key('20');
    account = ((await server.app.keys.find(key)) ?? assert.fail()).accountId;
  });
  const reason = 'for the trouble';
  const grant = (amountUsd: string, who: keyof typeof TOKENS) =>
    ask(`accounts/${account}/grant`, { reason, amountUsd }, { who });
  /** Each kind of gift, worth 1 USD. */
  const gifts: [
    string,
    keyof typeof TOKENS,
    () => Promise<(who: keyof typeof TOKENS) => ReturnType<typeof ask>>,
  ][] = [
    [
      'payments on a chain',
      'morning',
      async () => {
        const { callId } = await buy(await world.wallet(1), modest);
        await makeFinal(callId);
        return (who) => ask(`payments/${callId}/refund`, { reason }, { who });
      },
    ],
    [
      'calls of keys',
      'noon',
      async () => {
        const callId = (await server.call('modest', key)).headers.get('x-call-id');
        return (who) => ask(`accounts/${account}/refund-call`, { reason, callId }, { who });
      },
    ],
    ['grants', 'evening', async () => (who) => grant('1', who)],
  ];

  for (const [what, who, prepare] of gifts)
    test(`counts ${what}, of which two at once find each other and all others count with them`, async () => {
      const two = [await prepare(), await prepare()];
      const [locked, looked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      // Both have seen that one operator is enough before either is written.
      const held = database.patient.begin(async (transaction) => {
        await transaction`select 1 from operator_acts_head for update`;
        locked.resolve();
        await looked.promise;
      });
      await locked.promise;
      const asked = two.map((give) => give(who));
      await until('both to wait for their turn', async () => {
        const waiting = await database.patient`
          select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        return waiting.length === 2;
      });
      looked.resolve();
      await held;
      const told = await Promise.all(asked);
      assert.deepEqual(told.map(({ status, body }) => [status, body.code]).sort(), [
        [200, undefined],
        [409, 'SECOND_OPERATOR_NEEDED'],
      ]);
      assert.equal((await grant('0.500001', who)).status, 202, 'all that it gives is one sum');
      assert.equal((await grant('0.5', who)).status, 200, 'up to the bound itself');
      assert.equal((await grant('0.000001', who)).status, 202, 'then nothing more');
    });
});

test('a receipt by its transaction is for the wallet that paid', async () => {
  const [wallet, thief] = [await world.wallet(), await world.wallet()];
  const { callId, transaction } = await buy(wallet);
  const url = `${server.url}/x402/receipts/${transaction}`;
  const asked = await fetch(url);
  assert.equal(asked.status, 401);
  const { code, extensions } = await jsonOf(asked);
  assert.equal(code, 'SIGN_IN_REQUIRED');
  const { info, supportedChains } = extensions['sign-in-with-x'];
  const signedBy = async (account: PrivateKeyAccount) => {
    const [chain] = supportedChains;
    const payload = await createSIWxPayload({ ...info, ...chain }, account, info.uri);
    return fetch(url, { headers: { 'sign-in-with-x': encodeSIWxHeader(payload) } });
  };
  assert.equal((await signedBy(thief)).status, 404);
  const again = await fetch(url);
  Object.assign(info, (await jsonOf(again)).extensions['sign-in-with-x'].info);
  const receipt = await signedBy(wallet);
  assert.equal(receipt.status, 200, await receipt.clone().text());
  assert.equal((await jsonOf(receipt)).id, callId);
});
