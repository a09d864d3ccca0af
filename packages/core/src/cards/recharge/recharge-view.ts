/** The view that a key's owner has of the kept card and its charges. */
import type { Database } from '../../db/connection.ts';
import { microsToUsd } from '../../ledger/money.ts';
import { mostPerDayMicros } from './agreement.ts';
import { stillTold } from './former-addresses.ts';
import { type KeptCard, type KeptCardRow, readKeptCard, type State } from './kept-card.ts';
import type { WaitingFor } from './recharge-limits.ts';
import { HOW_TO_KEEP_A_CARD } from './recharge-mail.ts';

const DAY_MS = 24 * 60 * 60_000;

/** Amounts in USD with six places, times in ISO 8601. */
export type RechargeView =
  | { enabled: false; disabledReason: null; how: string }
  | {
      enabled: boolean;
      state: State;
      thresholdUsd: string;
      topUpUsd: string;
      /** The agreement of the card's owner on the payment page: the most that may be set, and charged in 24 hours. */
      agreed: { thresholdUsd: string; topUpUsd: string; perDayUsd: string };
      /** Null: the card must not be charged again, and only another one helps. */
      card: string | null;
      email: string | null;
      /** The other addresses that hear of charges, since the mail was moved away from there. */
      alsoTold: { email: string; until: string }[];
      lastChargedAt: string | null;
      /** In the last 24 hours. One that is under way counts. */
      chargesToday: number;
      maxChargesPerDay: number;
      nextAttemptAt: string | null;
      waitingFor: WaitingFor | null;
      disabledReason: string | null;
      /** The charge that is under way, also when it was switched off meanwhile. */
      chargeUnderWay: ChargeUnderWay | null;
    };

interface ChargeUnderWay {
  amountUsd: string;
  /** When the card provider was last asked for it; null: not yet. */
  askedAt: string | null;
  note: string;
}

const UNDER_WAY = {
  on: 'It is charged once, however often the card provider is asked.',
  asked:
    'The card provider was asked for this charge before and has not answered: it may still come. If it has not, it is not asked for again.',
  unasked: 'The card provider was not asked for this charge yet, and will not be.',
};

/** How an owner comes to have a card kept. */
export const HOW = `No card is kept. ${HOW_TO_KEEP_A_CARD}`;
const NOT_KEPT: RechargeView = { enabled: false, disabledReason: null, how: HOW };

/** @param limits.maxPerDay charges of one account in 24 hours */
export async function describeRecharge(
  sql: Database,
  accountId: bigint,
  { maxPerDay, nowMs }: { maxPerDay: number; nowMs: number },
): Promise<RechargeView> {
  const [row] = await sql<(KeptCardRow & UnderWayRow & { charges: bigint })[]>`
    select r.*, u.amount_micros as under_way_micros, u.charge_asked_at, (
      select count(*) from card_orders o
      where o.account_id = r.account_id and o.kind = 'recharge' and o.state <> 2
        and o.created_at > ${new Date(nowMs - DAY_MS).toISOString()}
    ) as charges
    from auto_recharges r left join card_orders u on u.id = r.order_id and u.state = 0
    where r.account_id = ${String(accountId)}`;
  if (row === undefined) return NOT_KEPT;
  const kept = readKeptCard(row);
  const chargeUnderWay = underWayOf(kept, row);
  return viewOf(kept, { chargesToday: Number(row.charges), maxPerDay, nowMs, chargeUnderWay });
}

interface UnderWayRow {
  under_way_micros: bigint | null;
  charge_asked_at: Date | null;
}

function underWayOf(
  { state }: KeptCard,
  { under_way_micros: amountMicros, charge_asked_at: askedAt }: UnderWayRow,
): ChargeUnderWay | null {
  if (amountMicros === null) return null;
  const note = state !== 'off' ? UNDER_WAY.on : askedAt === null ? UNDER_WAY.unasked : UNDER_WAY.asked;
  return { amountUsd: microsToUsd(amountMicros), askedAt: askedAt?.toISOString() ?? null, note };
}

function viewOf(
  kept: KeptCard,
  {
    chargesToday,
    maxPerDay,
    nowMs,
    chargeUnderWay,
  }: { chargesToday: number; maxPerDay: number; nowMs: number; chargeUnderWay: ChargeUnderWay | null },
): RechargeView {
  const isoOrNull = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    enabled: kept.state !== 'off',
    state: kept.state,
    thresholdUsd: microsToUsd(kept.thresholdMicros),
    topUpUsd: microsToUsd(kept.topUpMicros),
    agreed: {
      thresholdUsd: microsToUsd(kept.agreed.thresholdMicros),
      topUpUsd: microsToUsd(kept.agreed.topUpMicros),
      perDayUsd: microsToUsd(mostPerDayMicros(kept.agreed, maxPerDay)),
    },
    card: kept.paymentMethodId === null ? null : kept.cardLabel,
    email: kept.email === null ? null : masked(kept.email),
    alsoTold: stillTold(kept.formerAddresses, nowMs).map(({ email, untilMs }) => ({
      email: masked(email),
      until: new Date(untilMs).toISOString(),
    })),
    lastChargedAt: isoOrNull(kept.lastChargedAtMs),
    chargesToday,
    maxChargesPerDay: maxPerDay,
    nextAttemptAt: kept.state === 'due' ? isoOrNull(kept.nextAtMs ?? nowMs) : null,
    waitingFor: kept.waitingFor,
    disabledReason: kept.offReason,
    chargeUnderWay,
  };
}

/** `a***@example.com`: enough to know one's own address by. */
function masked(email: string): string {
  return `${email.slice(0, 1)}***${email.slice(email.lastIndexOf('@'))}`;
}
