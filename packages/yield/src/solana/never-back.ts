import { chainUnavailable } from './node.ts';
import type { Portal } from './portal.ts';

/** A node that is so far behind one that answered before is not listened to. */
const MAX_SLOTS_BACK = 150n;
/** A slot that was seen is forgotten after this: it may have been a mistake of one node, which the others never come up to. */
const REMEMBERED_MS = 600_000;

/** The same portal, which does not believe a node that has fallen behind what was seen lately. */
export function neverBack<Looks extends Pick<Portal, 'look'>>(portal: Looks, nowMs: () => number): Looks {
  let newest: { slot: bigint; atMs: number } | null = null;
  return {
    ...portal,
    async look(others) {
      const now = await portal.look(others);
      if (newest !== null && nowMs() - newest.atMs >= REMEMBERED_MS) newest = null;
      if (newest !== null && now.slot < newest.slot - MAX_SLOTS_BACK)
        throw chainUnavailable(
          new Error(`the node answers of slot ${now.slot}, after ${newest.slot} was seen`),
        );
      if (newest === null || now.slot >= newest.slot) newest = { slot: now.slot, atMs: nowMs() };
      return now;
    },
  };
}
