/**
 * Notes what is learned of keys while they are used, beside the calls themselves: new addresses, and answers that took long. A
 * call leaves a note in memory and waits for nothing; a job writes the notes down for accounts that want to be told. A
 * process that dies loses the notes of its last seconds.
 */
import { createHmac } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import { claimantOf } from '../http/caller-address.ts';
import type { KeyUse } from '../paid-call/paid-call.ts';
import type { Secrets } from '../secrets/secrets.ts';
import type { EventLog } from './event-log.ts';

export interface KeyUses {
  /** Costs a look into memory. */
  note(use: KeyUse): void;
  /**
   * Writes down what was noted, and tells those who want it.
   *
   * @throws AggregateError, after the others, when some could not be written down
   */
  flush(): Promise<void>;
  /** Forgets addresses that are new again, and says how many. */
  forget(): Promise<number>;
}

/** A shorter one is not worth a message: whoever asked is still there. */
const LONG_ANSWER_MS = 5_000;
/** The pairs of key and address kept in memory, of all keys together: a forgotten one is looked up again. */
const PAIRS_REMEMBERED = 50_000;
/** Then it is written down again that an address is still used. */
const REMEMBERED_FOR_MS = 86_400_000;
/** So many notes wait at most; more are left out. */
const MOST_NOTES = 5_000;
/** In one round: then it is not the note, and the others wait for the next round. */
const MOST_FAILURES = 10;
/** The addresses of one key that are kept: the oldest is forgotten for a new one, so a caller with many addresses is told of again and again. */
const ADDRESSES_OF_A_KEY = 64;
const DAY_MS = 86_400_000;
/** The latest keys of an account that are looked at when one of them is used for the first time. */
const KEYS_LOOKED_AT = 20;
/** In one call of `forget`. */
export const ADDRESSES_FORGOTTEN_AT_ONCE = 5_000;

interface Pair {
  accountId: bigint;
  keyId: bigint;
  address: string;
}

interface KeyUseParts {
  secrets: Secrets;
  log: Pick<EventLog, 'add'>;
  /** An address that was not used for so long is new again. */
  retentionDays: number;
  nowMs(): number;
}

export function createKeyUses(sql: Database, parts: KeyUseParts): KeyUses {
  // By size and not by `max`, which takes the memory of all at once.
  const seen = new LRUCache<string, true>({
    maxSize: PAIRS_REMEMBERED,
    sizeCalculation: () => 1,
    ttl: REMEMBERED_FOR_MS,
  });
  let pairs: Pair[] = [];
  let answers: (Pick<KeyUse, 'accountId'> & NonNullable<KeyUse['answered']>)[] = [];

  return {
    note({ accountId, keyId, address, answered }) {
      const from = claimantOf(address);
      const pair = `${keyId} ${from}`;
      if (seen.get(pair) === undefined && pairs.length < MOST_NOTES) {
        seen.set(pair, true);
        pairs.push({ accountId, keyId, address: from });
      }
      if (answered !== null && answered.durationMs >= LONG_ANSWER_MS && answers.length < MOST_NOTES)
        answers.push({ accountId, ...answered });
    },

    async flush() {
      const [usedFrom, ready] = [pairs, answers];
      [pairs, answers] = [[], []];
      // Until it is learned it is not known: once somebody wants to be told, and when the database fails here.
      for (const { keyId, address } of usedFrom) seen.delete(`${keyId} ${address}`);
      const failures: unknown[] = [];
      const watched = usedFrom.map(({ accountId }) => accountId);
      const left = await eachWanted(usedFrom, {
        wanting: () => wanting(sql, 'key.new_address', watched),
        async write(pair) {
          await learn(sql, parts, pair);
          seen.set(`${pair.keyId} ${pair.address}`, true);
        },
        failures,
      });
      pairs = [...left, ...pairs].slice(0, MOST_NOTES);
      const waiting = ready.map(({ accountId }) => accountId);
      const unsaid = await eachWanted(ready, {
        wanting: () => wanting(sql, 'answer.ready', waiting),
        write: ({ accountId, ...answer }) => parts.log.add(sql, accountId, 'answer.ready', answer),
        failures,
      });
      answers = [...unsaid, ...answers].slice(0, MOST_NOTES);
      if (failures.length > 0)
        throw new AggregateError(failures, `${failures.length} notes of key use were not written down`);
    },

    async forget() {
      const { count } = await sql`
        delete from key_addresses where (key_id, digest) in (
          select key_id, digest from key_addresses
          where seen_at < ${new Date(parts.nowMs() - parts.retentionDays * DAY_MS).toISOString()}
          order by seen_at limit ${ADDRESSES_FORGOTTEN_AT_ONCE} for update skip locked
        )`;
      return count;
    },
  };
}

/**
 * Writes down the notes of accounts that want it. One that fails is lost and keeps no other from being written down.
 *
 * @returns what is left for another round, when the accounts could not be asked for or too many notes failed
 */
async function eachWanted<Note extends { accountId: bigint }>(
  notes: readonly Note[],
  {
    wanting,
    write,
    failures,
  }: { wanting(): Promise<Set<bigint>>; write(note: Note): Promise<void>; failures: unknown[] },
): Promise<readonly Note[]> {
  let wanted: Set<bigint>;
  try {
    wanted = await wanting();
  } catch (error) {
    failures.push(error);
    return notes;
  }
  for (const [at, note] of notes.entries()) {
    if (failures.length >= MOST_FAILURES) return notes.slice(at);
    if (!wanted.has(note.accountId)) continue;
    try {
      await write(note);
    } catch (error) {
      failures.push(error);
    }
  }
  return [];
}

/** Which of these accounts want to be told of it. */
async function wanting(sql: Database, type: string, accountIds: readonly bigint[]): Promise<Set<bigint>> {
  if (accountIds.length === 0) return new Set();
  const rows = await sql<{ account_id: bigint }[]>`
    select distinct account_id from webhooks
    where account_id = any (${arrayLiteral([...new Set(accountIds)])}::text::bigint[])
      and ${type} = any (events)`;
  return new Set(rows.map(({ account_id: accountId }) => accountId));
}

/** Notes from where a key was used, and tells its account of an address that is new. */
async function learn(
  sql: Database,
  { secrets, log, nowMs, retentionDays }: KeyUseParts,
  { accountId, keyId, address }: Pair,
): Promise<void> {
  const digests = digestsOf(secrets, keyId, address);
  const [current] = digests;
  if (current === undefined) return;
  await sql.begin(async (transaction) => {
    // Of two replicas the second finds what the first wrote.
    await transaction`select 1 from api_keys where id = ${String(keyId)} for no key update`;
    // Whoever removes the last webhook that wants it waits for this, and then forgets what is written here.
    const [wanted] = await transaction`
      select 1 from webhooks where account_id = ${String(accountId)} and 'key.new_address' = any (events)
      limit 1 for key share`;
    if (wanted === undefined) return;
    const known = await transaction<{ digest: Buffer; seen_at: Date }[]>`
      select digest, seen_at from key_addresses where key_id = ${String(keyId)} order by seen_at`;
    const fresh = known.filter(({ seen_at: seenAt }) => seenAt.getTime() > nowMs() - retentionDays * DAY_MS);
    const isKnown = fresh.some(({ digest }) => digests.some((each) => each.equals(digest)));
    for (const { digest } of known.slice(0, Math.max(0, known.length - ADDRESSES_OF_A_KEY + 1)))
      await transaction`delete from key_addresses where key_id = ${String(keyId)} and digest = ${digest}`;
    await transaction`
      insert into key_addresses (key_id, digest, seen_at) values (${String(keyId)}, ${current}, ${new Date(nowMs()).toISOString()})
      on conflict (key_id, digest) do update set seen_at = excluded.seen_at`;
    if (isKnown) return;
    // The first is where the key lives, unless its account is known to call from elsewhere: who has taken a key over may
    // have rotated it.
    if (
      fresh.length === 0 &&
      (await isHome(transaction, { secrets, nowMs, retentionDays }, { accountId, keyId, address }))
    )
      return;
    const [key] = await transaction<{ prefix: string }[]>`
      select prefix from api_keys where id = ${String(keyId)}`;
    await log.add(transaction, accountId, 'key.new_address', {
      keyPrefix: key?.prefix ?? null,
      address,
    });
  });
}

/** Whether the first address of a key is one of its account, or the account has none yet. */
async function isHome(
  transaction: Transaction,
  { secrets, nowMs, retentionDays }: Pick<KeyUseParts, 'secrets' | 'nowMs' | 'retentionDays'>,
  { accountId, keyId, address }: Pair,
): Promise<boolean> {
  const known = await transaction<{ key_id: bigint; digest: Buffer }[]>`
    select a.key_id, a.digest from key_addresses a
    where a.seen_at > ${new Date(nowMs() - retentionDays * DAY_MS).toISOString()} and a.key_id in (
      select id from api_keys where account_id = ${String(accountId)} and id <> ${String(keyId)}
      order by id desc limit ${KEYS_LOOKED_AT})`;
  if (known.length === 0) return true;
  const digests = new Map<bigint, Buffer[]>();
  for (const { key_id: other } of known)
    if (!digests.has(other)) digests.set(other, digestsOf(secrets, other, address));
  return known.some(({ key_id: other, digest }) => digests.get(other)?.some((each) => each.equals(digest)));
}

/** The digests that are stored of an address, under the current version of the secret and then under those of before. */
function digestsOf({ current, all }: Secrets, keyId: bigint, address: string): Buffer[] {
  return [current, ...all.filter(({ id }) => id !== current.id)].map(({ value }) =>
    createHmac('sha256', value)
      .update(JSON.stringify(['key address', String(keyId), address]))
      .digest(),
  );
}
