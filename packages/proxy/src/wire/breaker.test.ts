import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Breaker, type Leave } from './breaker.ts';

function world(settings: { failures: number; openMs: number } | null = { failures: 2, openMs: 1_000 }) {
  const clock = { nowMs: 5_000 };
  const breaker = new Breaker(settings, () => clock.nowMs);
  const leave = (): Leave => {
    const asked = breaker.ask();
    assert(typeof asked !== 'number', `no leave for ${asked} ms`);
    return asked;
  };
  return { clock, breaker, leave };
}

describe('a breaker', () => {
  test('opens after so many failures in a row, and says for how long', () => {
    const { clock, breaker, leave } = world();
    leave().failed();
    leave().worked();
    leave().failed();
    leave().saidNothing();
    assert.equal(breaker.waitMs, null);
    leave().failed();
    assert.equal(breaker.ask(), 1_000);
    clock.nowMs += 999;
    assert.equal(breaker.ask(), 1);
  });

  test('lets one call try when its time is over', () => {
    const { clock, breaker, leave } = world();
    leave().failed();
    leave().failed();
    clock.nowMs += 1_000;
    const trial = leave();
    assert.equal(breaker.ask(), 1_000);
    trial.failed();
    assert.equal(breaker.ask(), 1_000);
    clock.nowMs += 1_000;
    leave().worked();
    leave().failed();
    assert.equal(breaker.waitMs, null, 'it counts from the beginning');
  });

  test('lets others call as soon as the answer to the one begins, and still hears of its end', () => {
    const { clock, breaker, leave } = world({ failures: 1, openMs: 1_000 });
    leave().failed();
    clock.nowMs += 1_000;
    const trial = leave();
    trial.began();
    leave().worked();
    trial.failed();
    assert.equal(breaker.ask(), 1_000);
  });

  test('lets another try after one that said nothing', () => {
    const { clock, leave } = world();
    leave().failed();
    leave().failed();
    clock.nowMs += 1_000;
    leave().saidNothing();
    leave().worked();
  });

  test('hears of each call once, and of late ones no longer than its time', () => {
    const { clock, breaker, leave } = world();
    const late = [leave(), leave(), leave()];
    const once = leave();
    once.failed();
    once.failed();
    assert.equal(breaker.waitMs, null);
    leave().failed();
    clock.nowMs += 900;
    for (const each of late) each.failed();
    clock.nowMs += 100;
    assert.equal(breaker.waitMs, null);
  });

  test('does not stay open because a clock was set back', () => {
    const { clock, breaker, leave } = world();
    leave().failed();
    leave().failed();
    clock.nowMs -= 3_600_000;
    assert.equal(breaker.waitMs, null);
  });

  test('never opens where nobody wants one', () => {
    const { leave } = world(null);
    for (let n = 0; n < 100; n++) leave().failed();
    leave();
  });
});
