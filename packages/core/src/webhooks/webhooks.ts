/** The webhooks of an account: where it is told of what, and by which secret. */
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import { accountsBoundWith, holdBound, rootBuyerOf } from '../keys/root-buyer.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import type { EventType } from './events.ts';
import { missedBy } from './missed.ts';
import { type FormerSecret, newSecret, type Seal, sealedFor, stillSigning } from './secret.ts';

/** More than an owner needs, and less than would keep others waiting. */
export const WEBHOOKS_PER_ACCOUNT = 5;
/** So long the secret of before signs too, unless its owner says otherwise. */
export const OVERLAP_MS = 24 * 3_600_000;
/** So many secrets that were replaced may sign beside the current one; each makes every message's header longer. */
export const FORMER_SECRETS = 5;
const RESEALED_AT_ONCE = 200;
const MOST_MISSED_COUNTED = 1_000;

export interface Webhook {
  id: string;
  accountId: bigint;
  url: string;
  events: readonly EventType[];
  lowBelowMicros: bigint | null;
  email: string | null;
  createdAt: Date;
  disabledAt: Date | null;
  disabledBecause: 'failing' | 'gone' | 'secret_lost' | 'owner' | null;
  failingSince: Date | null;
  /** The time until which the secret that the last rotation replaced signs too; null: it does not. */
  beforeUntil: Date | null;
  /** The time until which each replaced secret still signs, that of the last rotation first. */
  formerUntil: readonly Date[];
  /** Events of the last thirty days that it wants and that no message was written for, counted up to `MOST_MISSED_COUNTED`. */
  missed: number;
}

export interface NewWebhook {
  url: string;
  events: readonly EventType[];
  lowBelowMicros: bigint | null;
  email: string | null;
}

/** A change by its owner; absent fields stay. */
export type WebhookChange = Partial<NewWebhook>;

export interface Webhooks {
  /** @returns the webhook and its secret, which is shown this once; null: the account has as many as it may */
  create(accountId: bigint, made: NewWebhook): Promise<{ webhook: Webhook; secret: string } | null>;
  ofAccount(accountId: bigint): Promise<Webhook[]>;
  /** The account's webhook of this id; null when it has none. */
  find(accountId: bigint, id: string): Promise<Webhook | null>;
  remove(accountId: bigint, id: string): Promise<void>;
  /** Changes where it leads and what it hears of. Its secret, its messages and whether it is on stay as they are. */
  change(accountId: bigint, id: string, changed: WebhookChange): Promise<void>;
  /**
   * Gives it a new secret. The old one signs too for as long as is asked; those that were replaced before keep their times.
   *
   * @returns the new one, shown this once; `freeAt`: as many old ones as may be sign already, and the first of them ends
   *   then; null: the account has no such webhook
   */
  rotate(accountId: bigint, id: string, overlapMs: number): Promise<string | { freeAt: Date } | null>;
  /** Switches it on again, or off. What waits while it is switched off is given up. */
  switchTo(accountId: bigint, id: string, on: boolean): Promise<void>;
  /** Puts secrets under the current version of the server's secret, so that an older one can be taken away. */
  reseal(): Promise<void>;
}

interface Row {
  id: string;
  account_id: bigint;
  url: string;
  events: EventType[];
  low_below_micros: bigint | null;
  email: string | null;
  created_at: Date;
  disabled_at: Date | null;
  disabled_because: Webhook['disabledBecause'];
  failing_since: Date | null;
  before_until: Date | null;
  former_secrets: FormerSecret[];
  missed: number;
}

export interface WebhooksParts {
  seal: Seal;
  /** The id of the version of the server's secret that seals now; it stands in what is sealed. */
  currentId: string;
  nowMs(): number;
}

export function createWebhooks(sql: Database, parts: WebhooksParts): Webhooks {
  const { seal, nowMs } = parts;
  const at = (inMs = 0) => new Date(nowMs() + inMs).toISOString();
  const columns = () => sql`
    id, account_id, url, events, low_below_micros, email, created_at, disabled_at, disabled_because, failing_since,
    before_until, former_secrets,
    (select count(*) from (
      select 1 from account_events e where ${missedBy(sql)} and e.created_at >= coalesce(w.hears_since, w.created_at)
      limit ${MOST_MISSED_COUNTED}
    ) missed)::integer as missed`;

  async function find(accountId: bigint, id: string): Promise<Webhook | null> {
    const [row] = await sql<Row[]>`
      select ${columns()} from webhooks w where id = ${id} and account_id = ${String(accountId)}`;
    return row === undefined ? null : webhookOf(row, nowMs());
  }

  return {
    find,

    async create(accountId, made) {
      const id = newTransferId(nowMs());
      const secret = newSecret();
      const sealed = seal.seal(sealedFor(id), secret);
      const inserted = await insert(sql, { id, accountId, sealed, at: at() }, made);
      const webhook = inserted ? await find(accountId, id) : null;
      return webhook === null ? null : { webhook, secret };
    },

    async ofAccount(accountId) {
      const rows = await sql<Row[]>`
        select ${columns()} from webhooks w where account_id = ${String(accountId)} order by created_at, id`;
      return rows.map((row) => webhookOf(row, nowMs()));
    },

    async remove(accountId, id) {
      await sql.begin(async (transaction) => {
        // Of two at once the second sees that nothing is left.
        await transaction`select 1 from ledger_accounts where id = ${String(accountId)} for no key update`;
        await transaction`delete from webhooks where id = ${id} and account_id = ${String(accountId)}`;
        await forgetUnwantedAddresses(transaction, accountId);
      });
    },

    change: (accountId, id, changed) => changeWebhook(sql, { accountId, id, at: at() }, changed),

    rotate: (accountId, id, overlapMs) => rotateSecret(sql, parts, { accountId, id, overlapMs }),

    async switchTo(accountId, id, on) {
      if ((await find(accountId, id)) === null) return;
      await (on ? switchOn(sql, id) : switchOff(sql, id, 'owner', at()));
    },

    async reseal() {
      while ((await resealSome(sql, parts)) === RESEALED_AT_ONCE);
    },
  };
}

/** @returns whether there was room for it */
async function insert(
  sql: Database,
  { id, accountId, sealed, at }: { id: string; accountId: bigint; sealed: string; at: string },
  { url, events, lowBelowMicros, email }: NewWebhook,
): Promise<boolean> {
  return sql.begin(async (transaction) => {
    const rootBuyer = await rootBuyerOf(transaction, accountId);
    await holdBound(transaction, rootBuyer, 'webhooks');
    // A delivery or a removal holds the account.
    await transaction`select 1 from ledger_accounts where id = ${String(accountId)} for no key update`;
    const rows = await transaction`
      insert into webhooks (id, account_id, url, events, low_below_micros, email, sealed_secret, created_at)
      select ${id}::uuid, ${String(accountId)}::bigint, ${url}, ${arrayLiteral(events)}::text::text[],
             ${lowBelowMicros === null ? null : String(lowBelowMicros)}::bigint, ${email}::text,
             ${sealed}, ${at}::timestamptz
      where (
        select count(*) from webhooks w
        where w.account_id in (${accountsBoundWith(transaction, accountId, rootBuyer)})
      ) < ${WEBHOOKS_PER_ACCOUNT}
      returning id`;
    return rows.length === 1;
  });
}

async function changeWebhook(
  sql: Database,
  { accountId, id, at }: { accountId: bigint; id: string; at: string },
  { url, events, lowBelowMicros, email }: WebhookChange,
): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction`select 1 from ledger_accounts where id = ${String(accountId)} for no key update`;
    await transaction`
      update webhooks set
        url = coalesce(${url ?? null}, url),
        email = case when ${email !== undefined} then ${email ?? null} else email end,
        events = coalesce(${events === undefined ? null : arrayLiteral(events)}::text::text[], events),
        hears_since = case when ${events !== undefined} then ${at}::timestamptz else hears_since end,
        low_told = low_told and ${lowBelowMicros === undefined},
        low_below_micros = case when ${lowBelowMicros !== undefined}
          then ${lowBelowMicros === undefined || lowBelowMicros === null ? null : String(lowBelowMicros)}::bigint
          else low_below_micros end
      where id = ${id} and account_id = ${String(accountId)}`;
    if (url !== undefined) await askAnew(transaction, accountId, id, at);
    if (events !== undefined) await forgetUnwantedAddresses(transaction, accountId);
  });
}

/** At a new address nothing has failed yet: what waits is due. */
async function askAnew(transaction: Transaction, accountId: bigint, id: string, at: string): Promise<void> {
  await transaction`
    with anew as (
      update webhooks set failures = 0, failing_since = null, not_before = null
      where id = ${id} and account_id = ${String(accountId)} returning id
    )
    update webhook_deliveries d set next_at = ${at} from anew where d.webhook_id = anew.id and d.next_at > ${at}`;
}

/** Addresses of keys are kept for as long as a webhook of the account wants to hear of new ones. */
async function forgetUnwantedAddresses(transaction: Transaction, accountId: bigint): Promise<void> {
  await transaction`
    delete from key_addresses where key_id in (select id from api_keys where account_id = ${String(accountId)})
      and not exists (
        select 1 from webhooks where account_id = ${String(accountId)} and 'key.new_address' = any (events))`;
}

async function rotateSecret(
  sql: Database,
  { seal, nowMs }: WebhooksParts,
  { accountId, id, overlapMs }: { accountId: bigint; id: string; overlapMs: number },
): Promise<string | { freeAt: Date } | null> {
  return sql.begin(async (transaction) => {
    const [row] = await transaction<
      Pick<Row, 'former_secrets' | 'disabled_because'>[] & { sealed_secret: string }[]
    >`
      select sealed_secret, former_secrets, disabled_because from webhooks
      where id = ${id} and account_id = ${String(accountId)} for no key update`;
    if (row === undefined) return null;
    const signing = stillSigning(row.former_secrets, nowMs());
    const isKept = overlapMs > 0 && row.disabled_because !== 'secret_lost';
    if (isKept && signing.length >= FORMER_SECRETS)
      return { freeAt: new Date(Math.min(...signing.map(({ until }) => Date.parse(until)))) };
    const until = new Date(nowMs() + overlapMs).toISOString();
    const former = isKept ? [{ sealed: row.sealed_secret, until }, ...signing] : signing;
    const secret = newSecret();
    await transaction`
      update webhooks set
        former_secrets = ${JSON.stringify(former)}::text::jsonb, before_until = ${isKept ? until : null},
        sealed_secret = ${seal.seal(sealedFor(id), secret)},
        disabled_at = case when disabled_because = 'secret_lost' then null else disabled_at end,
        disabled_because = nullif(disabled_because, 'secret_lost')
      where id = ${id}`;
    return secret;
  });
}

/** Seals again what is under another version. What does not open any more is switched off: it can sign nothing. */
async function resealSome(sql: Database, { seal, currentId, nowMs }: WebhooksParts): Promise<number> {
  const underCurrent = `%${currentId}:%`;
  const stale = await sql<{ id: string; sealed_secret: string; former_secrets: FormerSecret[] }[]>`
    select id, sealed_secret, former_secrets from webhooks
    where disabled_because is distinct from 'secret_lost'
      and (sealed_secret not like ${underCurrent}
           or exists (select 1 from jsonb_array_elements(former_secrets) f where f ->> 'sealed' not like ${underCurrent}))
    order by id limit ${RESEALED_AT_ONCE}`;
  for (const { id, sealed_secret: now, former_secrets: former } of stale) {
    const again = (sealed: string): string | null => {
      try {
        return seal.seal(sealedFor(id), seal.open(sealedFor(id), sealed));
      } catch {
        return null;
      }
    };
    const current = again(now);
    if (current === null) {
      await noteLost(sql, { id, sealed: now, at: new Date(nowMs()).toISOString() });
      continue;
    }
    // One of before that does not open signs no more, and takes nothing else with it.
    const kept = stillSigning(former, nowMs()).flatMap(({ sealed, until }) => {
      const anew = again(sealed);
      return anew === null ? [] : [{ sealed: anew, until }];
    });
    await sql`
      update webhooks set sealed_secret = ${current}, former_secrets = ${JSON.stringify(kept)}::text::jsonb
      where id = ${id} and sealed_secret = ${now} and former_secrets = ${JSON.stringify(former)}::text::jsonb`;
  }
  return stale.length;
}

/** Switches a webhook off like `switchOff`, also for one that is off for another reason: it cannot be switched on before it has a new secret. */
async function noteLost(
  sql: Database,
  { id, sealed, at }: { id: string; sealed: string; at: string },
): Promise<void> {
  await sql`
    with off as (
      update webhooks set disabled_at = coalesce(disabled_at, ${at}), disabled_because = 'secret_lost'
      where id = ${id} and sealed_secret = ${sealed} returning id
    )
    update webhook_deliveries d set next_at = null, given_up_at = ${at}
    from off where d.webhook_id = off.id and d.next_at is not null`;
}

async function switchOn(sql: Database, id: string): Promise<void> {
  await sql`
    update webhooks
    set disabled_at = null, disabled_because = null, failures = 0, failing_since = null, not_before = null
    where id = ${id} and disabled_because is distinct from 'secret_lost'`;
}

/** Sends nothing there any more, and gives up what waits. @param at now, in ISO 8601 */
export async function switchOff(
  on: Database | Transaction,
  id: string,
  because: NonNullable<Webhook['disabledBecause']>,
  at: string,
): Promise<void> {
  await on`
    with off as (
      update webhooks set disabled_at = ${at}, disabled_because = ${because}
      where id = ${id} and disabled_at is null returning id
    )
    update webhook_deliveries d set next_at = null, given_up_at = ${at}
    from off where d.webhook_id = off.id and d.next_at is not null`;
}

function webhookOf(row: Row, nowMs: number): Webhook {
  const formerUntil = stillSigning(row.former_secrets, nowMs).map(({ until }) => new Date(until));
  const beforeMs = row.before_until?.getTime();
  return {
    id: row.id,
    accountId: row.account_id,
    url: row.url,
    events: row.events,
    lowBelowMicros: row.low_below_micros,
    email: row.email,
    createdAt: row.created_at,
    disabledAt: row.disabled_at,
    disabledBecause: row.disabled_because,
    failingSince: row.failing_since,
    beforeUntil: formerUntil.find((until) => until.getTime() === beforeMs) ?? null,
    formerUntil,
    missed: row.missed,
  };
}
