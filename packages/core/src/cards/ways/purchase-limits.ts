/**
 * Limits that keep stolen cards away. An address that charges whatever card it is told is where lists of stolen cards
 * are tried: many cards from one place, one card from many places, or many of both. Each is counted among the purchases
 * in the database, so that a restart, another replica, or fifty requests at once do not help.
 */
import { createHash, createHmac } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import type postgres from 'postgres';
import type { Database, Transaction } from '../../db/connection.ts';
import { siteOf } from '../../http/caller-address.ts';
import type { Secrets } from '../../secrets/secrets.ts';
import { isCardDisputed } from '../disputes/disputed-cards.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const PURCHASE_LIMITS = {
  /** Attempts of one network in an hour, whatever comes of them: an agent buys seldom, who tries cards tries hundreds. */
  networkAttempts: 5,
  networkAttemptsMs: HOUR_MS,
  /** So many declines within a day, and the network waits for a day: typing errors do not happen to agents. */
  networkDeclines: 3,
  networkDeclinesMs: DAY_MS,
  /** So much more may come from all of an IPv6 site (/48) together: a household's, or 65,536 networks of one person. */
  siteFactor: 4,
  /** New accounts that one card may pay for in a week: there is no honest use for more. */
  cardNewAccounts: 3,
  cardNewAccountsMs: 7 * DAY_MS,
  /** The most that one card may pay in a day: twice the largest tier. It bounds what a dispute can cost. */
  cardMicros: 200_000_000n,
  cardMicrosMs: DAY_MS,
  /** Card networks frown on more, wherever they come from. */
  cardDeclines: 5,
  cardDeclinesMs: DAY_MS,
  /** More than 30 % of the last 50: then somebody has found a way around the other limits. */
  brakeDeclines: 15,
  brakeAttempts: 50,
  brakeAttemptsMs: HOUR_MS,
  /** Long enough to spoil it for a script, short enough for everybody else. */
  brakeMs: 10 * MINUTE_MS,
  /** Checkouts of one network that nobody has paid yet: each is a page at the card provider, and ends within an hour. */
  networkCheckouts: 60,
  /** When to ask again while purchases that are under way take the place: one of them is known by then. */
  underWayMs: MINUTE_MS,
} as const;

/** A purchase of before, for the limits. */
export interface PastPurchase {
  atMs: number;
  /**
   * - open: under way; it may still become either.
   * - declined: the card was asked, and the answer was no.
   * - void: no card was asked.
   */
  outcome: 'open' | 'paid' | 'declined' | 'void';
  amountMicros: bigint;
  /** Whether it was for a new account. */
  isNewAccount: boolean;
}

export type LimitName =
  | 'attempts_per_network'
  | 'checkouts_per_network'
  | 'declines_per_network'
  | 'new_accounts_per_card'
  | 'amount_per_card'
  | 'declines_per_card'
  | 'card_disputed';

/** Which limit stands in the way. `retryAfterMs` null: it does not pass. */
export interface LimitReached {
  limit: LimitName;
  retryAfterMs: number | null;
}

const within = (past: readonly PastPurchase[], ms: number, nowMs: number) =>
  past.filter(({ atMs }) => atMs > nowMs - ms);

/**
 * Finds the limit that is in the way of a purchase from a network.
 *
 * @param past its purchases of the last two days, newest first
 * @param isSite whether it is a site, of which there are many networks
 */
export function networkLimit(
  past: readonly PastPurchase[],
  nowMs: number,
  isSite = false,
): LimitReached | null {
  const { networkAttemptsMs, networkDeclinesMs } = PURCHASE_LIMITS;
  const factor = isSite ? PURCHASE_LIMITS.siteFactor : 1;
  const networkAttempts = PURCHASE_LIMITS.networkAttempts * factor;
  const networkDeclines = PURCHASE_LIMITS.networkDeclines * factor;
  const declines = past.filter(({ outcome }) => outcome === 'declined');
  const [last, first] = [declines[0], declines[networkDeclines - 1]];
  if (last !== undefined && first !== undefined && last.atMs - first.atMs < networkDeclinesMs) {
    const untilMs = last.atMs + networkDeclinesMs;
    if (untilMs > nowMs) return { limit: 'declines_per_network', retryAfterMs: untilMs - nowMs };
  }
  const attempt = within(past, networkAttemptsMs, nowMs)[networkAttempts - 1];
  return attempt === undefined
    ? null
    : { limit: 'attempts_per_network', retryAfterMs: attempt.atMs + networkAttemptsMs - nowMs };
}

/**
 * Finds the limit that is in the way of a purchase with a card. A purchase that is under way counts as if it would end in the worse way.
 *
 * @param past the card's purchases of the last seven days, newest first
 */
export function cardLimit(
  past: readonly PastPurchase[],
  next: { amountMicros: bigint; isNewAccount: boolean },
  nowMs: number,
): LimitReached | null {
  const { cardDeclines, cardDeclinesMs, cardMicros, cardMicrosMs } = PURCHASE_LIMITS;
  const { cardNewAccounts, cardNewAccountsMs, underWayMs } = PURCHASE_LIMITS;
  /** A limit that lasts until the purchase which fills it is so old. One that is under way may be out of the way much sooner. */
  const untilOld = (limit: LimitName, full: PastPurchase, ms: number): LimitReached => ({
    limit,
    retryAfterMs: full.outcome === 'open' ? underWayMs : full.atMs + ms - nowMs,
  });

  const declines = within(past, cardDeclinesMs, nowMs).filter(
    ({ outcome }) => outcome === 'declined' || outcome === 'open',
  );
  const decline = declines[cardDeclines - 1];
  if (decline !== undefined) return untilOld('declines_per_card', decline, cardDeclinesMs);

  const bought = past.filter(({ outcome }) => outcome === 'paid' || outcome === 'open');
  const accounts = within(bought, cardNewAccountsMs, nowMs).filter(({ isNewAccount }) => isNewAccount);
  const account = accounts[cardNewAccounts - 1];
  if (next.isNewAccount && account !== undefined)
    return untilOld('new_accounts_per_card', account, cardNewAccountsMs);

  let spent = next.amountMicros;
  for (const purchase of within(bought, cardMicrosMs, nowMs)) {
    spent += purchase.amountMicros;
    // The newest that is too much: when it is old enough, so are all before it.
    if (spent > cardMicros) return untilOld('amount_per_card', purchase, cardMicrosMs);
  }
  return null;
}

/** A network's name in the database: an HMAC under the current secret, and under each that is recognized. */
export interface NetworkName {
  current: Buffer;
  all: readonly Buffer[];
}

/** Where a purchase comes from. */
export interface Origin {
  /** IPv4 counts by /24, IPv6 by /64. */
  network: NetworkName;
  /** IPv6 by /48 as well; null for IPv4. */
  site: NetworkName | null;
}

/** The marks that a purchase is counted by. */
export interface Counted {
  orderId: string;
  origin: Origin;
  /** The provider's name for the card, the same whoever pays with it. */
  cardName: string;
  amountMicros: bigint;
  isNewAccount: boolean;
}

export interface PurchaseLimits {
  /** @param address the caller's */
  originOf(address: string): Origin;
  /** Makes purchases that share a network or a card take turns until the transaction ends: the first thing in it. */
  takeTurn(transaction: Transaction, counted: Counted): Promise<void>;
  /** Finds the limit that is in the way of an order which was added in this transaction. */
  reached(transaction: Transaction, counted: Counted): Promise<LimitReached | null>;
  /**
   * Finds whether a network has too many checkouts open for another one. Those of one network take turns until the
   * transaction ends, in which the next is added.
   */
  checkoutsReached(transaction: Transaction, origin: Origin): Promise<LimitReached | null>;
  /** Pulls the brake when it is time. @returns until when nobody can buy; null: they can */
  pausedUntil(): Promise<number | null>;
}

interface PastRow {
  created_at: Date;
  state: number;
  was_asked: boolean;
  amount_micros: bigint;
  is_new: boolean;
}

export function createPurchaseLimits(parts: {
  sql: Database;
  secrets: Secrets;
  nowMs(): number;
  /** Told once for each pause. */
  onPause(pause: { declined: number; attempts: number; untilMs: number }): void;
}): PurchaseLimits {
  const { sql, secrets, nowMs } = parts;
  const iso = (ms: number) => new Date(ms).toISOString();

  /** Past purchases but this one, newest first. */
  async function past(
    on: Transaction,
    orderId: string,
    sinceMs: number,
    by: postgres.Fragment,
  ): Promise<PastPurchase[]> {
    const rows = await on<PastRow[]>`
      select created_at, state, payment_intent_id is not null or decline_code is not null as was_asked, amount_micros,
             key_digest is not null as is_new
      from card_orders
      where kind = 'purchase' and ${by} and created_at > ${iso(sinceMs)} and id <> ${orderId}
      order by created_at desc limit 1000`;
    return rows.map((row) => ({
      atMs: row.created_at.getTime(),
      outcome: row.state === 0 ? 'open' : row.state === 1 ? 'paid' : row.was_asked ? 'declined' : 'void',
      amountMicros: row.amount_micros,
      isNewAccount: row.is_new,
    }));
  }

  function nameOf(text: string): NetworkName {
    const all = secrets.all.map(({ value }) => createHmac('sha256', value).update(text).digest());
    const [current] = all;
    if (current === undefined) throw new Error('a server needs a secret');
    return { current, all };
  }

  return {
    originOf(address) {
      const site = siteOf(address);
      return {
        network: nameOf(`purchase:network:${networkOf(address)}`),
        site: site === null ? null : nameOf(`purchase:site:${site}`),
      };
    },

    async takeTurn(transaction, { origin, cardName }) {
      const card = createHash('sha256').update(`purchase:card:${cardName}`).digest();
      await takeTurns(transaction, [...turnsOf(origin), card]);
    },

    checkoutsReached: (transaction, origin) => checkoutsOpenOf(transaction, origin, nowMs()),

    async reached(transaction, { orderId, origin: { network, site }, cardName, ...next }) {
      const now = nowMs();
      const since = now - 2 * DAY_MS;
      const byNetwork = sql`address_digest in ${sql(network.all)}`;
      const fromNetwork = networkLimit(await past(transaction, orderId, since, byNetwork), now);
      if (fromNetwork !== null) return fromNetwork;
      if (site !== null) {
        const bySite = sql`site_digest in ${sql(site.all)}`;
        const fromSite = networkLimit(await past(transaction, orderId, since, bySite), now, true);
        if (fromSite !== null) return fromSite;
      }
      if (await isCardDisputed(transaction, cardName)) return { limit: 'card_disputed', retryAfterMs: null };
      const byCard = sql`card_fingerprint = ${cardName}`;
      return cardLimit(await past(transaction, orderId, now - 7 * DAY_MS, byCard), next, now);
    },

    async pausedUntil() {
      const now = nowMs();
      const { brakeAttempts, brakeAttemptsMs, brakeDeclines, brakeMs } = PURCHASE_LIMITS;
      // What was before the last pause has been answered by it.
      const [row] = await sql<{ paused_until: Date; attempts: number; declined: number }[]>`
        select b.paused_until, count(o.state)::integer as attempts,
               (count(*) filter (where o.state = 2))::integer as declined
        from purchase_brake b left join lateral (
          select state from card_orders
          where kind = 'purchase' and created_at > greatest(${iso(now - brakeAttemptsMs)}, b.paused_until)
            and (state = 1 or (state = 2 and (payment_intent_id is not null or decline_code is not null)))
          order by created_at desc limit ${brakeAttempts}
        ) o on true
        group by b.paused_until`;
      if (row === undefined) throw new Error('the brake is missing');
      const { paused_until: pausedUntil, attempts, declined } = row;
      if (pausedUntil.getTime() > now) return pausedUntil.getTime();
      if (declined <= brakeDeclines) return null;
      const untilMs = now + brakeMs;
      const pulled = await sql`
        update purchase_brake set paused_until = ${iso(untilMs)} where paused_until <= ${iso(now)} returning one`;
      if (pulled.length === 1) parts.onPause({ declined, attempts, untilMs });
      return untilMs;
    },
  };
}

/** Whether as many checkouts of an origin are open and unpaid as may be, and until when. */
async function checkoutsOpenOf(on: Transaction, origin: Origin, nowMs: number): Promise<LimitReached | null> {
  const { network, site } = origin;
  await takeTurns(on, turnsOf(origin));
  const { networkCheckouts, siteFactor } = PURCHASE_LIMITS;
  const open = async (by: postgres.Fragment, most: number): Promise<LimitReached | null> => {
    const rows = await on<{ expires_at: Date }[]>`
      select expires_at from card_orders
      where kind = 'checkout' and state = 0 and ${by} and expires_at > ${new Date(nowMs).toISOString()}
      order by expires_at desc limit ${most}`;
    const last = rows[most - 1];
    return last === undefined
      ? null
      : { limit: 'checkouts_per_network', retryAfterMs: last.expires_at.getTime() - nowMs };
  };
  const fromNetwork = await open(on`address_digest in ${on(network.all)}`, networkCheckouts);
  if (fromNetwork !== null || site === null) return fromNetwork;
  return open(on`site_digest in ${on(site.all)}`, networkCheckouts * siteFactor);
}

/**
 * What takes turns with others of the same origin: sites and networks first and cards after, each in one order, so that no
 * two wait for each other. Under every secret: two replicas whose current one differs have another in common.
 */
function turnsOf({ network, site }: Origin): Buffer[] {
  const inOrder = (name: NetworkName | null) => [...(name?.all ?? [])].sort(Buffer.compare);
  return [...inOrder(site), ...inOrder(network)];
}

async function takeTurns(transaction: Transaction, turns: readonly Buffer[]): Promise<void> {
  for (const turn of turns)
    await transaction`select pg_advisory_xact_lock(${String(turn.readBigInt64BE(0))}::bigint)`;
}

/** The network that an address is of: its /24 (IPv4) or /64 (IPv6), which one owner has at least. */
export function networkOf(address: string): string {
  const parsed = ipaddr.process(address);
  const cidr = `${parsed.toString()}/${parsed.kind() === 'ipv4' ? 24 : 64}`;
  const network =
    parsed.kind() === 'ipv4'
      ? ipaddr.IPv4.networkAddressFromCIDR(cidr)
      : ipaddr.IPv6.networkAddressFromCIDR(cidr);
  return network.toString();
}
