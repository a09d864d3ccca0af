/** One purchase has one payment, whatever a server or a proxy before it answers. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, mock, test } from 'node:test';
import { AnswerLost, Refused, USDC } from 'farebox/buying';
import { createPayer } from './pay.ts';
import { type Confirm, createBuyer, type ToolCall } from './purchase.ts';
import { readSettings } from './settings.ts';
import { openSpending } from './spending.ts';
import type { Asking, UpstreamResult } from './upstream.ts';

const folder = mkdtempSync(join(tmpdir(), 'farebox-purchase-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
/** When each buyer begins: at noon, for the limit is that of a day, and within a test some hours pass. */
const NOON_MS = Date.UTC(2026, 10, 3, 12);
mock.timers.enable({ apis: ['Date'], now: NOON_MS });
const KEY = { FAREBOX_API_KEY: 'fbx_live_test' };
const WALLET = { FAREBOX_EVM_PRIVATE_KEY: `0x${'1'.repeat(64)}` };

const accepted = {
  scheme: 'exact',
  network: 'eip155:8453',
  asset: USDC['eip155:8453'],
  amount: '250000',
  payTo: '0x000000000000000000000000000000000000dEaD',
  maxTimeoutSeconds: 10,
  extra: { name: 'USD Coin', version: '2' },
};
const price = { isError: true, structuredContent: { x402Version: 2, price_usd: 0.25, accepts: [accepted] } };
const answer = (told: object = {}) => ({
  structuredContent: { success: true },
  _meta: { 'farebox/call': told },
});
const uncharged = { isError: true, structuredContent: { code: 'BUSY', charged: false } };

const pass = (ms: number) => mock.timers.setTime(Date.now() + ms);

type Answer = UpstreamResult | Error;

/** A buyer whose payments are answered with these in turn, each after more time than a call tries for. */
async function buyerOf(environment: Record<string, string>, ...answers: (Answer | Promise<Answer>)[]) {
  files += 1;
  mock.timers.setTime(NOON_MS);
  const nowMs = () => Date.now();
  const spending = openSpending(join(folder, `${files}.sqlite`), nowMs);
  const settings = readSettings(environment);
  const payer = (await createPayer(settings)) ?? assert.fail();
  const payments: unknown[] = [];
  const upstream = {
    async ask(_method: string, { params }: Asking): Promise<UpstreamResult> {
      if (params._meta === undefined) return price;
      payments.push(params._meta);
      pass(61_000);
      const next = await (answers.shift() ?? assert.fail('it is sent more often than it should be'));
      if (next instanceof Error) throw next;
      return next;
    },
  };
  const { maxCallMicros, maxDayMicros, url } = settings;
  const buyer = createBuyer({
    upstream,
    payer,
    url,
    nowMs,
    spending: () => spending,
    limits: { maxCallMicros, maxDayMicros },
    log() {},
  });
  const buy = (more: Partial<ToolCall> = {}) =>
    buyer.buy({
      name: 'ping',
      arguments: {},
      named: null,
      signal: new AbortController().signal,
      onProgress() {},
      confirm: () => 'cannot',
      ...more,
    });
  const code = async () => ((await buy())?.structuredContent as { code?: string } | undefined)?.code;
  return { buy, code, payments, spending };
}
const kinds = (payments: unknown[]) => new Set(payments.map((each) => JSON.stringify(each))).size;

test('after a lost answer no refusal makes another payment, from whomever it comes', async () => {
  for (const said of [new Refused(403, 'blocked'), new Refused(-32_602, 'no such tool'), uncharged]) {
    const { buy, code, payments, spending } = await buyerOf(KEY, new AnswerLost('cut'), said, answer());
    assert.equal(await code(), 'ANSWER_LOST');
    await buy().catch(() => undefined);
    assert.equal(spending.todayMicros(), 250_000n);
    assert.equal((await buy())?.isError, undefined);
    assert.deepEqual([payments.length, kinds(payments)], [3, 1]);
    assert.equal(spending.todayMicros(), 250_000n);
  }
});

test('a service is one purchase, whether its own tool asks for it or call_service', async () => {
  const { buy, payments, spending } = await buyerOf(
    KEY,
    new AnswerLost('cut'),
    new AnswerLost('cut'),
    answer(),
  );
  const input = { message: 'a', n: 1 };
  await buy({ name: 'call_service', arguments: { service: 'first-call', input } });
  await buy({ name: 'call_service', arguments: { service: 'first_call', input: '{"n":1,"message":"a"}' } });
  assert.equal((await buy({ name: 'first_call', arguments: input }))?.isError, undefined);
  assert.deepEqual([payments.length, kinds(payments)], [3, 1]);
  assert.equal(spending.todayMicros(), 250_000n);
});

test('above the limit a person is asked about the service that call_service names, and each service by itself', async () => {
  const asked: string[] = [];
  const limits = { ...KEY, FAREBOX_MAX_USD_PER_CALL: '0.10' };
  const { buy, payments } = await buyerOf(limits);
  const confirm: Confirm = (question, _micros, name) => {
    asked.push(`${name} ${question}`);
    return 'no';
  };
  for (const service of ['ping', 'smart-contract-audit'])
    await buy({ name: 'call_service', arguments: { service, input: {} }, confirm });
  assert.match(asked[0] ?? '', /ping costs 0\.25 USD/);
  assert.match(asked[1] ?? '', /smart_contract_audit costs 0\.25 USD/);
  assert.equal(new Set(asked.map((each) => each.split(' ')[0])).size, 2);
  assert.equal(payments.length, 0);
});

test('a purchase that another call has opened is not given up by this one', async () => {
  const { buy, payments } = await buyerOf(KEY, new AnswerLost('cut'), new Refused(404, 'gone'), answer());
  // Both ask the price before either has paid.
  await Promise.all([buy(), buy()]);
  await buy();
  assert.deepEqual([payments.length, kinds(payments)], [3, 1]);
});

test('what one call is told of a purchase that it shares takes it from no other, which may be paid', async () => {
  for (const pays of [KEY, WALLET])
    for (const said of [new Refused(404, 'gone'), uncharged, price]) {
      const [first, second] = [Promise.withResolvers<Answer>(), Promise.withResolvers<Answer>()];
      const shop = await buyerOf(pays, first.promise, second.promise, answer({ replayed: 'true' }));
      const both = [shop.code().catch(() => undefined), shop.code().catch(() => undefined)];
      while (shop.payments.length < 2) await new Promise(setImmediate);
      first.resolve(said);
      // Which of the two sent first is not said.
      await Promise.race(both);
      assert.equal(shop.spending.todayMicros(), 250_000n, 'the other may be paid');
      second.resolve(new AnswerLost('cut'));
      assert((await Promise.all(both)).includes('ANSWER_LOST'));
      assert.equal((await shop.buy())?.isError, undefined);
      assert.deepEqual([shop.payments.length, kinds(shop.payments)], [3, 1]);
      assert.equal(shop.spending.todayMicros(), 250_000n, 'and was');
    }
});

test('what was left behind is asked for with the payment that it had, however much was bought meanwhile', async () => {
  for (const end of [answer({ replayed: 'true' }), answer()]) {
    const { buy, code, payments, spending } = await buyerOf(KEY, new AnswerLost('cut'), end);
    assert.equal(await code(), 'ANSWER_LOST');
    pass(660_000);
    for (let n = 0; n < 150; n += 1) {
      spending.open({ id: `other ${n}`, request: `other ${n}`, payment: '{}', micros: 1n }, null);
      pass(10_000);
    }
    assert.equal((await buy())?.isError, undefined);
    assert.deepEqual([payments.length, kinds(payments)], [2, 1]);
    assert.equal(spending.todayMicros(), 250_150n);
  }
});

test('an error that may follow a charge is a lost answer, and one that cannot is the end of the purchase', async () => {
  for (const [number, payments] of [
    [-32_603, 1],
    [-32_000, 1],
    [408, 1],
    [-32_602, 2],
    [413, 2],
  ] as const) {
    const shop = await buyerOf(KEY, new Refused(number, 'no'), answer());
    await shop.buy().catch(() => undefined);
    await shop.buy();
    assert.equal(kinds(shop.payments), payments, String(number));
  }
});

test('a server that takes signed payments and says that it did not comes to the limit of the day', async () => {
  const { code, payments } = await buyerOf(
    { ...WALLET, FAREBOX_MAX_USD_PER_DAY: '0.75' },
    ...Array(9).fill(price),
  );
  for (let n = 0; n < 3; n += 1) {
    await code();
    pass(3_600_000 / 6);
  }
  assert.equal(await code(), 'ABOVE_LIMIT');
  assert.equal(kinds(payments), 3);
});

test('what a key was charged counts, where it is more than the price', async () => {
  const { buy, spending } = await buyerOf(
    KEY,
    answer({ creditsUsedUsd: '0.3000' }),
    answer({ creditsUsedUsd: '0.0000' }),
  );
  await buy();
  assert.equal(spending.todayMicros(), 300_000n);
  await buy();
  assert.equal(spending.todayMicros(), 550_000n);
});

test('a person agrees to one request at one price', async () => {
  const { buy } = await buyerOf({ ...KEY, FAREBOX_MAX_USD_PER_CALL: '0' });
  const names: string[] = [];
  const confirm: Confirm = (_question, _micros, name) => {
    names.push(name);
    return 'pending';
  };
  for (const input of [{ a: 1, b: 2 }, { b: 2, a: 1 }, { a: 1 }]) await buy({ confirm, arguments: input });
  await buy({ confirm, name: 'pong', arguments: { a: 1 } });
  assert.equal(names[0], names[1]);
  assert.equal(new Set(names).size, 3, names.join());
});
