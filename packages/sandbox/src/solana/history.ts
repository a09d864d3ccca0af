/** The transactions that landed: found by signature, by message and by account; the oldest are forgotten. */
import type { UiTokenAmount } from './token-state.ts';
import type { TransactionError } from './transaction-error.ts';

/** So many are kept, and all whose blockhash can still be used: forgetting one of those would let it land twice. */
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
  /** The static ones, and those from lookup tables: first the writable, then the others. */
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
  /** The slot from which on nothing is forgotten; null: from the beginning. */
  firstSlot(): number | null;
  /** Whether there is no room until older transactions may be forgotten. */
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
