/** The chains behind x402 payments, both signed ones and transfers found by their hash. */
import { unavailable } from '../../http/problem.ts';
import type { Chains, ChainVerdict, OnChainPayment } from '../../paid-call/rail.ts';
import { refuse } from '../on-chain/refusals.ts';
import type { Facilitators } from './facilitators.ts';
import { type Offered, ownFeePayer } from './offered.ts';
import type { Opened, OpenNetworks } from './open-networks.ts';
import { type FoundTransfer, findEvmTransfer, findSolanaTransfer, lookAtTransfer } from './transfers.ts';

export interface EvidenceOfTransfer extends Record<string, unknown> {
  scheme: 'transfer';
  transaction: string;
  /** The price when the payment was presented; absent in older rows. */
  priceUnits?: string;
}

/** Finds a transfer to us that the payer made by itself. */
export type FindTransfer = (
  open: Opened,
  transaction: string,
  amountUnits: bigint,
) => Promise<FoundTransfer | null>;

export function transferFinder(facilitators: Facilitators, nowMs: () => number): FindTransfer {
  return async (open, transaction, amountUnits) => {
    const wanted = { payTo: open.payTo, amountUnits };
    if ('chain' in open)
      return findEvmTransfer({ chain: open.chain, rpc: open.rpc, nowMs }, transaction, wanted);
    const own = ownFeePayer(open);
    const feePayers = new Set([...(own === null ? [] : [own]), ...facilitators.feePayers()]);
    const { asset } = open.network;
    return findSolanaTransfer({ rpc: open.rpc, nowMs }, transaction, { ...wanted, asset, feePayers });
  };
}

export function x402Chains(
  { all }: Pick<OpenNetworks, 'all'>,
  needs: { offered: Offered; findTransfer: FindTransfer; nowMs(): number },
): Chains {
  const { offered, findTransfer, nowMs } = needs;

  async function lookOrSettle(payment: OnChainPayment, how: 'look' | 'settle'): Promise<ChainVerdict> {
    const open = all.get(payment.network);
    if (open === undefined) return { status: 'unknown' };
    const transaction = transferOf(payment);
    if (transaction === null) return open.payments[how](payment);
    return lookAtTransfer(
      () => findTransfer(open, transaction, payment.amountUnits),
      transaction,
      nowMs() > payment.deadAfterMs,
    );
  }

  return {
    async verify(payment) {
      // A transfer was already found on its chain when it was read, so nothing is left to verify.
      if (transferOf(payment) !== null) return;
      const { mustLastMs } = payment.evidence;
      if (typeof mustLastMs === 'number' && payment.deadAfterMs < nowMs() + mustLastMs) {
        // Somebody may have settled the payment already. Then it buys what it paid for.
        if ((await lookOrSettle(payment, 'look')).status === 'settled') return;
        throw refuse('PAYMENT_EXPIRED', { neededSeconds: Math.ceil(mustLastMs / 1_000) });
      }
      const open = all.get(payment.network);
      if (open === undefined)
        throw unavailable('CHAIN_UNAVAILABLE', 'The chain of this payment is not configured here.', 60_000);
      await open.payments.verify(payment);
    },
    async balanceOf(payment) {
      const open = all.get(payment.network);
      if (open === undefined)
        throw unavailable('CHAIN_UNAVAILABLE', 'The chain of this payment is not configured here.', 60_000);
      return open.balanceOf(payment);
    },
    settle: (payment) => lookOrSettle(payment, 'settle'),
    asksIfKept: (payment) => transferOf(payment) === null && settlesOurselves(all.get(payment.network)),
    look: (payment) => lookOrSettle(payment, 'look'),
    async finality(payment, transaction) {
      const open = all.get(payment.network);
      if (open === undefined) return 'unknown';
      if (transferOf(payment) !== null && 'chain' in open) return open.chain.finality(transaction, null);
      return open.payments.finality(payment, transaction);
    },
    overpaidUnits: ({ evidence, amountUnits }) =>
      evidence.scheme === 'transfer' && typeof evidence.priceUnits === 'string'
        ? amountUnits - BigInt(evidence.priceUnits)
        : 0n,
    canRefund: offered.canRefund,
    canEverRefund: (networkId) => all.get(networkId)?.payments.canRefund === true,
    refund: async (refund) => (await all.get(refund.network)?.payments.refund(refund)) ?? null,
  };
}

/** Whether our own transaction moves the money of signed payments on this network. */
function settlesOurselves(open: Opened | undefined): boolean {
  return open !== undefined && 'settling' in open && open.settling !== null;
}

function transferOf({ evidence }: OnChainPayment): string | null {
  return evidence.scheme === 'transfer' ? (evidence as EvidenceOfTransfer).transaction : null;
}
