/** On which chains a service can be paid for now. */
import type { Quote } from '../../paid-call/rail.ts';
import type { Facilitators } from './facilitators.ts';
import type { Network } from './networks.ts';
import type { Opened, OpenNetworks } from './open-networks.ts';
import { unsupportedNetwork } from './wire.ts';

/** A chain that is ready to take payments, and to whom they go. */
export interface OfferedNetwork {
  network: Network;
  payTo: string;
  /** Solana: who pays the fee and sends the transaction. */
  feePayer: string | null;
  /** Whether the money there is that of a sandbox. */
  sandbox: boolean;
}

export interface Offered {
  /** The chains that can settle now, in order. */
  now(): OfferedNetwork[];
  /** Those on which this is sold now: what leaves something behind only where the money can be sent back. */
  for(quote: Quote): OfferedNetwork[];
  /** @throws PaymentRefused when it is not sold on this chain now */
  ready(network: Network, quote: Quote): { found: OfferedNetwork; open: Opened };
  /** Whether money can be sent back there now. */
  canRefund(networkId: string): boolean;
}

/** @param sandbox whether the money is that of a sandbox, which every offer says */
export function offeredOf(
  { all, worthWei }: Pick<OpenNetworks, 'all' | 'worthWei'>,
  { facilitators, sandbox }: { facilitators: Facilitators; sandbox: boolean },
): Offered {
  function now(): OfferedNetwork[] {
    return [...all.values()].flatMap((open) => {
      const { network, recipient } = open;
      const own = ownFeePayer(open);
      // Ours while it can pay; else that of a facilitator.
      const feePayer = network.kind === 'evm' ? null : (own ?? facilitators.feePayerOf(network));
      const settling = 'chain' in open ? open.settling : null;
      const settles = settling?.tank.isAble ?? (own !== null || facilitators.settling(network, 2).length > 0);
      if (!settles || (network.kind === 'solana' && feePayer === null)) return [];
      return [{ network, payTo: recipient, feePayer, sandbox }];
    });
  }

  function canRefund(networkId: string): boolean {
    const open = all.get(networkId);
    return open?.payments.canRefund === true && open.refunding?.tank.isAble !== false;
  }

  /** Whether settling a price costs less than it brings, at the fees that were seen last. */
  function isWorthIt(network: Network, priceMicros: bigint): boolean {
    const open = all.get(network.id);
    if (open === undefined || !('chain' in open) || open.settling === null) return true;
    return open.settling.tank.cost <= worthWei(network, priceMicros);
  }

  const forQuote = (quote: Quote) =>
    now().filter(
      ({ network }) =>
        (quote.service.effect === 'read' || canRefund(network.id)) && isWorthIt(network, quote.priceMicros),
    );

  return {
    now,
    for: forQuote,
    ready(network, quote) {
      const offers = forQuote(quote);
      const found = offers.find((each) => each.network.id === network.id);
      const open = all.get(network.id);
      if (found === undefined || open === undefined)
        throw unsupportedNetwork(offers.map((each) => each.network.id));
      return { found, open };
    },
    canRefund,
  };
}

/** Who pays the fees of payments there while our own key can; null on chains where the payer's wallet does not ask. */
export function ownFeePayer(open: Opened): string | null {
  return 'settler' in open ? open.settler.feePayer : null;
}
