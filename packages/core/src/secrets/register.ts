/**
 * Which versions of the secret this database has seen, and what of it only a version can open that is not given now: a
 * server that started without it would give a second trial, and could not hand over a key that was paid for.
 */

import { StartError } from '@farebox/process/start-error';
import type { Database, Pools, Transaction } from '../db/connection.ts';
import type { Secrets } from './secrets.ts';

/** No trial runs longer, so no claim on one matters longer. */
const CLAIMS_MATTER_MS = 7 * 86_400_000;
/** No stored answer is kept longer: the most that `ANSWER_TTL_HOURS` may be. */
const ANSWERS_KEPT_MS = 30 * 86_400_000;
/** A version that was current is noted this often, so that it is known until when there may be answers under it. */
export const SECRET_NOTED_EVERY_MS = 3_600_000;

export interface SecretRegister {
  /**
   * Notes the versions that are given. What is from before versions had names is taken to be of the last of them.
   *
   * @throws StartError when something is there that only a version can open which is neither given nor given up
   */
  admit(): Promise<void>;
  /** Notes that the current version still is. */
  note(): Promise<void>;
}

/**
 * @param parts.lostIds versions that are gone for good: what needs them is given up
 * @param parts.canOpen whether a stored answer, sealed before versions had names, opens with what is given
 */
export function createSecretRegister(
  { sql, patient }: Pick<Pools, 'sql' | 'patient'>,
  parts: {
    secrets: Secrets;
    lostIds: readonly string[];
    canOpen(callId: string, body: string): boolean;
    nowMs(): number;
  },
): SecretRegister {
  const { secrets, lostIds, nowMs } = parts;
  const iso = (ms: number) => new Date(ms).toISOString();
  const givenIds = secrets.all.map(({ id }) => id);

  async function note(on: Database | Transaction): Promise<void> {
    await on`
      insert into secret_versions (id, last_current_at) values (${secrets.current.id}, ${iso(nowMs())})
      on conflict (id) do update set last_current_at = greatest(secret_versions.last_current_at, excluded.last_current_at)`;
  }

  /** Versions without a record that may have been the current one until now. */
  async function noteOthers(on: Transaction): Promise<void> {
    for (const id of givenIds)
      await on`
        insert into secret_versions (id, last_current_at) values (${id}, ${iso(nowMs())}) on conflict do nothing`;
  }

  /** What has no version's name yet, on the first start that gives names. */
  async function adopt(on: Transaction): Promise<void> {
    const oldest = secrets.all.at(-1)?.id ?? secrets.current.id;
    await on`update trial_claims set secret_id = ${oldest} where secret_id is null`;
    await on`update card_orders set key_secret_id = ${oldest} where key_digest is not null and key_secret_id is null`;
    const [sealed] = await on<{ id: string; body: string }[]>`
      select id, body from call_answers where body like 'sealed:1:%' and expires_at > ${iso(nowMs())} limit 1`;
    if (sealed !== undefined && !parts.canOpen(sealed.id, sealed.body))
      throw new StartError('FAREBOX_SECRET: stored answers are sealed with a secret that is not given');
  }

  /** Stored data that needs a version which is not configured. */
  async function missing(on: Transaction): Promise<string[]> {
    const found: string[] = [];
    const say = (what: string, ids: readonly string[]) => {
      const needed = ids.filter((id) => !lostIds.includes(id));
      if (needed.length > 0) found.push(`${what} (version ${needed.join(', ')})`);
    };
    const keys = await on<{ id: string }[]>`
      select distinct key_secret_id as id from card_orders
      where key_digest is not null and delivered_at is null and state < 2 and key_secret_id not in ${on(givenIds)}`;
    say(
      'keys that were bought and not fetched',
      keys.map(({ id }) => id),
    );
    // A claim that was made while several versions were given is there under each of them.
    const claims = await on<{ id: string }[]>`
      select distinct min(secret_id) as id from trial_claims
      where claimed_at > ${iso(nowMs() - CLAIMS_MATTER_MS)} group by account_id
      having not bool_or(secret_id in ${on(givenIds)})`;
    say(
      'who has had a trial',
      claims.map(({ id }) => id),
    );
    // Only after such a version was in use not long ago are all stored answers looked through.
    const recent = await on<{ id: string }[]>`
      select id from secret_versions
      where last_current_at > ${iso(nowMs() - ANSWERS_KEPT_MS)} and id not in ${on(givenIds)}`;
    const sealedWith: string[] = [];
    for (const { id } of recent) {
      const rows = await on`
        select 1 from call_answers where expires_at > ${iso(nowMs())} and starts_with(body, ${`sealed:2:${id}:`}) limit 1`;
      if (rows.length > 0) sealedWith.push(id);
    }
    say('stored answers that hold secrets', sealedWith);
    return found;
  }

  return {
    async admit() {
      // Looking through stored answers may take minutes, for which a request's connection has no patience.
      const found = await patient.begin(async (transaction) => {
        // Replicas that start together take turns.
        await transaction`lock table secret_versions in share row exclusive mode`;
        const known = await transaction`select 1 from secret_versions limit 1`;
        if (known.length === 0) await adopt(transaction);
        const needed = await missing(transaction);
        if (needed.length === 0) {
          await noteOthers(transaction);
          await note(transaction);
        }
        return needed;
      });
      if (found.length > 0) {
        throw new StartError(
          `FAREBOX_SECRET: a version that is not given is needed still, for ${found.join('; ')}. Give it after the current one, or name it in FAREBOX_SECRETS_LOST if it is gone`,
        );
      }
    },
    note: () => note(sql),
  };
}
