/** The transactions that landed, found by signature or by message. The oldest are forgotten. */
import type { UiTokenAmount } from './token-state.ts';
import type { TransactionError } from './transaction-error.ts';

/**
 * How many of the newest transactions are kept. All transactions whose blockhash can still be used are kept as well: such a
 * transaction could land twice if it were forgotten.
 */
const KEPT_TRANSACTIONS = 2_000;
const MAX_TRANSACTIONS = 50_000;

export interface InnerInstruction {
  programIdIndex: number;
  accounts: readonly number[];
  /** base58 */
  data: string;
  stackHeight: number;
}

export interface TokenBalance {
  accountIndex: number;
  mint: string;
  owner: string;
  programId: string;
  uiTokenAmount: UiTokenAmount;
}

/** A transaction of the chain, with what it did. Kept as JSON, so it holds no bigint. Amounts are in lamports. */
export interface LandedTransaction {
  signature: string;
  messageHash: string;
  slot: number;
  /** The transaction's bytes. */
  base64: string;
  err: TransactionError | null;
  /** The static accounts, then the writable ones from lookup tables, then the read-only ones from lookup tables. */
  accountKeys: readonly string[];
  loadedAddresses: { writable: readonly string[]; readonly: readonly string[] };
  fee: number;
  preBalances: readonly number[];
  postBalances: readonly number[];
  preTokenBalances: readonly TokenBalance[];
  postTokenBalances: readonly TokenBalance[];
  logMessages: readonly string[];
  innerInstructions: readonly { index: number; instructions: readonly InnerInstruction[] }[];
  computeUnitsConsumed: number;
  returnData: { programId: string; data: readonly [string, 'base64'] } | null;
  /** Memos as `[length] text`, joined by `; `. */
  memo: string | null;
}

export interface History {
  add(transaction: LandedTransaction): void;
  bySignature(signature: string): LandedTransaction | undefined;
  byMessage(messageHash: string): LandedTransaction | undefined;
  /** All that are kept, latest first. */
  latestFirst(): LandedTransaction[];
  /** All that are kept, oldest first. */
  all(): Iterable<LandedTransaction>;
  /** The slot from which on no transaction was forgotten; null: none was forgotten since the beginning. */
  firstSlot(): number | null;
  /** Whether no transaction can be added until older ones may be forgotten. */
  isFull(): boolean;
}

/** @param oldestLiveSlot the slot from which on transactions must not be forgotten */
export function openHistory(kept: readonly LandedTransaction[], oldestLiveSlot: () => number): History {
  const transactions = new Map(kept.map((one) => [one.signature, one]));
  const messages = new Map(kept.map((one) => [one.messageHash, one]));
  return {
    add(transaction) {
      transactions.set(transaction.signature, transaction);
      messages.set(transaction.messageHash, transaction);
      const liveFrom = oldestLiveSlot();
      for (const [signature, { slot, messageHash }] of transactions) {
        if (transactions.size <= KEPT_TRANSACTIONS || slot >= liveFrom) break;
        transactions.delete(signature);
        messages.delete(messageHash);
      }
    },
    bySignature: (signature) => transactions.get(signature),
    byMessage: (messageHash) => messages.get(messageHash),
    latestFirst: () => [...transactions.values()].reverse(),
    all: () => transactions.values(),
    firstSlot() {
      const [oldest] = transactions.values();
      return transactions.size < KEPT_TRANSACTIONS ? null : (oldest?.slot ?? null);
    },
    isFull: () => transactions.size >= MAX_TRANSACTIONS,
  };
}
