/**
 * A new key for whoever paid, when the one that was bought is lost: by a mailed link, to the address of the payment. A
 * link is good once, for a day; it is used by a click on its page, and never by being opened, because mail scanners open
 * links. The new key ends all others of the account. It follows from our secret and the link, so that a lost answer, or a
 * second click, gets the same key for two minutes.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Database, Transaction } from '../../db/connection.ts';
import type { DistributionNote } from '../../db/distribution-note.ts';
import { deriveApiKey, type NewApiKey } from '../../keys/api-key.ts';
import type { Keys } from '../../keys/keys.ts';
import { microsToUsd } from '../../ledger/money.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import type { Mailer } from '../../mail/mailer.ts';
import type { Secret, Secrets } from '../../secrets/secrets.ts';
import type { CardOrder, OrderStore } from '../orders/orders.ts';
import { type CardProvider, ProviderUnavailable } from '../provider.ts';
import { DELIVERY_WINDOW_MS, isUnusedKey } from './hand-over.ts';

const HOURS = 24;
const LINK_MS = HOURS * 3_600_000;
/** A mail that has not come after this may be asked for again. */
const AGAIN_AFTER_MS = 10 * 60_000;
/** The most links for one order in a day. */
const MOST_LINKS = 5;
/** In one call of `forget`. */
export const LINKS_FORGOTTEN_AT_ONCE = 1_000;

export type LinkSent =
  | { status: 'sent'; to: string; expiresAtMs: number }
  | { status: 'no_mail' | 'no_address' | 'no_key' | 'reversed' | 'unknown_order' | 'provider_away' }
  | { status: 'too_soon'; retryAfterMs: number };

export type LinkUsed =
  | { status: 'done'; key: NewApiKey; creditMicros: bigint }
  /** No such link, or one that is used, ended or too old: they are told alike. */
  | { status: 'dead' }
  | { status: 'reversed' | 'frozen' };

export interface KeyLinks {
  /** Where the mail of an order would go, by the provider's word first. Undefined: the provider cannot be asked. */
  addressOf(order: CardOrder): Promise<string | null | undefined>;
  /** Sends a link, written down in the caller's transaction. */
  sendWithin(transaction: Transaction, order: CardOrder, to: string): Promise<LinkSent>;
  /** Sends a link for a session, asked for by whoever has its page. */
  send(sessionId: string): Promise<LinkSent>;
  /** Uses a link. */
  use(token: string): Promise<LinkUsed>;
  /** Forgets the oldest links that are good for nothing any more, and says how many. */
  forget(): Promise<number>;
}

interface KeyLinkParts {
  sql: Database;
  distribution: DistributionNote;
  orders: OrderStore;
  provider: Pick<CardProvider, 'session'>;
  keys: Keys;
  mailer: Mailer;
  secrets: Secrets;
  baseUrl: string;
  nowMs(): number;
}

const iso = (ms: number) => new Date(ms).toISOString();

export function createKeyLinks(parts: KeyLinkParts): KeyLinks {
  const { sql, orders, provider, mailer, nowMs } = parts;

  async function addressOf(order: CardOrder): Promise<string | null | undefined> {
    if (order.sessionId === null) return order.email;
    try {
      return (await provider.session(order.sessionId)).email ?? order.email;
    } catch (error) {
      if (error instanceof ProviderUnavailable) return undefined;
      throw error;
    }
  }

  async function sendWithin(transaction: Transaction, order: CardOrder, to: string): Promise<LinkSent> {
    if (!mailer.sends) return { status: 'no_mail' };
    const refusal = refusalOf(order);
    if (refusal !== null) return { status: refusal };
    const waitMs = await waitBefore(transaction, order.id, nowMs());
    if (waitMs > 0) return { status: 'too_soon', retryAfterMs: waitMs };
    const id = newTransferId(nowMs());
    const token = randomBytes(32).toString('base64url');
    const expiresAtMs = nowMs() + LINK_MS;
    await transaction`
      insert into key_links (id, order_id, token_digest, created_at, expires_at)
      values (${id}, ${order.id}, ${digestOf(token)}, ${iso(nowMs())}, ${iso(expiresAtMs)})`;
    const mail = mailOf(order, `${parts.baseUrl}/credits/new-key#${token}`);
    await mailer.enqueue(transaction, { id, to, secret: true, ...mail });
    return { status: 'sent', to, expiresAtMs };
  }

  return {
    addressOf,
    sendWithin,

    async send(sessionId) {
      const order = await orders.findBySession(sessionId);
      if (order === null) return { status: 'unknown_order' };
      if (!mailer.sends) return { status: 'no_mail' };
      const refusal = refusalOf(order);
      if (refusal !== null) return { status: refusal };
      const to = await addressOf(order);
      if (to === undefined) return { status: 'provider_away' };
      if (to === null) return { status: 'no_address' };
      return sql.begin((transaction) => sendWithin(transaction, order, to));
    },

    async use(token) {
      const [link] = await sql<LinkRow[]>`
        select id, order_id, expires_at, used_at, key_id from key_links where token_digest = ${digestOf(token)}`;
      const order = link === undefined ? null : await orders.find(link.order_id);
      if (link === undefined || order === null) return { status: 'dead' };
      const keyOf = ({ value }: Secret) => deriveApiKey(value, 'key link', [link.id, token]);
      const used =
        link.used_at === null
          ? await sql.begin((transaction) => spend(parts, transaction, { link, order, keyOf }))
          : link;
      return 'status' in used ? used : toldAgain(parts, used, order, keyOf);
    },

    forget: () => forgetDone(sql, nowMs()),
  };
}

/** Forgets links that can give no key and are counted no more: one that was used in its last second is told for two minutes. */
async function forgetDone(sql: Database, nowMs: number): Promise<number> {
  const { count } = await sql`
    delete from key_links where id in (
      select id from key_links where created_at < ${iso(nowMs - LINK_MS - DELIVERY_WINDOW_MS)}
      order by created_at limit ${LINKS_FORGOTTEN_AT_ONCE} for update skip locked
    )`;
  return count;
}

/** Why an order gives no new key; null: it does. */
function refusalOf(order: CardOrder): 'no_key' | 'reversed' | null {
  if (order.state !== 'paid' || order.key === null || order.accountId === null || order.isErased)
    return 'no_key';
  return order.reversedMicros >= order.amountMicros || order.disputedMicros > 0n ? 'reversed' : null;
}

/** Holds the order, so that whoever asks at once takes turns. @returns how long it is until another link may be sent */
async function waitBefore(transaction: Transaction, orderId: string, nowMs: number): Promise<number> {
  await transaction`select 1 from card_orders where id = ${orderId} for update`;
  const sent = await transaction<{ created_at: Date }[]>`
    select created_at from key_links where order_id = ${orderId} and created_at > ${iso(nowMs - LINK_MS)}
    order by created_at desc`;
  const [last, first] = [sent[0], sent[MOST_LINKS - 1]];
  return Math.max(
    last === undefined ? 0 : last.created_at.getTime() + AGAIN_AFTER_MS - nowMs,
    first === undefined ? 0 : first.created_at.getTime() + LINK_MS - nowMs,
  );
}

/** Uses a link up: the new key, the end of the old ones and of other links are one commit. */
async function spend(
  { orders, keys, secrets, nowMs }: KeyLinkParts,
  transaction: Transaction,
  { link, order, keyOf }: { link: LinkRow; order: CardOrder; keyOf(secret: Secret): NewApiKey },
): Promise<LinkRow | LinkUsed> {
  // Held until the commit: a refund or a dispute that comes now waits, and comes upon the new key.
  const [held] = await transaction<{ version: number }[]>`
    select version from card_orders where id = ${order.id} for update`;
  const current = held?.version === order.version ? order : await orders.find(order.id);
  if (current === null || current.accountId === null) return { status: 'dead' };
  const [open] = await transaction<LinkRow[]>`
    select id, order_id, expires_at, used_at, key_id from key_links where id = ${link.id}`;
  // Another click was faster: what it got is told once more.
  if (open !== undefined && open.used_at !== null) return open;
  if (open === undefined || open.expires_at.getTime() <= nowMs()) return { status: 'dead' };
  if (refusalOf(current) !== null) return { status: 'reversed' };
  const keyId = await keys.replaceAll(transaction, current.accountId, keyOf(secrets.current));
  if (keyId === null) return { status: 'frozen' };
  const at = iso(nowMs());
  const [mine] = await transaction<LinkRow[]>`
    update key_links set used_at = ${at}, key_id = ${String(keyId)} where id = ${link.id}
    returning id, order_id, expires_at, used_at, key_id`;
  await transaction`
    update key_links set expires_at = ${at} where order_id = ${current.id} and used_at is null and expires_at > ${at}`;
  if (mine === undefined) throw new Error(`the link ${link.id} is gone`);
  return mine;
}

/** The key that a link gave, for as long as it may still be on its way. */
async function toldAgain(
  { sql, distribution, secrets, nowMs }: KeyLinkParts,
  { used_at, key_id }: LinkRow,
  { creditMicros }: CardOrder,
  keyOf: (secret: Secret) => NewApiKey,
): Promise<LinkUsed> {
  if (used_at === null || key_id === null || nowMs() - used_at.getTime() > DELIVERY_WINDOW_MS)
    return { status: 'dead' };
  const stored = await isUnusedKey(sql, distribution, key_id);
  const key = secrets.all.map(keyOf).find(({ digest }) => stored?.equals(digest));
  return key === undefined ? { status: 'dead' } : { status: 'done', key, creditMicros };
}

interface LinkRow {
  id: string;
  order_id: string;
  expires_at: Date;
  used_at: Date | null;
  key_id: bigint | null;
}

function mailOf(order: CardOrder, link: string): { subject: string; text: string } {
  return {
    subject: 'A new API key for what you paid for',
    text: `Somebody asked for a new key for the ${microsToUsd(order.creditMicros, 2)} USD of credit that you bought (reference ${order.id}).

To get it, open this page and press its button. It works once, for ${HOURS} hours:

${link}

The new key has the balance that is left. Every other key of this credit ends at that moment, also one that your agent uses.

If you did not ask for it, do nothing: nothing has changed. Give this link to nobody.
`,
  };
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
