/**
 * The page that the provider leads a payer back to, on which they may see whether an agent has had the key,
 * and get at the same one while it is handed over. The page's link carries a proof in its fragment, which browsers send
 * to nobody. The key follows from the retrieval token; that lies here only under the proof, which is not kept.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { CardOrder, OrderStore } from '../orders/orders.ts';
import type { HandOver } from './hand-over.ts';

const PROOF = /^[\w-]{22}$/;

/** How a bought key stands, for whoever holds the proof. */
export interface PageHandOver {
  /** - waiting: nobody has had it. - open: somebody has, and it is told again for a moment. - over: not any more. */
  state: 'unpaid' | 'expired' | 'no_key' | 'waiting' | 'open' | 'over';
  deliveredAtMs: number | null;
  deliveredTo: 'agent' | 'page' | null;
}

/** The proof of a new checkout, and what is kept so that it leads to the retrieval token. @param token 32 hex digits */
export function sealForPage(orderId: string, token: string): { proof: string; seal: Buffer } {
  const proof = randomBytes(16).toString('base64url');
  return { proof, seal: masked(Buffer.from(token, 'hex'), orderId, proof) };
}

export interface ReturnPage<Delivered> {
  /** Null: there is no such session, or the proof is not its own. */
  look(session: { sessionId: string; proof: string }): Promise<PageHandOver | null>;
  /** Hands the key over, as the agent's poll does. Null as above, and when there is none to hand over. */
  reveal(session: { sessionId: string; proof: string }): Promise<Delivered | null>;
}

export function createReturnPage<Delivered>(parts: {
  orders: Pick<OrderStore, 'findBySession'>;
  handOver: HandOver;
  /** The order as it stands now, and its key when it is to be told. */
  upToDate(order: CardOrder): Promise<CardOrder>;
  deliver(order: CardOrder, retrievalToken: string): Promise<Delivered>;
}): ReturnPage<Delivered> {
  async function opened({ sessionId, proof }: { sessionId: string; proof: string }) {
    if (!PROOF.test(proof)) return null;
    const order = await parts.orders.findBySession(sessionId);
    if (order === null || order.pageSeal === null || order.tokenDigest === null) return null;
    const token = masked(order.pageSeal, order.id, proof).toString('hex');
    const right = timingSafeEqual(createHash('sha256').update(token).digest(), order.tokenDigest);
    return right ? { order: await parts.upToDate(order), token } : null;
  }

  async function stateOf(order: CardOrder): Promise<PageHandOver['state']> {
    if (order.state === 'open') return 'unpaid';
    if (order.state === 'over') return 'expired';
    if (order.key === null) return 'no_key';
    if (order.deliveredAtMs === null) return 'waiting';
    return (await parts.handOver.lasts(order)) ? 'open' : 'over';
  }

  return {
    async look(session) {
      const found = await opened(session);
      if (found === null) return null;
      const { deliveredAtMs, deliveredTo } = found.order;
      return { state: await stateOf(found.order), deliveredAtMs, deliveredTo };
    },
    async reveal(session) {
      const found = await opened(session);
      if (found === null || found.order.state !== 'paid' || found.order.key === null) return null;
      return parts.deliver(found.order, found.token);
    },
  };
}

/** A token under its proof, or back: 16 bytes with as many of a hash that only the proof leads to. */
function masked(bytes: Buffer, orderId: string, proof: string): Buffer {
  const mask = createHash('sha256')
    .update(JSON.stringify(['return page', orderId, proof]))
    .digest();
  return Buffer.from(bytes.map((byte, index) => byte ^ (mask[index] ?? 0)));
}
