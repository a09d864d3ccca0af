/**
 * The agreement of a card's owner. A person agrees on the payment page, which names the amounts and the limits of a day.
 * Whoever holds the key may ask less of the card, and anything up to that again; for more a person pays once more.
 */
import { type FieldIssue, Problem } from '../../http/problem.ts';
import { microsToUsd } from '../../ledger/money.ts';
import { HOW_TO_KEEP_A_CARD } from './recharge-mail.ts';
import type { RechargeSettings } from './recharge-settings.ts';

/** In 24 hours no more than so many times the top-up that was agreed to. */
const MAX_TOP_UPS_PER_DAY = 5n;

/** The most that may be charged in 24 hours, in micro-USD. @param maxPerDay how often */
export function mostPerDayMicros({ topUpMicros }: RechargeSettings, maxPerDay: number): bigint {
  const times = BigInt(maxPerDay) < MAX_TOP_UPS_PER_DAY ? BigInt(maxPerDay) : MAX_TOP_UPS_PER_DAY;
  return topUpMicros * times;
}

const usd = (micros: bigint) => `${microsToUsd(micros, 2)} USD`;

/** Words the agreement that the person reads on the payment page before they pay. */
export function agreementInWords(settings: RechargeSettings, maxPerDay: number): string {
  const { thresholdMicros, topUpMicros } = settings;
  return `By paying you agree that this card is kept and charged ${usd(topUpMicros)} whenever the prepaid balance falls below ${usd(thresholdMicros)}: at most ${maxPerDay} times and ${usd(mostPerDayMicros(settings, maxPerDay))} in 24 hours. You can switch this off at any time.`;
}

/** @throws Problem 409 RECHARGE_NOT_AGREED where more is asked of the card than its owner has agreed to */
export function checkAgreed(settings: RechargeSettings, agreed: RechargeSettings): void {
  const fields: FieldIssue[] = [];
  for (const [field, name] of [
    ['thresholdMicros', 'thresholdUsd'],
    ['topUpMicros', 'topUpUsd'],
  ] as const) {
    if (settings[field] > agreed[field])
      fields.push({
        field: `autoRecharge.${name}`,
        message: `must be at most ${microsToUsd(agreed[field], 2)}`,
      });
  }
  if (fields.length === 0) return;
  throw new Problem(
    409,
    'RECHARGE_NOT_AGREED',
    `The card’s owner has agreed to a charge of ${usd(agreed.topUpMicros)} below ${usd(agreed.thresholdMicros)}, and to no more. Nothing was changed.`,
    {
      details: { fields, how: `For more a person has to agree again. ${HOW_TO_KEEP_A_CARD}`, charged: false },
    },
  );
}
