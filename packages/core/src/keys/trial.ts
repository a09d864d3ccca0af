/**
 * Trials: an address gets some credit once in seven days, without telling who it is. Claim, account, grant, key and the day's
 * budget are one commit, so a crash leaves either a trial with its key or no trace at all.
 */
import type { Database, Transaction } from '../db/connection.ts';
import type { BucketTurns } from '../ledger/bucket-turns.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { usdToMicros } from '../ledger/money.ts';
import { newTransferId, transferIdFor } from '../ledger/transfer-id.ts';
import type { Secrets } from '../secrets/secrets.ts';
import type { NewApiKey } from './api-key.ts';
import type { Keys } from './keys.ts';
import { TrialBudget } from './trial-budget.ts';
import { type Claimant, type RunningClaim, TrialClaims } from './trial-claims.ts';
import { expireTrialCredit, openTrialCredit } from './trial-credit.ts';
import { NotGiven, type TrialOutcome } from './trial-outcome.ts';

export const TRIAL_USD = 5;
export const TRIAL_DAYS = 7;
const TRIAL_MICROS = usdToMicros(String(TRIAL_USD));
const TRIAL_MS = TRIAL_DAYS * 24 * 60 * 60 * 1000;

export interface Trials {
  /**
   * Gives a trial to an address, once in seven days.
   *
   * @param address the caller's; IPv6 counts by /64, and beyond that by /48
   * @param installId of an SDK that may ask again for its own trial's key; null for anybody else
   */
  claim(address: string, installId: string | null): Promise<TrialOutcome>;
  /** When the next trial may be given, as far as this process knows; null: now. */
  readonly nextAtMs: number | null;
  /** Looks at what may be given now, which other processes may have given. */
  look(): Promise<void>;
  /**
   * Takes back what is left of trials whose time is over, by a transfer each, so many accounts at a time until there is
   * none left. Accounts that somebody holds are passed by.
   *
   * @returns how many accounts it closed
   * @throws the first failure, after the others had their turn
   */
  expire(atOnce: number, stopping?: AbortSignal): Promise<number>;
}

interface TrialParts {
  keys: Keys;
  ledger: Ledger;
  secrets: Secrets;
  turns: BucketTurns;
  /** The most that a day (UTC) may grant; null: no bound. */
  budgetMicrosPerDay: bigint | null;
  nowMs: () => number;
}

export function createTrials(sql: Database, parts: TrialParts): Trials {
  return new ClaimedTrials(sql, parts);
}

class ClaimedTrials implements Trials {
  readonly #sql: Database;
  readonly #parts: TrialParts;
  readonly #claims: TrialClaims;
  readonly #budget: TrialBudget;

  constructor(sql: Database, parts: TrialParts) {
    const { secrets, nowMs, budgetMicrosPerDay: microsPerDay } = parts;
    this.#sql = sql;
    this.#parts = parts;
    this.#claims = new TrialClaims(sql, { secrets, runsMs: TRIAL_MS, nowMs });
    this.#budget = new TrialBudget(sql, { trialMicros: TRIAL_MICROS, microsPerDay, nowMs });
  }

  get nextAtMs(): number | null {
    return this.#budget.nextAtMs;
  }

  async look(): Promise<void> {
    await this.#budget.spent();
  }

  async claim(address: string, installId: string | null): Promise<TrialOutcome> {
    const byAddress = this.#claims.ofAddress(address);
    const claimants = installId === null ? [byAddress] : [byAddress, this.#claims.ofInstallation(installId)];
    const expiresAtMs = this.#parts.nowMs() + TRIAL_MS;
    // While nothing is left a flood of claims costs a look each, and no work that is thrown away.
    const opened = (await this.#budget.spent()) ?? (await this.#open(claimants, expiresAtMs));
    if ('apiKey' in opened) return { status: 'issued', key: opened, expiresAtMs };

    // Who has a trial is told of that one, whatever the day may still give; a new key for it costs nothing.
    const running = await this.#claims.running(claimants);
    const accountId = installId === null ? null : sameTrial(running);
    const replaced = accountId === null ? null : await this.#replaceKey(accountId);
    if (replaced !== null) return replaced;
    const had = running.filter((claim) => claim !== null);
    if (had.length === 0 && !(opened.status === 'claimed' && opened.by === 'address')) return opened;
    const nowMs = this.#parts.nowMs();
    const latestMs = Math.max(nowMs - TRIAL_MS, ...had.map(({ claimedAtMs }) => claimedAtMs));
    return { status: 'claimed', by: 'address', retryAfterMs: latestMs + TRIAL_MS - nowMs };
  }

  async expire(atOnce: number, stopping?: AbortSignal): Promise<number> {
    const { ledger, turns, nowMs } = this.#parts;
    const [forgotten, expired] = await Promise.allSettled([
      this.#claims.forget(),
      expireTrialCredit(this.#sql, { ledger, turns, nowMs: nowMs(), atOnce, stopping }),
    ]);
    if (expired.status === 'rejected') throw expired.reason;
    if (forgotten.status === 'rejected') throw forgotten.reason;
    return expired.value;
  }

  /** @returns why not; `claimed` by address when one of the claimants has a claim that still runs */
  async #open(
    claimants: readonly Claimant[],
    expiresAtMs: number,
  ): Promise<NewApiKey | Exclude<TrialOutcome, { key: NewApiKey }>> {
    return this.#sql
      .begin(async (transaction) => {
        await this.#claims.holdSites(transaction, claimants);
        const accountId = await this.#parts.ledger.openAccount(transaction);
        await this.#claims.take(transaction, claimants, accountId);
        await this.#grant(transaction, accountId, expiresAtMs);
        const trial = { accountId, kind: 'trial', label: null, expiresAtMs } as const;
        const key = await this.#parts.keys.issue(transaction, trial);
        await this.#budget.take(transaction);
        return key;
      })
      .catch((error: unknown) => {
        if (error instanceof NotGiven) return error.outcome;
        throw error;
      });
  }

  async #grant(transaction: Transaction, accountId: bigint, expiresAtMs: number): Promise<void> {
    const { ledger, nowMs } = this.#parts;
    await ledger.transferWithin(transaction, {
      id: transferIdFor(`trial:${accountId}`),
      accountId,
      phase: 'posted',
      side: 'credit',
      house: 'trial_grants',
      amountMicros: TRIAL_MICROS,
      code: 'trial_grant',
    });
    const given = { accountId, grantedMicros: TRIAL_MICROS, grantedAtMs: nowMs(), expiresAtMs };
    await openTrialCredit(transaction, given);
  }

  /** A new key for what is left of a trial; null: it has no active key any more. */
  async #replaceKey(accountId: bigint): Promise<TrialOutcome | null> {
    const { keys, ledger, nowMs } = this.#parts;
    const [old] = await this.#sql<{ id: bigint; expires_at: Date }[]>`
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

/**
 * The account to whose trial both the address and the installation lead; null: they do not. To know an installation's id
 * alone gains nothing.
 */
function sameTrial([first, second]: readonly (RunningClaim | null)[]): bigint | null {
  if (first == null || second == null) return null;
  return first.accountId === second.accountId ? first.accountId : null;
}

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
