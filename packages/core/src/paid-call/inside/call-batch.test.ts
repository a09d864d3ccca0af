/**
 * Holds the two lean functions against the general one: the same batches must have the same outcomes and leave the same
 * rows.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { proveBooks } from '../../../../../apps/shop/test/books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { createWeeks, type Weeks } from '../../db/weeks.ts';
import { transferIdFor } from '../../ledger/transfer-id.ts';
import { applyCalls, type CallWork, type CallWorkOutcome, isPlain } from './call-batch.ts';
import type { CallToBegin } from './call-steps.ts';

const RUNS = 40;
const START_MS = Date.parse('2026-01-31T23:59:58Z');
const HOUR_MS = 3_600_000;
/** What each account starts with. A call costs up to four, so many are refused for lack of money. */
const GRANTED_MICROS = 8;

/** One customer for each way in which a key can be limited, and two without a limit. */
const KEYS = [
  {},
  {},
  { status: 'revoked' },
  { status: 'frozen' },
  { expires_at: new Date(START_MS + 1_000).toISOString() },
  { cap_per_call_micros: 2 },
  { cap_per_day_micros: 4 },
] as const;
const FIRST_ACCOUNT = 5_000;

interface Act {
  /** Which call: a small number, so that the same calls come again. */
  call: number;
  kind: 'begin' | 'capture' | 'release';
  identity: number | null;
  request: number;
  keepsAnswer: boolean;
  withKey: boolean;
}

const act: fc.Arbitrary<Act> = fc.record({
  call: fc.nat(40),
  kind: fc.constantFrom('begin', 'begin', 'capture', 'release'),
  identity: fc.option(fc.nat(1), { freq: 2 }),
  request: fc.constantFrom(0, 0, 1),
  keepsAnswer: fc.boolean(),
  withKey: fc.boolean(),
});

/**
 * Calls of one account differ by seven. These fixed turns already produce every outcome; the random ones only add to
 * them.
 */
const EVERY_OUTCOME: Act[][] = [
  [{ call: 1, identity: 0 }, { call: 2 }, { call: 3 }, { call: 19 }, { call: 7 }],
  [{ call: 8, identity: 0 }, { call: 4 }, { call: 7, kind: 'capture' as const }],
  [{ call: 15, identity: 0, request: 1 }, { call: 1, kind: 'capture' as const }, { call: 35 }],
  [{ call: 22, identity: 0 }, { call: 14 }, { call: 7, kind: 'release' as const }, { call: 6 }],
  [{ call: 13 }],
].map((turn) =>
  turn.map((each) => ({
    kind: 'begin',
    identity: null,
    request: 0,
    keepsAnswer: true,
    withKey: true,
    ...each,
  })),
);

interface World {
  database: TestDatabase;
  plainly: (work: CallWork) => boolean;
  weekOf?: Weeks['of'];
  apart?: boolean;
}
let worlds: World[] = [];
before(async () => {
  const [lean, general, ofWeek, apart] = await Promise.all([
    openTestDatabase(),
    openTestDatabase(),
    openTestDatabase(),
    openTestDatabase(),
  ]);
  const weeks = createWeeks(ofWeek);
  await weeks.make(START_MS);
  assert(weeks.of([idOf(0)]) !== null && weeks.of([idOf(0), idOf(4)]) === null);
  worlds = [
    { database: lean, plainly: () => true },
    { database: general, plainly: () => false },
    { database: ofWeek, plainly: isPlain, weekOf: weeks.of },
    { database: apart, plainly: () => true, apart: true },
  ];
});
after(() => Promise.all(worlds.map(({ database }) => database.close())));

async function startAnew({ database: { sql, patient } }: World): Promise<void> {
  // Emptying as many tables as there are weeks may take a while.
  await patient.unsafe(`
    truncate calls, call_identities, call_answers, call_spending, ledger_transfers, api_keys, trial_claims, account_freezes
      restart identity;
    delete from ledger_accounts where not house;
    insert into ledger_accounts (id, house, credits_posted)
      select ${FIRST_ACCOUNT} + n, false, ${GRANTED_MICROS} from generate_series(0, ${KEYS.length - 1}) n;
    insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
      select id, gen_random_uuid(), 1, 4, id, credits_posted, 'operator_grant', now() from ledger_accounts where not house`);
  for (const [index, key] of KEYS.entries()) {
    await sql`insert into api_keys ${sql({
      account_id: String(FIRST_ACCOUNT + index),
      lookup: String(index),
      digest: Buffer.alloc(32, index),
      prefix: 'test',
      kind: 'paid',
      created_at: new Date(START_MS).toISOString(),
      ...key,
    })}`;
  }
  await sql`
    insert into account_freezes (account_id, cause, note, created_at)
    select account_id, 'operator', 'test', created_at from api_keys where status = 'frozen'`;
}

/** The id of a call. Of five calls one is of the week after. */
function idOf(call: number): string {
  const atMs = START_MS + (call % 5 === 4 ? 604_800_000 : 0);
  const [, , , ...rest] = transferIdFor(`call ${call}`).split('-');
  const hex = atMs.toString(16).padStart(12, '0');
  return [hex.slice(0, 8), hex.slice(8), '7000', ...rest].join('-');
}

function workOf({ call, kind, identity, request, keepsAnswer, withKey }: Act): CallWork {
  // Everything about a call is random but its account and price, which the callers of the store never change.
  const account = call % KEYS.length;
  const common = {
    id: idOf(call),
    accountId: BigInt(FIRST_ACCOUNT + account),
    bucket: 0,
    service: `service-${call % 3}`,
    priceMicros: BigInt(1 + (call % 4)),
    revenue: 'revenue_credits',
  } as const;
  if (kind !== 'begin') {
    const answer = { status: 200, headers: { a: '1' }, body: `{"call":${call}}` };
    const capture = kind === 'capture';
    return {
      kind: 'finish',
      call: { ...common, capture, outcome: kind, answer: keepsAnswer ? answer : null },
    };
  }
  const name = identity === null ? null : `payment ${identity}`;
  const begin: CallToBegin = {
    ...common,
    keyId: withKey ? BigInt(account + 1) : null,
    rail: 'credits',
    identity: name,
    onChainIdentity: null,
    fingerprint: name === null ? null : createHash('sha256').update(String(request)).digest(),
    ttlMs: 60_000,
  };
  return { kind: 'begin', call: begin };
}

/** What group commit may send together: no call twice, and no payment twice. */
function batchOf(acts: readonly Act[]): CallWork[] {
  const taken = new Set<string>();
  return acts.map(workOf).filter(({ kind, call }) => {
    const names = [call.id];
    if (kind === 'begin' && call.identity !== null) names.push(`${call.accountId} ${call.identity}`);
    if (names.some((name) => taken.has(name))) return false;
    for (const name of names) taken.add(name);
    return true;
  });
}

/**
 * For a call that was ended before, the general function tells the balance after the begins of the batch, and the lean
 * one the balance before them, because it runs the finishes first. Such balances are left out of the comparison.
 */
function comparable(batch: readonly CallWork[], outcomes: readonly CallWorkOutcome[] = []) {
  const begins = new Set(batch.filter(({ kind }) => kind === 'begin').map(({ call }) => call.accountId));
  return outcomes.map((outcome, index) => {
    const work = batch[index];
    return work?.kind === 'finish' && begins.has(work.call.accountId) ? outcome.status : outcome;
  });
}

async function rowsOf({ database: { sql } }: World): Promise<unknown> {
  return [
    await sql`select account_id, id, state, rail, key_id, service, price_micros, identity, payment_key,
              encode(fingerprint, 'hex') as fingerprint, created_at, expires_at, finished_at, outcome, holder
              from calls order by 1, 2`,
    await sql`select account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at
              from ledger_transfers where code = 'call' order by 1, 2, 3`,
    await sql`select id, debits_pending, debits_posted, credits_pending, credits_posted from ledger_accounts order by 1`,
    await sql`select * from call_spending order by 1, 2, 3`,
    await sql`select * from call_answers order by 1, 2`,
    await sql`select * from call_identities order by 1, 2, 3`,
  ].map((rows) => [...rows]);
}

test('random batches have the same outcomes and leave the same rows, whichever functions run them', async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(act, { minLength: 1, maxLength: 24 }), { minLength: 2, maxLength: 12 }),
      async (program) => {
        await Promise.all(worlds.map(startAnew));
        for (const [turn, acts] of program.entries()) {
          const batch = batchOf(acts);
          // The second turn is on another day, which is the last day of one key.
          const settings = { answerTtlMs: HOUR_MS, nowMs: START_MS + turn * 1_500, holder: 7n };
          const [lean, general, ofWeek, apart] = await Promise.all(
            worlds.map(({ database, plainly, weekOf, apart = false }) =>
              applyCalls(database.commits, batch, { ...settings, weekOf, apart }, plainly),
            ),
          );
          assert.deepEqual(comparable(batch, lean), comparable(batch, general));
          assert.deepEqual(ofWeek, lean);
          assert.deepEqual(apart, lean);
          for (const { status } of lean ?? []) seen.add(status);
        }
        const [lean, general, ofWeek, apart] = await Promise.all(worlds.map(rowsOf));
        assert.deepEqual(lean, general);
        assert.deepEqual(ofWeek, general);
        assert.deepEqual(apart, general);
      },
    ),
    { numRuns: RUNS, endOnFailure: true, examples: [[EVERY_OUTCOME]] },
  );
  // Guards against a comparison of batches in which nothing happens.
  const expected = [
    'authorized',
    'insufficient',
    'above_day_cap',
    'above_call_cap',
    'key_revoked',
    'key_expired',
  ];
  expected.push('key_frozen', 'answered', 'running', 'other_request', 'done', 'not_open');
  assert.deepEqual([...seen].sort(), expected.sort());
  for (const { database } of worlds) {
    const { checks } = await proveBooks(database.patient);
    assert.deepEqual(
      checks.filter(({ ok }) => !ok),
      [],
    );
  }
});

test('a replica that counts for the day before lets nobody spend more on the day that has begun', async () => {
  for (const world of worlds) {
    await startAnew(world);
    const at = async (nowMs: number, kind: Act['kind'], call: number) => {
      const settings = { answerTtlMs: HOUR_MS, nowMs, holder: 7n };
      const works = [workOf({ ...EVERYDAY, kind, call })];
      const [outcome] = await applyCalls(world.database.commits, works, settings, world.plainly);
      return outcome?.status;
    };
    const [before, after] = [START_MS, START_MS + 4_000];
    // Of the key that may spend four a day: three, by the replica whose clock is ahead.
    assert.equal(await at(after, 'begin', 6), 'authorized');
    assert.equal(await at(after, 'capture', 6), 'done');
    // Two more end on that day too, whenever they begin; one is left.
    assert.equal(await at(before, 'begin', 13), 'above_day_cap');
    assert.equal(await at(before, 'begin', 20 + 28), 'authorized');
    assert.equal(await at(after, 'capture', 20 + 28), 'done');
  }
});

test('a key that has been forgotten is revoked to whoever still knows it, also for a payment that was answered', async () => {
  for (const world of worlds) {
    await startAnew(world);
    const at = async (kind: Act['kind'], call: number) => {
      const settings = { answerTtlMs: HOUR_MS, nowMs: START_MS, holder: 7n };
      const works = [workOf({ ...EVERYDAY, kind, call, identity: 0 })];
      const [outcome] = await applyCalls(world.database.commits, works, settings, world.plainly);
      return outcome?.status;
    };
    assert.equal(await at('begin', 0), 'authorized');
    assert.equal(await at('capture', 0), 'done');
    await world.database.sql`delete from api_keys where id = 1`;
    assert.equal(await at('begin', 0), 'key_revoked');
    assert.equal(await at('begin', KEYS.length), 'key_revoked');
    // Calls that no key pays for have none to be forgotten.
    const works = [workOf({ ...EVERYDAY, kind: 'begin', call: 2 * KEYS.length, withKey: false })];
    const settings = { answerTtlMs: HOUR_MS, nowMs: START_MS, holder: 7n };
    const [keyless] = await applyCalls(world.database.commits, works, settings, world.plainly);
    assert.equal(keyless?.status, 'authorized');
  }
});

const SETTINGS = { answerTtlMs: HOUR_MS, nowMs: START_MS, holder: 7n };

test('what somebody else holds is left as it is and told so, and all else of the batch is done at once', async () => {
  for (const world of worlds) {
    await startAnew(world);
    const { database, plainly, weekOf, apart = false } = world;
    const apply = async (...acts: Pick<Act, 'kind' | 'call'>[]) => {
      const works = acts.map((each) => workOf({ ...EVERYDAY, ...each }));
      const outcomes = await applyCalls(database.commits, works, { ...SETTINGS, weekOf, apart }, plainly);
      return outcomes.map(({ status }) => status);
    };
    await apply({ kind: 'begin', call: 0 }, { kind: 'begin', call: 1 });
    const before = await accountsOf(database);
    await database.sql.begin(async (another) => {
      await another`select 1 from ledger_accounts where id = ${FIRST_ACCOUNT} for no key update`;
      assert.deepEqual(
        await apply(
          ...([0, 1, 2 * KEYS.length] as const).map((call) => ({ kind: 'capture', call }) as const),
          ...([KEYS.length, KEYS.length + 1] as const).map((call) => ({ kind: 'begin', call }) as const),
        ),
        ['locked', 'done', 'locked', 'locked', 'authorized'],
      );
    });
    const [held, other] = await accountsOf(database);
    assert.deepEqual(held, before[0]);
    assert.deepEqual(other, { pending: 1n, posted: 2n });
    assert.deepEqual(await apply({ kind: 'capture', call: 0 }), ['done']);
  }
});

test('a call whose transfer is over another amount is ended by nobody', async () => {
  for (const world of worlds) {
    await startAnew(world);
    const { database, plainly, weekOf, apart = false } = world;
    const apply = (kind: Act['kind']) =>
      applyCalls(
        database.commits,
        [workOf({ ...EVERYDAY, kind, call: 0 })],
        { ...SETTINGS, weekOf, apart },
        plainly,
      );
    await apply('begin');
    await database.sql`update ledger_transfers set amount_micros = amount_micros + 1 where code = 'call'`;
    const before = await accountsOf(database);
    for (const kind of ['capture', 'release'] as const) await assert.rejects(apply(kind));
    assert.deepEqual(await accountsOf(database), before);
    const [call] = await database.sql<{ state: number }[]>`select state from calls`;
    assert.equal(call?.state, 0);
    await database.sql`update ledger_transfers set amount_micros = amount_micros - 1 where code = 'call'`;
  }
});

async function accountsOf({ sql }: TestDatabase) {
  const rows = await sql<{ pending: bigint; posted: bigint }[]>`
    select debits_pending as pending, debits_posted as posted from ledger_accounts where not house order by id`;
  return [...rows];
}

test('a plan that was made while the tables were empty still looks rows up by their key when they are not', async () => {
  const { database } = worlds[0] as World;
  await startAnew({ database, plainly: isPlain });
  await database.patient`update ledger_accounts set credits_posted = 1000000 where not house`;
  // Autovacuum does this sooner or later on a new installation. From then on the planner knows that the tables are
  // empty.
  for (const table of ['calls', 'ledger_transfers', 'ledger_accounts', 'api_keys', 'call_answers'])
    await database.patient.unsafe(`vacuum analyze ${table}`);
  const [{ before = 0n } = {}] = await database.patient<{ before: bigint }[]>`${readRows(database)}`;
  const settings = { answerTtlMs: HOUR_MS, nowMs: START_MS, holder: 7n };
  const [batches, size] = [40, 32];
  for (let batch = 0; batch < batches; batch++) {
    const works = (kind: Act['kind']) =>
      Array.from({ length: size }, (_, index) =>
        // All calls are of the first account, so a plan that reads an account's rows reads all of them.
        workOf({ ...EVERYDAY, kind, call: (batch * size + index) * KEYS.length }),
      );
    await applyCalls(database.commits, works('begin'), settings);
    await applyCalls(database.commits, works('capture'), settings);
  }
  await database.commits`select pg_stat_force_next_flush()`;
  const [{ before: after = 0n } = {}] = await database.patient<{ before: bigint }[]>`${readRows(database)}`;
  const perCall = Number(after - before) / (batches * size);
  assert(perCall < 20, `${perCall} rows were read for each call`);
});

const EVERYDAY: Omit<Act, 'call' | 'kind'> = {
  identity: null,
  request: 0,
  keepsAnswer: false,
  withKey: true,
};

/** How many rows were read by way of an index since the counters began. */
const readRows = ({ patient }: TestDatabase) =>
  patient`select sum(idx_tup_read)::bigint as before from pg_stat_user_indexes`;
