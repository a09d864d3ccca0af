/** Fees that are due back, as wallets and the operator see them. */
import type { Owed } from '@farebox/core/part';
import { timeText, usdcText } from '../figures.ts';
import type { Due, Fee, Unused } from './fees.ts';

const REASONS: Readonly<Record<Unused, string>> = {
  DEPOSIT_FAILED: 'The deposit that it was paid for failed on the chain.',
  NO_DEPOSIT: 'No deposit followed it.',
};
const STATUSES = {
  waiting: 'waiting_for_deposit',
  unused: 'refund_due',
  used: 'used',
  refunded: 'refunded',
} as const;

/** A page of a wallet's fees. */
interface Page {
  fees: readonly Fee[];
  /** All that is due back to the wallet, whatever this page shows. */
  due: bigint;
  /** Where the next page is; null: this is the last. */
  next: string | null;
}

/** `/api/solana-yield/fee-refunds/{wallet}` */
export function feeRefundsView(
  wallet: string,
  { fees, due, next, contactEmail }: Page & { contactEmail: string | null },
) {
  return {
    success: true,
    wallet,
    dueUsdc: usdcText(due),
    dueRaw: String(due),
    refunds: fees.map(feeView),
    next,
    note: `Fees that were paid and found no deposit, the newest first. They are found on the chain by themselves; the operator sends back what is due, to the wallet that paid.${contactEmail === null ? '' : ` Questions: ${contactEmail}, with feeTxSignature.`}`,
  };
}

/** Describes one payment back to a wallet, as the operator makes it. @param treasury the wallet that it was paid to */
export function owedFor({ signatures, wallet, usdc, since, reason, further }: Due, treasury: string): Owed {
  const many = signatures.length + further > 1;
  const about = many ? ` ${signatures.length} of ${signatures.length + further} fees of this wallet.` : '';
  return {
    what: 'Deposit fee of the Solana yield portal',
    to: wallet,
    amount: `${usdcText(usdc)} USDC`,
    since: timeText(since.getTime()),
    reason: `${REASONS[reason]}${about}`,
    how: `Send it from ${treasury} with this memo: refund ${signatures.join(' ')}`,
  };
}

function feeView({ signature, usdc, at, state, reason, refund_signature }: Fee) {
  return {
    feeTxSignature: signature,
    amountUsdc: usdcText(usdc),
    amountRaw: String(usdc),
    paidAt: timeText(at.getTime()),
    status: STATUSES[state],
    reason: reason === null ? null : REASONS[reason],
    refundTxSignature: refund_signature,
  };
}
