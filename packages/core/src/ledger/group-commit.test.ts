import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupCommit, NoAnswerInTime, NotBegun, QueueFull } from './group-commit.ts';

interface Flight {
  batch: readonly string[];
  land(): void;
  crash(error: Error): void;
}

class Refusal extends Error {}

/** A database that answers when the test says so. */
function database(
  options: {
    maxFlights?: number;
    maxAttempts?: number;
    maxWaiting?: number;
    maxBatch?: number;
    deadlineMs?: number;
    locked?: Set<string>;
    laneOf?: (work: string) => number;
    clockMs?: () => number;
    keysOf?: (work: string) => readonly string[];
  } = {},
) {
  const flights: Flight[] = [];
  const arrivals: ((flight: Flight) => void)[] = [];
  const commits = new GroupCommit<string, string>({
    maxBatch: 100,
    maxFlights: 1,
    maxWaiting: 1_000,
    maxAttempts: 1,
    deadlineMs: 60_000,
    firstBackoffMs: 1,
    keysOf: (work) => [work],
    lockOf: (work) => work.slice(0, 1),
    isLocked: (result) => result === 'locked',
    isRefusal: (error) => error instanceof Refusal,
    flush: (batch) =>
      new Promise((resolve, reject) => {
        const flight = {
          batch,
          land: () =>
            resolve(batch.map((work) => (options.locked?.has(work.slice(0, 1)) ? 'locked' : `${work}!`))),
          crash: reject,
        };
        const waiting = arrivals.shift();
        if (waiting === undefined) flights.push(flight);
        else waiting(flight);
      }),
    ...options,
  });
  const next = () =>
    new Promise<Flight>((resolve) => {
      const flight = flights.shift();
      if (flight === undefined) arrivals.push(resolve);
      else resolve(flight);
    });
  return { commits, next };
}

test('what arrives while a batch is away goes together in the next one, in order', async () => {
  const { commits, next } = database();
  const first = commits.submit('a');
  const away = await next();
  assert.deepEqual(away.batch, ['a']);
  const rest = ['b', 'c', 'd'].map((work) => commits.submit(work));
  away.land();
  const second = await next();
  assert.deepEqual(second.batch, ['b', 'c', 'd']);
  second.land();
  assert.deepEqual(await Promise.all([first, ...rest]), ['a!', 'b!', 'c!', 'd!']);
});

test('work with a key in common is never away together, not even with two flights', async () => {
  const { commits, next } = database({ maxFlights: 2 });
  const twice = [commits.submit('a'), commits.submit('a'), commits.submit('b')];
  const first = await next();
  assert.deepEqual(first.batch, ['a', 'b']);
  const other = commits.submit('c');
  const second = await next();
  assert.deepEqual(second.batch, ['c']);
  second.land();
  await other;
  first.land();
  const third = await next();
  assert.deepEqual(third.batch, ['a']);
  third.land();
  assert.deepEqual(await Promise.all(twice), ['a!', 'a!', 'b!']);
});

test('work of two lanes never goes in one batch, and neither waits for the other but for its keys', async () => {
  const { commits, next } = database({ laneOf: (work) => (work === work.toUpperCase() ? 1 : 0) });
  const both = [commits.submit('a'), commits.submit('B'), commits.submit('C')];
  const [slow, quick] = [await next(), await next()];
  assert.deepEqual([slow.batch, quick.batch], [['a'], ['B', 'C']]);
  const more = commits.submit('D');
  quick.land();
  const third = await next();
  assert.deepEqual(third.batch, ['D']);
  third.land();
  slow.land();
  assert.deepEqual(await Promise.all([...both, more]), ['a!', 'B!', 'C!', 'D!']);
});

test('work that waits for a key of another lane goes when that is back', async () => {
  const options = { laneOf: (work: string) => Number(work.length > 1), keysOf: () => ['one key'] };
  const { commits, next } = database(options);
  const first = commits.submit('a');
  const away = await next();
  const second = commits.submit('bb');
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(commits.depth, 1);
  away.land();
  assert.equal(await first, 'a!');
  (await next()).land();
  assert.equal(await second, 'bb!');
});

test('a failed batch is sent again, whole; when all attempts fail everybody hears of it, and the next goes on', async () => {
  const { commits, next } = database({ maxAttempts: 2 });
  const once = commits.submit('a');
  (await next()).crash(new Error('connection lost'));
  const again = await next();
  assert.deepEqual(again.batch, ['a']);
  again.land();
  assert.equal(await once, 'a!');

  const lost = commits.submit('b');
  lost.catch(() => {});
  (await next()).crash(new Error('gone'));
  (await next()).crash(new Error('gone for good'));
  await assert.rejects(lost, /gone for good/);
  const after = commits.submit('c');
  (await next()).land();
  assert.equal(await after, 'c!');
});

test('a database that answers fewer results than it was asked has not answered', async () => {
  const commits = new GroupCommit<string, string>({
    maxBatch: 100,
    maxFlights: 1,
    maxWaiting: 10,
    maxAttempts: 2,
    deadlineMs: 60_000,
    firstBackoffMs: 1,
    keysOf: (work) => [work],
    lockOf: (work) => work,
    isLocked: (result) => result === 'locked',
    isRefusal: () => false,
    flush: (batch) => Promise.resolve(batch.slice(1)),
  });
  const both = await Promise.allSettled([commits.submit('a'), commits.submit('b')]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
});

test('what was sent once without an answer is never told as not begun, though it waits to be sent again', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  let nowMs = 0;
  const { commits, next } = database({ maxAttempts: 5, deadlineMs: 300, clockMs: () => nowMs });
  const sent = commits.submit('a');
  (await next()).crash(new Error('connection lost'));
  while (commits.depth === 0) await new Promise((resolve) => setImmediate(resolve));
  const outcome = assert.rejects(sent, NoAnswerInTime);
  nowMs = 300;
  t.mock.timers.tick(100);
  await outcome;
});

test('a process that was held up itself reads its answers before it gives anybody up', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  let nowMs = 0;
  const { commits, next } = database({ deadlineMs: 300, clockMs: () => nowMs });
  const work = commits.submit('a');
  const away = await next();
  nowMs = 10_000;
  t.mock.timers.tick(100);
  away.land();
  assert.equal(await work, 'a!');
});

test('work that is refused delays no other, and a database that nobody reaches delays all', async () => {
  let nowMs = 0;
  const still = { maxAttempts: 2, clockMs: () => nowMs };
  const refusing = database(still);
  const refused = refusing.commits.submit('a');
  (await refusing.next()).crash(new Refusal('no'));
  const other = refusing.commits.submit('b');
  const flight = await refusing.next();
  assert.deepEqual(flight.batch, ['b']);
  flight.land();
  assert.equal(await other, 'b!');

  const silent = database(still);
  const both = [silent.commits.submit('a')];
  (await silent.next()).crash(new Error('connection lost'));
  both.push(silent.commits.submit('b'));
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(silent.commits.depth, 2);
  nowMs = 1_000;
  (await refusing.next()).land();
  (await silent.next()).land();
  assert.deepEqual(await Promise.all([refused, ...both]), ['a!', 'a!', 'b!']);
});

test('one piece of work that the database refuses does not fail the others of its batch', async () => {
  const { commits, next } = database();
  const first = commits.submit('first');
  const away = await next();
  const [good, bad] = [commits.submit('good'), commits.submit('bad')];
  bad.catch(() => {});
  away.land();
  const together = await next();
  assert.deepEqual(together.batch, ['good', 'bad']);
  together.crash(new Refusal('refused'));
  const alone = await next();
  assert.deepEqual(alone.batch, ['good']);
  alone.land();
  (await next()).crash(new Refusal('refused'));
  assert.equal(await good, 'good!');
  await assert.rejects(bad, /refused/);
  await first;
});

test('when nobody answers, all who wait hear of it at once, not one after another', async () => {
  const { commits, next } = database();
  const first = commits.submit('first');
  const away = await next();
  const both = [commits.submit('a'), commits.submit('b')];
  away.land();
  await first;
  (await next()).crash(new Error('connection lost'));
  const outcomes = await Promise.allSettled(both);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
});

test('the queue has an end, and a batch has a size', async () => {
  const { commits, next } = database({ maxWaiting: 3, maxBatch: 2 });
  const taken = ['a', 'b', 'c'].map((work) => commits.submit(work));
  await assert.rejects(commits.submit('d'), QueueFull);
  const first = await next();
  assert.deepEqual(first.batch, ['a', 'b']);
  first.land();
  (await next()).land();
  await Promise.all(taken);
});

test('what somebody else holds is asked for by one, and keeps nobody else waiting; when it is let go all go on', async () => {
  const locked = new Set(['x']);
  const { commits, next } = database({ locked });
  const held = ['x1', 'x2', 'x3'].map((work) => commits.submit(work));
  const free = commits.submit('a1');
  const first = await next();
  assert.deepEqual(first.batch, ['x1', 'x2', 'x3', 'a1']);
  first.land();
  assert.equal(await free, 'a1!');
  for (let round = 0; round < 4; round++) {
    const asking = await next();
    assert.equal(asking.batch.length, 1, 'one asks for all who wait for the lock');
    const other = commits.submit(`b${round}`);
    asking.land();
    const after = await next();
    assert.deepEqual(after.batch, [`b${round}`], 'whoever needs another lock goes at once');
    after.land();
    await other;
  }
  locked.clear();
  (await next()).land();
  (await next()).land();
  assert.deepEqual(await Promise.all(held), ['x1!', 'x2!', 'x3!']);
});

test('a deadline is kept: what was not begun says so, and of what is away nobody knows', async () => {
  const { commits, next } = database({ deadlineMs: 300, locked: new Set(['x']) });
  const held = commits.submit('x1');
  const refused = assert.rejects(held, (error) => error instanceof NotBegun && error.why === 'locked');
  const land = async () => {
    for (;;) (await next()).land();
  };
  void land();
  await refused;

  const silent = database({ deadlineMs: 300 });
  const away = silent.commits.submit('a');
  const flight = await silent.next();
  const behind = silent.commits.submit('b');
  await Promise.all([
    assert.rejects(away, NoAnswerInTime),
    assert.rejects(behind, (error) => error instanceof NotBegun && error.why === 'not sent'),
  ]);
  flight.land();
  const after = silent.commits.submit('c');
  (await silent.next()).land();
  assert.equal(await after, 'c!', 'and the next goes on');
});

test('what was found locked is not asked for near its deadline, so that its caller knows that nothing was begun', async () => {
  let nowMs = 0;
  const { commits, next } = database({ deadlineMs: 400, locked: new Set(['x']), clockMs: () => nowMs });
  const held = commits.submit('x1');
  const refused = assert.rejects(held, (error) => error instanceof NotBegun && error.why === 'locked');
  const beside = commits.submit('y1');
  const first = await next();
  nowMs = 301;
  first.land();
  await beside;
  nowMs = 310;
  const later = commits.submit('y2');
  const second = await next();
  assert.deepEqual(second.batch, ['y2']);
  second.land();
  await later;
  nowMs = 400;
  await refused;
});

test('one that is refused in a batch of hundreds is found by halving', async () => {
  const sent: number[] = [];
  const commits = new GroupCommit<number, number>({
    maxBatch: 512,
    maxFlights: 1,
    maxWaiting: 1_000,
    maxAttempts: 2,
    deadlineMs: 60_000,
    firstBackoffMs: 1,
    keysOf: (work) => [String(work)],
    lockOf: String,
    isLocked: () => false,
    isRefusal: (error) => error instanceof Refusal,
    flush(batch) {
      sent.push(batch.length);
      return batch.includes(300) ? Promise.reject(new Refusal('refused')) : Promise.resolve(batch);
    },
  });
  const outcomes = await Promise.allSettled(Array.from({ length: 512 }, (_, i) => commits.submit(i)));
  assert.deepEqual(
    outcomes.flatMap(({ status }, i) => (status === 'rejected' ? [i] : [])),
    [300],
  );
  assert(sent.length < 25, `${sent.length} statements`);
});
