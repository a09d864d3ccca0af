/** Fees that are due back, as wallets and the operator see them. */
import type { Owed } from '../../part.ts';
import { timeText, usdcText } from '../figures.ts';
import type { Fee, Unused } from './fees.ts';

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

/** `/api/solana-yield/fee-refunds/{wallet}` */
export function feeRefundsView(wallet: string, fees: readonly Fee[], contactEmail: string | null) {
  const due = fees.filter(({ state }) => state === 'unused').reduce((sum, { usdc }) => sum + usdc, 0n);
  return {
    success: true,
    wallet,
    dueUsdc: usdcText(due),
    dueRaw: String(due),
    refunds: fees.map(feeView),
    note: `Fees that were paid and found no deposit, the newest first. They are found on the chain by themselves; the operator sends back what is due, to the wallet that paid.${contactEmail === null ? '' : ` Questions: ${contactEmail}, with feeTxSignature.`}`,
  };
}

/** The same fee, as the operator sends it back. @param treasury the wallet that it was paid to */
export function owedFor({ signature, wallet, usdc, at, reason }: Fee, treasury: string): Owed {
  return {
    what: 'Deposit fee of the Solana yield portal',
    to: wallet,
    amount: `${usdcText(usdc)} USDC`,
    since: timeText(at.getTime()),
    reason: reason === null ? 'No deposit followed it.' : REASONS[reason],
    how: `Send it from ${treasury} with this memo: refund ${signature}`,
  };
}

function feeView({ signature, usdc, at, state, reason, refund_signature }: Fee) {
  return {
    feeTxSignature: signature,
    ...{ amountUsdc: usdcText(usdc), amountRaw: String(usdc) },
    paidAt: timeText(at.getTime()),
    status: STATUSES[state],
    reason: reason === null ? null : REASONS[reason],
    refundTxSignature: refund_signature,
  };
}
