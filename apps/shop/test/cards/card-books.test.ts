/** Each rule of the books for card money holds of what the house does, and finds what breaks it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CARD_BOOKS } from '../../../../packages/core/src/cards/books-rules.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { proveBooks } from '../books.fixture.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

let world: CardWorld;
before(async () => {
  world = await startCardWorld();
});
after(() => world.stop());

/** A package with more credit than was paid; half of the payment goes back while most of the credit is spent. */
async function buy(refundCents: number, spendMicros: bigint): Promise<string> {
  const opened = await jsonOf(world.post('/api/gpt/credits/create-session', { package: 'pro' }));
  await world.pay(opened.checkoutUrl);
  let apiKey: string | undefined;
  await until('the key', async () => {
    const status = `${world.server.url}/api/gpt/credits/status?session=${opened.sessionId}`;
    ({ apiKey } = await jsonOf(fetch(status)));
    return apiKey !== undefined;
  });
  const known = await world.server.app.keys.find(apiKey ?? '');
  const [order] = await world.database.sql<{ id: string; payment_intent_id: string }[]>`
    select id, payment_intent_id from card_orders where account_id = ${String(known?.accountId)}`;
  assert(known !== null && order !== undefined);
  if (spendMicros > 0n) {
    const id = '00000000-0000-8000-8000-000000000001';
    const spent = await createLedger(world.database, Date.now).transfer({
      id,
      accountId: known.accountId,
      phase: 'posted',
      side: 'debit',
      house: 'trial_expired',
      amountMicros: spendMicros,
      code: 'trial_expiry',
    });
    assert.equal(spent.status, 'done');
  }
  if (refundCents > 0) {
    const paymentIntent = order.payment_intent_id;
    await world.control('POST', '/refunds', { paymentIntent, amountCents: refundCents });
    await until('the refund', async () => {
      await world.settle();
      const [now] = await world.database.sql<{ reversed: bigint }[]>`
        select reversed_micros as reversed from card_orders where id = ${order.id}`;
      return now?.reversed === BigInt(refundCents) * 10_000n;
    });
  }
  return order.id;
}

/** Tells what the rule of that name finds after the statement, which is taken back. */
async function findingAfter(name: string, breaking: string): Promise<string | null> {
  const rule = CARD_BOOKS.rules.find((one) => one.name === name);
  assert(rule !== undefined, name);
  let finding: string | null = null;
  const undo = new Error('taken back');
  await world.database.sql
    .begin(async (transaction) => {
      const { count } = await transaction.unsafe(breaking);
      assert(count > 0, `${breaking} changed nothing`);
      const [row] = await transaction.unsafe<Record<string, unknown>[]>(rule.sql);
      finding = row === undefined ? null : rule.say(row);
      throw undo;
    })
    .catch((error: unknown) => {
      if (error !== undo) throw error;
    });
  return finding;
}

test('each rule holds, and finds what breaks it', async () => {
  const whole = await buy(0, 0n);
  const owing = await buy(2_000, 58_000_000n);
  const books = await proveBooks(world.database.sql);
  for (const { name, finding } of books.checks) assert.equal(finding, null, name);
  // 50 paid for 60, twice. Of one, 20 went back while 2 were left: 18 are owed, and the bonus is spent.
  assert.deepEqual(books.cards, {
    orders: 2n,
    paidMicros: 100_000_000n,
    reversedMicros: 20_000_000n,
    disputedMicros: 0n,
    owedMicros: 18_000_000n,
    promotionsMicros: 20_000_000n,
  });

  const [payments, clearing, debts, taken, debtFreezes, keyFreezes, keys] = CARD_BOOKS.rules.map(
    ({ name }) => name,
  );
  const transferOf = (order: string, code: string) => `note = 'order ${order}' and code = '${code}'`;
  const copy = (order: string, code: string, change: string) => `
    insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, note,
                                  created_at)
    select account_id, gen_random_uuid(), phase, debit_account, credit_account, amount_micros, code, ${change},
           created_at from ledger_transfers where ${transferOf(order, code)}`;
  const breaking: [rule: string | undefined, ...ways: string[]][] = [
    [
      payments,
      `delete from ledger_transfers where ${transferOf(whole, 'card_payment')}`,
      `delete from ledger_transfers where ${transferOf(whole, 'card_bonus')}`,
      `update ledger_transfers set amount_micros = amount_micros + 1 where ${transferOf(whole, 'card_payment')}`,
      `update ledger_transfers set amount_micros = amount_micros - 1 where ${transferOf(whole, 'card_bonus')}`,
      `update ledger_transfers set debit_account = 4 where ${transferOf(whole, 'card_payment')}`,
      copy(whole, 'card_payment', 'note'),
      copy(whole, 'card_bonus', 'note'),
      copy(whole, 'card_payment', 'null'),
      copy(whole, 'card_bonus', `'order of nobody'`),
      `update card_orders set state = 0 where id = '${whole}'`,
      `update card_orders set state = 2 where id = '${whole}'`,
    ],
    [
      clearing,
      `update card_orders set reversed_micros = 1 where id = '${whole}'`,
      `update card_orders set bonus_taken_micros = 1 where id = '${owing}'`,
      `delete from ledger_transfers where note = 'order ${owing}' and code = 'card_reversal' and account_id = 11`,
      `update ledger_transfers set note = 'order ${whole}' where ${transferOf(owing, 'card_reversal')}`,
      copy(owing, 'card_reversal', 'null'),
      copy(owing, 'card_reversal', 'note'),
      `update card_orders set state = 2 where id = '${whole}'`,
      `delete from card_orders where id = '${whole}'`,
    ],
    [
      debts,
      `update account_debts set owed_micros = owed_micros + 1`,
      `delete from account_debts`,
      copy(owing, 'card_reversal', 'note'),
    ],
    [
      taken,
      `insert into credit_origins
         (call_id, nth, lot, payer_account, order_id, trial, amount_micros, account_id, taken_micros, created_at)
       select gen_random_uuid(), 0, gen_random_uuid(), account_id, id, false, 5, account_id, 5, now()
       from card_orders where id = '${whole}'`,
    ],
    [
      debtFreezes,
      `delete from account_freezes`,
      `update account_freezes set cause = 'operator'`,
      `update account_debts set owed_micros = 0`,
      `insert into account_freezes (account_id, cause, created_at)
         select account_id, 'debt', now() from card_orders where id = '${whole}'`,
    ],
    [
      keyFreezes,
      `update api_keys set status = 'active' where status = 'frozen'`,
      `update api_keys set status = 'frozen' where status = 'active'`,
      `delete from account_freezes`,
    ],
    [
      keys,
      `update card_orders set key_id = null where id = '${whole}'`,
      `update card_orders set key_id = (select key_id from card_orders where id = '${whole}') where id = '${owing}'`,
      `update api_keys set account_id = 1 where id = (select key_id from card_orders where id = '${whole}')`,
      `update api_keys set digest = sha256('x') where id = (select key_id from card_orders where id = '${whole}')`,
      `update card_orders set account_id = null where id = '${whole}'`,
      `delete from api_keys where id = (select key_id from card_orders where id = '${whole}')`,
    ],
  ];
  assert.equal(breaking.length, CARD_BOOKS.rules.length);
  for (const [rule = '', ...ways] of breaking) {
    for (const way of ways) assert.notEqual(await findingAfter(rule, way), null, `${rule}: ${way}`);
  }
});
