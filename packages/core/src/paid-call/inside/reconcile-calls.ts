import type { Ledger } from '../../ledger/ledger.ts';
import { transferIdFor } from '../../ledger/transfer-id.ts';
import type { PricedCall } from './call-steps.ts';
import type { CallStore } from './calls.ts';
import type { FreeCalls } from './free-calls.ts';
import type { LeasedCall, UndeliveredCall, UndeliveredCalls } from './undelivered.ts';

const BATCH = 200;

/**
 * Ends calls that a crash or a lost connection left open.
 *
 * A call that was authorized and not ended in time, or whose process has ended, is released. Its service may have run,
 * but its answer was never delivered.
 *
 * A call whose capture may have been committed while its answer was withheld is released if it is still open. If it was
 * charged, it stays charged when its payer can ask for the answer, and is refunded when not. A call that another job
 * released meanwhile, because its time was over, was not charged.
 *
 * Such a call is stored in the database as soon as the database answers again. Until then only this process knows of
 * it; there are at most as many as calls were running when the database was lost.
 */
export function createReconciler(parts: {
  calls: CallStore;
  undelivered: UndeliveredCalls;
  ledger: Ledger;
  freeCalls: Pick<FreeCalls, 'giveBack'>;
  report(outcome: string, count: number): void;
}) {
  const { calls, ledger } = parts;
  let unnoted: UndeliveredCall[] = [];
  let noting: Promise<void> = Promise.resolve();
  async function giveBack(call: LeasedCall): Promise<void> {
    const { status } = await calls.finish({ ...call, capture: false, outcome: 'UNDELIVERED', answer: null });
    const takenMicros = status === 'done' ? null : await parts.undelivered.takenFor(call);
    if (takenMicros === null) parts.report('released', 1);
    else if (call.retrievable) parts.report('kept', 1);
    else if (call.priceMicros === 0n) {
      await parts.freeCalls.giveBack(call);
      parts.report('refunded', 1);
    } else {
      await ledger.transfer(refundOf(call, takenMicros));
      parts.report('refunded', 1);
    }
    await parts.undelivered.done(call);
  }

  /** Stores the calls that only this process knows. One run at a time, so that none is stored twice. */
  function note(): Promise<void> {
    noting = noting
      .catch(() => {})
      .then(async () => {
        // A copy: calls that are added during this write wait for the next one.
        const written = [...unnoted];
        if (written.length === 0) return;
        await parts.undelivered.note(written);
        unnoted = unnoted.filter((call) => !written.includes(call));
      });
    return noting;
  }

  /** @returns how many it released @throws the first failure, after all were tried */
  async function release(open: readonly PricedCall[], outcome: string): Promise<number> {
    const outcomes = await Promise.allSettled(
      open.map((call) => calls.finish({ ...call, capture: false, outcome, answer: null })),
    );
    const released = outcomes.filter((each) => each.status === 'fulfilled' && each.value.status === 'done');
    if (released.length > 0) parts.report('released', released.length);
    for (const each of outcomes) if (each.status === 'rejected') throw each.reason;
    return released.length;
  }

  return {
    /** Takes a call that is to be given back as soon as the database answers. */
    undelivered(call: UndeliveredCall): void {
      unnoted.push(call);
      void note().catch(() => {});
    },

    /** The calls that are not stored yet. What is left after the last `run` of a process is lost with it. */
    unnoted: (): readonly UndeliveredCall[] => unnoted,

    /** Releases calls of processes that have ended. @returns how many it released */
    async releaseOfEnded(): Promise<number> {
      return release(await calls.heldByEnded(BATCH), 'PROCESS_ENDED');
    },

    /** Runs until no call is due. @returns how many calls it ended */
    async run(): Promise<number> {
      await note();
      let ended = 0;
      for (;;) {
        const due = await parts.undelivered.lease(BATCH);
        const outcomes = await Promise.allSettled(due.map(giveBack));
        ended += outcomes.filter(({ status }) => status === 'fulfilled').length;
        // A call that failed here is tried again when its lease is over.
        if (due.length < BATCH) break;
      }
      ended += await this.releaseOfEnded();
      for (;;) {
        const open = await calls.expired(BATCH);
        const released = await release(open, 'EXPIRED');
        ended += released;
        // A full batch of which nothing was released means that another replica is at work on it.
        if (open.length < BATCH || released === 0) return ended;
      }
    },
  };
}

/** The transfer that gives a call back. @param amountMicros what was taken for it, which is less than its price if it was metered */
function refundOf(
  { id, accountId, revenue }: PricedCall,
  amountMicros: bigint,
): Parameters<Ledger['transfer']>[0] {
  return {
    id: transferIdFor(`refund:${id}`),
    accountId,
    phase: 'posted',
    side: 'credit',
    house: revenue,
    amountMicros,
    code: 'call_refund',
    note: `undelivered call ${id}`,
  };
}

export type Reconciler = ReturnType<typeof createReconciler>;
