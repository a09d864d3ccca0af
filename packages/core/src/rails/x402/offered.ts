/** On which chains a service can be paid for now. */
import { mustBeRefundable, type Quote } from '../../paid-call/rail.ts';
import type { Facilitators } from './facilitators.ts';
import type { Network } from './networks.ts';
import type { Opened, OpenNetworks } from './open-networks.ts';
import { unsupportedNetwork } from './wire.ts';

/** A chain that can take payments now, and the recipient there. */
export interface OfferedNetwork {
  network: Network;
  payTo: string;
  /** Solana: the account that pays the fee and sends the transaction. */
  feePayer: string | null;
  /** Whether the money there is that of a sandbox. */
  sandbox: boolean;
}

export interface Offered {
  /** The chains that can settle now, in order. */
  now(): OfferedNetwork[];
  /**
   * The chains on which this quote is sold now. What is paid before its answer is there is sold only where its
   * money can be refunded.
   */
  for(quote: Quote): OfferedNetwork[];
  /** @throws PaymentRefused when it is not sold on this chain now */
  ready(network: Network, quote: Quote): { found: OfferedNetwork; open: Opened };
  /** Whether money can be sent back on this network now. */
  canRefund(networkId: string): boolean;
}

/** @param sandbox whether the money is that of a sandbox, which every offer states */
export function offeredOf(
  { all, worthWei }: Pick<OpenNetworks, 'all' | 'worthWei'>,
  { facilitators, sandbox }: { facilitators: Facilitators; sandbox: boolean },
): Offered {
  function now(): OfferedNetwork[] {
    return [...all.values()].flatMap((open) => {
      const { network, recipient } = open;
      const own = ownFeePayer(open);
      // Our own key pays the fee while it has funds; otherwise a facilitator's does.
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

  /** Whether settling costs less than the price brings in, at the fees seen last. */
  function isWorthIt(network: Network, priceMicros: bigint): boolean {
    const open = all.get(network.id);
    if (open === undefined || !('chain' in open) || open.settling === null) return true;
    return open.settling.tank.cost <= worthWei(network, priceMicros);
  }

  const forQuote = (quote: Quote) =>
    now().filter(
      ({ network }) =>
        // A chain moves what was signed, and no less.
        quote.service.metered === null &&
        (!mustBeRefundable(quote) || canRefund(network.id)) &&
        isWorthIt(network, quote.priceMicros),
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

/**
 * The account of ours that pays the fees on this chain while it has funds; null on chains whose wallets do not need to
 * know it.
 */
export function ownFeePayer(open: Opened): string | null {
  return 'settler' in open ? open.settler.feePayer : null;
}
