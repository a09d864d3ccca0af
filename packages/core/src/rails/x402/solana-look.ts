/**
 * Finds out what became of a payment that somebody else sent: its signature is the fee payer's, so it is looked for
 * among the transactions of the account that the money would leave. That costs what the account did while the payment
 * could land, and not what it ever did: a page lists a thousand, and what bears another memo need not be fetched.
 */
import { createHash } from 'node:crypto';
import { getBase64Encoder, getTransactionDecoder } from '@solana/kit';
import { type BatchingRpc, MAX_BATCH, RpcRefusal } from '../../chain-rpc/json-rpc.ts';

/** As many signatures as a node lists at once. */
const PAGE = 1_000;
/** How much is looked through while the payment can still land, and it is asked for again and again. */
const WHILE_OPEN = { pages: 10, fetched: 500 };
/** And once it cannot: then the answer is for ever. */
const ONCE_OVER = { pages: 50, fetched: 5_000 };

export interface Sought {
  /** The account that the money would leave. */
  source: string;
  /** SHA-256 of what was signed, hex. */
  messageHash: string;
  /** The text of its memo; null: it has none; undefined: not known. */
  memo?: string | null | undefined;
}

export type Found =
  | { status: 'landed'; signature: string; ok: boolean }
  | { status: 'absent' }
  /** The account did more than is looked through. */
  | { status: 'not all seen' }
  /** One was listed and could not be fetched: another node answered, and it may be the one. */
  | { status: 'not shown' };

/**
 * Looks through the account's transactions, the newest first.
 *
 * @param bounds.sinceMs nothing that was sent before counts
 * @param bounds.isOver whether it can land no more
 * @param bounds.minContextSlot the slot that the answering node must have seen: one that has not refuses
 * @param others signatures that are known to be of something else; grows
 * @throws what the node's client throws
 */
export async function findAmongTransactions(
  rpc: BatchingRpc,
  sought: Sought,
  bounds: { sinceMs: number; isOver: boolean; minContextSlot: number },
  others: Set<string>,
): Promise<Found> {
  const most = bounds.isOver ? ONCE_OVER : WHILE_OPEN;
  const { signatures, isWhole } = await listTransactions(rpc, sought.source, bounds, most.pages);
  const open = signatures.filter(({ signature }) => !others.has(signature));
  // What says our memo is fetched first. A node that keeps no memos says null for all of them.
  const named = open.filter(({ memo }) => memo !== null && isMemoOf(sought, memo));
  const unnamed = open.filter(({ memo }) => memo === null);
  const candidates = [...named, ...unnamed].map(({ signature }) => signature);
  for (let at = 0; at < Math.min(candidates.length, most.fetched); at += MAX_BATCH) {
    const some = candidates.slice(at, at + MAX_BATCH);
    const fetched = await fetchTransactions(rpc, some);
    for (const [index, signature] of some.entries()) {
      const became = fateOf(fetched[index], sought.messageHash);
      if (became === 'unseen') return { status: 'not shown' };
      if (became !== 'other') return { status: 'landed', signature, ok: became === 'paid' };
      others.add(signature);
    }
  }
  return { status: isWhole && candidates.length <= most.fetched ? 'absent' : 'not all seen' };
}

function isMemoOf({ memo }: Sought, listed: string): boolean {
  return memo === undefined || (memo !== null && listed.includes(memo));
}

/**
 * Lists an account's transactions since a time, the newest first.
 *
 * @param pages of a thousand, at the most
 * @returns `isWhole`: whether all of them are among these
 * @throws what the node's client throws
 */
export async function listTransactions(
  rpc: Pick<BatchingRpc, 'call'>,
  source: string,
  { sinceMs, minContextSlot }: { sinceMs: number; minContextSlot: number },
  pages: number,
): Promise<{ signatures: Listed[]; isWhole: boolean }> {
  const signatures: Listed[] = [];
  for (let page = 0; page < pages; page++) {
    const before = signatures.at(-1)?.signature;
    const listed = (await rpc.call('getSignaturesForAddress', [
      source,
      {
        limit: PAGE,
        commitment: 'confirmed',
        minContextSlot,
        ...(before === undefined ? {} : { before }),
      },
    ])) as Listed[];
    const tooOld = listed.findIndex(({ blockTime }) => blockTime !== null && blockTime * 1_000 < sinceMs);
    signatures.push(...(tooOld === -1 ? listed : listed.slice(0, tooOld)));
    if (tooOld !== -1 || listed.length < PAGE) return { signatures, isWhole: true };
  }
  return { signatures, isWhole: false };
}

export interface Listed {
  signature: string;
  /** Null: it did what it says. */
  err: unknown;
  blockTime: number | null;
  /** `[length] text` of each memo, joined by `; `. */
  memo: string | null;
}

/**
 * Fetches transactions together, from a node that takes no batches one by one.
 *
 * @param signatures at most `MAX_BATCH`
 * @returns them in base64 with what they did, in the same order
 * @throws what the node's client throws
 */
export async function fetchTransactions(
  rpc: Pick<BatchingRpc, 'call' | 'batch'>,
  signatures: readonly string[],
): Promise<unknown[]> {
  const asked = signatures.map((signature) => [signature, HOW_FETCHED]);
  const single = () => Promise.all(asked.map((params) => rpc.call('getTransaction', params)));
  if (asked.length === 1) return single();
  try {
    return await rpc.batch('getTransaction', asked);
  } catch (error) {
    if (error instanceof RpcRefusal) return single();
    throw error;
  }
}

const HOW_FETCHED = { encoding: 'base64', commitment: 'confirmed', maxSupportedTransactionVersion: 0 };

/** What became of the message, by the transaction of one signature. @throws what the node's client throws */
export async function fateAt(
  rpc: BatchingRpc,
  signature: string,
  messageHash: string,
): Promise<ReturnType<typeof fateOf>> {
  return fateOf(await rpc.call('getTransaction', [signature, HOW_FETCHED]), messageHash);
}

/** What a transaction, as the node shows it, says of a message. */
function fateOf(shown: unknown, messageHash: string): 'paid' | 'failed' | 'other' | 'unseen' {
  const found = shown as { transaction: [string, string]; meta: { err: unknown } | null } | null | undefined;
  if (found === null || found === undefined) return 'unseen';
  const { messageBytes } = getTransactionDecoder().decode(getBase64Encoder().encode(found.transaction[0]));
  const hash = createHash('sha256').update(Uint8Array.from(messageBytes)).digest('hex');
  if (hash !== messageHash) return 'other';
  return found.meta !== null && found.meta.err === null ? 'paid' : 'failed';
}
