import { createHmac } from 'node:crypto';
import type { Database, Transaction } from '../db/connection.ts';
import { claimantOf } from '../http/caller-address.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { usdToMicros } from '../ledger/money.ts';
import { newTransferId, transferIdFor } from '../ledger/transfer-id.ts';
import type { NewApiKey } from './api-key.ts';
import type { Keys } from './keys.ts';

export const TRIAL_USD = 5;
export const TRIAL_DAYS = 7;
const TRIAL_MICROS = usdToMicros(String(TRIAL_USD));
const TRIAL_MS = TRIAL_DAYS * 24 * 60 * 60 * 1000;

export type TrialOutcome =
  | { status: 'issued'; key: NewApiKey; expiresAtMs: number }
  /** The installation has a trial from this address: it gets a new key for what is left of it. */
  | { status: 'replaced'; key: NewApiKey; expiresAtMs: number; availableMicros: bigint }
  | { status: 'claimed'; retryAfterMs: number };

export interface Trials {
  /**
   * Gives a trial to an address, once in seven days.
   *
   * @param address the caller's; IPv6 counts by /64
   * @param installId of an SDK that may ask again for its own trial's key; null for anybody else
   */
  claim(address: string, installId: string | null): Promise<TrialOutcome>;
  /**
   * Takes back what is left of trials whose time is over, by a transfer each.
   *
   * @returns how many accounts it closed
   * @throws the first failure, after the others had their turn
   */
  expire(limit: number): Promise<number>;
}

export function createTrials(
  sql: Database,
  parts: { keys: Keys; ledger: Ledger; secret: string; nowMs: () => number },
): Trials {
  const { keys, ledger, secret, nowMs } = parts;

  /** An address is personal: only its HMAC is kept, which nobody without our secret can turn back. */
  function claimantFor(kind: 'address' | 'install', value: string): Buffer {
    return createHmac('sha256', secret).update(`trial:${kind}:${value}`).digest();
  }

  /** The claims that still run among these claimants. */
  async function runningClaims(
    on: Database | Transaction,
    claimants: readonly Buffer[],
  ): Promise<{ accountId: bigint; claimedAtMs: number }[]> {
    const rows = await on<{ account_id: bigint; claimed_at: Date }[]>`
      select account_id, claimed_at from trial_claims
      where claimant in ${on(claimants)} and claimed_at > ${new Date(nowMs() - TRIAL_MS).toISOString()}`;
    return rows.map((row) => ({ accountId: row.account_id, claimedAtMs: row.claimed_at.getTime() }));
  }

  /**
   * Claim, account, grant and key in one commit: a crash leaves either a trial with its key or no trace at all.
   *
   * @returns null when one of the claimants has a claim that still runs
   */
  async function open(claimants: readonly Buffer[], expiresAtMs: number): Promise<NewApiKey | null> {
    const now = new Date(nowMs()).toISOString();
    const before = new Date(nowMs() - TRIAL_MS).toISOString();
    return sql
      .begin(async (transaction) => {
        const accountId = await ledger.openAccount(transaction);
        // In one order, so that two who claim both at once cannot wait for each other.
        for (const claimant of [...claimants].sort(Buffer.compare)) {
          const taken = await transaction`
          insert into trial_claims (claimant, claimed_at, account_id) values (${claimant}, ${now}, ${String(accountId)})
          on conflict (claimant) do update set claimed_at = excluded.claimed_at, account_id = excluded.account_id
            where trial_claims.claimed_at <= ${before}`;
          if (taken.count === 0) throw new AlreadyClaimed();
        }
        await ledger.transferWithin(transaction, {
          id: transferIdFor(`trial:${accountId}`),
          accountId,
          phase: 'posted',
          side: 'credit',
          house: 'trial_grants',
          amountMicros: TRIAL_MICROS,
          code: 'trial_grant',
        });
        return keys.issue(transaction, { accountId, kind: 'trial', label: null, expiresAtMs });
      })
      .catch((error: unknown) => {
        if (error instanceof AlreadyClaimed) return null;
        throw error;
      });
  }

  return {
    async claim(address, installId) {
      const byAddress = claimantFor('address', claimantOf(address));
      const claimants = installId === null ? [byAddress] : [byAddress, claimantFor('install', installId)];
      const expiresAtMs = nowMs() + TRIAL_MS;
      const key = await open(claimants, expiresAtMs);
      if (key !== null) return { status: 'issued', key, expiresAtMs };

      const running = await runningClaims(sql, claimants);
      const [first] = running;
      // Both the address and the installation must lead to the same trial: knowing an id alone gains nothing.
      const own =
        installId !== null && running.length === 2 && running.every((c) => c.accountId === first?.accountId);
      if (own && first !== undefined) {
        const replaced = await replaceKey(first.accountId);
        if (replaced !== null) return replaced;
      }
      const latestMs = Math.max(nowMs() - TRIAL_MS, ...running.map((claim) => claim.claimedAtMs));
      return { status: 'claimed', retryAfterMs: latestMs + TRIAL_MS - nowMs() };
    },

    async expire(limit) {
      const now = new Date(nowMs()).toISOString();
      // The grant is spent before bought credit, so what is left of it is the grant minus everything ever spent.
      const due = await sql<{ account_id: bigint; left: bigint }[]>`
        select a.id as account_id,
               least(${String(TRIAL_MICROS)}::bigint - a.debits_posted, a.credits_posted - a.debits_posted) as left
        from ledger_accounts a
        where a.debits_pending = 0 and a.id in (
          select k.account_id from api_keys k join ledger_accounts held on held.id = k.account_id
          where k.kind = 'trial' and not k.trial_closed and k.expires_at <= ${now} and held.debits_pending = 0
          order by k.expires_at limit ${limit})`;
      let closed = 0;
      const failures: unknown[] = [];
      for (const { account_id: accountId, left } of due) {
        const closing = sql.begin(async (transaction) => {
          await ledger.lock(transaction, [accountId]);
          // Who has bought credit meanwhile has no trial any more, and nothing that expires.
          const [trial] = await transaction`
            select 1 from api_keys where account_id = ${String(accountId)} and kind = 'trial' and not trial_closed
              and expires_at <= ${now} limit 1`;
          if (trial === undefined) return;
          if (left > 0n) {
            const { status } = await ledger.transferWithin(transaction, {
              id: transferIdFor(`trial-expiry:${accountId}`),
              accountId,
              phase: 'posted',
              side: 'debit',
              house: 'trial_expired',
              amountMicros: left,
              code: 'trial_expiry',
            });
            // A call slipped in between: the next round finds what is left then.
            if (status !== 'done') return;
          }
          await transaction`update api_keys set trial_closed = true where account_id = ${String(accountId)}`;
          closed += 1;
        });
        await closing.catch((error: unknown) => void failures.push(error));
      }
      if (failures.length > 0) throw failures[0];
      return closed;
    },
  };

  async function replaceKey(accountId: bigint): Promise<TrialOutcome | null> {
    const [old] = await sql<{ id: bigint; expires_at: Date }[]>`
      select id, expires_at from api_keys
      where account_id = ${String(accountId)} and kind = 'trial' and status = 'active'
        and expires_at > ${new Date(nowMs()).toISOString()}`;
    if (old === undefined) return null;
    const key = await keys.rotate(old.id);
    if (key === null) return null;
    const { availableMicros } = await ledger.balance(accountId);
    return { status: 'replaced', key, expiresAtMs: old.expires_at.getTime(), availableMicros };
  }
}

class AlreadyClaimed extends Error {}

/** Gives credit to a new key, as an operator does; the reason stands in the ledger. */
export async function grantKey(
  parts: { sql: Database; keys: Keys; ledger: Ledger; nowMs: () => number },
  grant: { amountMicros: bigint; label: string; note: string },
): Promise<NewApiKey> {
  return parts.sql.begin(async (transaction) => {
    const accountId = await parts.ledger.openAccount(transaction);
    await parts.ledger.transferWithin(transaction, {
      id: newTransferId(parts.nowMs()),
      accountId,
      phase: 'posted',
      side: 'credit',
      house: 'operator_grants',
      amountMicros: grant.amountMicros,
      code: 'operator_grant',
      note: grant.note,
    });
    return parts.keys.issue(transaction, { accountId, kind: 'grant', label: grant.label, expiresAtMs: null });
  });
}
