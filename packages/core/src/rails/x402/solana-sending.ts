/** How transactions of our own keys go to Solana, and how it is known what became of them. */
import type { Rpc } from '../../chain-rpc/json-rpc.ts';
import type { EndingChain, Fate, StoredTransaction } from '../../relayer/ending-sender.ts';
import type { GasSource } from '../../relayer/gas-tanks.ts';

/** How many blocks a blockhash can be used for after its own. */
const BLOCKHASH_BLOCKS = 150n;
/** Beyond this age a node may have forgotten what landed, and must show that it has not. */
const SURELY_KNOWN_MS = 600_000;
/** Block times are estimates. */
const BLOCK_TIME_MARGIN_MS = 60_000;
const FINALIZED = { commitment: 'finalized' };

/** The measure of `endsAt` is the block height. */
export function solanaChain(rpc: Rpc, nowMs: () => number): EndingChain {
  /** Whether the node still has what was sent since then. @throws what the node's client throws */
  async function remembersSince(ms: number): Promise<boolean> {
    const slot = await rpc.call('getFirstAvailableBlock', []);
    const seconds = await rpc.call('getBlockTime', [slot]);
    return typeof seconds === 'number' && seconds * 1_000 + BLOCK_TIME_MARGIN_MS <= ms;
  }

  async function isOver({ endsAt, createdAtMs }: StoredTransaction, finalHeight: number): Promise<boolean> {
    if (BigInt(finalHeight) <= endsAt) return false;
    return nowMs() - createdAtMs < SURELY_KNOWN_MS || (await remembersSince(createdAtMs));
  }

  return {
    async fates(transactions) {
      // The height first: what the statuses do not show then was in no block up to it.
      const { absoluteSlot, blockHeight } = (await rpc.call('getEpochInfo', [FINALIZED])) as {
        absoluteSlot: number;
        blockHeight: number;
      };
      const { context, value } = (await rpc.call('getSignatureStatuses', [
        transactions.map(({ hash }) => hash),
        { searchTransactionHistory: true },
      ])) as {
        context: { slot: number };
        value: ({ err: unknown; confirmationStatus: string } | null)[];
      };
      return Promise.all(
        transactions.map(async (each, index): Promise<Fate> => {
          const status = value[index];
          if (status === undefined) throw new Error('the node left one out');
          if (status === null) {
            // Another node may have answered, and know less than the one that said the height.
            const over = context.slot >= absoluteSlot && (await isOver(each, blockHeight));
            return { status: over ? 'over' : 'unseen' };
          }
          if (status.confirmationStatus === 'processed') return { status: 'unseen' };
          return {
            status: 'landed',
            ok: status.err === null,
            final: status.confirmationStatus === 'finalized',
          };
        }),
      );
    },
    async cost({ hash }) {
      const landed = (await rpc.call('getTransaction', [
        hash,
        { commitment: 'finalized', maxSupportedTransactionVersion: 0 },
      ])) as { meta: { preBalances: number[]; postBalances: number[] } } | null;
      // The fee payer's account is the first; beside the fee it may have paid a deposit.
      const [before, after] = [landed?.meta.preBalances[0], landed?.meta.postBalances[0]];
      if (before === undefined || after === undefined) throw new Error('the node shows no balances');
      return BigInt(before) - BigInt(after);
    },
    send: (raw) => rpc.call('sendTransaction', [raw, { encoding: 'base64', skipPreflight: true }]),
  };
}

/**
 * After which height a transaction with this blockhash lands no more, at the latest.
 *
 * @returns null when the chain does not take the blockhash, or not yet
 * @throws what the node's client throws
 */
export async function endOfBlockhash(rpc: Rpc, blockhash: string): Promise<bigint | null> {
  const { context, value } = (await rpc.call('isBlockhashValid', [
    blockhash,
    { commitment: 'processed' },
  ])) as { context: { slot: number }; value: boolean };
  if (!value) return null;
  // It is no younger than the slot that knew it, nor that than the height which a node past that slot says.
  const { blockHeight } = (await rpc.call('getEpochInfo', [
    { commitment: 'processed', minContextSlot: context.slot },
  ])) as { blockHeight: number };
  return BigInt(blockHeight) + BLOCKHASH_BLOCKS;
}

/** @param lamportsEach what one transaction costs at most */
export function solanaGas(rpc: Rpc, lamportsEach: bigint): GasSource {
  return {
    async balanceOf(address) {
      const { value } = (await rpc.call('getBalance', [address, { commitment: 'confirmed' }])) as {
        value: number;
      };
      return BigInt(value);
    },
    cost: async () => lamportsEach,
  };
}
