/** Payments by a transfer that the payer made by itself, named by its hash (EVM) or signature (Solana). */
import type { NodeRpc, Rpc } from '../../chain-rpc/json-rpc.ts';
import { unavailable } from '../../http/problem.ts';
import type { ChainVerdict } from '../../paid-call/rail.ts';
import { type MinedTransaction, minedUpTo } from '../../relayer/node-reply.ts';
import type { EvmChain } from '../evm/chain.ts';
import { type Hex, TOPIC_TRANSFER, TOPIC_USED, topicOf } from '../evm/eip3009.ts';
import { refuse } from '../on-chain/refusals.ts';

const MAX_AGE_MS = 24 * 3_600_000;

export interface FoundTransfer {
  payer: string;
  amountUnits: bigint;
  /** Null on a chain where block numbers play no part. */
  blockNumber: bigint | null;
}

function notConfirmed(needed: number, has: number) {
  return unavailable(
    'PAYMENT_NOT_CONFIRMED',
    `The transfer needs ${needed} confirmations and has ${has}. Send the same request again; do not pay again.`,
    2_000,
    { charged: null, confirmations: has, confirmationsNeeded: needed },
  );
}

/**
 * Finds a plain USDC transfer of at least the price.
 *
 * @returns null when this chain does not know the transaction
 * @throws PaymentRefused when it does not pay; Problem (503) when that cannot be said yet
 */
export async function findEvmTransfer(
  parts: { chain: EvmChain; rpc: Pick<NodeRpc, 'call' | 'together'>; nowMs(): number },
  hash: string,
  wanted: { payTo: string; amountUnits: bigint },
): Promise<FoundTransfer | null> {
  const { chain, rpc, nowMs } = parts;
  const { network } = chain;
  let mined = await ask(network.title, () => chain.receipt(hash));
  if (mined === null) {
    const pending = await ask(network.title, () => rpc.call('eth_getTransactionByHash', [hash]));
    if (pending !== null) throw notConfirmed(network.transferConfirmations, 0);
    mined = await ask(network.title, async () => minedUpTo(rpc, (await chain.head()).hash, hash));
    if (mined === null) return null;
  }
  if (mined.status !== 'success') throw refuse('PAYMENT_TRANSACTION_FAILED');
  const transfer = plainTransfer(mined, network.asset, wanted);
  const head = await ask(network.title, () => chain.head());
  const confirmations = Number(head.number - mined.blockNumber) + 1;
  if (confirmations < network.transferConfirmations)
    throw notConfirmed(network.transferConfirmations, Math.max(1, confirmations));
  const block = (await ask(network.title, () =>
    rpc.call('eth_getBlockByNumber', [`0x${mined.blockNumber.toString(16)}`, false]),
  )) as { timestamp: string } | null;
  if (block === null) throw notConfirmed(network.transferConfirmations, 1);
  if (Number(block.timestamp) * 1_000 < nowMs() - MAX_AGE_MS) throw refuse('PAYMENT_TRANSFER_TOO_OLD');
  return transfer;
}

function plainTransfer(
  mined: MinedTransaction,
  asset: string,
  wanted: { payTo: string; amountUnits: bigint },
): FoundTransfer {
  const ours = mined.logs.filter(({ address }) => address === asset.toLowerCase());
  // Otherwise anybody who watches the chain could present somebody else's settlement as their own transfer.
  if (ours.some(({ topics }) => topics[0] === TOPIC_USED)) throw refuse('PAYMENT_TRANSFER_NOT_PLAIN');
  const to = topicOf(wanted.payTo as Hex);
  // A hash buys once. So everything that its payer sent us in this transaction counts, as all of it is booked.
  const sent = new Map<string, bigint>();
  for (const { topics, data } of ours) {
    if (topics[0] !== TOPIC_TRANSFER || topics[2] !== to) continue;
    const from = `0x${topics[1]?.slice(26) ?? ''}`;
    sent.set(from, (sent.get(from) ?? 0n) + BigInt(data));
  }
  const [most] = [...sent].toSorted(([, a], [, b]) => (a < b ? 1 : a > b ? -1 : 0));
  if (most === undefined || most[1] < wanted.amountUnits)
    throw refuse('PAYMENT_TRANSFER_MISMATCH', { payTo: wanted.payTo });
  return { payer: most[0], amountUnits: most[1], blockNumber: mined.blockNumber };
}

/**
 * As `findEvmTransfer`. @param feePayers those of settlements: a transfer whose fee they paid was authorized, and buys
 * on its own
 */
export async function findSolanaTransfer(
  parts: { rpc: Rpc; nowMs(): number },
  signature: string,
  wanted: { asset: string; payTo: string; amountUnits: bigint; feePayers: ReadonlySet<string> },
): Promise<FoundTransfer | null> {
  const found = (await ask('Solana', () =>
    parts.rpc.call('getTransaction', [
      signature,
      { encoding: 'json', commitment: 'finalized', maxSupportedTransactionVersion: 0 },
    ]),
  )) as SolanaTransaction | null;
  if (found === null) {
    const status = await ask('Solana', () => statusBySlot(parts.rpc, signature));
    if (status === null) return null;
    throw notConfirmed(32, status.confirmations ?? 0);
  }
  if (found.meta === null || found.meta.err !== null) throw refuse('PAYMENT_TRANSACTION_FAILED');
  if (wanted.feePayers.has(found.transaction.message.accountKeys[0] ?? ''))
    throw refuse('PAYMENT_TRANSFER_NOT_PLAIN');
  if (found.blockTime !== null && found.blockTime * 1_000 < parts.nowMs() - MAX_AGE_MS)
    throw refuse('PAYMENT_TRANSFER_TOO_OLD');
  const change = new Map<string, bigint>();
  for (const [balances, sign] of [
    [found.meta.preTokenBalances, -1n],
    [found.meta.postTokenBalances, 1n],
  ] as const) {
    for (const { mint, owner, uiTokenAmount } of balances ?? []) {
      if (mint === wanted.asset)
        change.set(owner, (change.get(owner) ?? 0n) + sign * BigInt(uiTokenAmount.amount));
    }
  }
  const received = change.get(wanted.payTo) ?? 0n;
  const [payer] = [...change]
    .filter(([owner, moved]) => owner !== wanted.payTo && moved < 0n)
    .map(([owner]) => owner);
  if (received < wanted.amountUnits || payer === undefined)
    throw refuse('PAYMENT_TRANSFER_MISMATCH', { payTo: wanted.payTo });
  // In a settlement somebody else pays the fee, and a facilitator may use new fee payers at any time, so no list of them
  // is complete. A transfer is plain only if whoever paid us also paid its fee.
  if (found.transaction.message.accountKeys[0] !== payer) throw refuse('PAYMENT_TRANSFER_NOT_PLAIN');
  return { payer, amountUnits: received, blockNumber: null };
}

/** @throws when the node that answers is behind the one that named the newest slot: one address can be several nodes */
async function statusBySlot(rpc: Rpc, signature: string): Promise<{ confirmations: number | null } | null> {
  const slot = await rpc.call('getSlot', [{ commitment: 'confirmed' }]);
  const { context, value } = (await rpc.call('getSignatureStatuses', [
    [signature],
    { searchTransactionHistory: true },
  ])) as { context: { slot: number }; value: ({ confirmations: number | null } | null)[] };
  const [status] = value;
  if (status !== null && status !== undefined) return status;
  if (typeof slot !== 'number' || !(context.slot >= slot)) throw new Error('the node is behind');
  return null;
}

interface SolanaTransaction {
  blockTime: number | null;
  meta: {
    err: unknown;
    preTokenBalances?: TokenBalance[];
    postTokenBalances?: TokenBalance[];
  } | null;
  transaction: { message: { accountKeys: string[] } };
}
interface TokenBalance {
  mint: string;
  owner: string;
  uiTokenAmount: { amount: string };
}

/** Whether a transfer that was found before is still on its chain. */
export async function lookAtTransfer(
  find: () => Promise<FoundTransfer | null>,
  transaction: string,
  isOver: boolean,
): Promise<ChainVerdict> {
  try {
    const found = await find();
    if (found !== null) return { status: 'settled', transaction, blockNumber: found.blockNumber };
    return isOver
      ? { status: 'dead', refusal: refuse('PAYMENT_TRANSACTION_NOT_FOUND') }
      : { status: 'unknown' };
  } catch (error) {
    return { status: 'unknown', cause: error };
  }
}

async function ask<T>(title: string, question: () => Promise<T>): Promise<T> {
  try {
    return await question();
  } catch (error) {
    throw unavailable(
      'CHAIN_UNAVAILABLE',
      `${title} does not answer. Send the same request again; do not pay again.`,
      5_000,
      { charged: null },
      error,
    );
  }
}
