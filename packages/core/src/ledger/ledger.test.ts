import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { proveBooks } from '../../../../apps/shop/test/books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { HOUSE_ACCOUNTS } from './accounts.ts';
import { createLedger, type Ledger, type Transfer } from './ledger.ts';
import { newTransferId } from './transfer-id.ts';

let database: TestDatabase;
let ledger: Ledger;
before(async () => {
  database = await openTestDatabase();
  ledger = createLedger(database, Date.now);
});
after(() => database.close());

async function account(creditMicros: bigint): Promise<bigint> {
  return database.sql.begin(async (transaction) => {
    const accountId = await ledger.openAccount(transaction);
    if (creditMicros > 0n) {
      await ledger.transferWithin(
        transaction,
        move(accountId, { side: 'credit', amountMicros: creditMicros }),
      );
    }
    return accountId;
  });
}

function move(accountId: bigint, rest: Partial<Transfer>): Transfer {
  return {
    id: newTransferId(Date.now()),
    accountId,
    phase: 'posted',
    side: 'debit',
    house: 'operator_grants',
    amountMicros: 1n,
    code: 'operator_grant',
    ...rest,
  };
}

test('the house has the accounts that the code knows', async () => {
  const rows = await database.sql<{ id: bigint; name: string }[]>`
    select id, name from ledger_accounts where house order by id`;
  assert.deepEqual(Object.fromEntries(rows.map(({ id, name }) => [name, id])), HOUSE_ACCOUNTS);
});

test('a transfer of nothing, and a note without end, are refused before the database is asked', async () => {
  const accountId = await account(100n);
  for (const wrong of [{ amountMicros: 0n }, { amountMicros: -1n }, { note: 'n'.repeat(501) }]) {
    await assert.rejects(ledger.transfer(move(accountId, wrong)), RangeError);
    const within = database.sql.begin((on) => ledger.transferWithin(on, move(accountId, wrong)));
    await assert.rejects(within, RangeError);
  }
  assert.equal((await ledger.transfer(move(accountId, { note: 'n'.repeat(500) }))).status, 'done');
});

test('a lock tells what can be spent beside what is reserved, and nobody else has the account meanwhile', async () => {
  const accountId = await account(100n);
  await ledger.transfer(move(accountId, { phase: 'pending', amountMicros: 60n }));
  await database.sql.begin(async (transaction) => {
    assert.deepEqual(await ledger.lock(transaction, [accountId]), new Map([[accountId, 40n]]));
    const other = database.sql.begin(
      (on) => on`select 1 from ledger_accounts where id = ${String(accountId)} for no key update nowait`,
    );
    await assert.rejects(other, { code: '55P03' });
  });
});

test('a pending transfer reserves; its post takes, its void gives back; neither happens twice', async () => {
  const accountId = await account(100n);
  const hold = move(accountId, { phase: 'pending', amountMicros: 60n });
  assert.deepEqual(await ledger.transfer(hold), { status: 'done', availableMicros: 40n });
  assert.deepEqual(await ledger.transfer(hold), { status: 'done', availableMicros: 40n });
  assert.deepEqual(await ledger.balance(accountId), {
    balanceMicros: 100n,
    reservedMicros: 60n,
    availableMicros: 40n,
    spentMicros: 0n,
  });
  assert.equal((await ledger.transfer(move(accountId, { amountMicros: 41n }))).status, 'insufficient');
  assert.equal((await ledger.transfer({ ...hold, phase: 'post' })).status, 'done');
  assert.equal((await ledger.transfer({ ...hold, phase: 'post' })).status, 'done');
  assert.equal((await ledger.transfer({ ...hold, phase: 'void' })).status, 'resolved_otherwise');
  assert.deepEqual(await ledger.balance(accountId), {
    balanceMicros: 40n,
    reservedMicros: 0n,
    availableMicros: 40n,
    spentMicros: 60n,
  });
  const other = move(accountId, { phase: 'pending', amountMicros: 40n });
  await ledger.transfer(other);
  assert.deepEqual(await ledger.transfer({ ...other, phase: 'void' }), {
    status: 'done',
    availableMicros: 40n,
  });
});

test('an id is one transfer: another amount, side or phase under it is refused', async () => {
  const accountId = await account(100n);
  const first = move(accountId, { amountMicros: 10n });
  await ledger.transfer(first);
  for (const change of [
    { amountMicros: 11n },
    { side: 'credit' },
    { phase: 'pending' },
    { house: 'trial_grants' },
  ] as const) {
    assert.equal((await ledger.transfer({ ...first, ...change })).status, 'id_taken');
  }
  assert.equal((await ledger.transfer(move(accountId, { phase: 'post' }))).status, 'no_such_pending');
  assert.equal((await ledger.transfer({ ...first, phase: 'void' })).status, 'no_such_pending');
});

test('one refused transfer of a batch does not hold back the others', async () => {
  const accountId = await account(10n);
  const results = await Promise.all(
    [4n, 100n, 4n, 3n, 2n].map((amountMicros) => ledger.transfer(move(accountId, { amountMicros }))),
  );
  assert.deepEqual(
    results.map(({ status, availableMicros }) => [status, availableMicros]),
    [
      ['done', 6n],
      ['insufficient', 6n],
      ['done', 2n],
      ['insufficient', 2n],
      ['done', 0n],
    ],
  );
});

test('two replicas on one account never spend more than there is', async () => {
  const accountId = await account(1_000n);
  const replicas = [ledger, createLedger(database, Date.now)];
  const results = await Promise.all(
    Array.from({ length: 400 }, (_, index) =>
      (replicas[index % 2] ?? ledger).transfer(move(accountId, { amountMicros: BigInt(1 + (index % 7)) })),
    ),
  );
  const spent = results.reduce(
    (sum, { status }, index) => (status === 'done' ? sum + BigInt(1 + (index % 7)) : sum),
    0n,
  );
  assert(spent > 990n && spent <= 1_000n, `${spent}`);
  assert.equal((await ledger.balance(accountId)).availableMicros, 1_000n - spent);
});

test('a transfer within a commit waits for the one that has its account, and counts what that took', async () => {
  const accountId = await account(100n);
  const take = move(accountId, { amountMicros: 60n });
  const second = await database.sql.begin(async (transaction) => {
    await ledger.transferWithin(transaction, take);
    const [own] = await transaction<{ pid: number }[]>`select pg_backend_pid() as pid`;
    const waiting = database.patient.begin((on) =>
      ledger.transferWithin(on, move(accountId, { amountMicros: 60n })),
    );
    await until('the second waits for the account', async () => {
      const [blocked] = await database.sql`
        select 1 from pg_stat_activity where ${own?.pid ?? 0}::integer = any (pg_blocking_pids(pid))`;
      return blocked !== undefined;
    });
    return { waiting };
  });
  assert.equal((await second.waiting).status, 'insufficient');
  assert.equal((await ledger.balance(accountId)).availableMicros, 40n);
});

test('any order of transfers on any accounts leaves books that balance, as a plain model predicts', async () => {
  const accounts = await Promise.all([account(50n), account(0n), account(500n)]);
  const model = new Map(accounts.map((id, index) => [id, { available: [50n, 0n, 500n][index] ?? 0n }]));
  const pending: Transfer[] = [];
  const step = fc.record({
    account: fc.nat(2),
    what: fc.constantFrom('debit', 'credit', 'hold', 'post', 'void'),
    amount: fc.bigInt({ min: 1n, max: 60n }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 20 }), async (steps) => {
      for (const { account: index, what, amount } of steps) {
        const accountId = accounts[index] ?? 0n;
        const expected = model.get(accountId) ?? { available: 0n };
        if (what === 'post' || what === 'void') {
          const hold = pending.shift();
          if (hold === undefined) continue;
          assert.equal((await ledger.transfer({ ...hold, phase: what })).status, 'done');
          const owner = model.get(hold.accountId);
          if (what === 'void' && owner !== undefined) owner.available += hold.amountMicros;
          continue;
        }
        const transfer = move(accountId, {
          amountMicros: amount,
          side: what === 'credit' ? 'credit' : 'debit',
          phase: what === 'hold' ? 'pending' : 'posted',
        });
        const { status, availableMicros } = await ledger.transfer(transfer);
        const fits = what === 'credit' || expected.available >= amount;
        assert.equal(status, fits ? 'done' : 'insufficient');
        if (fits) expected.available += what === 'credit' ? amount : -amount;
        if (fits && what === 'hold') pending.push(transfer);
        assert.equal(availableMicros, expected.available);
      }
    }),
    { numRuns: 25 },
  );
  const books = await proveBooks(database.patient);
  assert.deepEqual(
    books.checks.filter(({ ok }) => !ok),
    [],
  );
});

test('the books find a balance that was tampered with, an orphan, and money from nowhere', async () => {
  const accountId = await account(70n);
  const id = String(accountId);
  const broken = async (statement: string) => {
    const books = await database.sql.begin(async (transaction) => {
      await transaction.unsafe(statement);
      return null;
    });
    assert.equal(books, null);
    const { balanced, checks } = await proveBooks(database.patient);
    assert.equal(balanced, false, statement);
    return checks.filter(({ ok }) => !ok).map(({ finding }) => finding ?? '');
  };
  const findings = await broken(`update ledger_accounts set credits_posted = 71 where id = ${id}`);
  assert(findings.some((finding) => finding.includes(`account ${id} holds`)));
  await database.sql`update ledger_accounts set credits_posted = 70 where id = ${id}`;
  assert.equal((await proveBooks(database.patient)).balanced, true);

  const orphan = newTransferId(Date.now());
  await broken(`insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
                values (${id}, '${orphan}', 3, ${id}, 1, 5, 'call', now())`);
  await database.sql`delete from ledger_transfers where id = ${orphan}`;
  assert.equal((await proveBooks(database.patient)).balanced, true);
});
