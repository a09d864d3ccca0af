import type { Transaction } from '../db/connection.ts';
import { foldedAgentId } from '../words/agent-id.ts';
import type { Owner } from './owner.ts';

/** How long an agentId is kept for a payment: longer than settling it and running its call take, unless a chain is slow. */
const CLAIM_MS = 60_000;
/** How many claims that have ended each claim deletes. */
const DELETED_AT_ONCE = 10;

/**
 * Keeps an agentId for one call, so that of several payments for the same thing one settles. A call that outlives its claim is
 * not hurt: whoever makes the thing first has it, and the other payment is sent back.
 *
 * @returns false: it is kept for another call
 */
export async function claimAgentId(
  on: Transaction,
  claim: { kind: 'wallet' | 'identity'; owner: Owner; agentId: string; callId: string; nowMs: number },
): Promise<boolean> {
  const { kind, owner, callId, nowMs } = claim;
  const now = new Date(nowMs).toISOString();
  const expiresAt = new Date(nowMs + CLAIM_MS).toISOString();
  const claimed = await on`
    insert into agent_id_claims as c (kind, owner, agent_key, call_id, expires_at)
    values (${kind}, ${owner}, ${foldedAgentId(claim.agentId)}, ${callId}, ${expiresAt})
    on conflict (kind, owner, agent_key) do update set call_id = excluded.call_id, expires_at = excluded.expires_at
    where c.call_id = excluded.call_id or c.expires_at <= ${now}
    returning 1`;
  // After the insert: whoever waits for a row there holds no other.
  await on`
    delete from agent_id_claims where ctid in (
      select ctid from agent_id_claims where expires_at <= ${now}
      order by expires_at limit ${DELETED_AT_ONCE} for update skip locked)`;
  return claimed.length > 0;
}
