/** Looks at the orders of which nothing was heard. */

import { passesByItself } from '../stripe/asking.ts';
import { type CardOrder, nextLookAfterMs, type OrderStore } from './orders.ts';
import type { OrderReconciler } from './reconcile.ts';

const SWEPT_AT_ONCE = 50;
const LOOKS_AT_ONCE = 4;
/** The provider closes a page a moment after its time. */
const PAGE_CLOSED_MS = 60_000;
/** The time for which nobody else sweeps an order. */
const LEASE_MS = 60_000;

export interface Sweeper {
  /**
   * Looks at due orders until none is left. What `stopping` keeps from being looked at waits for the next.
   *
   * @returns how many orders it took
   * @throws the first failure, once nothing is under way any more
   */
  sweep(stopping?: AbortSignal): Promise<number>;
}

export function createSweeper(parts: {
  orders: OrderStore;
  reconciler: OrderReconciler;
  nowMs(): number;
  onError(what: string, error: unknown): void;
}): Sweeper {
  const { orders, reconciler, nowMs } = parts;

  /** When an open order is looked at again. */
  function nextLookAtMs({ kind, expiresAtMs, looks }: CardOrder): number {
    // Until the page closes a message or the provider's list tells of a payment: anybody may open pages by the thousand.
    if (kind === 'checkout' && nowMs() < expiresAtMs) return expiresAtMs + PAGE_CLOSED_MS;
    return nowMs() + nextLookAfterMs(looks);
  }

  /** @returns whether it could be looked at */
  async function sweepOne(id: string): Promise<boolean> {
    try {
      const order = await reconciler.reconcile(id);
      if (order?.state !== 'open') await orders.rest(id);
      else if (order.failure === null) await orders.looked(id, nextLookAtMs(order));
      return true;
    } catch (error) {
      if (!passesByItself(error)) parts.onError(`order ${id}`, error);
      return false;
    }
  }

  return {
    // Pages and charges have a lane each: however many pages wait, a charge that nobody knows the end of does not.
    async sweep(stopping) {
      const lanes = await Promise.allSettled(
        [true, false].map(async (pages) => {
          let swept = 0;
          for (;;) {
            const due = await orders.takeDue({ pages }, SWEPT_AT_ONCE, LEASE_MS);
            swept += due.length;
            const looked: string[] = [];
            const look = async (id: string) => {
              if (await sweepOne(id)) looked.push(id);
            };
            await eachOf(due, LOOKS_AT_ONCE, look, stopping);
            // Where nothing could be looked at, the provider is away: the others need not be tried now.
            if (due.length < SWEPT_AT_ONCE || looked.length === 0 || stopping?.aborted === true) return swept;
          }
        }),
      );
      let all = 0;
      for (const lane of lanes) {
        if (lane.status === 'rejected') throw lane.reason;
        all += lane.value;
      }
      return all;
    },
  };
}

/**
 * Does something to each, so many at once, and begins no more of it once it is to stop. One that fails keeps no other from
 * its turn.
 *
 * @throws the first failure, once nothing is under way any more
 */
export async function eachOf<T>(
  items: readonly T[],
  atOnce: number,
  act: (item: T) => Promise<void>,
  stopping?: AbortSignal,
): Promise<void> {
  const left = items.values();
  const failures: unknown[] = [];
  const work = async () => {
    for (const item of left) {
      if (stopping?.aborted === true) return;
      await act(item).catch((error: unknown) => void failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  if (failures.length > 0) throw failures[0];
}
