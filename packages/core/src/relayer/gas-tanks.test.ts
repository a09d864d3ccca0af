/** Tests what is known of our keys' gas: the days that are left, who can pay, and who says so how often. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { spentPerDay } from './gas-spent.ts';
import { createGasTanks, type GasStanding } from './gas-tanks.ts';

const DAY_MS = 86_400_000;
/** Noon. */
const NOW_MS = Date.parse('2026-11-22T12:00:00Z');
const COST = 10n;

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

/** Keys on a chain of their own, which says what the test lets it say. */
function settingOf(test: { name: string }, addresses: readonly string[] = ['a']) {
  const held = new Map(addresses.map((address) => [address, 10_000n]));
  const reported: [string, boolean, boolean][] = [];
  const setting = {
    held,
    reported,
    waiting: new Map<string, number>(),
    silent: new Set<string>(),
    nowMs: NOW_MS,
    cost: COST,
    gas: createGasTanks({
      sql: database.sql,
      nowMs: (): number => setting.nowMs,
      report: ({ address, isAble }, tank) => reported.push([address, isAble, tank.isAble]),
    }),
    costs(each: bigint) {
      setting.cost = each;
    },
    one(): GasStanding {
      const [standing] = setting.gas.standings();
      assert(standing !== undefined);
      return standing;
    },
    async spent(address: string, day: string, row: { transactions: number; priced: number; spent: bigint }) {
      await database.sql`
        insert into gas_spent (network, address, day, transactions, priced, spent)
        values (${test.name}, ${address}, ${day}::text::date, ${row.transactions}, ${row.priced}, ${String(row.spent)}::text::numeric)`;
    },
  };
  const say = <Value>(value: Value, about: string) =>
    setting.silent.has(about) ? Promise.reject(new Error('no answer')) : Promise.resolve(value);
  const tank = setting.gas.open({
    network: test.name,
    duty: 'settle',
    token: { symbol: 'ETH', decimals: 2 },
    addresses,
    source: {
      balanceOf: (address) => say(held.get(address) ?? 0n, address),
      cost: () => say(setting.cost, 'cost'),
      waitingMs: async () => setting.waiting,
    },
    least: (cost) => 20n * cost,
  });
  return Object.assign(setting, { tank });
}

test('days left: the balance, by what a day cost since the first of the last seven days with a transaction', async (t) => {
  const it = settingOf(t, ['a', 'b', 'c', 'd']);
  // Too long ago to count.
  await it.spent('a', '2026-11-15', { transactions: 9, priced: 9, spent: 1_000_000n });
  // 2.5 days: from the beginning of the 20th to the noon of the 22nd.
  await it.spent('a', '2026-11-20', { transactions: 3, priced: 3, spent: 300n });
  await it.spent('a', '2026-11-22', { transactions: 2, priced: 2, spent: 200n });
  // Half a day counts as one; two of three have a known cost, and the third as their mean.
  await it.spent('b', '2026-11-22', { transactions: 3, priced: 2, spent: 400n });
  // Nothing that has a known cost.
  await it.spent('c', '2026-11-21', { transactions: 3, priced: 0, spent: 0n });
  await it.gas.look();
  assert.deepEqual(
    it.gas.standings().map(({ address, perDay, daysLeft }) => [address, perDay, daysLeft]),
    [
      ['a', 200n, 50],
      ['b', 600n, 16.6],
      ['c', null, null],
      ['d', null, null],
    ],
  );
  for (const unknown of it.gas.standings().slice(2))
    assert.equal(unknown.daysUnknown, 'none of its transactions of the last 7 days has a known cost');
  it.nowMs += 7 * DAY_MS;
  await it.gas.look();
  assert(
    it.gas.standings().every(({ daysLeft }) => daysLeft === null),
    'of older days nothing is left',
  );
});

test('a key that nobody says anything of is believed to be able, and stays as it was seen last', async (t) => {
  const it = settingOf(t, ['silent', 'told']);
  it.silent.add('silent').add('cost');
  await it.gas.look();
  const [silent, told] = it.gas.standings();
  assert.deepEqual([silent?.balance, silent?.seenAtMs, silent?.isAble], [null, null, true]);
  assert.equal(silent?.daysUnknown, 'the chain has not said what it holds');
  assert.deepEqual([told?.balance, told?.seenAtMs], [10_000n, NOW_MS], 'and keeps no other one waiting');

  it.silent.clear();
  it.held.set('silent', 1n);
  await it.gas.look();
  it.silent.add('silent').add('cost');
  it.held.set('silent', 10_000n);
  it.nowMs += 60_000;
  await it.gas.look();
  const [still] = it.gas.standings();
  assert.deepEqual([still?.balance, still?.isAble, still?.seenAtMs], [1n, false, NOW_MS]);
});

test('each episode is told once, and ends by itself: filled a quarter above, mined, or cheaper', async (t) => {
  const it = settingOf(t);
  const looks = async (change: () => void) => {
    const before = it.gas.revision;
    change();
    for (let look = 0; look < 3; look += 1) await it.gas.look();
    return [it.tank.isAble, it.reported.splice(0).map(([, able]) => able), it.gas.revision > before];
  };
  assert.deepEqual(await looks(() => {}), [true, [], true], 'the fees are known from now on');
  assert.deepEqual(await looks(() => void it.held.set('a', 199n)), [false, [false], true]);
  assert.equal(it.one().reason, 'holds 1.99 ETH, and needs 2.5 ETH');
  assert.deepEqual([it.one().unableSinceMs, it.tank.canPay('a')], [NOW_MS, false]);
  assert.deepEqual(await looks(() => void it.held.set('a', 210n)), [false, [], false], 'not for every gwei');
  assert.deepEqual(await looks(() => void it.held.set('a', 250n)), [true, [true], true]);
  assert.deepEqual([it.one().reason, it.one().unableSinceMs], [null, null]);
  assert.deepEqual(await looks(() => it.costs(20n)), [false, [false], true]);
  assert.deepEqual(await looks(() => it.costs(COST)), [true, [true], true]);
  assert.deepEqual(await looks(() => void it.waiting.set('a', 130_000)), [false, [false], true]);
  assert.equal(it.one().reason, 'its oldest transaction has been waiting for 130 s');
  assert.deepEqual(await looks(() => void it.waiting.clear()), [true, [true], true]);
});

test('of several keys each stands for itself; the duty is lost with the last', async (t) => {
  const it = settingOf(t, ['a', 'b']);
  // Before anybody has looked: with nothing it cannot pay, whatever it costs.
  it.tank.saw('a', 0n);
  assert.deepEqual([it.tank.isAble, it.tank.canPay('a'), it.tank.canPay('b')], [true, false, true]);
  it.tank.saw('b', 0n);
  it.tank.saw('of another tank', 0n);
  assert.equal(it.tank.isAble, false);
  assert.deepEqual(it.reported, [
    ['a', false, true],
    ['b', false, false],
  ]);
});

test('a hundred thousand days of other keys cost nothing: no more rows are read than there are days', async (t) => {
  const it = settingOf(t);
  await it.spent('a', '2026-11-20', { transactions: 1, priced: 1, spent: 250n });
  await database.patient`
    insert into gas_spent (network, address, day, transactions, priced, spent)
    select ${t.name}, 'key ' || n, '2024-03-01'::date + d, 1, 1, 1
    from generate_series(1, 200) n, generate_series(0, 499) d`;
  await database.patient`analyze gas_spent`;
  // One transaction, for the database counts by it.
  await database.sql.begin(async (sql) => {
    const perDay = await spentPerDay(sql, { network: t.name, addresses: ['a'], nowMs: NOW_MS });
    assert.deepEqual([...perDay], [['a', 100n]]);
    const [row] = await sql<{ scans: number; rows: number }[]>`
      select seq_scan::integer as scans, coalesce(idx_tup_fetch, 0)::integer as rows
      from pg_stat_xact_user_tables where relname = 'gas_spent'`;
    assert(row !== undefined && row.scans === 0 && row.rows <= 7, JSON.stringify(row));
  });
});
