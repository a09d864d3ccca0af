/**
 * Rare steps of money on a database that Citus spreads: what they change lies on the coordinator and on workers, and all of it is one commit.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  connectPools,
  endPools,
  type Pools,
  type Transaction,
} from '../../../../packages/core/src/db/connection.ts';
import { learnDistribution } from '../../../../packages/core/src/db/distribution.ts';
import { deriveApiKey } from '../../../../packages/core/src/keys/api-key.ts';
import { createKeys, type Keys } from '../../../../packages/core/src/keys/keys.ts';
import { createLedger, type Ledger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { newTransferId } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { keysOnBothWorkers, openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';

const BUCKETS = 16;
const GRANT = usdToMicros('10');

let database: SpreadDatabase;
let pools: Pools;
let ledger: Ledger;
let keys: Keys;
/** Accounts on both workers, one on each, with their keys. */
let customers: { id: bigint; bucket: number; apiKey: string }[];

before(async () => {
  if (withoutCitus !== false) return;
  database = await openSpreadDatabase();
  await database.distribute();
  pools = connectPools(database.url, 6);
  await learnDistribution(pools);
  ledger = createLedger(pools, Date.now, { accountBuckets: BUCKETS });
  keys = createKeys(pools.sql, Date.now, pools.distribution);
  const made = await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT });
  customers = await Promise.all(
    made.map(async (apiKey) => {
      const found = await keys.find(apiKey);
      assert(found !== null);
      return { id: found.accountId, bucket: found.bucket, apiKey };
    }),
  );
});
after(async () => {
  if (pools !== undefined) await endPools(pools, 1);
  await database?.close();
});

const grant = (accountId: bigint) =>
  ({
    id: newTransferId(Date.now()),
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'operator_grants',
    code: 'operator_grant',
    amountMicros: 1n,
  }) as const;

test('a coordinator whose part of a commit fails last leaves nothing on the worker', {
  skip: withoutCitus,
}, async () => {
  const { sql } = pools;
  const changes: ((transaction: Transaction, customer: (typeof customers)[number]) => Promise<unknown>)[] = [
    (transaction, { id }) => ledger.transferWithin(transaction, grant(id)),
    (transaction, { id }) => keys.freeze(transaction, id, 'operator', null),
    async (transaction, { id, bucket }) => {
      await ledger.lock(transaction, [id]);
      await transaction`
        update api_keys set label = 'torn' where bucket = ${bucket} and account_id = ${String(id)}`;
    },
    (transaction, { bucket }) => ledger.openAccount(transaction, bucket),
  ];
  const there = async () => {
    const [row] = await sql`
      select (select count(*) from ledger_accounts) as accounts, (select sum(credits_posted) from ledger_accounts) as credits,
             (select string_agg(status || coalesce(label, ''), ' ' order by id) from api_keys) as keys`;
    return row;
  };
  const before = await there();
  await sql`create table told (n integer)`;
  for (const customer of customers)
    for (const change of changes)
      await assert.rejects(
        sql.begin('isolation level serializable', async (transaction) => {
          // Each of two transactions reads what the other writes: the one that commits last fails, in its commit.
          await transaction`select count(*) from told`;
          await change(transaction, customer);
          await transaction`insert into told values (1)`;
          await sql.begin('isolation level serializable', async (other) => {
            await other`select count(*) from told`;
            await other`insert into told values (2)`;
          });
        }),
        { code: '40001' },
      );
  assert.deepEqual(await there(), before);
});

test('a key of a worker is rotated: the old one ends with the commit, of two at once one wins, and a frozen account keeps its own', {
  skip: withoutCitus,
}, async () => {
  const { sql } = pools;
  const fresh = () => createKeys(sql, Date.now, pools.distribution);
  const statusOf = async (apiKey: string) => {
    const found = await fresh().find(apiKey);
    return found === null ? null : (await keys.record(found.id))?.status;
  };
  for (const customer of customers) {
    const { id, bucket } = customer;
    const old = await keys.find(customer.apiKey);
    assert(old !== null);
    await keys.update(old.id, { label: 'mine', capPerDayMicros: 7n });
    const made = await Promise.all([keys.rotate(old.id), keys.rotate(old.id)]);
    const [won, ...others] = made.filter((key) => key !== null);
    assert(won !== undefined);
    assert.equal(others.length, 0, 'one of two wins');
    assert.equal(await statusOf(customer.apiKey), 'revoked');
    const found = await fresh().find(won.apiKey);
    assert.deepEqual([found?.accountId, found?.bucket], [id, bucket]);
    const { label, capPerDayMicros, status } = (await keys.record(found?.id ?? 0n)) ?? {};
    assert.deepEqual(
      { label, capPerDayMicros, status },
      { label: 'mine', capPerDayMicros: 7n, status: 'active' },
    );
    assert.equal(await keys.rotate(old.id), null, 'a key that has ended');
    customer.apiKey = won.apiKey;

    await sql.begin((transaction) => keys.freeze(transaction, id, 'operator', null));
    assert.equal(await keys.rotate(found?.id ?? 0n), null);
    const derived = deriveApiKey('secret', 'test', [String(id)]);
    const replaceAll = () => sql.begin((transaction) => keys.replaceAll(transaction, id, derived));
    assert.equal(await replaceAll(), null);
    await sql.begin((transaction) => keys.thaw(transaction, id, 'operator'));
    const [{ used } = { used: 0 }] = await sql<{ used: number }[]>`
      select count(*)::integer as used from api_keys where account_id = ${String(id)} and rotated_at is not null`;
    assert.equal(used, 1);
    let last = found?.id ?? 0n;
    for (let nth = used; nth < 24; nth++) {
      const next = await keys.rotate(last);
      last = (await fresh().find(next?.apiKey ?? ''))?.id ?? 0n;
    }
    await assert.rejects(keys.rotate(last), { code: 'KEY_ROTATED_TOO_OFTEN' });
    assert.equal((await keys.record(last))?.status, 'active', 'it goes on');
    assert.notEqual(await replaceAll(), null);
    assert.equal((await keys.record(last))?.status, 'revoked');
    assert.equal(await statusOf(derived.apiKey), 'active');
    customer.apiKey = derived.apiKey;
  }
});
