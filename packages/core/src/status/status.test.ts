/** The spells of the status, as two replicas note them, and as callers see them. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { type Component, statusDocument, statusPage } from './page.ts';
import { componentsOf } from './part.ts';
import { forgetSpells, MOST_SHOWN, noteDown, readSpells } from './spells.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 10, 1);
const KNOWN = ['server', 'service:a', 'service:b', 'chain:b'];
let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());
afterEach(async () => {
  await database.sql`delete from status_spells`;
  await database.sql`delete from status_looks`;
});

const note = (minute: number, ...down: string[]) =>
  noteDown(database.sql, down, START_MS + minute * MINUTE_MS);
const spells = async (minute: number) =>
  (await readSpells(database.sql, KNOWN, START_MS + minute * MINUTE_MS)).spells.map(
    ({ component, beganAtMs, endedAtMs }) => [
      component,
      (beganAtMs - START_MS) / MINUTE_MS,
      endedAtMs === null ? null : (endedAtMs - START_MS) / MINUTE_MS,
    ],
  );

test('a spell lasts from the first look that found it to the last, whichever replica looked', async () => {
  await note(0, 'service:a');
  // Another replica can use it.
  await note(0.5);
  await note(1, 'service:a');
  await note(2);
  assert.deepEqual(await spells(2), [['service:a', 0, null]]);
  await note(4);
  assert.deepEqual(await spells(4), [['service:a', 0, null]]);
  await note(4.5);
  assert.deepEqual(await spells(5), [['service:a', 0, 1]]);
  await note(6, 'service:a');
  assert.deepEqual(await spells(6), [
    ['service:a', 6, null],
    ['service:a', 0, 1],
  ]);
});

test('two replicas that find the same at once note it once', async () => {
  await Promise.all(Array.from({ length: 8 }, () => note(0, 'chain:b', 'service:a')));
  assert.deepEqual(await spells(1), [
    ['chain:b', 0, null],
    ['service:a', 0, null],
  ]);
});

test('a time without any look is one without a server, noted once', async () => {
  await note(0);
  await note(2);
  assert.deepEqual(await spells(2), []);
  await Promise.all([note(60), note(60), note(60)]);
  await note(61);
  assert.deepEqual(await spells(61), [['server', 2, 60]]);
});

test('nothing is kept or shown longer than 90 days after its end, but what lasts is', async () => {
  await note(0, 'service:a');
  await note(10);
  for (let minute = 0; minute < 2; minute++) await note(10 + minute, 'service:b');
  const laterMs = START_MS + 91 * DAY_MS;
  const read = await readSpells(database.sql, KNOWN, laterMs);
  assert.deepEqual(
    read.spells.map((each) => each.component),
    ['service:b'],
  );
  // What lasted, and the ten minutes without a look.
  assert.equal(await forgetSpells(database.sql, laterMs), 2);
  const left = await database.sql`select component from status_spells`;
  assert.deepEqual(
    left.map(({ component }) => component),
    ['service:b'],
  );
});

test('shows a bounded number of what there still is, and says how many there are', async () => {
  const many = Array.from({ length: MOST_SHOWN + 7 }, (_, n) => `service:${n}`);
  await note(0, ...many, 'service:withdrawn');
  const read = await readSpells(database.sql, many, START_MS);
  assert.deepEqual([read.spells.length, read.total], [MOST_SHOWN, MOST_SHOWN + 7]);
  const page = statusPage(statusDocument([], read, { nowMs: START_MS, version: '1' }));
  assert.match(page.main, /The latest 100 of 107\./);
});

const component = (id: string, up: boolean): Component => ({ id, kind: 'service', name: `${id} <b>`, up });
const shown = (components: readonly Component[], read: Parameters<typeof statusDocument>[1]) =>
  statusDocument(components, read, { nowMs: START_MS, version: '1' });
const NONE = { spells: [], total: 0 };

test('tells everything from something and from nothing', () => {
  assert.equal(shown([component('a', true)], NONE).state, 'up');
  assert.equal(shown([component('a', true), component('b', false)], NONE).state, 'partly');
  assert.equal(shown([component('a', false)], NONE).state, 'down');
});

test('says that nobody knows while the database cannot be read', () => {
  const status = shown([component('a', true)], null);
  assert.deepEqual([status.state, status.incidents, status.incidentsTotal], ['partly', null, null]);
  assert.match(statusPage(status).main, /nobody knows/);
});

test('a name is text on the page', () => {
  const spell = { component: 'a', beganAtMs: START_MS, endedAtMs: null };
  const { main } = statusPage(shown([component('a', false)], { spells: [spell], total: 1 }));
  assert.doesNotMatch(main, /<b>|<i>/);
});

test('while the shop is shut nothing can be used, and a way to pay needs one of its chains', () => {
  const sales = { catalog: () => [{ path: 'a', name: 'A', available: true }] };
  const chain = (network: string, offered: boolean) => ({ network, offered, reason: null, sinceMs: null });
  let why: string | null = null;
  const parts = () => [
    { name: 'one', shut: () => why },
    { name: 'x', railStandings: () => [chain('eip155:1', false), chain('eip155:2', true)] },
    { name: 'y', railStandings: () => [chain('eip155:1', false)] },
  ];
  const up = () => componentsOf({ sales, parts }).flatMap(({ id, up: usable }) => (usable ? [id] : []));
  assert.deepEqual(up(), ['service:a', 'rail:x', 'chain:eip155:2:x']);
  why = 'because';
  assert.deepEqual(up(), []);
  assert.equal(shown(componentsOf({ sales, parts }), NONE).state, 'down');
});
