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
const KILLS = isDeep ? 3_000 : 90;
const PROMOTIONS = isDeep ? 300 : 10;
/** One statement proves the books after each kill, and after so many of them all rules do. */
const ALL_PROVEN_EVERY = 10;
const CALLS = 12;
/** So many calls begin together; the next ones when these have begun. */
const BEGUN_TOGETHER = 4;
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
const opened = new Map<Replica, MortalPostgres>();
before(async () => {
  primary = await MortalPostgres.make();
  await primary.start();
  const { pools } = replicaAt(primary);
  await migrate(pools.patient);
  customer = await openCustomer(pools);
  others = [await openCustomer(pools), await openCustomer(pools), await openCustomer(pools)];
});
after(async () => {
  await closeReplicas();
  await primary?.remove();
});

function replicaAt(server: MortalPostgres): Replica {
  const pools = connectPools(server.url, 4);
  const replica = { pools, calls: createCallStore(pools, { nowMs: Date.now, answerTtlMs: 60_000 }) };
  opened.set(replica, server);
  return replica;
}

/** @param of the server whose replicas these are; those of every server unless given */
async function closeReplicas(of?: MortalPostgres): Promise<void> {
  const closed = [...opened].filter(([, server]) => of === undefined || server === of);
  for (const [replica] of closed) opened.delete(replica);
  await Promise.all(closed.map(([{ pools }]) => endPools(pools, 0)));
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

/** What was told of a call under which the database was killed. */
interface Told {
  call: CallToBegin;
  isCharged: boolean;
}

/**
 * Sells calls on two replicas, and ends the database when some of them have begun.
 *
 * @param replicas each begins half of the calls; half of them are captured by the other one
 * @param kill ends the database. @returns the replicas that end every third call, which begins before it and ends after it
 */
async function sellUnderKill(
  buyer: bigint,
  replicas: readonly [Replica, Replica],
  kill: () => Promise<readonly [Replica, Replica]>,
): Promise<Told[]> {
  const killAfter = randomInt(1, CALLS + 1);
  const killed = Promise.withResolvers<readonly [Replica, Replica]>();
  const begun = Array.from({ length: CALLS + 1 }, () => Promise.withResolvers<void>());
  let count = 0;
  const tellBegun = () => begun[count++]?.resolve();
  tellBegun();
  // Where another server has taken over, nobody tells anything on the one before: who still asked there would do so until a deadline.
  const isGone = killed.promise.then((next) => {
    if (next !== replicas) throw new Error('there is no such server any more');
    return new Promise<never>(() => {});
  });
  isGone.catch(() => {});
  const work = Array.from({ length: CALLS }, async (_, index): Promise<Told> => {
    const call = callOf(newName(), { accountId: buyer, mayBeLost: index % 4 !== 3 });
    const begins = index % 2 === 0 ? 0 : 1;
    const ends = index % 4 < 2 ? begins : begins === 0 ? 1 : 0;
    await begun[index - (index % BEGUN_TOGETHER)]?.promise;
    try {
      const beginning = Promise.race([replicas[begins].calls.begin(call), isGone]);
      const { status } = await beginning.finally(tellBegun);
      if (status !== 'authorized') return { call, isCharged: false };
      const endsLater = index % 3 === 0;
      const ending = endsLater ? (await killed.promise)[ends] : replicas[ends];
      const finishing = ending.calls.finish(captureOf(call));
      const finished = await (endsLater ? finishing : Promise.race([finishing, isGone]));
      return { call, isCharged: finished.status === 'done' };
    } catch {
      return { call, isCharged: false };
    }
  });
  await begun[killAfter]?.promise;
  killed.resolve(await kill());
  return Promise.all(work);
}

/**
 * Sends each call again, on another replica. What was told as charged is answered once more; all others are sold now.
 *
 * @returns how many were sold anew
 */
async function sendAgain(told: readonly Told[], replicas: readonly [Replica, Replica]): Promise<number> {
  const [, other] = replicas;
  const anew = await Promise.all(
    told.map(async ({ call, isCharged }) => {
      // What was begun and neither lost nor ended runs until its time is over.
      for (const { calls } of replicas)
        await insist(() => calls.finish({ ...captureOf(call), capture: false }));
      const again = { ...call, id: newTransferId(Date.now()) };
      const begun = await other.calls.begin(again);
      if (isCharged) assert.deepEqual(begun, { status: 'answered', callId: call.id });
      if (begun.status !== 'authorized') assert.equal(begun.status, 'answered');
      else assert.equal((await other.calls.finish(captureOf(again))).status, 'done');
      return begun.status === 'authorized';
    }),
  );
  return anew.filter(Boolean).length;
}

/** Proves by one statement that a customer has paid for so many calls, each once, and that nothing of it is open. */
async function assertSold({ pools: { sql } }: Replica, buyer: bigint, sold: number): Promise<void> {
  const [found] = await sql`
    select a.credits_posted - a.debits_posted as balance, a.debits_pending as reserved,
           (select sum(case when credit_account = ${String(buyer)} then amount_micros else -amount_micros end)::bigint
            from ledger_transfers where account_id = ${String(buyer)} and phase in (1, 3)) as moved,
           (select count(*)::integer from calls where account_id = ${String(buyer)} and state = 0) as open,
           (select count(*)::integer from calls where account_id = ${String(buyer)} and state = 1) as captured,
           (select count(distinct identity)::integer from calls where account_id = ${String(buyer)} and state = 1) as names
    from ledger_accounts a where a.id = ${String(buyer)}`;
  const balance = GRANTED - BigInt(sold) * PRICE;
  assert.deepEqual(
    { ...found },
    { balance, reserved: 0n, moved: balance, open: 0, captured: sold, names: sold },
  );
}

async function assertBooks({ pools }: Replica): Promise<void> {
  assert.deepEqual(
    (await proveBooks(pools.patient)).checks.filter(({ ok }) => !ok),
    [],
  );
}

test('whenever the database is killed, what was told as charged is, and every call is charged once when it is sent again', async (t) => {
  const replicas = [replicaAt(primary), replicaAt(primary)] as const;
  const buyer = await insist(() => openCustomer(replicas[0].pools));
  let anew = 0;
  for (let kill = 1; kill <= KILLS; kill++) {
    const told = await sellUnderKill(buyer, replicas, async () => {
      await killAndStart();
      return replicas;
    });
    anew += await sendAgain(told, replicas);
    await assertSold(replicas[0], buyer, kill * CALLS);
    if (kill % ALL_PROVEN_EVERY === 0) await assertBooks(replicas[0]);
  }
  t.diagnostic(`${KILLS} kills, ${KILLS * CALLS} calls, ${anew} of them sold anew`);
});

/** Starts a follower of the primary, without which nothing is durable. */
async function startFollower(): Promise<MortalPostgres> {
  await primary.stop();
  const second = await primary.follower('second');
  await primary.start({ synchronous_standby_names: 'second' });
  // It would wait five seconds before it asked again, if it came too soon.
  await second.start();
  const { pools } = replicaAt(primary);
  await until('the follower to have all there is', async () => {
    const [following] = await insist(
      () => pools.sql`select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'`,
    );
    return following !== undefined;
  });
  return second;
}

test('a follower that takes over has what was captured, and what was begun and is lost is uncharged there', async (t) => {
  let anew = 0;
  let buyer: bigint | null = null;
  for (let promotion = 1; promotion <= PROMOTIONS; promotion++) {
    const second = await startFollower();
    const first = primary;
    const here = [replicaAt(first), replicaAt(first)] as const;
    buyer ??= await openCustomer(here[0].pools);
    const told = await sellUnderKill(buyer, here, async () => {
      await first.kill();
      await second.promote();
      return [replicaAt(second), replicaAt(second)];
    });
    primary = second;
    await closeReplicas(first);
    await first.remove();
    const there = [replicaAt(second), replicaAt(second)] as const;
    anew += await sendAgain(told, there);
    await assertSold(there[0], buyer, promotion * CALLS);
    await assertBooks(there[0]);
    await closeReplicas(second);
  }
  t.diagnostic(`${PROMOTIONS} promotions, ${PROMOTIONS * CALLS} calls, ${anew} of them sold anew`);
});
