/** Writes down what transactions did: deposits, withdrawals, fees and their refunds, in one commit each, however often one is read. */
import type { Database } from '@farebox/core/db/connection';
import {
  depositIn,
  feeIn,
  memosIn,
  type NoDeposit,
  type PaidFee,
  refundsFees,
  withdrawalIn,
} from './effects.ts';
import type { Fees } from './fees.ts';
import type { Moves, WalletMove } from './moves.ts';
import type { Landed } from './node.ts';
import type { Portal } from './portal.ts';

/** A deposit follows its fee within a minute, as a rule. */
const FIRST_LOOK_MS = 60_000;

export interface Entered {
  deposit: WalletMove | null;
  /** Why it is no deposit. */
  why: NoDeposit | null;
  withdrawal: WalletMove | null;
  fee: PaidFee | null;
}

export type Book = ReturnType<typeof createBook>;

export function createBook(parts: {
  sql: Database;
  portal: Portal;
  moves: Moves;
  fees: Fees;
  nowMs(): number;
}) {
  const { sql, portal, moves, fees, nowMs } = parts;

  /** The fees that a payment of the treasury's sends back. */
  async function refundedBy(landed: Landed, account: string): Promise<string[]> {
    const known = await fees.openAmong(memosIn(landed));
    const owner = portal.treasury;
    const sent = [...Map.groupBy(known, ({ wallet }) => wallet)].map(([wallet, owed]) => {
      // One payment settles no two debts.
      const usdc = owed.reduce((sum, fee) => sum + fee.usdc, 0n);
      return refundsFees(landed, { owner, account }, { wallet, usdc }) ? owed : [];
    });
    return sent.flat().map(({ signature }) => signature);
  }

  return {
    /** Whether it is a payment of the treasury's that names a fee which nobody has read yet. */
    async awaitsFee(landed: Landed): Promise<boolean> {
      if (landed.err !== null || !landed.signers.includes(portal.treasury)) return false;
      return !(await fees.areKnown(memosIn(landed)));
    },

    /**
     * Writes down all that a transaction did which landed and succeeded.
     *
     * @param isFinal whether the chain cannot take it back any more
     */
    async enter(landed: Landed, isFinal: boolean): Promise<Entered> {
      const account = portal.treasuryAccount;
      if (landed.err !== null || landed.slot < portal.sinceSlot)
        return { deposit: null, why: null, withdrawal: null, fee: null };
      const found = depositIn(landed, account);
      const deposit = 'code' in found ? null : found;
      const withdrawal = withdrawalIn(landed, account);
      const fee = feeIn(landed, account);
      const refunded = await refundedBy(landed, account);
      const move = deposit ?? withdrawal;
      const { signature, atMs } = landed;
      const slot = BigInt(landed.slot);
      // Whose fee waits for no deposit has nothing to be matched, and nothing else is written before it is final.
      const isAlone = move !== null && !isFinal && (fee === null || fee.wallet === move.wallet);
      const isKept = isAlone && (await moves.keepAlone(move));
      if (!isKept && (move !== null || fee !== null || refunded.length > 0))
        await sql.begin(async (transaction) => {
          if (move !== null) await moves.keep(transaction, move, isFinal);
          // What can still be taken back is no ground for a refund: the walk comes by it again when it is final.
          if (fee !== null && isFinal)
            await fees.keep(transaction, { ...fee, signature, slot, atMs }, nowMs() + FIRST_LOOK_MS);
          for (const each of isFinal ? refunded : []) await fees.refunded(transaction, each, signature);
          // In one order, so that two who write down the same wallets do not wait for each other.
          for (const wallet of [...new Set([move?.wallet, fee?.wallet])].sort())
            if (wallet !== undefined) await fees.match(transaction, wallet);
        });
      return { deposit, why: 'code' in found ? found : null, withdrawal, fee };
    },
  };
}
