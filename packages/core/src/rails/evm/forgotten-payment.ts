/** A payment by authorization, as far as the chain tells of it to somebody who never saw its request. */
import type { OnChainPayment } from '../../paid-call/rail.ts';
import { identityOf, TOPIC_USED } from './eip3009.ts';
import type { EvmNetwork } from './network.ts';
import type { MovedToUs } from './paid-since.ts';

/** Reads the authorization by which a transfer to us moved; null: it moved without one. */
export function forgottenPayment(
  { id: network, asset }: EvmNetwork,
  payTo: string,
  { mined, index, from, units }: MovedToUs,
): OnChainPayment | null {
  // The asset logs the use of an authorization directly before its transfer.
  const before = mined.logs[index - 1];
  const isSigned =
    before?.address === asset.toLowerCase() &&
    before.topics[0] === TOPIC_USED &&
    before.topics[1] === mined.logs[index]?.topics[1];
  const nonce = isSigned ? before.topics[2] : undefined;
  if (nonce === undefined) return null;
  // What its payer had signed beside is on no chain. The chain has taken it, and takes it no more.
  const authorization = { from, to: payTo, value: String(units), validAfter: '0', validBefore: '1', nonce };
  return {
    identity: identityOf({ network, asset }, { from, nonce }),
    network,
    asset,
    payer: from,
    payTo,
    amountUnits: units,
    movedBefore: true,
    deadAfterMs: 0,
    evidence: { scheme: 'exact-evm', authorization, forgotten: true },
  };
}
