/** Reads from Solana what was paid to us, and what was sent back by us, since a time. */
import { getBase64Encoder, getCompiledTransactionMessageDecoder, getTransactionDecoder } from '@solana/kit';
import { type BatchingRpc, MAX_BATCH } from '../../chain-rpc/json-rpc.ts';
import type { OnChainPayment } from '../../paid-call/rail.ts';
import type { CamePayment, PaidSince } from '../evm/paid-since.ts';
import { refundedCallIn } from './refund-memo.ts';
import { fetchTransactions, listTransactions } from './solana-look.ts';
import { MEMO_PROGRAM, tokenAccountOf } from './solana-programs.ts';
import { readSolanaTransfer } from './solana-transfer.ts';
import type { SvmEvidence } from './svm-payments.ts';

/** A million transactions of an account. */
const MAX_PAGES = 1_000;

/** The place that payments come to. */
interface PaidPlace {
  rpc: Pick<BatchingRpc, 'call' | 'batch'>;
  /** CAIP-2. */
  network: string;
  /** The mint. */
  asset: string;
  /** The owner of the token account. */
  payTo: string;
  /** The address of our refunding key; null: there is none. */
  refunder: string | null;
}

/** A transaction as the node shows it in base64. */
interface Shown {
  transaction: [string, string];
  meta: {
    err: unknown;
    preTokenBalances?: TokenBalance[];
    postTokenBalances?: TokenBalance[];
  } | null;
}

interface TokenBalance {
  mint: string;
  owner: string;
  uiTokenAmount: { amount: string };
}

/** A transaction that landed and did what it says. */
interface Landed {
  signature: string;
  /** base64 */
  wire: string;
  /** By how much each owner's tokens became more or fewer. */
  change: ReadonlyMap<string, bigint>;
}

/**
 * Reads all transactions of our token accounts since a time.
 *
 * @returns null when the node has forgotten a part of that time
 * @throws what the node's client throws; RangeError when there were too many; Error when the node shows less than it lists
 */
export async function solanaPaidSince(place: PaidPlace, sinceMs: number): Promise<PaidSince | null> {
  const { rpc, asset, payTo, refunder } = place;
  if (!(await remembers(rpc, sinceMs))) return null;
  const minContextSlot = await rpc.call('getSlot', [{ commitment: 'confirmed' }]);
  if (typeof minContextSlot !== 'number') throw new Error('the node names no slot');
  const read = async (owner: string) =>
    landedOf(place, await tokenAccountOf(owner, asset), { sinceMs, minContextSlot });
  const came: CamePayment[] = [];
  const plain: PaidSince['plain'][number][] = [];
  for (const landed of await read(payTo)) {
    const units = landed.change.get(payTo) ?? 0n;
    if (units <= 0n) continue;
    const payment = await signedFor(place, landed.wire);
    const { signature: transaction } = landed;
    if (payment !== null) came.push({ payment, transaction, blockNumber: null });
    else plain.push({ transaction, from: giverIn(landed.change) ?? '', units });
  }
  const sentBack: PaidSince['sentBack'][number][] = [];
  for (const { signature, wire, change } of refunder === null ? [] : await read(refunder)) {
    if ((change.get(refunder ?? '') ?? 0n) >= 0n) continue;
    const callId = refundedCallIn(memosIn(wire));
    for (const [to, units] of change)
      if (units > 0n) sentBack.push({ transaction: signature, to, units, callId });
  }
  return { came, plain, sentBack };
}

/** Whether the node still has what landed since then. @throws what the node's client throws */
async function remembers(rpc: PaidPlace['rpc'], sinceMs: number): Promise<boolean> {
  const slot = await rpc.call('getFirstAvailableBlock', []);
  if (slot === 0) return true;
  const seconds = await rpc.call('getBlockTime', [slot]);
  return typeof seconds === 'number' && seconds * 1_000 <= sinceMs;
}

/** Fetches what landed on an account, the oldest first. */
async function landedOf(
  { rpc, asset }: PaidPlace,
  account: string,
  since: { sinceMs: number; minContextSlot: number },
): Promise<Landed[]> {
  const { signatures, isWhole } = await listTransactions(rpc, account, since, MAX_PAGES);
  if (!isWhole) throw new RangeError(`Solana lists too many transactions of ${account} since then`);
  const succeeded = signatures.filter(({ err }) => err === null).map(({ signature }) => signature);
  const landed: Landed[] = [];
  for (let at = 0; at < succeeded.length; at += MAX_BATCH) {
    const some = succeeded.slice(at, at + MAX_BATCH);
    const shown = (await fetchTransactions(rpc, some)) as (Shown | null | undefined)[];
    for (const [index, signature] of some.entries()) {
      const { transaction, meta } = shown[index] ?? { transaction: null, meta: null };
      if (transaction === null || meta === null)
        throw new Error(`the node lists ${signature} and does not have it`);
      landed.push({ signature, wire: transaction[0], change: changeBy(meta, asset) });
    }
  }
  return landed.reverse();
}

function changeBy(meta: NonNullable<Shown['meta']>, asset: string): ReadonlyMap<string, bigint> {
  const change = new Map<string, bigint>();
  for (const [balances, sign] of [
    [meta.preTokenBalances, -1n],
    [meta.postTokenBalances, 1n],
  ] as const)
    for (const { mint, owner, uiTokenAmount } of balances ?? [])
      if (mint === asset) change.set(owner, (change.get(owner) ?? 0n) + sign * BigInt(uiTokenAmount.amount));
  return change;
}

/** Reads the payment that its payer signed for us; null: it paid its own fee, or signed something else. */
async function signedFor({ network, asset, payTo }: PaidPlace, wire: string): Promise<OnChainPayment | null> {
  const transfer = await readSolanaTransfer(wire, { asset, payTo }).catch(() => null);
  if (transfer === null) return null;
  const { payer, source, amountUnits, feePayer, blockhash, messageHash, memo } = transfer;
  // What its payer was told beside the transaction is on no chain. The chain has taken it, and takes it no more.
  const payload = { transaction: wire };
  const evidence: SvmEvidence = {
    scheme: 'exact-svm',
    source,
    blockhash,
    messageHash,
    memo,
    feePayer,
    forFacilitator: { x402Version: 2, paymentPayload: { x402Version: 2, payload }, paymentRequirements: {} },
    forgotten: true,
  };
  return {
    identity: `${network}:${messageHash}`,
    network,
    asset,
    payer,
    payTo,
    amountUnits,
    movedBefore: true,
    deadAfterMs: 0,
    evidence,
  };
}

function giverIn(change: ReadonlyMap<string, bigint>): string | null {
  return [...change].find(([, units]) => units < 0n)?.[0] ?? null;
}

function memosIn(wire: string): string[] {
  const { messageBytes } = getTransactionDecoder().decode(getBase64Encoder().encode(wire));
  const message = getCompiledTransactionMessageDecoder().decode(messageBytes);
  if (message.version !== 0 && message.version !== 'legacy') return [];
  const { instructions, staticAccounts } = message;
  return instructions
    .filter(({ programAddressIndex }) => staticAccounts[programAddressIndex] === MEMO_PROGRAM)
    .map(({ data }) => Buffer.from(data ?? []).toString('utf8'));
}
