/** A key is found by the whole of its text alone, at little cost wherever it is, and one that there is not costs no more. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import type { Database } from '../db/connection.ts';
import { createLedger, type Ledger } from '../ledger/ledger.ts';
import { bucketNamedBy, digestOf, newApiKey } from './api-key.ts';
import { createKeySearch, type StoredKeyRow } from './key-search.ts';
import { createKeys, type Keys } from './keys.ts';
import { bucketOfBuyer, recordRootBuyer } from './root-buyer.ts';

let database: TestDatabase;
let ledger: Ledger;
let keys: Keys;
before(async () => {
  database = await openTestDatabase();
  ledger = createLedger(database, Date.now, { accountBuckets: 8 });
  keys = createKeys(database.sql, Date.now);
});
after(() => database?.close());

const open = (bucket: number) => database.sql.begin((transaction) => ledger.openAccount(transaction, bucket));
const wanted = (apiKey: string) => ({ lookup: digestOf(apiKey).lookup, bucket: bucketNamedBy(apiKey) });
const freshKeys = () => createKeys(database.sql, Date.now);
/** A search that counts how often it looks over all. */
function countedSearch() {
  let overAll = 0;
  const ask = (strings: TemplateStringsArray, ...values: string[]) => {
    if (strings.join('').includes('any(')) overAll += 1;
    return database.sql(strings, ...values);
  };
  const search = createKeySearch(ask as unknown as Database);
  return { find: search.find, overAll: () => overAll };
}
/** The same key, but for the digits that name its bucket. */
const named = (apiKey: string, bucket: number) => apiKey.slice(0, -3) + bucket.toString(16).padStart(3, '0');

test('a key names the bucket of its account, is found there, and so is the key that replaces it', async () => {
  const accountId = await open(5);
  const key = { accountId, kind: 'paid', label: null, expiresAtMs: null } as const;
  const { apiKey } = await database.sql.begin((transaction) => keys.issue(transaction, key));
  assert.equal(bucketNamedBy(apiKey), 5);
  const search = countedSearch();
  const row = await search.find(wanted(apiKey));
  assert.deepEqual([row?.account_id, row?.bucket, search.overAll()], [accountId, 5, 0]);
  const found = await keys.find(apiKey);
  assert.deepEqual([found?.accountId, found?.bucket], [accountId, 5]);
  const rotated = await keys.rotate(found?.id ?? 0n);
  assert(rotated !== null);
  const next = await freshKeys().find(rotated.apiKey);
  assert.deepEqual([bucketNamedBy(rotated.apiKey), next?.bucket, next?.accountId], [5, 5, accountId]);
  const stored = digestOf(newApiKey(5).apiKey);
  await database.sql.begin((transaction) => keys.replaceAll(transaction, accountId, stored));
  const [last] = await database.sql`select bucket from api_keys where lookup = ${String(stored.lookup)}`;
  assert.equal(last?.bucket, 5);
});

test('a key that names another bucket, or none, is found by the search over all', async () => {
  const accountId = await open(6);
  const older = newApiKey(4);
  await database.sql.begin((transaction) =>
    keys.admit(transaction, { accountId, kind: 'paid', label: null, stored: digestOf(older.apiKey) }),
  );
  const search = countedSearch();
  const row = await search.find(wanted(older.apiKey));
  assert.deepEqual([row?.account_id, row?.bucket, search.overAll()], [accountId, 6, 1]);
  const found = await freshKeys().find(older.apiKey);
  assert.deepEqual([found?.accountId, found?.bucket], [accountId, 6]);
});

test('whoever changes the digits of the bucket has no key any more', async () => {
  const accountId = await open(7);
  const key = { accountId, kind: 'paid', label: null, expiresAtMs: null } as const;
  const { apiKey } = await database.sql.begin((transaction) => keys.issue(transaction, key));
  for (const bucket of [0, 1, 6, 4_095]) assert.equal(await freshKeys().find(named(apiKey, bucket)), null);
  assert.equal((await freshKeys().find(named(apiKey, 7)))?.accountId, accountId);
});

test('however many ask for keys that there are not, one search over all is under way, and it is bounded', async () => {
  const searches: { lookups: string; answer(rows: StoredKeyRow[]): void }[] = [];
  // The statements of a search: in one bucket, where nothing is found, or over all, when the test says so.
  const ask = ({ length }: TemplateStringsArray, ...values: unknown[]) =>
    length === 3
      ? Promise.resolve([])
      : new Promise<StoredKeyRow[]>((answer) => searches.push({ lookups: String(values[0]), answer }));
  const search = createKeySearch(ask as unknown as Database);
  const turns = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const first = search.find({ lookup: 1n, bucket: 0 });
  await turns();
  const others = Array.from({ length: 3_000 }, (_, nth) =>
    search.find({ lookup: BigInt(nth + 2), bucket: 0 }).catch((error: { code?: string }) => error.code),
  );
  await turns();
  assert.equal(searches.length, 1);
  searches[0]?.answer([]);
  assert.equal(await first, null);
  await turns();
  assert.equal(searches.length, 2);
  assert.equal(searches[1]?.lookups.split(',').length, 256);
  for (let sent = 1; sent < searches.length; sent++) {
    searches[sent]?.answer([]);
    await turns();
  }
  const told = await Promise.all(others);
  assert.equal(told.filter((each) => each === 'BUSY').length, 3_000 - 2_048);
  assert.equal(told.filter((each) => each === null).length, 2_048);
});

test('whoever waits behind a search that gets no answer is told that the database does not answer', async () => {
  const ask = ({ length }: TemplateStringsArray) =>
    length === 3 ? Promise.resolve([]) : new Promise<StoredKeyRow[]>(() => {});
  const search = createKeySearch(ask as unknown as Database);
  const sent = search.find({ lookup: 1n, bucket: 0 });
  const behind = new Promise((resolve) => setImmediate(resolve)).then(() =>
    search.find({ lookup: 2n, bucket: 0 }),
  );
  for (const asked of [sent, behind])
    await assert.rejects(asked, { status: 503, code: 'DATABASE_UNAVAILABLE' });
});

test('a buyer has one bucket: that of its account, or of the first account that its wallet bought', async () => {
  const [payer, bought] = [await open(2), await open(3)];
  assert.equal(await bucketOfBuyer(database.sql, { accountId: payer }), 2);
  const wallet = `0x${'Ab'.repeat(20)}`;
  assert.equal(await bucketOfBuyer(database.sql, { wallet }), null);
  await database.sql.begin((transaction) => recordRootBuyer(transaction, bought, { wallet }));
  const second = await open(4);
  await database.sql.begin((transaction) => recordRootBuyer(transaction, second, { wallet }));
  assert.equal(await bucketOfBuyer(database.sql, { wallet: wallet.toLowerCase() }), 3);
});
