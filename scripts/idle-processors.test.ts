import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Machine, processorIsIdle } from './idle-processors.ts';

/** A machine of two processors on which so many of them stand idle during each look; after the last it is as in the last. */
function machineOf(...idleInLook: number[]): Machine & { looks: number } {
  const total = { idle: 0, all: 0 };
  const machine = {
    processors: 2,
    looks: 0,
    times: () => ({ ...total }),
    async pause(ms: number) {
      const idle = idleInLook[Math.min(machine.looks, idleInLook.length - 1)] ?? 0;
      machine.looks += 1;
      total.idle += idle * ms;
      total.all += 2 * ms;
    },
  };
  return machine;
}

test('a processor that stands idle for two looks in a row is taken', async () => {
  const machine = machineOf(0, 2, 0, 0.7, 0.7, 0);
  assert.equal(await processorIsIdle(() => true, machine), true);
  assert.equal(machine.looks, 5, 'a moment between two files is not enough');
});

test('the halves of two processors are one', async () => {
  assert.equal(await processorIsIdle(() => true, machineOf(0.65)), true);
});

test('a busy machine is looked at until nothing is left to do', async () => {
  const machine = machineOf(0.5);
  assert.equal(await processorIsIdle(() => machine.looks < 50, machine), false);
  assert.equal(machine.looks, 50);
});

test('what is done by the time that a processor is idle is not wanted any more', async () => {
  const machine = machineOf(2);
  assert.equal(await processorIsIdle(() => machine.looks < 2, machine), false);
});

test('a clock of the processors that stands still says nothing', async () => {
  const machine = machineOf(0);
  const still = { ...machine, times: () => ({ idle: 5, all: 5 }), pause: machine.pause };
  assert.equal(await processorIsIdle(() => machine.looks < 3, still), false);
});
