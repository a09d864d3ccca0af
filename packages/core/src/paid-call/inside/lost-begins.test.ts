/**
 * Begins that a crash of the database may forget: PostgreSQL is killed under calls, and a follower takes over from it. What was
 * captured is there, and what was begun and is lost is uncharged, wherever it is tried again.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { proveBooks } from '../../../../../apps/shop/test/books.fixture.ts';
import { isDeep } from '../../../../../apps/shop/test/fire/depth.fixture.ts';
import { balanceOf } from '../../../../../apps/shop/test/fire/money.fixture.ts';
import { until } from '../../../../../apps/shop/test/fire/until.fixture.ts';
import { MortalPostgres } from '../../../../../apps/shop/test/mortal-postgres.fixture.ts';
import { connectPools, endPools, type Pools } from '../../db/connection.ts';
import { migrate } from '../../db/migrate.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import { createLedger } from '../../ledger/ledger.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import { isKept } from '../kept-payment.ts';
import { applyCalls, type CallWork } from './call-batch.ts';
import type { CallToBegin } from './call-steps.ts';
import { type CallStore, createCallStore } from './calls.ts';

const GRANTED = 1_000_000_000n;
const PRICE = 10_000n;
const KILLS = isDeep ? 1_000 : 6;
const CALLS_AT_ONCE = 12;
/** A follower that never answers: what waits for it is not durable, and nobody sees it. */
const NOBODY_FOLLOWS = { synchronous_standby_names: 'nobody' };
const FINGERPRINT = Buffer.alloc(32, 7);
const ANSWER = { status: 200, headers: {}, body: '{"it":"is"}' };

/** One process that sells, with its connections. */
interface Replica {
  pools: Pools;
  calls: CallStore;
}

let primary: MortalPostgres;
let customer: bigint;
let others: bigint[];
const opened: Replica[] = [];
before(async () => {
  primary = await MortalPostgres.make();
  await primary.start();
  const { pools } = replicaAt(primary);
  await migrate(pools.patient);
  customer = await openCustomer(pools);
  others = [await openCustomer(pools), await openCustomer(pools), await openCustomer(pools)];
});
after(async () => {
  await Promise.all(opened.map(({ pools }) => endPools(pools, 0)));
  await primary?.remove();
});

function replicaAt({ url }: MortalPostgres): Replica {
  const pools = connectPools(url, 4);
  const replica = { pools, calls: createCallStore(pools, { nowMs: Date.now, answerTtlMs: 60_000 }) };
  opened.push(replica);
  return replica;
}

async function openCustomer(pools: Pools): Promise<bigint> {
  const ledger = createLedger(pools, Date.now);
  const id = await pools.sql.begin((transaction) => ledger.openAccount(transaction));
  await ledger.transfer({
    id: newTransferId(Date.now()),
    accountId: id,
    phase: 'posted',
    side: 'credit',
    house: 'operator_grants',
    amountMicros: GRANTED,
    code: 'operator_grant',
  });
  return id;
}

/** @param identity what names the call, so that it can be sent again */
const callOf = (identity: string, more: Partial<CallToBegin> = {}): CallToBegin => ({
  id: newTransferId(Date.now()),
  accountId: customer,
  bucket: 0,
  keyId: null,
  rail: 'credits',
  service: 'ping',
  priceMicros: PRICE,
  revenue: 'revenue_credits',
  identity,
  onChainIdentity: null,
  fingerprint: FINGERPRINT,
  ttlMs: 60_000,
  mayBeLost: true,
  ...more,
});

const chainCallOf = (identity: string): CallToBegin =>
  callOf(identity, {
    accountId: HOUSE_ACCOUNTS.chain_clearing,
    bucket: 0,
    rail: 'x402',
    revenue: 'revenue_x402',
    onChainIdentity: identity,
  });

const captureOf = (call: CallToBegin) => ({ ...call, capture: true, outcome: 'answered', answer: ANSWER });

const keepOf = ({ id, accountId, rail }: CallToBegin, mayBeLost = false) => ({
  id,
  mayBeLost,
  accountId,
  bucket: 0,
  rail,
  leaseMs: 1_000,
  answer: ANSWER,
  payment: {
    identity: id,
    network: 'eip155:8453',
    asset: '0xaa',
    payer: '0xbb',
    payTo: '0xcc',
    amountUnits: PRICE,
    evidence: {},
    deadAfterMs: Date.now() + 60_000,
  },
});

const newName = () => `key:${randomBytes(8).toString('hex')}`;

async function killAndStart(settings = {}): Promise<void> {
  await primary.kill();
  await primary.start(settings);
}

/** Asks until there is somebody who answers. */
async function insist<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (tries === 50) throw error;
      await sleep(50);
    }
  }
}

const fateOf = ({ calls }: Replica, { accountId, identity }: CallToBegin) =>
  calls.look({ accountId, keyId: null, identity: String(identity), onChainIdentity: null }, FINGERPRINT);

/**
 * Begins calls and kills the database at once, so that it forgets them. Now and then its own writer is quicker, at most once in ten
 * seconds.
 */
async function lostBegins(here: Replica, calls: () => CallToBegin[]): Promise<CallToBegin[]> {
  for (let tries = 0; tries < 10; tries++) {
    const begun = calls();
    for (const call of begun) assert.equal((await insist(() => here.calls.begin(call))).status, 'authorized');
    await killAndStart();
    const fates = await Promise.all(begun.map((call) => insist(() => fateOf(here, call))));
    if (fates.every((fate) => fate === null)) return begun;
    for (const call of begun) await here.calls.finish({ ...captureOf(call), capture: false });
  }
  assert.fail('no begin was lost');
}

test('a lost begin is uncharged wherever its end arrives, and its key buys once on another replica', async () => {
  const [here, there] = [replicaAt(primary), replicaAt(primary)];
  const before = await balanceOf(here.pools.sql, customer);
  for (const ends of [here, there]) {
    const lost = await lostBegins(here, () => [callOf(newName()), chainCallOf(newName())]);
    const [call, onChain] = lost;
    assert(call !== undefined && onChain !== undefined);
    assert.equal((await ends.calls.finish(captureOf(call))).status, 'not_open');
    assert.equal((await ends.calls.finish({ ...captureOf(call), capture: false })).status, 'not_open');
    assert.equal((await ends.calls.keep(keepOf(onChain))).status, 'not_open');
    assert.equal(await fateOf(there, call), null);
    const again = callOf(String(call.identity));
    assert.equal((await there.calls.begin(again)).status, 'authorized');
    assert.equal((await there.calls.finish(captureOf(again))).status, 'done');
    assert.equal((await here.calls.finish(captureOf(call))).status, 'not_open');
    const onChainAgain = chainCallOf(String(onChain.identity));
    assert.equal((await there.calls.begin(onChainAgain)).status, 'authorized');
    assert.equal((await there.calls.keep(keepOf(onChainAgain))).status, 'kept');
  }
  assert.equal(await balanceOf(here.pools.sql, customer), before - 2n * PRICE);
  await proveBooks(here.pools.patient);
});

test('a begin is durable as soon as anything was committed after it, on whichever connection', async () => {
  const [here, there] = [replicaAt(primary), replicaAt(primary)];
  const call = callOf(newName());
  assert.equal((await here.calls.begin(call)).status, 'authorized');
  await there.pools.sql`create table committed_later ()`;
  await killAndStart();
  assert.equal((await insist(() => there.calls.finish(captureOf(call)))).status, 'done');
  const again = await here.calls.begin(callOf(String(call.identity)));
  assert.deepEqual(again, { status: 'answered', callId: call.id });
});

test('a keep that is lost moves no money: the commit that would asks for it', async () => {
  const here = replicaAt(primary);
  const { sql } = here.pools;
  const isThere = async ({ onChainIdentity }: CallToBegin) => {
    const [row] = await insist(
      () => sql<{ kept: boolean }[]>`select ${isKept(sql, String(onChainIdentity))} as kept`,
    );
    return row?.kept === true;
  };
  for (let tries = 0; ; tries++) {
    const durable = chainCallOf(newName());
    const lost = chainCallOf(newName());
    for (const each of [durable, lost]) await insist(() => here.calls.begin(each));
    assert.equal((await here.calls.keep(keepOf(durable))).status, 'kept');
    assert.equal((await here.calls.keep(keepOf(lost, true))).status, 'kept');
    assert.deepEqual([await isThere(durable), await isThere(lost)], [true, true]);
    await killAndStart();
    assert.equal(await isThere(durable), true);
    const isLost = !(await isThere(lost));
    // It is begun and not kept: nothing of it was paid.
    const settled = { transaction: '0xaa', blockNumber: 1n };
    if (isLost)
      assert.equal(
        (await here.calls.finish({ ...captureOf(lost), answer: null, settled })).status,
        'not_open',
      );
    if (isLost) return;
    assert.notEqual(tries, 9, 'no keep was lost');
  }
});

/** Has a work sent to a database that nobody follows, and waits until it waits for a follower. */
async function assertWaits(what: string, send: (replica: Replica) => Promise<unknown>): Promise<void> {
  const replica = replicaAt(primary);
  const isWaiting = (sql: Pools['sql']) =>
    sql<
      { count: number }[]
    >`select count(*)::integer as count from pg_stat_activity where wait_event = 'SyncRep'`;
  const [before] = await isWaiting(replica.pools.sql);
  let isAnswered = false;
  void send(replica).then(
    () => {
      isAnswered = true;
    },
    () => {},
  );
  await until(`${what} to wait until it is durable`, async () => {
    assert.equal(isAnswered, false, `${what} was answered before it was durable`);
    const [now] = await isWaiting(replica.pools.sql);
    return (now?.count ?? 0) > (before?.count ?? 0);
  });
}

test('only what may be lost is answered before it is durable, and nobody sees a capture that is not', async () => {
  await killAndStart(NOBODY_FOLLOWS);
  const [here, there] = [replicaAt(primary), replicaAt(primary)];
  const [call, onChain] = [callOf(newName()), chainCallOf(newName())];
  for (const each of [call, onChain])
    assert.equal((await insist(() => here.calls.begin(each))).status, 'authorized');
  const stateOf = (call: CallToBegin) => fateOf(there, call);
  await assertWaits('a capture', ({ calls }) => calls.finish(captureOf(call)));
  assert.deepEqual(await stateOf(call), { status: 'running' });
  await assertWaits('a kept answer', ({ calls }) => calls.keep(keepOf(onChain)));
  assert.deepEqual(await stateOf(onChain), { status: 'running' });
  const quick = chainCallOf(newName());
  assert.equal((await here.calls.begin(quick)).status, 'authorized');
  assert.equal((await here.calls.keep(keepOf(quick, true))).status, 'kept');
  // Each by another account: the capture holds its own until it is durable.
  const [first, second, third] = others;
  assert(first !== undefined && second !== undefined && third !== undefined);
  const durable = callOf(newName(), { accountId: first, mayBeLost: false });
  await assertWaits('a begin that may not be lost', ({ calls }) => calls.begin(durable));
  assert.equal(await stateOf(durable), null);
  const chained = { ...chainCallOf(newName()), mayBeLost: false };
  await assertWaits('one on a chain', ({ calls }) => calls.begin(chained));
  assert.equal(await stateOf(chained), null);
  const settings = { answerTtlMs: 60_000, nowMs: Date.now(), holder: null };
  for (const [accountId, last] of [
    [second, callOf(newName(), { accountId: second, mayBeLost: false })],
    [third, chainCallOf(newName())],
  ] as const) {
    const lost = callOf(newName(), { accountId });
    const mixed: CallWork[] = [
      { kind: 'begin', call: lost },
      last.mayBeLost === false ? { kind: 'begin', call: last } : { kind: 'finish', call: captureOf(last) },
    ];
    await assertWaits('a batch of both', ({ pools }) => applyCalls(pools.commits, mixed, settings));
    assert.equal(await stateOf(lost), null);
  }
  await killAndStart();
});

/** Sells calls on two replicas and kills the database somewhere between them. @returns what was told of each */
async function sellUnderKill(
  replicas: readonly Replica[],
): Promise<{ call: CallToBegin; isCharged: boolean }[]> {
  const work = Array.from({ length: CALLS_AT_ONCE }, async (_, index) => {
    const replica = replicas[index % replicas.length];
    assert(replica !== undefined);
    const call = callOf(newName(), { mayBeLost: index % 4 !== 3 });
    try {
      await sleep(randomInt(12));
      if ((await replica.calls.begin(call)).status !== 'authorized') return { call, isCharged: false };
      if (index % 3 === 0) await sleep(randomInt(12));
      const ended = await replica.calls.finish(captureOf(call));
      return { call, isCharged: ended.status === 'done' };
    } catch {
      return { call, isCharged: false };
    }
  });
  await sleep(randomInt(25));
  await killAndStart();
  return Promise.all(work);
}

test('whenever the database is killed, what was told as charged is, and every call is charged once when it is sent again', async (t) => {
  const replicas = [replicaAt(primary), replicaAt(primary)] as const;
  const before = await insist(() => balanceOf(replicas[0].pools.sql, customer));
  let [lost, sold] = [0, 0];
  for (let kill = 0; kill < KILLS; kill++) {
    const told = await sellUnderKill(replicas);
    for (const { call, isCharged } of told) {
      const again = callOf(String(call.identity));
      // What was begun and neither lost nor ended runs until its time is over.
      for (const { calls } of replicas)
        await insist(() => calls.finish({ ...captureOf(call), capture: false }));
      const begun = await replicas[1].calls.begin(again);
      if (isCharged) assert.deepEqual(begun, { status: 'answered', callId: call.id });
      else if (begun.status === 'authorized') {
        lost += 1;
        assert.equal((await replicas[1].calls.finish(captureOf(again))).status, 'done');
      } else assert.equal(begun.status, 'answered');
      sold += 1;
    }
    const { sql } = replicas[0].pools;
    assert.equal(await balanceOf(sql, customer), before - BigInt(sold) * PRICE);
    assert.equal((await proveBooks(replicas[0].pools.patient)).balanced, true);
  }
  t.diagnostic(`${KILLS} kills, ${sold} calls, ${lost} of them sold anew`);
});

test('a follower that takes over has what was captured, and what was begun and is lost is uncharged there', async () => {
  await insist(() => replicaAt(primary).pools.sql`select 1`);
  await primary.stop();
  const second = await primary.follower('second');
  try {
    await Promise.all([primary.start({ synchronous_standby_names: 'second' }), second.start()]);
    const here = replicaAt(primary);
    const [captured, lost] = [callOf(newName()), callOf(newName())];
    await until('the follower to have all there is', async () => {
      const [following] = await here.pools
        .sql`select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'`;
      return following !== undefined;
    });
    await here.calls.begin(captured);
    assert.equal((await here.calls.finish(captureOf(captured))).status, 'done');
    assert.equal((await here.calls.begin(lost)).status, 'authorized');
    await primary.kill();
    await second.promote();

    const there = replicaAt(second);
    const isLost = (await insist(() => fateOf(there, lost))) === null;
    assert.equal((await there.calls.finish(captureOf(lost))).status, isLost ? 'not_open' : 'done');
    const again = callOf(String(captured.identity));
    assert.deepEqual(await there.calls.begin(again), { status: 'answered', callId: captured.id });
    const anew = callOf(String(lost.identity));
    const begun = await there.calls.begin(anew);
    assert.equal(begun.status, isLost ? 'authorized' : 'answered');
    if (isLost) assert.equal((await there.calls.finish(captureOf(anew))).status, 'done');
    await proveBooks(there.pools.patient);
  } finally {
    await second.remove();
  }
});
