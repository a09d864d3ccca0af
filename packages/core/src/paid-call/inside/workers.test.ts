import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { withWorkers } from './workers.ts';

test('when no more can be taken, a round ends after what is under way, and with that failure', async () => {
  const underWay = Promise.withResolvers<number>();
  const acted: string[] = [];
  let taken = 0;
  let isOver = false;
  const round = withWorkers(
    2,
    {
      async next() {
        taken += 1;
        if (taken === 1) return 'slow';
        throw new Error('the database is away');
      },
      async act(item) {
        acted.push(item);
        return underWay.promise;
      },
    },
    undefined,
  ).finally(() => {
    isOver = true;
  });
  round.catch(() => {});
  for (let turns = 0; turns < 10; turns += 1) await turn();
  assert.equal(isOver, false, 'its item is still worked on');
  underWay.resolve(1);
  await assert.rejects(round, /the database is away/);
  assert.deepEqual(acted, ['slow']);
});

test('nothing more is taken once the process is to end', async () => {
  const stopping = new AbortController();
  const acted: number[] = [];
  let last = 0;
  const work = {
    async next() {
      last += 1;
      return last > 10 ? undefined : last;
    },
    async act(item: number) {
      acted.push(item);
      if (item === 3) stopping.abort();
      return 1;
    },
  };
  assert.equal(await withWorkers(1, work, stopping.signal), 3);
  assert.deepEqual(acted, [1, 2, 3]);
});

test('what several workers bring further at once is counted together', async () => {
  const left = [1, 2, 3];
  const all = Promise.withResolvers<void>();
  const further = await withWorkers(
    3,
    {
      next: async () => left.shift(),
      async act(item) {
        if (item === 3) all.resolve();
        await all.promise;
        return 1;
      },
    },
    undefined,
  );
  assert.equal(further, 3);
});

test('an item that fails keeps no other from its turn, and its failure is told at the end', async () => {
  const left = ['good', 'bad', 'also good'];
  const done: string[] = [];
  const round = withWorkers(
    1,
    {
      next: async () => left.shift(),
      async act(item) {
        if (item === 'bad') throw new Error('it is bad');
        done.push(item);
        return 1;
      },
    },
    undefined,
  );
  await assert.rejects(round, /it is bad/);
  assert.deepEqual(done, ['good', 'also good']);
});
