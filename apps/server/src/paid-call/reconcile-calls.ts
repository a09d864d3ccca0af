import type { Ledger } from '../ledger/ledger.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import type { PricedCall } from './call-steps.ts';
import type { CallStore } from './calls.ts';
import type { UndeliveredCall, UndeliveredCalls } from './undelivered.ts';

const BATCH = 200;
/** For how long nobody else tries what one process is trying. */
const LEASE_MS = 30_000;

/**
 * Ends what a crash or a lost connection left open.
 *
 * A call that was authorized and not ended in time, or whose process has ended, is released: its service may have run, but no
 * answer left the house. A call whose capture may have been committed while its answer was withheld is released if it is still
 * open; if it was charged, it stays so for whoever can ask for its answer, and is refunded to whoever cannot. One that was
 * released by another job meanwhile, because its time was over, was not charged.
 *
 * What such a call needs is noted in the database as soon as that answers again. Until then it is known to this process alone:
 * no more of them than calls were running when the database was lost.
 */
export function createReconciler(parts: {
  calls: CallStore;
  undelivered: UndeliveredCalls;
  ledger: Ledger;
  report(outcome: string, count: number): void;
}) {
  const { calls, ledger } = parts;
  let unnoted: UndeliveredCall[] = [];
  let noting: Promise<void> = Promise.resolve();
  async function giveBack(call: UndeliveredCall): Promise<void> {
    const { status } = await calls.finish({ ...call, capture: false, outcome: 'UNDELIVERED', answer: null });
    const wasCharged = status !== 'done' && (await parts.undelivered.wasCharged(call));
    if (!wasCharged) parts.report('released', 1);
    else if (call.retrievable) parts.report('kept', 1);
    else {
      await ledger.transfer({
        id: transferIdFor(`refund:${call.id}`),
        accountId: call.accountId,
        phase: 'posted',
        side: 'credit',
        house: call.revenue,
        amountMicros: call.priceMicros,
        code: 'call_refund',
        note: `undelivered call ${call.id}`,
      });
      parts.report('refunded', 1);
    }
    await parts.undelivered.done(call);
  }

  /** Writes down what only this process knows. One at a time: what is being written is not written twice. */
  function note(): Promise<void> {
    noting = noting
      .catch(() => {})
      .then(async () => {
        // A copy: what is added while these are being written is not written with them.
        const written = [...unnoted];
        if (written.length === 0) return;
        await parts.undelivered.note(written);
        unnoted = unnoted.filter((call) => !written.includes(call));
      });
    return noting;
  }

  /** @returns how many it released. @throws the first failure, after all had their turn */
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

    /** How many of them no database knows yet; after the last `run` of a process they are lost with it. */
    unnoted: (): readonly UndeliveredCall[] => unnoted,

    /** Releases what processes held that have ended. @returns how many calls it ended */
    async releaseOfEnded(): Promise<number> {
      return release(await calls.heldByEnded(BATCH), 'PROCESS_ENDED');
    },

    /** Until none is due. @returns how many calls it ended */
    async run(): Promise<number> {
      await note();
      let ended = 0;
      for (;;) {
        const due = await parts.undelivered.lease(BATCH, LEASE_MS);
        const outcomes = await Promise.allSettled(due.map(giveBack));
        ended += outcomes.filter(({ status }) => status === 'fulfilled').length;
        // Whose account somebody holds is tried again when its lease is over.
        if (due.length < BATCH) break;
      }
      ended += await this.releaseOfEnded();
      for (;;) {
        const open = await calls.expired(BATCH);
        const released = await release(open, 'EXPIRED');
        ended += released;
        // A full batch of which nothing was ours to end: another replica is at it.
        if (open.length < BATCH || released === 0) return ended;
      }
    },
  };
}

export type Reconciler = ReturnType<typeof createReconciler>;
