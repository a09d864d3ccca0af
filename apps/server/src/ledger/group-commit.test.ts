import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupCommit, QueueFull } from './group-commit.ts';

interface Flight {
  batch: readonly string[];
  land(): void;
  crash(error: Error): void;
}

class Refusal extends Error {}

/** A database that answers when the test says so. */
function database(
  options: { maxFlights?: number; maxAttempts?: number; maxWaiting?: number; maxBatch?: number } = {},
) {
  const flights: Flight[] = [];
  const arrivals: ((flight: Flight) => void)[] = [];
  const commits = new GroupCommit<string, string>({
    maxBatch: 100,
    maxFlights: 1,
    maxWaiting: 1_000,
    maxAttempts: 1,
    firstBackoffMs: 1,
    keysOf: (work) => [work],
    isRefusal: (error) => error instanceof Refusal,
    flush: (batch) =>
      new Promise((resolve, reject) => {
        const flight = { batch, land: () => resolve(batch.map((work) => `${work}!`)), crash: reject };
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
