import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import fc from 'fast-check';
import { FairPlaces } from './fair-places.ts';
import { NoPlace } from './wire-errors.ts';

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

test('a caller alone gets half of the places, and of the rest nobody more than a quarter', async () => {
  const places = new FairPlaces(16);
  const held = async (caller: string) => {
    const visits = Array.from({ length: 20 }, () => visit(places, caller));
    await settled();
    return visits.filter(({ state }) => state === 'in');
  };
  const one = await held('one');
  const two = await held('two');
  const three = await held('three');
  assert.deepEqual([one.length, two.length, three.length], [8, 4, 4]);
  const late = visit(places, 'late');
  one[0]?.leave();
  one[0]?.leave();
  await settled();
  // Others came before it, and have more than their share.
  assert.equal(late.state, 'in');
  const later = visit(places, 'later');
  await settled();
  assert.equal(later.state, 'waits');
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

test('whoever comes and goes, nobody above a quarter is let in while somebody below it waits', async () => {
  const step = fc.record({ caller: fc.integer({ min: 0, max: 5 }), leaves: fc.boolean(), which: fc.nat() });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(4, 8, 16), fc.array(step, { maxLength: 80 }), async (most, steps) => {
      const places = new FairPlaces(most);
      const visits: { caller: number; seen: ReturnType<typeof visit>; left: boolean }[] = [];
      const inside = () => visits.filter(({ seen, left }) => seen.state === 'in' && !left);
      const heldBy = (caller: number) => inside().filter((each) => each.caller === caller).length;
      for (const { caller, leaves, which } of steps) {
        const before = inside();
        if (leaves) {
          const one = before[which % Math.max(before.length, 1)];
          if (one === undefined) continue;
          one.left = true;
          one.seen.leave();
        } else visits.push({ caller, seen: visit(places, String(caller)), left: false });
        await settled();
        const now = inside();
        assert.ok(now.length <= most);
        const waiting = visits.filter(({ seen }) => seen.state === 'waits');
        for (const entered of now.filter((each) => !before.includes(each)))
          if (waiting.some((each) => heldBy(each.caller) < most / 4))
            assert.ok(heldBy(entered.caller) <= most / 4, 'somebody below the quarter was passed over');
        // No place stays empty that somebody waiting may have.
        for (const each of waiting)
          assert.ok(now.length === most || (now.length >= most / 2 && heldBy(each.caller) >= most / 4));
      }
      // All leave, so that nobody's patience keeps the test.
      for (let all = inside(); all.length > 0; all = inside()) {
        for (const one of all) {
          one.left = true;
          one.seen.leave();
        }
        await settled();
      }
    }),
    { numRuns: 200 },
  );
});
