/** Whether a payment could be made on a chain now: its node answers, and somebody can settle there. */
import { readHead } from '../evm/authorization-use.ts';
import type { Seen } from '../on-chain/standing.ts';
import type { Facilitators } from './facilitators.ts';
import { type Offered, ownFeePayer } from './offered.ts';
import type { Opened } from './open-networks.ts';

interface Settling {
  offered: Pick<Offered, 'now'>;
  facilitators: Facilitators;
}

/** A network by its CAIP-2 name, and how to see whether somebody could pay there now. */
export function lookerAt(open: Opened, settling: Settling): { network: string; look(): Promise<Seen> } {
  return { network: open.network.id, look: () => lookAtNetwork(open, settling) };
}

/** @throws when the node does not answer */
async function lookAtNetwork(open: Opened, { offered, facilitators }: Settling): Promise<Seen> {
  const { network } = open;
  if ('chain' in open) {
    if (open.chain.isBehind(await readHead(open.rpc)))
      return { offered: false, reason: 'its node is behind' };
  } else await open.rpc.call('getLatestBlockhash', [{ commitment: 'confirmed' }]);
  if (!offered.now().some((each) => each.network.id === network.id))
    return { offered: false, reason: 'nobody can settle there: no facilitator, and no key of ours with gas' };
  const settlesItself = 'chain' in open ? open.settling !== null : ownFeePayer(open) !== null;
  const { all, silent } = facilitators.answering(network);
  if (settlesItself || silent === 0) return { offered: true, reason: null };
  return silent === all
    ? { offered: false, reason: 'no facilitator answers' }
    : { offered: true, reason: `of ${all} facilitators ${silent} did not answer` };
}
