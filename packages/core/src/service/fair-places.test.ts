import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import fc from 'fast-check';
import { FairPlaces, NoPlace } from './fair-places.ts';

const LONG = { timeoutMs: 60_000 };
const visitor = (caller: string, callId = caller) => ({ caller, callId });
/** Lets whatever was decided reach whoever waits. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Enters, and says what became of it. */
function visit(places: FairPlaces, caller: string, callId?: string, signal?: AbortSignal) {
  const seen: { state: 'waits' | 'in' | 'refused'; leave(): void; error: unknown } = {
    state: 'waits',
    leave() {},
    error: null,
  };
  places.enter(visitor(caller, callId), { ...LONG, ...(signal === undefined ? {} : { signal }) }).then(
    (leave) => Object.assign(seen, { state: 'in', leave }),
    (error: unknown) => Object.assign(seen, { state: 'refused', error }),
  );
  return seen;
}

test('nobody gets more than a quarter of the places, and what a caller is lent beyond it is taken from nobody', async () => {
  const places = new FairPlaces(16);
  assert.equal(places.connections, 20);
  const held = async (caller: string) => {
    const visits = Array.from({ length: 20 }, () => visit(places, caller));
    await settled();
    return visits.filter(({ state }) => state === 'in');
  };
  const one = await held('one');
  const two = await held('two');
  const three = await held('three');
  const four = await held('four');
  assert.deepEqual([one.length, two.length, three.length, four.length], [8, 4, 4, 4]);
  const late = visit(places, 'late');
  one[0]?.leave();
  one[0]?.leave();
  await settled();
  // What was lent is given back first, and is lent to nobody while others wait.
  assert.equal(late.state, 'waits');
  two[0]?.leave();
  await settled();
  // Others came before it, and have their share.
  assert.equal(late.state, 'in');
  const later = visit(places, 'later');
  await settled();
  assert.equal(later.state, 'waits');
});

test('where a caller has most of the places and nothing is lent, the rest stays free for the others, and there are never more', async () => {
  const places = new FairPlaces(4, {
    share: 3,
    lent: 0,
    patienceMs: null,
    mostWaiting: 3,
    mostWaitingOfOne: 2,
  });
  assert.equal(places.connections, 4);
  const hog = Array.from({ length: 6 }, () => visit(places, 'hog'));
  await settled();
  assert.deepEqual(
    hog.map(({ state }) => state),
    ['in', 'in', 'in', 'waits', 'waits', 'refused'],
  );
  const other = visit(places, 'other');
  const late = visit(places, 'late');
  const beyond = visit(places, 'beyond');
  await settled();
  assert.deepEqual([other.state, late.state, beyond.state], ['in', 'waits', 'refused']);
  assert.deepEqual([places.taken, places.waiting], [4, 3]);
  hog[0]?.leave();
  await settled();
  // The hog waited for longer, and holds more.
  assert.deepEqual([late.state, hog[3]?.state], ['in', 'waits']);
  for (const each of [...hog, other, late]) each.leave();
  await settled();
  for (const each of hog.slice(3, 5)) each.leave();
  assert.deepEqual([places.taken, places.waiting], [0, 0]);
});

test('of two payers with many calls each, neither keeps the other from what is lent, and each is lent as much', async () => {
  const places = new FairPlaces(16);
  // As they come: the first one is alone for a moment.
  const first = Array.from({ length: 40 }, () => visit(places, 'one'));
  const second = Array.from({ length: 40 }, () => visit(places, 'two'));
  const held = async () => {
    await settled();
    return [first, second].map((visits) => visits.filter(({ state }) => state === 'in').length);
  };
  assert.deepEqual(await held(), [8, 4]);
  // Whatever of the first one's ends, goes to who has fewer, until they have the same.
  const leave = (visits: typeof first, count: number) => {
    for (const one of visits.filter(({ state }) => state === 'in').slice(0, count)) {
      one.leave();
      one.state = 'refused';
    }
  };
  leave(first, 2);
  assert.deepEqual(await held(), [6, 6]);
  // A third one finds places, and what it has is not lent to others.
  const third = Array.from({ length: 8 }, () => visit(places, 'three'));
  await settled();
  assert.equal(third.filter(({ state }) => state === 'in').length, 4);
  leave(first, 1);
  leave(second, 1);
  await settled();
  const others = third.filter(({ state }) => state === 'in').length;
  assert.equal(others, 5);
  assert.deepEqual(await held(), [6, 5], 'among equals who came first');
});

test('a share is rounded up, and is one place at least', async () => {
  for (const [most, share] of [
    [1, 1],
    [5, 2],
  ] as const) {
    const places = new FairPlaces(most);
    const own = Array.from({ length: 5 }, () => visit(places, 'one'));
    await settled();
    // Its share, and as much that is lent.
    assert.equal(own.filter(({ state }) => state === 'in').length, share * 2);
    own[0]?.leave();
    own[1]?.leave();
  }
});

test('when others begin to wait, what runs goes on, and nothing is lent until none of them waits', async () => {
  const places = new FairPlaces(4);
  const [, lent] = [visit(places, 'one', 'a'), visit(places, 'one', 'b')];
  for (const caller of ['two', 'three', 'four']) visit(places, caller);
  const leaving = new AbortController();
  const other = visit(places, 'five', 'five', leaving.signal);
  const more = visit(places, 'one', 'c');
  await settled();
  assert.deepEqual([lent?.state, other.state, more.state], ['in', 'waits', 'waits']);
  lent?.leave();
  await settled();
  assert.deepEqual([other.state, more.state], ['waits', 'waits']);
  // Who gives up keeps nobody to a share.
  leaving.abort(new Error('left'));
  await settled();
  assert.deepEqual([other.state, more.state], ['refused', 'in']);
});

test('who gets no place within 2 s is refused; a call that makes progress waits on', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  const places = new FairPlaces(4);
  const [first, second] = [visit(places, 'one', 'a'), visit(places, 'one', 'b')];
  const [third, fourth] = [visit(places, 'one', 'c'), visit(places, 'one', 'c')];
  await settled();
  assert.deepEqual([first.state, second.state, third.state], ['in', 'in', 'waits']);
  mock.timers.tick(1_999);
  first.leave();
  await settled();
  assert.deepEqual([third.state, fourth.state], ['in', 'waits']);
  mock.timers.tick(1_999);
  await settled();
  assert.equal(fourth.state, 'waits');
  mock.timers.tick(1);
  await settled();
  assert.ok(fourth.error instanceof NoPlace);
  // It waits no more: what becomes free goes to who comes next.
  second.leave();
  const next = visit(places, 'one', 'd');
  await settled();
  assert.equal(next.state, 'in');
});

test('who gives up waiting leaves the queue, and who has given up before takes nothing', async () => {
  const places = new FairPlaces(4);
  const held = [visit(places, 'one'), visit(places, 'one')];
  const leaving = new AbortController();
  const gone = visit(places, 'one', 'x', leaving.signal);
  leaving.abort(new Error('left'));
  const never = visit(places, 'two', 'y', leaving.signal);
  await settled();
  assert.deepEqual([gone.state, never.state], ['refused', 'refused']);
  for (const { leave } of held) leave();
  const after = Array.from({ length: 2 }, () => visit(places, 'three'));
  await settled();
  assert.deepEqual(
    after.map(({ state }) => state),
    ['in', 'in'],
  );
});

test('too many of one caller wait no more', async () => {
  const places = new FairPlaces(4);
  const many = Array.from({ length: 600 }, () => visit(places, 'one'));
  await settled();
  const count = (state: string) => many.filter((each) => each.state === state).length;
  assert.deepEqual([count('in'), count('waits'), count('refused')], [2, 500, 98]);
});

test('whoever comes and goes, nobody is let in beyond a quarter while another has less and waits, and neither places nor what is lent stay idle', async () => {
  const step = fc.record({
    caller: fc.nat(),
    does: fc.constantFrom('come', 'come', 'come', 'leave', 'give up'),
    which: fc.nat(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(1, 4, 5, 8, 16),
      fc.integer({ min: 1, max: 7 }),
      fc.array(step, { maxLength: 100 }),
      async (most, callers, steps) => {
        const places = new FairPlaces(most);
        const share = Math.ceil(most / 4);
        const visits: {
          caller: number;
          seen: ReturnType<typeof visit>;
          left: boolean;
          patience: AbortController;
        }[] = [];
        const inside = () => visits.filter(({ seen, left }) => seen.state === 'in' && !left);
        const waiting = () => visits.filter(({ seen }) => seen.state === 'waits');
        const heldBy = (caller: number) => inside().filter((each) => each.caller === caller).length;
        const withinShares = () =>
          [...new Set(visits.map(({ caller }) => caller))].reduce(
            (sum, caller) => sum + Math.min(heldBy(caller), share),
            0,
          );
        for (const { caller: anyone, does, which } of steps) {
          const caller = anyone % callers;
          const before = inside();
          const pick = <T>(from: readonly T[]) => from[which % Math.max(from.length, 1)];
          if (does === 'come') {
            const patience = new AbortController();
            const seen = visit(places, String(caller), String(caller), patience.signal);
            visits.push({ caller, seen, left: false, patience });
          } else if (does === 'leave') {
            const one = pick(before);
            if (one === undefined) continue;
            one.left = true;
            one.seen.leave();
          } else pick(waiting())?.patience.abort(new Error('gave up'));
          await settled();
          const now = inside();
          const wait = waiting();
          assert.ok(withinShares() <= most);
          assert.ok(now.length <= places.connections, 'more than there are connections');
          for (const entered of now.filter((each) => !before.includes(each)))
            if (wait.some((each) => heldBy(each.caller) < share))
              assert.ok(heldBy(entered.caller) <= share, 'somebody was let in beyond a quarter');
          // No place stays empty that somebody waiting may have: what others have beyond their shares takes none.
          for (const each of wait)
            if (heldBy(each.caller) < share) assert.equal(withinShares(), most);
            else
              assert.ok(
                now.length - withinShares() === share || wait.some(({ caller }) => heldBy(caller) < share),
                'nothing was lent though all who wait have their share',
              );
        }
        // All leave, so that nobody's patience keeps the test.
        for (let all = inside(); all.length > 0; all = inside()) {
          for (const one of all) {
            one.left = true;
            one.seen.leave();
          }
          await settled();
        }
      },
    ),
    { numRuns: 200 },
  );
});
