/** The settings that a balance which refills itself may have, and what is wrong with others. */
import { z } from 'zod';
import { type FieldIssue, Problem } from '../../http/problem.ts';
import { microsToUsd, usdToMicros } from '../../ledger/money.ts';

export interface RechargeSettings {
  /** The card is charged when the balance is below this, in micro-USD. */
  thresholdMicros: bigint;
  /** How much is charged and credited then, in micro-USD; whole cents. */
  topUpMicros: bigint;
}

export interface RechargePatch {
  enabled?: boolean;
  thresholdMicros?: bigint;
  topUpMicros?: bigint;
  /** Where mail about it goes; null: nowhere. */
  email?: string | null;
}

const MICROS_PER_CENT = 10_000n;
const MIN_TOP_UP_MICROS = usdToMicros('5');
const MAX_MICROS = usdToMicros('500');
const DEFAULT_THRESHOLD_MICROS = usdToMicros('5');

function usd(message: string, allows: (micros: bigint) => boolean) {
  return z.union([z.number(), z.string()], message).transform((value, context) => {
    try {
      const micros = usdToMicros(String(value));
      if (allows(micros)) return micros;
    } catch {
      // said below
    }
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}

const thresholdUsd = usd(
  'must be above 0 and at most 500 USD',
  (micros) => micros > 0n && micros <= MAX_MICROS,
);
const topUpUsd = usd(
  'must be 5 to 500 USD in whole cents',
  (micros) => micros >= MIN_TOP_UP_MICROS && micros <= MAX_MICROS && micros % MICROS_PER_CENT === 0n,
);

/** `autoRecharge` of a checkout, as it is sent. */
const rechargeRequest = z.strictObject({
  enabled: z.boolean(),
  thresholdUsd: thresholdUsd.optional(),
  topUpUsd: topUpUsd.optional(),
});

/** `autoRecharge` of PATCH /api/keys/me, as it is sent. */
const rechargeChange = z.strictObject({
  enabled: z.boolean().optional(),
  thresholdUsd: thresholdUsd.optional(),
  topUpUsd: topUpUsd.optional(),
  email: z.email().max(254).nullable().optional(),
});

/**
 * Reads a checkout's wish.
 *
 * @param value what was sent as `autoRecharge`; left out is as good as not enabled
 * @param defaults.topUpMicros what the checkout itself costs: the top-up unless another is asked for
 * @returns null: no card is to be kept
 * @throws Problem 400 INVALID_AUTO_RECHARGE with the fields that are wrong
 */
export function readRechargeRequest(
  value: unknown,
  defaults: { topUpMicros: bigint },
): RechargeSettings | null {
  if (value === undefined) return null;
  const wish = read(rechargeRequest, value);
  if (!wish.enabled) return null;
  const topUpMicros = wish.topUpUsd ?? defaults.topUpMicros;
  return checkRecharge({ thresholdMicros: wish.thresholdUsd ?? DEFAULT_THRESHOLD_MICROS, topUpMicros });
}

/** Reads a change, each field by itself. @throws Problem 400 INVALID_AUTO_RECHARGE with the fields that are wrong */
export function readRechargeChange(value: unknown): RechargePatch {
  const { thresholdUsd, topUpUsd, enabled, email } = read(rechargeChange, value);
  return {
    ...(enabled === undefined ? {} : { enabled }),
    ...(thresholdUsd === undefined ? {} : { thresholdMicros: thresholdUsd }),
    ...(topUpUsd === undefined ? {} : { topUpMicros: topUpUsd }),
    ...(email === undefined ? {} : { email }),
  };
}

/**
 * Sees to it that one top-up lifts a balance to the threshold, from wherever it fell.
 *
 * @throws Problem 400 INVALID_AUTO_RECHARGE
 */
export function checkRecharge(settings: RechargeSettings): RechargeSettings {
  if (settings.thresholdMicros <= settings.topUpMicros) return settings;
  throw invalid([
    {
      field: 'autoRecharge.thresholdUsd',
      message: `must be at most topUpUsd, ${microsToUsd(settings.topUpMicros, 2)}`,
    },
  ]);
}

function read<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(
    parsed.error.issues
      .slice(0, 10)
      .map(({ path, message }) => ({ field: ['autoRecharge', ...path].join('.'), message })),
  );
}

function invalid(fields: FieldIssue[]): Problem {
  const [first] = fields;
  return new Problem(
    400,
    'INVALID_AUTO_RECHARGE',
    `${first?.field ?? 'autoRecharge'}: ${first?.message ?? 'invalid'}`,
    { details: { fields, charged: false } },
  );
}
