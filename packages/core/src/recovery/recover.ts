/**
 * Finds what was sold in the time that a restored database has forgotten, and puts it right. The chains and the card provider
 * know it; what was paid from credit is forgotten, and the credit is there again.
 */
import type { Cards } from '../cards/cards.ts';
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database } from '../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { HOUSE_BUCKET } from '../ledger/buckets.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import type { Sales } from '../paid-call/part.ts';
import type { Settlement } from '../paid-call/settlements.ts';
import type { CamePayment, PaidOnNetwork, PaidSince, SentBack } from '../rails/evm/paid-since.ts';
import { type OpenRecovery, openRecoveryIn } from './lineage.ts';

/** The clocks of chains, providers and our own differ by less. What is known already is passed by. */
const MARGIN_MS = 10 * 60_000;
/** Less than the busiest time has: what the provider lists at once. */
const EVENTS_READ_AT_ONCE_MS = 6 * 3_600_000;
/** The name under which a sale stands in the books whose service nobody knows any more. */
export const FORGOTTEN_SERVICE = 'forgotten-by-restore';
const CALL_TTL_MS = 60_000;
const UNKNOWN_REQUEST = Buffer.alloc(32);
const MAX_ROUNDS = 10_000;

/** What becomes of a forgotten sale. `left`: nobody here can say what it was. */
type Becomes = 'granted' | 'recorded' | 'owed' | 'refunded' | 'left';

export interface ForgottenSale {
  /** `card`, or the CAIP-2 name of a chain. */
  source: string;
  /** The order; on a chain what its payer's authorization is known by. */
  reference: string;
  amountMicros: bigint;
  becomes: Becomes;
  /** Why, in a few words. */
  because: string;
  /** The transaction that paid, or the provider's name of the payment. */
  payment: string;
}

export interface RecoveryPlan {
  recovery: OpenRecovery;
  sinceMs: number;
  sales: readonly ForgottenSale[];
  /** Refunds that were owed then and have been sent since, as the chain says. */
  sentBack: readonly { callId: string; transaction: string }[];
  /** Chains whose nodes have forgotten a part of that time: compare them by hand. */
  unread: readonly string[];
}

export interface RecoverParts {
  sql: Database;
  sales: Pick<Sales, 'calls' | 'settlements' | 'settlementFinisher'>;
  /** What each chain says since a time. */
  paidSince(sinceMs: number): Promise<readonly PaidOnNetwork[]>;
  cards: Pick<Cards, 'orders' | 'provider' | 'forgotten' | 'inbox'> | null;
  /** Whether credit, a key or something else that lasts is sold at this price. */
  sellsWhatLasts(micros: bigint): boolean;
  nowMs(): number;
}

interface OfChain {
  sale: ForgottenSale;
  rail: PaidOnNetwork['rail'];
  came: CamePayment;
  /** The transaction that sent it back since; null: none did. */
  sentBackBy: string | null;
}

type Found = RecoveryPlan & {
  ofChains: readonly OfChain[];
  refunds: readonly SentRefund[];
  /** When the latest refund that the database has forgotten has landed, or never will. */
  settledAtMs: number;
};

interface SentRefund {
  callId: string;
  transaction: string;
  /** What was not owed yet when the database was saved; null: it was. */
  owed: Pick<Settlement, 'priceMicros' | 'payment'> | null;
}

/**
 * Reads chains and card provider, and changes nothing.
 *
 * @returns null when nothing has to be recovered
 * @throws what a chain or the provider throws: half of what was sold is no answer
 */
export async function planRecovery(parts: RecoverParts): Promise<RecoveryPlan | null> {
  const recovery = await openRecoveryIn(parts.sql);
  return recovery === null ? null : find(parts, recovery);
}

/**
 * Puts right what `planRecovery` finds, and opens the shop. Stopped at any point, it goes on when it is run again.
 *
 * @param by who said so; kept with the recovery
 * @param options.unreadCompared whether somebody has compared the chains that cannot be read
 * @param options.beforeOpening what else is done once everything is put right and nothing is sold yet
 * @returns what it did
 * @throws when a chain or the provider cannot be read; `Unread` when a chain remains to be compared; `TooEarly` when a refund
 * that is owed may have been sent already and land yet: the shop stays shut
 */
export async function recover(
  parts: RecoverParts,
  by: string,
  options: { unreadCompared: boolean; beforeOpening?: () => Promise<void> },
): Promise<RecoveryPlan | null> {
  const recovery = await openRecoveryIn(parts.sql);
  if (recovery === null) return null;
  const readAtMs = parts.nowMs();
  const found = await find(parts, recovery);
  if (readAtMs < found.settledAtMs) throw new TooEarly(found.settledAtMs);
  if (found.unread.length > 0 && !options.unreadCompared) throw new Unread(found.unread);
  for (const each of found.refunds) await bookSent(parts, each);
  for (const each of found.ofChains) await putRight(parts, recovery, each);
  await followCards(parts);
  for (const sale of found.sales.filter(({ source }) => source === 'card'))
    await note(parts, recovery, sale, null);
  await options.beforeOpening?.();
  await parts.sql`
    update recoveries set opened_at = ${at(parts)}, opened_by = ${by}
    where id = ${String(recovery.id)} and opened_at is null`;
  return found;
}

/** Chains that nobody has compared. */
export class Unread extends Error {
  constructor(networks: readonly string[]) {
    super(`the node of ${networks.join(' and ')} has forgotten a part of the time since`);
    this.name = 'Unread';
  }
}

/** A refund that is owed may have been sent in the forgotten time, and not have landed yet. */
export class TooEarly extends Error {
  constructor(atMs: number) {
    super(
      `a refund that is owed may have been sent already, and could land until ${new Date(atMs).toISOString()}`,
    );
    this.name = 'TooEarly';
  }
}

async function find(parts: RecoverParts, recovery: OpenRecovery): Promise<Found> {
  const sinceMs = recovery.knownUntilMs - MARGIN_MS;
  const chains = await parts.paidSince(sinceMs);
  const ofChains: OfChain[] = [];
  const refunds: SentRefund[] = [];
  const plain: ForgottenSale[] = [];
  let landsWithinMs = 0;
  for (const { network, rail, paid, landsWithinMs: within } of chains) {
    if (paid === null) continue;
    const due = await sentOfDue(parts, network, paid);
    refunds.push(...due.refunds);
    const came = await cameTo(parts, { network, rail, paid }, due.left);
    ofChains.push(...came);
    if (due.isMoreOwed || came.some(({ sale }) => sale.becomes === 'owed'))
      landsWithinMs = Math.max(landsWithinMs, within);
    for (const sent of due.left) {
      const known = await knownCallOf(parts.sql, network, sent, refunds);
      if (known !== null) refunds.push(known);
      // On Tempo a key also pays its fees by transfers.
      else if (rail === 'x402') plain.push(unexplained(network, sent));
    }
    plain.push(...paid.plain.map((each) => leftOnChain(network, each)));
  }
  const cards = await forgottenCards(parts, sinceMs);
  return {
    recovery,
    sinceMs,
    ofChains,
    refunds,
    settledAtMs: recovery.foundAtMs + landsWithinMs,
    sales: [...cards, ...ofChains.map(({ sale }) => sale), ...plain],
    sentBack: refunds.map(({ callId, transaction }) => ({ callId, transaction })),
    unread: chains.flatMap(({ network, paid }) => (paid === null ? [network] : [])),
  };
}

function leftOnChain(
  network: string,
  { transaction, from, units }: PaidSince['plain'][number],
): ForgottenSale {
  return {
    source: network,
    reference: `${transaction} ${from}`,
    amountMicros: units,
    becomes: 'left',
    because: 'a plain transfer, by whose hash a call may be bought within a day',
    payment: transaction,
  };
}

/** Finds the refunds that were due when the database was saved and have been sent since. */
async function sentOfDue(parts: RecoverParts, network: string, { sentBack }: PaidSince) {
  const due = await parts.sql<{ call_id: string; payee: string; amount_micros: bigint }[]>`
    select call_id, payee, amount_micros from refunds
    where network = ${network} and state = 0 order by created_at`;
  const named = [...new Set(sentBack.flatMap(({ transaction: sent }) => [sent, sent.toLowerCase()]))];
  const known = new Set(
    (
      await parts.sql<{ transaction: string }[]>`
        select transaction from refunds where transaction = any(${arrayLiteral(named)}::text::text[]) and network = ${network}`
    ).map(({ transaction }) => transaction.toLowerCase()),
  );
  const left = sentBack.filter(({ transaction }) => !known.has(transaction.toLowerCase()));
  const refunds = due.flatMap(({ call_id: callId, payee, amount_micros: amount }): SentRefund[] => {
    const sent = takeFirst(left, (each) =>
      each.callId === null ? isFor(each, { network, payer: payee, units: amount }) : each.callId === callId,
    );
    return sent === null ? [] : [{ callId, transaction: sent.transaction, owed: null }];
  });
  return { refunds, left, isMoreOwed: due.length > refunds.length };
}

/**
 * The newest call of a payer that cost what was sent back since. An operator had it refunded in the forgotten time. Payers of EVM chains are
 * kept in lower case, as they are told here, so that the key of a payer's calls finds them among all that was ever paid.
 */
async function knownCallOf(
  sql: Database,
  network: string,
  { transaction, to, units, callId: named }: SentBack,
  found: readonly SentRefund[],
): Promise<SentRefund | null> {
  const rows = await sql<{ call_id: string; asset: string; payer: string; pay_to: string }[]>`
    select s.call_id, s.asset, s.payer, s.pay_to from settlements s
    where s.account_id = ${String(HOUSE_ACCOUNTS.chain_clearing)} and s.payer = ${to}
      and s.network = ${network} and s.state = 1 and s.amount_units = ${String(units)}
      and s.call_id = coalesce(${named}::uuid, s.call_id)
      and not exists (select 1 from refunds r where r.account_id = s.account_id and r.call_id = s.call_id)
    order by s.created_at desc limit 1000`;
  const row = rows.find((each) => !found.some(({ callId }) => callId === each.call_id));
  if (row === undefined) return null;
  const { call_id: callId, asset, payer, pay_to: payTo } = row;
  const of = { identity: '', network, asset, payer, payTo, amountUnits: units, deadAfterMs: 0 };
  return { callId, transaction, owed: { priceMicros: units, payment: { ...of, evidence: {} } } };
}

function unexplained(network: string, { transaction, to, units }: SentBack): ForgottenSale {
  return {
    source: network,
    reference: `${transaction} ${to}`,
    amountMicros: units,
    becomes: 'left',
    because: 'our refunding key sent it, and no call here cost as much',
    payment: transaction,
  };
}

/** Finds payments that the books do not know. @param sent refunds that none of the books' was; those that are used go */
async function cameTo(
  parts: RecoverParts,
  { network, rail, paid: { came } }: { network: string; rail: PaidOnNetwork['rail']; paid: PaidSince },
  sent: SentBack[],
): Promise<OfChain[]> {
  const forgotten: OfChain[] = [];
  for (const each of came) {
    const { payment, transaction } = each;
    const named = { accountId: HOUSE_ACCOUNTS.chain_clearing, keyId: null, identity: payment.identity };
    const known = await parts.sales.calls.look(
      { ...named, onChainIdentity: payment.identity },
      UNKNOWN_REQUEST,
    );
    if (known !== null && !(await isUnfinished(parts, network, payment.identity, known))) continue;
    const { payer, amountUnits: units } = payment;
    const back = takeFirst(sent, (of) => isFor(of, { network, payer, units }));
    const lasts = parts.sellsWhatLasts(payment.amountUnits);
    forgotten.push({
      came: each,
      rail,
      sentBackBy: back?.transaction ?? null,
      sale: {
        source: network,
        reference: payment.identity,
        amountMicros: payment.amountUnits,
        becomes: back !== null ? 'refunded' : lasts ? 'owed' : 'recorded',
        because:
          back !== null
            ? `sent back by ${back.transaction}`
            : lasts
              ? 'keys and other lasting things are sold at this price, and are lost'
              : 'a call: its answer had left',
        payment: transaction,
      },
    });
  }
  return forgotten;
}

/** Whether an earlier run has begun to put a payment right, and did not come to its end. */
async function isUnfinished(
  { sql }: RecoverParts,
  network: string,
  identity: string,
  known: { status: string },
): Promise<boolean> {
  if (known.status === 'other_request') return false;
  const noted = await sql`
    select 1 from recovered_sales where source = ${network} and reference = ${identity}`;
  return noted.length === 0;
}

/** Books a payment as a captured call whose answer says that it is forgotten; and what goes back of it, or did. */
async function putRight(
  parts: RecoverParts,
  recovery: OpenRecovery,
  { sale, rail, came, sentBackBy }: OfChain,
): Promise<void> {
  const { calls, settlements } = parts.sales;
  const { payment, transaction, blockNumber } = came;
  const { identity, amountUnits: priceMicros } = payment;
  const accountId = HOUSE_ACCOUNTS.chain_clearing;
  // The same in each run, so that one that was stopped goes on.
  const id = transferIdFor(`forgotten:${identity}`);
  const revenue = rail === 'x402' ? 'revenue_x402' : 'revenue_mpp';
  const call = {
    id,
    accountId,
    bucket: HOUSE_BUCKET,
    service: FORGOTTEN_SERVICE,
    priceMicros,
    revenue,
  } as const;
  const begun = await calls.begin({
    ...call,
    keyId: null,
    rail,
    identity,
    onChainIdentity: identity,
    fingerprint: UNKNOWN_REQUEST,
    ttlMs: CALL_TTL_MS,
  });
  if (begun.status === 'authorized') {
    const answer = answerTo(id);
    const kept = await calls.keep({
      id,
      accountId,
      bucket: HOUSE_BUCKET,
      rail,
      payment,
      answer,
      leaseMs: CALL_TTL_MS,
    });
    if (kept.status !== 'kept') throw new Error(`the payment ${identity} could not be kept`);
  } else if (!('callId' in begun) || begun.callId !== id)
    throw new Error(`the payment ${identity} was ${begun.status}`);
  const named = { accountId, callId: id, priceMicros, payment };
  // Owed first: money that was taken and is not owed would be forgotten.
  if (sale.becomes !== 'recorded') await settlements.owe(named, 'forgotten by a restored database');
  await calls.finish({
    ...call,
    capture: true,
    outcome: sale.becomes === 'recorded' ? 'answered' : 'REFUNDED',
    answer: null,
    settled: { transaction, blockNumber },
  });
  if (sentBackBy !== null) await bookSent(parts, { callId: id, transaction: sentBackBy, owed: null });
  await note(parts, recovery, sale, id);
}

/** Books a refund that was sent before. */
async function bookSent({ sales }: RecoverParts, { callId, transaction, owed }: SentRefund): Promise<void> {
  const { settlements, settlementFinisher } = sales;
  const accountId = HOUSE_ACCOUNTS.chain_clearing;
  if (owed !== null)
    await settlements.owe({ ...owed, accountId, callId }, 'refunded in a time that a restore forgot');
  const refund = await settlements.dueRefund(accountId, callId);
  if (refund !== null) await settlementFinisher.bookRefund(refund, transaction);
}

/** What is kept in the place of the answer. Nobody gets it: the request that it was for is not known, so a repeat is another one. */
function answerTo(callId: string) {
  return {
    status: 410,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'private, no-store' },
    body: JSON.stringify({ callId, note: 'Its answer was forgotten when the database was restored.' }),
  };
}

/** Finds card payments of orders that the database does not know. */
async function forgottenCards(parts: RecoverParts, sinceMs: number): Promise<ForgottenSale[]> {
  const { cards } = parts;
  if (cards === null) return [];
  const found = new Map<string, ForgottenSale>();
  const untilMs = parts.nowMs();
  for (let fromMs = sinceMs; fromMs < untilMs; fromMs += EVENTS_READ_AT_ONCE_MS) {
    const toMs = fromMs + EVENTS_READ_AT_ONCE_MS;
    for (const event of await cards.provider.events(fromMs, toMs < untilMs ? toMs : null)) {
      const { orderId } = event;
      if (orderId === null || (await cards.orders.find(orderId)) !== null) continue;
      const known = found.get(orderId);
      if (known !== undefined && known.becomes !== 'left') continue;
      const sale = await forgottenCard(cards, { ...event, orderId });
      if (sale !== null) found.set(orderId, sale);
    }
  }
  return [...found.values()];
}

async function forgottenCard(
  { forgotten, provider }: NonNullable<RecoverParts['cards']>,
  event: { orderId: string; sessionId: string | null; paymentIntentId: string | null },
): Promise<ForgottenSale | null> {
  const { orderId, sessionId, paymentIntentId } = event;
  const looked = await forgotten.look(event);
  const of = (amountMicros: bigint, payment: string, becomes: Becomes, because: string) => ({
    source: 'card',
    reference: orderId,
    amountMicros,
    becomes,
    because,
    payment,
  });
  if (looked !== null) {
    const { noted, kept, becomes } = looked;
    const payment = kept.payment?.paymentIntentId ?? '';
    return becomes === 'granted'
      ? of(noted.amountMicros, payment, 'granted', 'its credit and its key are written anew')
      : of(noted.amountMicros, payment, 'refunded', 'the account that it was for is lost');
  }
  const kept = await provider.kept({ sessionId, paymentIntentId });
  if (kept === null || kept.payment?.status !== 'paid') return null;
  const { paidMicros, paymentIntentId: payment } = kept.payment;
  return of(
    paidMicros,
    payment,
    'left',
    'its note is not ours: of another shop, or of an older version; look at it at the provider',
  );
}

/** Reads the provider's list from where the database left it, and works all of it: forgotten orders are written anew. */
async function followCards({ cards }: RecoverParts): Promise<void> {
  if (cards === null) return;
  await cards.inbox.catchUp();
  for (let round = 0; round < MAX_ROUNDS; round++) if ((await cards.inbox.work()) === 0) return;
}

async function note(
  parts: RecoverParts,
  recovery: OpenRecovery,
  { source, reference, amountMicros, becomes }: ForgottenSale,
  callId: string | null,
): Promise<void> {
  if (becomes === 'left') return;
  await parts.sql`
    insert into recovered_sales (source, reference, recovery_id, amount_micros, became, call_id, at)
    values (${source}, ${reference}, ${String(recovery.id)}, ${String(amountMicros)}, ${becomes}, ${callId}, ${at(parts)})
    on conflict (source, reference) do nothing`;
}

/** Whether a transfer pays a payer back. Addresses of EVM chains are written in several ways, Solana's in one. */
function isFor({ to, units }: SentBack, paid: { network: string; payer: string; units: bigint }): boolean {
  if (units !== paid.units) return false;
  return to === (paid.network.startsWith('eip155:') ? paid.payer.toLowerCase() : paid.payer);
}

function takeFirst<T>(from: T[], is: (each: T) => boolean): T | null {
  const index = from.findIndex(is);
  return index === -1 ? null : (from.splice(index, 1)[0] ?? null);
}

const at = ({ nowMs }: Pick<RecoverParts, 'nowMs'>) => new Date(nowMs()).toISOString();
