/** Tells whether processors stand idle, so that a run that mostly waits does more at once than there are processors. */
import { availableParallelism, cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long one look lasts. */
const LOOK_MS = 2_000;
/** In so many looks in a row a processor must stand idle: between two files everything waits for a moment. */
const LOOKS = 2;
/** The share of one processor's time that must be left over. What is started takes about that much. */
const NEEDED = 0.6;

/** Times since the machine started, summed over its processors, in any unit. */
export interface ProcessorTimes {
  idle: number;
  all: number;
}

export interface Machine {
  readonly processors: number;
  times(): ProcessorTimes;
  pause(ms: number): Promise<unknown>;
}

const THIS_MACHINE: Machine = {
  processors: availableParallelism(),
  times() {
    const all = cpus().map(({ times }) => times);
    return {
      idle: all.reduce((sum, { idle }) => sum + idle, 0),
      all: all.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0),
    };
  },
  pause: (ms) => sleep(ms),
};

/**
 * Waits until a processor stands idle for a few seconds, whoever kept it busy until then.
 *
 * @param isWanted looked at again and again while it waits
 * @returns false once it is not wanted any more
 */
export async function processorIsIdle(isWanted: () => boolean, machine = THIS_MACHINE): Promise<boolean> {
  let before = machine.times();
  for (let idleLooks = 0; idleLooks < LOOKS; ) {
    if (!isWanted()) return false;
    await machine.pause(LOOK_MS);
    const now = machine.times();
    const passed = now.all - before.all;
    const idleProcessors = passed > 0 ? ((now.idle - before.idle) / passed) * machine.processors : 0;
    idleLooks = idleProcessors >= NEEDED ? idleLooks + 1 : 0;
    before = now;
  }
  return isWanted();
}
