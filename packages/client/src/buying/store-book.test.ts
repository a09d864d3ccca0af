/** A book counts what was spent and what may be, and gives a purchase up only when no time that it was sent can have been paid. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileStore } from '../node.ts';
import { memoryStore, type Store } from '../store.ts';
import type { Book, Denial, Purchase } from './book.ts';
import { storeBook } from './store-book.ts';

const folder = mkdtempSync(join(tmpdir(), 'farebox-book-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const LONG_MS = 100_000;
const HOUR_MS = 3_600_000;
const UNCHARGED: Denial = { outcome: 'uncharged', endsAtMs: null };
const FREE = { dayMicros: null, serviceMicros: null };

/** Two processes with one store, on a day in 2026, and a clock. */
function twoOf(store: Store = memoryStore()) {
  const clock = { ms: Date.parse('2026-03-01T12:00:00Z') };
  const nowMs = () => clock.ms;
  return { one: storeBook(store, nowMs), two: storeBook(store, nowMs), clock, store };
}
const purchase = (id: string, micros: bigint, request = id): Purchase => ({
  id,
  request,
  micros,
  payment: '{}',
  service: 'ping',
});
const sent = async (book: Book, id: string) => (await book.sending(id, LONG_MS)) ?? assert.fail(id);

test('a limit holds for what is spent, open and held, whoever spent it', async () => {
  const { one, two } = twoOf();
  const limit = { dayMicros: 1_000_000n, serviceMicros: null };
  const first = purchase('first', 400_000n);
  await one.open(first, limit);
  await one.settle(first, false);
  await two.open(purchase('second', 600_000n), limit);
  assert.equal(await one.open(purchase('third', 1n), limit), 'above');
  assert.ok(await one.giveUp(await sent(one, 'second'), UNCHARGED));
  assert.equal(await one.todayMicros(), 400_000n);
  assert.equal(await one.todayMicros('ping'), 400_000n);
  assert.equal(await one.todayMicros('other'), 0n);
  assert.equal(await one.open(purchase('fourth', 1n), { dayMicros: null, serviceMicros: 400_000n }), 'above');
});

test('a request has one open purchase, which the next process finds', async () => {
  const { one, two, clock } = twoOf();
  const first = purchase('first', 1n, 'same');
  await one.open(first, FREE);
  assert.equal((await two.openFor('same'))?.id, 'first');
  assert.equal(((await two.open(purchase('second', 1n, 'same'), FREE)) as Purchase).id, 'first');
  await sent(two, 'first');
  await sent(one, 'first');
  await one.settle(first, false);
  assert.equal(await two.openFor('same'), null);
  // Its copy was answered with what had been sold before.
  assert.ok(await two.sending('first', LONG_MS), 'whoever shares it gets the answer');
  await two.settle(first, true);
  assert.equal(await one.todayMicros(), 1n);
  clock.ms += HOUR_MS;
  assert.equal(await two.sending('first', LONG_MS), null);
});

test('a purchase is given up only when no other time that it was sent can have been paid', async () => {
  for (const outcome of ['uncharged', 'refused'] as const) {
    const { one, clock } = twoOf();
    await one.open(purchase('first', 5n), FREE);
    const [a, b] = [await sent(one, 'first'), await sent(one, 'first')];
    assert.equal(await one.giveUp(a, { outcome, endsAtMs: null }), false, 'the other is on its way');
    await one.lost(b);
    const c = await sent(one, 'first');
    const isOver = outcome === 'refused';
    assert.equal(await one.giveUp(c, { outcome, endsAtMs: null }), isOver);
    assert.equal(await one.todayMicros(), isOver ? 0n : 5n);
    clock.ms += 25 * HOUR_MS;
    assert.equal(await one.todayMicros(), 0n, 'spent on the day on which it was sent last');
    assert.equal(await one.openFor('first'), null);
  }
});

test('a signed payment that a server says it did not take counts before and after its end', async () => {
  const { one, clock } = twoOf();
  const endsAtMs = clock.ms + HOUR_MS;
  for (const [id, outcome] of [
    ['refused', 'refused'],
    ['uncharged', 'uncharged'],
  ] as const) {
    await one.open(purchase(id, 7n), FREE);
    assert.ok(await one.giveUp(await sent(one, id), { outcome, endsAtMs }));
  }
  assert.equal(await one.openFor('refused'), null, 'bought anew');
  assert.equal((await one.openFor('uncharged'))?.id, 'uncharged', 'sent again');
  assert.equal(await one.todayMicros(), 14n);
  clock.ms += 2 * HOUR_MS;
  assert.equal(await one.todayMicros(), 14n);
  assert.equal(await one.openFor('uncharged'), null);
});

test('a time that cost nothing and is tried again leaves nothing behind', async () => {
  const { one } = twoOf();
  await one.open(purchase('first', 5n), FREE);
  await one.denied(await sent(one, 'first'));
  assert.ok(await one.giveUp(await sent(one, 'first'), UNCHARGED));
  assert.equal(await one.todayMicros(), 0n);
});

test('what is open is bounded, and none makes room for another', async () => {
  const { one } = twoOf();
  for (let n = 0; n < 1_000; n += 1) await one.open(purchase(`p${n}`, 1n), FREE);
  assert.equal(await one.open(purchase('more', 1n), FREE), 'full');
  assert.equal((await one.openFor('p0'))?.id, 'p0');
});

test('names are remembered up to a bound, and those of wallets are not forgotten for others', async () => {
  const store = memoryStore();
  const { one } = twoOf(store);
  const named = (id: string, payment: string): Purchase => ({ ...purchase(id, 1n), payment, kept: true });
  const ofKey = (n: number) => named(`k${n}`, '{"farebox/idempotencyKey":"a"}');
  const ofWallet = named('w', '{"x402/payment":{}}');
  await one.open(ofWallet, FREE);
  await one.settle(ofWallet, false);
  for (let n = 0; n < 502; n += 1) {
    await one.open(ofKey(n), FREE);
    await one.settle(ofKey(n), false);
  }
  assert.equal((await one.openFor('w'))?.id, 'w');
  assert.equal((await one.openFor('k501'))?.id, 'k501');
  const left = await Promise.all(Array.from({ length: 502 }, (_, n) => one.openFor(`k${n}`)));
  assert.equal(left.filter((each) => each !== null).length, 500);
});

test('a crash between two writes counts too much, and never too little', async () => {
  for (let writes = 1; writes < 9; writes += 1) {
    const store = memoryStore();
    let left = writes;
    const dying: Store = {
      ...store,
      set: (name, value) => (left-- > 0 ? store.set(name, value) : Promise.reject(new Error('dead'))),
      delete: (name) => (left-- > 0 ? store.delete(name) : Promise.reject(new Error('dead'))),
    };
    const { one } = twoOf(dying);
    const first = purchase('first', 5n);
    let isSent = false;
    try {
      await one.open(first, FREE);
      await sent(one, 'first');
      isSent = true;
      await one.settle(first, false);
    } catch {}
    const next = twoOf(store).one;
    const open = await next.openFor('first');
    if (isSent) assert.ok((await next.todayMicros()) >= 5n, `after ${writes} writes`);
    if (open === null) continue;
    assert.ok(await next.sending('first', LONG_MS), `it can be asked for again after ${writes} writes`);
    await next.settle(first, true);
    assert.ok((await next.todayMicros()) >= (isSent ? 5n : 0n));
    assert.equal(await next.openFor('first'), null);
  }
});

test('processes that share a folder buy the same once, and do not pass a limit together', async () => {
  const books = [1, 2, 3, 4].map(() => twoOf(fileStore(join(folder, 'shared'))).one);
  const limits = { dayMicros: 5n, serviceMicros: null };
  const opened = await Promise.all(
    books.flatMap((book, n) => [
      book.open(purchase(`same${n}`, 1n, 'same'), limits),
      book.open(purchase(`own${n}`, 2n), limits),
    ]),
  );
  const ids = opened.map((each) => (typeof each === 'string' ? each : each.id));
  assert.equal(new Set(ids.filter((id) => id.startsWith('same'))).size, 1);
  assert.equal(ids.filter((id) => id.startsWith('own')).length, 2);
});

test('a folder is for its owner alone, and a lock that a dead process left is taken', async () => {
  const path = join(folder, 'owned');
  const store = fileStore(path);
  await store.set('a', 'text');
  assert.equal(await store.get('a'), 'text');
  assert.equal(statSync(path).mode & 0o077, 0);
  assert.equal(statSync(join(path, 'a.json')).mode & 0o077, 0);
  await store.delete('a');
  assert.equal(await store.get('a'), null);
  await assert.rejects(async () => store.get('../a'));
  writeFileSync(join(path, 'lock'), '');
  utimesSync(join(path, 'lock'), 1, 1);
  assert.equal(await store.exclusively?.(async () => 'done'), 'done');
});
