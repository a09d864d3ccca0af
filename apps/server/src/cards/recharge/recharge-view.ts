/** What a key's owner sees of the card that is kept, and of its charges. */
import type { Database } from '../../db/connection.ts';
import { microsToUsd } from '../../ledger/money.ts';
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
      /** Null: the card must not be charged again, and only another one helps. */
      card: string | null;
      email: string | null;
      lastChargedAt: string | null;
      /** In the last 24 hours. One that is under way counts. */
      chargesToday: number;
      maxChargesPerDay: number;
      nextAttemptAt: string | null;
      waitingFor: WaitingFor | null;
      disabledReason: string | null;
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
  const [row] = await sql<(KeptCardRow & { charges: bigint })[]>`
    select r.*, (
      select count(*) from card_orders o
      where o.account_id = r.account_id and o.kind = 'recharge' and o.state <> 2
        and o.created_at > ${new Date(nowMs - DAY_MS).toISOString()}
    ) as charges
    from auto_recharges r where r.account_id = ${String(accountId)}`;
  if (row === undefined) return NOT_KEPT;
  return viewOf(readKeptCard(row), { chargesToday: Number(row.charges), maxPerDay, nowMs });
}

function viewOf(
  kept: KeptCard,
  { chargesToday, maxPerDay, nowMs }: { chargesToday: number; maxPerDay: number; nowMs: number },
): RechargeView {
  const isoOrNull = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    enabled: kept.state !== 'off',
    state: kept.state,
    thresholdUsd: microsToUsd(kept.thresholdMicros),
    topUpUsd: microsToUsd(kept.topUpMicros),
    card: kept.paymentMethodId === null ? null : kept.cardLabel,
    email: kept.email === null ? null : masked(kept.email),
    lastChargedAt: isoOrNull(kept.lastChargedAtMs),
    chargesToday,
    maxChargesPerDay: maxPerDay,
    nextAttemptAt: kept.state === 'due' ? isoOrNull(kept.nextAtMs ?? nowMs) : null,
    waitingFor: kept.waitingFor,
    disabledReason: kept.offReason,
  };
}

/** `a***@example.com`: enough to know one's own address by. */
function masked(email: string): string {
  return `${email.slice(0, 1)}***${email.slice(email.lastIndexOf('@'))}`;
}
