/** The newest block that a node was seen to know. Behind one address there may be several nodes, and one of them may be behind. */

/** A node that is further behind is not listened to: a minute, on Base. */
const MAX_BLOCKS_BACK = 30n;
/** A block that was seen is forgotten after this: it may have been a mistake of one node, which the others never come up to. */
const REMEMBERED_MS = 600_000;

export interface NewestBlock {
  /** Takes note of a block. @throws Error when a much newer one was seen lately */
  note(number: bigint): void;
}

/** @param clockMs milliseconds since any fixed time */
export function createNewestBlock(clockMs: () => number = () => performance.now()): NewestBlock {
  let newest: { number: bigint; seenAtMs: number } | null = null;
  return {
    note(number) {
      if (newest !== null && clockMs() - newest.seenAtMs >= REMEMBERED_MS) newest = null;
      if (newest !== null && number < newest.number - MAX_BLOCKS_BACK)
        throw new Error(`the node answers of block ${number}, after ${newest.number} was seen`);
      if (newest === null || number >= newest.number) newest = { number, seenAtMs: clockMs() };
    },
  };
}
