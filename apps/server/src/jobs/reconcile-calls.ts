import type { HouseAccount } from '../ledger/accounts.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import type { CallStore, OpenCall } from '../paid-call/calls.ts';

const BATCH = 200;
const MAX_UNDELIVERED = 10_000;

export interface UndeliveredCall {
  id: string;
  accountId: bigint;
  service: string;
  priceMicros: bigint;
  revenue: HouseAccount;
  /** Whether the payment can ask for its answer again. Then what was taken was taken rightly. */
  retrievable: boolean;
}

/**
 * Ends what a crash or a lost connection left open.
 *
 * A call that was authorized and not ended in time is released: its service may have run, but no answer left the
 * house. A call whose capture may have been committed while its answer was withheld is released if it is still open;
 * if it is not, it stays captured for whoever can ask for its answer, and is refunded to whoever cannot.
 */
export function createReconciler(parts: {
  calls: CallStore;
  ledger: Ledger;
  report(outcome: string, count: number): void;
}) {
  const { calls, ledger } = parts;
  const undelivered: UndeliveredCall[] = [];

  async function giveBack(call: UndeliveredCall): Promise<void> {
    const released = await calls.finish({ ...call, capture: false, outcome: 'UNDELIVERED', answer: null });
    if (released.status === 'done') return parts.report('released', 1);
    if (call.retrievable) return parts.report('kept', 1);
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

  /** @returns how many it released. @throws the first failure, after all had their turn */
  async function release(open: readonly OpenCall[]): Promise<number> {
    const outcomes = await Promise.allSettled(
      open.map((call) => calls.finish({ ...call, capture: false, outcome: 'EXPIRED', answer: null })),
    );
    const released = outcomes.filter((each) => each.status === 'fulfilled' && each.value.status === 'done');
    if (released.length > 0) parts.report('released', released.length);
    for (const each of outcomes) if (each.status === 'rejected') throw each.reason;
    return released.length;
  }

  return {
    /** Remembers a call to be given back as soon as the database answers. */
    undelivered(call: UndeliveredCall): void {
      if (undelivered.length < MAX_UNDELIVERED) undelivered.push(call);
    },

    /** Until none is due. @returns how many calls it ended */
    async run(): Promise<number> {
      let ended = 0;
      for (let call = undelivered[0]; call !== undefined; call = undelivered[0]) {
        await giveBack(call);
        // By name, not by place: another round may have been faster.
        const at = undelivered.indexOf(call);
        if (at !== -1) undelivered.splice(at, 1);
        ended += 1;
      }
      for (;;) {
        const open = await calls.expired(BATCH);
        const released = await release(open);
        ended += released;
        // A full batch of which nothing was ours to end: another replica is at it.
        if (open.length < BATCH || released === 0) return ended;
      }
    },
  };
}

export type Reconciler = ReturnType<typeof createReconciler>;
