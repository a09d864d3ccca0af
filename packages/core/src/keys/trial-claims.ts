/**
 * The claims of trials: the rows of `trial_claims`. An address is personal data, so only its HMAC is stored, which cannot
 * be reversed without the server's secret.
 */
import { createHmac } from 'node:crypto';
import type { Database, Transaction } from '../db/connection.ts';
import { claimantOf, SITE_FACTOR, siteOf } from '../http/caller-address.ts';
import type { Secrets } from '../secrets/secrets.ts';
import { NotGiven } from './trial-outcome.ts';

/** Trials that one IPv6 site (/48) may take while one lasts: each of its networks (/64) is one claimant. */
const TRIALS_PER_SITE = SITE_FACTOR;
/** Claims whose time is over are forgotten so many at once. */
const FORGOTTEN_AT_ONCE = 1_000;

/** One who claims: an address or an installation, under each version of our secret. */
export type Claimant = readonly { digest: Buffer; secretId: string; site: Buffer | null }[];

/** A claim that still runs. */
export interface RunningClaim {
  accountId: bigint;
  claimedAtMs: number;
}

export class TrialClaims {
  readonly #sql: Database;
  readonly #secrets: Secrets;
  readonly #runsMs: number;
  readonly #nowMs: () => number;

  /** @param parts.runsMs how long a claim keeps its claimant from another one */
  constructor(sql: Database, parts: { secrets: Secrets; runsMs: number; nowMs: () => number }) {
    this.#sql = sql;
    this.#secrets = parts.secrets;
    this.#runsMs = parts.runsMs;
    this.#nowMs = parts.nowMs;
  }

  /** @param address the caller's; IPv6 counts by /64, and beyond that by /48 */
  ofAddress(address: string): Claimant {
    return this.#claimant('address', claimantOf(address), siteOf(address));
  }

  ofInstallation(installId: string): Claimant {
    return this.#claimant('install', installId, null);
  }

  /** The latest claim of each claimant that still runs; null where there is none. */
  async running(claimants: readonly Claimant[]): Promise<(RunningClaim | null)[]> {
    const digests = claimants.flat().map(({ digest }) => digest);
    const rows = await this.#sql<{ claimant: Buffer; account_id: bigint; claimed_at: Date }[]>`
      select claimant, account_id, claimed_at from trial_claims
      where claimant in ${this.#sql(digests)} and claimed_at > ${this.#runningSince()}
      order by claimed_at desc`;
    return claimants.map((claimant) => {
      const row = rows.find((each) => claimant.some(({ digest }) => digest.equals(each.claimant)));
      return row === undefined ? null : { accountId: row.account_id, claimedAtMs: row.claimed_at.getTime() };
    });
  }

  /** Locks the sites of claimants until the commit, in one order: two who want several cannot wait for each other. */
  async holdSites(transaction: Transaction, claimants: readonly Claimant[]): Promise<void> {
    for (const site of sitesOf(claimants))
      await transaction`select pg_advisory_xact_lock(${String(site.readBigInt64BE(0))}::bigint)`;
  }

  /**
   * Writes down who has this account's trial. Each is written under every version of our secret: a replica that is not told
   * of the newest recognizes another. Sites are held.
   *
   * @throws NotGiven when one of them has a claim that runs, or their neighbours have had all there is for their site
   */
  async take(transaction: Transaction, claimants: readonly Claimant[], accountId: bigint): Promise<void> {
    const now = new Date(this.#nowMs()).toISOString();
    const inOrder = claimants.flat().sort((a, b) => Buffer.compare(a.digest, b.digest));
    for (const { digest, secretId, site } of inOrder) {
      const taken = await transaction`
        insert into trial_claims (claimant, claimed_at, account_id, secret_id, site)
        values (${digest}, ${now}, ${String(accountId)}, ${secretId}, ${site})
        on conflict (claimant) do update
        set claimed_at = excluded.claimed_at, account_id = excluded.account_id, secret_id = excluded.secret_id,
            site = excluded.site
        where trial_claims.claimed_at <= ${this.#runningSince()}`;
      if (taken.count === 0) throw new NotGiven({ status: 'claimed', by: 'address', retryAfterMs: 0 });
    }
    await this.#takeFromSite(transaction, sitesOf(claimants));
  }

  /** Forgets claims whose time is over, a thousand at most. */
  async forget(): Promise<void> {
    await this.#sql`
      delete from trial_claims where claimant in (
        select claimant from trial_claims where claimed_at <= ${this.#runningSince()}
        order by claimed_at limit ${FORGOTTEN_AT_ONCE} for update skip locked)`;
  }

  async #takeFromSite(transaction: Transaction, sites: readonly Buffer[]): Promise<void> {
    if (sites.length === 0) return;
    const claims = await transaction<{ claimed_at: Date }[]>`
      select max(claimed_at) as claimed_at from trial_claims
      where site in ${transaction(sites)} and claimed_at > ${this.#runningSince()}
      group by account_id order by 1 desc limit ${TRIALS_PER_SITE + 1}`;
    // This one's own is among them.
    const [oldest] = claims.slice(TRIALS_PER_SITE);
    if (oldest === undefined) return;
    const retryAfterMs = oldest.claimed_at.getTime() + this.#runsMs - this.#nowMs();
    throw new NotGiven({ status: 'claimed', by: 'site', retryAfterMs });
  }

  #claimant(kind: 'address' | 'install', value: string, site: string | null): Claimant {
    return this.#secrets.all.map(({ id, value: secret }) => {
      const digestOf = (text: string) => createHmac('sha256', secret).update(text).digest();
      return {
        digest: digestOf(`trial:${kind}:${value}`),
        secretId: id,
        site: site === null ? null : digestOf(`trial:site:${site}`),
      };
    });
  }

  #runningSince(): string {
    return new Date(this.#nowMs() - this.#runsMs).toISOString();
  }
}

function sitesOf(claimants: readonly Claimant[]): Buffer[] {
  return claimants
    .flat()
    .flatMap(({ site }) => (site === null ? [] : [site]))
    .sort(Buffer.compare);
}
