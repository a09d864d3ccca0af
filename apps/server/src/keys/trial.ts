import { createHmac } from 'node:crypto';
import type { Database, Transaction } from '../db/connection.ts';
import { claimantOf, SITE_FACTOR, siteOf } from '../http/caller-address.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { usdToMicros } from '../ledger/money.ts';
import { newTransferId, transferIdFor } from '../ledger/transfer-id.ts';
import type { Secrets } from '../secrets/secrets.ts';
import type { NewApiKey } from './api-key.ts';
import type { Keys } from './keys.ts';
import { expireTrialCredit, openTrialCredit } from './trial-credit.ts';

export const TRIAL_USD = 5;
export const TRIAL_DAYS = 7;
const TRIAL_MICROS = usdToMicros(String(TRIAL_USD));
const TRIAL_MS = TRIAL_DAYS * 24 * 60 * 60 * 1000;

/** Trials that one IPv6 site (/48) may take in seven days: each of its networks (/64) is one claimant. */
const TRIALS_PER_SITE = SITE_FACTOR;
/** Claims whose time is over are forgotten so many at once. */
const CLAIMS_FORGOTTEN_AT_ONCE = 1_000;
const DAY_MS = 24 * 60 * 60 * 1000;

export type TrialOutcome =
  | { status: 'issued'; key: NewApiKey; expiresAtMs: number }
  /** The installation has a trial from this address: it gets a new key for what is left of it. */
  | { status: 'replaced'; key: NewApiKey; expiresAtMs: number; availableMicros: bigint }
  /** `by` site: this address has had none, but its neighbours have had all there are for them. */
  | { status: 'claimed'; by: 'address' | 'site'; retryAfterMs: number }
  /** The day has given what it may. */
  | { status: 'spent'; retryAfterMs: number };

export interface Trials {
  /**
   * Gives a trial to an address, once in seven days.
   *
   * @param address the caller's; IPv6 counts by /64, and beyond that by /48
   * @param installId of an SDK that may ask again for its own trial's key; null for anybody else
   */
  claim(address: string, installId: string | null): Promise<TrialOutcome>;
  /**
   * Takes back what is left of trials whose time is over, by a transfer each, so many accounts at a time until there is
   * none left. Accounts that somebody holds are passed by.
   *
   * @returns how many accounts it closed
   * @throws the first failure, after the others had their turn
   */
  expire(atOnce: number, stopping?: AbortSignal): Promise<number>;
}

/** One who claims: an address or an installation, under each version of our secret. */
type Claimant = readonly { digest: Buffer; secretId: string; site: Buffer | null }[];

export function createTrials(
  sql: Database,
  parts: {
    keys: Keys;
    ledger: Ledger;
    secrets: Secrets;
    /** The most that a day (UTC) may grant; null: no bound. */
    budgetMicrosPerDay: bigint | null;
    nowMs: () => number;
  },
): Trials {
  const { keys, ledger, secrets, budgetMicrosPerDay, nowMs } = parts;
  const iso = (ms: number) => new Date(ms).toISOString();

  /** An address is personal data: only its HMAC is stored, which cannot be reversed without the server's secret. */
  function claimantFor(kind: 'address' | 'install', value: string, site: string | null): Claimant {
    return secrets.all.map(({ id, value: secret }) => {
      const digestOf = (text: string) => createHmac('sha256', secret).update(text).digest();
      return {
        digest: digestOf(`trial:${kind}:${value}`),
        secretId: id,
        site: site === null ? null : digestOf(`trial:site:${site}`),
      };
    });
  }

  /** The latest claim of each claimant that still runs; null where there is none. */
  async function runningClaims(
    claimants: readonly Claimant[],
  ): Promise<({ accountId: bigint; claimedAtMs: number } | null)[]> {
    const rows = await sql<{ claimant: Buffer; account_id: bigint; claimed_at: Date }[]>`
      select claimant, account_id, claimed_at from trial_claims
      where claimant in ${sql(claimants.flat().map(({ digest }) => digest))} and claimed_at > ${iso(nowMs() - TRIAL_MS)}
      order by claimed_at desc`;
    return claimants.map((claimant) => {
      const row = rows.find((each) => claimant.some(({ digest }) => digest.equals(each.claimant)));
      return row === undefined ? null : { accountId: row.account_id, claimedAtMs: row.claimed_at.getTime() };
    });
  }

  /** Whether the day's budget seems to allow one more trial. `takeFromBudget` decides. */
  async function isSpent(): Promise<boolean> {
    if (budgetMicrosPerDay === null) return false;
    const [row] = await sql<{ granted_micros: bigint }[]>`
      select granted_micros from trial_days where day = ${iso(nowMs()).slice(0, 10)}::date`;
    return (row?.granted_micros ?? 0n) + TRIAL_MICROS > budgetMicrosPerDay;
  }

  /**
   * Takes a trial from what the day may give. The row is held until the commit, so it comes last; it is one for all
   * replicas, so that none gives what another has given.
   */
  async function takeFromBudget(transaction: Transaction): Promise<void> {
    const micros = String(TRIAL_MICROS);
    const most = budgetMicrosPerDay === null ? null : String(budgetMicrosPerDay);
    const taken = await transaction`
      insert into trial_days as d (day, granted_micros, trials)
      select ${iso(nowMs()).slice(0, 10)}::date, ${micros}::bigint, 1
      where ${most}::bigint is null or ${micros}::bigint <= ${most}::bigint
      on conflict (day) do update
      set granted_micros = d.granted_micros + excluded.granted_micros, trials = d.trials + 1
      where ${most}::bigint is null or d.granted_micros + excluded.granted_micros <= ${most}::bigint`;
    if (taken.count === 0) throw new NotGiven({ status: 'spent', retryAfterMs: untilMidnightMs() });
  }

  function untilMidnightMs(): number {
    return DAY_MS - (nowMs() % DAY_MS);
  }

  /** Refuses when the neighbours of an address have had all the trials that there are for their site. */
  async function takeFromSite(transaction: Transaction, sites: readonly Buffer[]): Promise<void> {
    if (sites.length === 0) return;
    const claims = await transaction<{ claimed_at: Date }[]>`
      select max(claimed_at) as claimed_at from trial_claims
      where site in ${transaction(sites)} and claimed_at > ${iso(nowMs() - TRIAL_MS)}
      group by account_id order by 1 desc limit ${TRIALS_PER_SITE + 1}`;
    // This one's own is among them.
    const [oldest] = claims.slice(TRIALS_PER_SITE);
    if (oldest !== undefined) {
      const retryAfterMs = oldest.claimed_at.getTime() + TRIAL_MS - nowMs();
      throw new NotGiven({ status: 'claimed', by: 'site', retryAfterMs });
    }
  }

  /**
   * Claim, account, grant, key and the day's budget in one commit: a crash leaves either a trial with its key or no trace
   * at all.
   *
   * @returns why not; `claimed` by address when one of the claimants has a claim that still runs
   */
  async function open(
    claimants: readonly Claimant[],
    expiresAtMs: number,
  ): Promise<NewApiKey | Exclude<TrialOutcome, { key: NewApiKey }>> {
    const now = nowMs();
    // Each in one order, so that two who want several of them cannot wait for each other.
    const claims = claimants.flat().sort((a, b) => Buffer.compare(a.digest, b.digest));
    const sites = claims.flatMap(({ site }) => (site === null ? [] : [site])).sort(Buffer.compare);
    return sql
      .begin(async (transaction) => {
        for (const site of sites)
          await transaction`select pg_advisory_xact_lock(${String(site.readBigInt64BE(0))}::bigint)`;
        const accountId = await ledger.openAccount(transaction);
        // Under every version of our secret: a replica that is not told of the newest recognizes another.
        for (const { digest, secretId, site } of claims) {
          const taken = await transaction`
            insert into trial_claims (claimant, claimed_at, account_id, secret_id, site)
            values (${digest}, ${iso(now)}, ${String(accountId)}, ${secretId}, ${site})
            on conflict (claimant) do update
            set claimed_at = excluded.claimed_at, account_id = excluded.account_id, secret_id = excluded.secret_id,
                site = excluded.site
            where trial_claims.claimed_at <= ${iso(now - TRIAL_MS)}`;
          if (taken.count === 0) throw new NotGiven({ status: 'claimed', by: 'address', retryAfterMs: 0 });
        }
        await takeFromSite(transaction, sites);
        await ledger.transferWithin(transaction, {
          id: transferIdFor(`trial:${accountId}`),
          accountId,
          phase: 'posted',
          side: 'credit',
          house: 'trial_grants',
          amountMicros: TRIAL_MICROS,
          code: 'trial_grant',
        });
        await openTrialCredit(transaction, {
          accountId,
          grantedMicros: TRIAL_MICROS,
          grantedAtMs: now,
          expiresAtMs,
        });
        const key = await keys.issue(transaction, { accountId, kind: 'trial', label: null, expiresAtMs });
        await takeFromBudget(transaction);
        return key;
      })
      .catch((error: unknown) => {
        if (error instanceof NotGiven) return error.outcome;
        throw error;
      });
  }

  return {
    async claim(address, installId) {
      const byAddress = claimantFor('address', claimantOf(address), siteOf(address));
      const claimants =
        installId === null ? [byAddress] : [byAddress, claimantFor('install', installId, null)];
      const expiresAtMs = nowMs() + TRIAL_MS;
      // While nothing is left a flood of claims costs a look each, and no work that is thrown away.
      const opened = (await isSpent())
        ? ({ status: 'spent', retryAfterMs: untilMidnightMs() } as const)
        : await open(claimants, expiresAtMs);
      if ('apiKey' in opened) return { status: 'issued', key: opened, expiresAtMs };

      // Who has a trial is told of that one, whatever the day may still give; a new key for it costs nothing.
      const running = await runningClaims(claimants);
      const [first] = running;
      const had = running.filter((claim) => claim !== null);
      // Both the address and the installation must lead to the same trial: knowing an id alone gains nothing.
      const own =
        installId !== null && had.length === 2 && had.every((claim) => claim.accountId === first?.accountId);
      if (own && first !== undefined && first !== null) {
        const replaced = await replaceKey(first.accountId);
        if (replaced !== null) return replaced;
      }
      if (had.length === 0 && !(opened.status === 'claimed' && opened.by === 'address')) return opened;
      const latestMs = Math.max(nowMs() - TRIAL_MS, ...had.map((claim) => claim.claimedAtMs));
      return { status: 'claimed', by: 'address', retryAfterMs: latestMs + TRIAL_MS - nowMs() };
    },

    async expire(atOnce, stopping) {
      const [forgotten, expired] = await Promise.allSettled([
        forgetClaims(),
        expireTrialCredit(sql, { ledger, nowMs: nowMs(), atOnce, stopping }),
      ]);
      if (expired.status === 'rejected') throw expired.reason;
      if (forgotten.status === 'rejected') throw forgotten.reason;
      return expired.value;
    },
  };

  async function forgetClaims(): Promise<void> {
    await sql`
      delete from trial_claims where claimant in (
        select claimant from trial_claims where claimed_at <= ${iso(nowMs() - TRIAL_MS)}
        order by claimed_at limit ${CLAIMS_FORGOTTEN_AT_ONCE} for update skip locked)`;
  }

  async function replaceKey(accountId: bigint): Promise<TrialOutcome | null> {
    const [old] = await sql<{ id: bigint; expires_at: Date }[]>`
      select id, expires_at from api_keys
      where account_id = ${String(accountId)} and kind = 'trial' and status = 'active'
        and expires_at > ${iso(nowMs())}`;
    if (old === undefined) return null;
    const key = await keys.rotate(old.id);
    if (key === null) return null;
    const { availableMicros } = await ledger.balance(accountId);
    return { status: 'replaced', key, expiresAtMs: old.expires_at.getTime(), availableMicros };
  }
}

/** Ends a transaction that would have given a trial. */
class NotGiven extends Error {
  readonly outcome: Exclude<TrialOutcome, { key: NewApiKey }>;

  constructor(outcome: Exclude<TrialOutcome, { key: NewApiKey }>) {
    super(outcome.status);
    this.outcome = outcome;
  }
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
