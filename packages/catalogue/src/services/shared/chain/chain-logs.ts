import { BaseError } from 'viem';

/** Nodes allow different ranges for one query. Smaller ranges are tried down to this one. */
const SMALLEST_RANGE = 500n;

/** The finds in the newest blocks, and how far back the search went. */
export interface Recent<Found> {
  /** The newest first. */
  found: Found[];
  /** The oldest block that was searched. */
  fromBlock: bigint;
  toBlock: bigint;
  /** True when the node refused so often that the window could not be searched all the way back. */
  isCut: boolean;
}

/**
 * Searches logs backwards from a block, in ranges that the node allows: public nodes refuse wide ones.
 *
 * @param search what to look for, such as a `getLogs` of viem, in a range of blocks; finds the oldest first
 * @param window how many blocks to go back, how many to search at once, and how many requests to make at most
 * @throws UpstreamUnavailable when the node cannot be reached; viem's error when it allows no range at all
 */
export async function searchBack<Found>(
  search: (range: { fromBlock: bigint; toBlock: bigint }) => Promise<readonly Found[]>,
  toBlock: bigint,
  window: { blocks: bigint; blocksPerRequest: bigint; requests: number },
): Promise<Recent<Found>> {
  const oldest = atLeast(toBlock - window.blocks + 1n, 0n);
  const found: Found[] = [];
  let range = window.blocksPerRequest;
  let searchedFrom = toBlock + 1n;
  let refusal: BaseError | null = null;
  for (let request = 0; request < window.requests && searchedFrom > oldest; request++) {
    const fromBlock = atLeast(searchedFrom - range, oldest);
    try {
      const batch = await search({ fromBlock, toBlock: searchedFrom - 1n });
      found.push(...batch.toReversed());
      searchedFrom = fromBlock;
    } catch (error) {
      if (!(error instanceof BaseError)) throw error;
      refusal = error;
      if (range <= SMALLEST_RANGE) break;
      range = atLeast(range / 4n, SMALLEST_RANGE);
    }
  }
  if (searchedFrom > toBlock && refusal !== null) throw refusal;
  return { found, fromBlock: searchedFrom, toBlock, isCut: searchedFrom > oldest };
}

function atLeast(value: bigint, least: bigint): bigint {
  return value > least ? value : least;
}
