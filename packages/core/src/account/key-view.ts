import type { Standing } from '../cards/disputes/debts.ts';
import type { AutoRecharges } from '../cards/recharge/auto-recharge.ts';
import type { RechargeView } from '../cards/recharge/recharge-view.ts';
import type { KeyRecord, Keys } from '../keys/keys.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { microsToUsd } from '../ledger/money.ts';

const SPENDING_DAYS = 30;

export interface KeyViewParts {
  keys: Keys;
  ledger: Ledger;
  /** Null: there is no card provider. */
  autoRecharges: Pick<AutoRecharges, 'describe' | 'change'> | null;
  /** Tells what stands between an account and its credit. */
  standing(accountId: bigint): Promise<Standing>;
  nowMs(): number;
}

const NO_CARD_PROVIDER: RechargeView = {
  enabled: false,
  disabledReason: null,
  how: 'This server has no card provider, so no card can be kept.',
};

/** Whether the cap per day cannot be raised yet, because a card that is new here paid for the credit. */
export function isCapHeld({ capFixedUntil }: KeyRecord, nowMs: number): boolean {
  return capFixedUntil !== null && capFixedUntil.getTime() > nowMs;
}

/** A key with its account, as its owner sees them: balances, caps, and what was spent on which service. */
export async function describeKey(parts: KeyViewParts, record: KeyRecord): Promise<Record<string, unknown>> {
  const { keys, ledger } = parts;
  const since = new Date(parts.nowMs() - (SPENDING_DAYS - 1) * 86_400_000).toISOString().slice(0, 10);
  const [balance, spending, spent, autoRecharge, standing] = await Promise.all([
    ledger.balance(record.accountId),
    keys.spending(record.accountId, since),
    keys.spent(record.accountId),
    parts.autoRecharges?.describe(record.accountId) ?? NO_CARD_PROVIDER,
    parts.standing(record.accountId),
  ]);
  const usd = (micros: bigint | null) => (micros === null ? null : microsToUsd(micros));
  const expired = record.expiresAt !== null && record.expiresAt.getTime() <= parts.nowMs();
  return {
    success: true,
    keyPrefix: record.prefix,
    label: record.label,
    kind: record.kind,
    status: expired ? 'expired' : record.status,
    createdAt: record.createdAt.toISOString(),
    expiresAt: record.expiresAt?.toISOString() ?? null,
    currency: 'USD',
    balanceUsd: usd(balance.balanceMicros),
    availableUsd: usd(balance.availableMicros),
    reservedUsd: usd(balance.reservedMicros),
    spentUsd: usd(spent.totalMicros),
    owedUsd: usd(standing.owedMicros),
    frozenUsd: usd(standing.frozenMicros),
    frozenFor: standing.frozenFor,
    caps: {
      perCallUsd: usd(record.capPerCallMicros),
      perDayUsd: usd(record.capPerDayMicros),
      fixedUntil: isCapHeld(record, parts.nowMs()) ? (record.capFixedUntil?.toISOString() ?? null) : null,
    },
    spentTodayUsd: usd(spent.todayMicros),
    autoRecharge,
    spending: spending.map(({ day, service, calls, spentMicros }) => ({
      day,
      service,
      calls: Number(calls),
      spentUsd: microsToUsd(spentMicros),
    })),
  };
}
