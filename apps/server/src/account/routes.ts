import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { cardsNotConfigured } from '../cards/closed.ts';
import type { Standing } from '../cards/disputes/debts.ts';
import type { AutoRecharges, RechargeView } from '../cards/recharge/auto-recharge.ts';
import { readRechargeChange } from '../cards/recharge/recharge-settings.ts';
import { readJsonBody } from '../http/json-body.ts';
import { Problem } from '../http/problem.ts';
import { admit, type RateLimit } from '../http/rate-limit.ts';
import { presentedApiKey } from '../keys/api-key.ts';
import { type FirstCall, keyUsage } from '../keys/key-usage.ts';
import type { KeyRecord, Keys } from '../keys/keys.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { microsToUsd, usdToMicros } from '../ledger/money.ts';
import { isNameable, NOT_NAMEABLE } from '../words/name.ts';

const SPENDING_DAYS = 30;

export interface AccountRouteParts {
  keys: Keys;
  ledger: Ledger;
  /** Null: there is no card provider. */
  autoRecharges: Pick<AutoRecharges, 'describe' | 'change'> | null;
  /** What stands between an account and its credit. */
  standing(accountId: bigint): Promise<Standing>;
  baseUrl: string;
  firstCall: FirstCall;
  accountLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
}

const NO_CARD_PROVIDER: RechargeView = {
  enabled: false,
  disabledReason: null,
  how: 'This server has no card provider, so no card can be kept.',
};

const usdAmount = z
  .union([z.string(), z.number()])
  .transform((value, context) => {
    try {
      const micros = usdToMicros(String(value));
      if (micros > 0n && micros <= usdToMicros('1000000')) return micros;
    } catch {
      // said below
    }
    context.addIssue({
      code: 'custom',
      message: 'must be an amount in USD above 0 with at most six places, or null',
    });
    return z.NEVER;
  })
  .nullable();

const keyChange = z.strictObject({
  label: z.string().trim().max(100).refine(isNameable, NOT_NAMEABLE).nullable().optional(),
  caps: z.strictObject({ perCallUsd: usdAmount.optional(), perDayUsd: usdAmount.optional() }).optional(),
  /** Read by whom it is for: what is wrong with it has a code of its own. */
  autoRecharge: z.unknown().optional(),
});

/** What a key's owner sees of it and of its account, and may change. */
export function accountRoutes(app: FastifyInstance, parts: AccountRouteParts): void {
  const { keys, ledger } = parts;

  /** Whether the cap per day is held, because a card that nobody knows yet paid for the credit. */
  const isHeld = ({ capFixedUntil }: KeyRecord) =>
    capFixedUntil !== null && capFixedUntil.getTime() > parts.nowMs();

  function capFixed({ capPerDayMicros, capFixedUntil }: KeyRecord): Problem {
    const until = capFixedUntil?.toISOString() ?? null;
    return new Problem(
      409,
      'CAP_FIXED',
      'caps.perDayUsd can be lowered, but not raised: a card that is new here paid for the credit.',
      {
        details: {
          until,
          perDayUsd: capPerDayMicros === null ? null : microsToUsd(capPerDayMicros),
          hint: 'Nothing was changed. The cap ends by itself.',
        },
      },
    );
  }

  /** The key that a request presents. Unlike on paid calls there is no 402 here: without a key it is a 401. */
  async function ownKey(request: FastifyRequest, reply: FastifyReply): Promise<KeyRecord> {
    admit(parts.accountLimit, parts.addressOf(request), reply);
    const presented = presentedApiKey(request.headers);
    if (presented === null) {
      throw new Problem(401, 'API_KEY_MISSING', 'Send your key in X-API-KEY, or as Authorization: Bearer.');
    }
    const known = await keys.find(presented);
    const record = known === null ? null : await keys.record(known.id);
    if (record === null) throw new Problem(401, 'API_KEY_INVALID', 'This API key is not known here.');
    if (record.status === 'revoked') throw ended();
    return record;
  }

  const ended = () => new Problem(401, 'API_KEY_REVOKED', 'This API key was revoked or rotated.');

  app.get('/api/keys/me', async (request, reply) => describeKey(await ownKey(request, reply)));

  app.patch('/api/keys/me', async (request, reply) => {
    const record = await ownKey(request, reply);
    const change = readJsonBody(request, keyChange);
    const cap = change.caps?.perDayUsd;
    // First: what can be refused, so that nothing is done of a request that is.
    if (cap !== undefined && isHeld(record) && (cap === null || cap > (record.capPerDayMicros ?? cap)))
      throw capFixed(record);
    if (change.autoRecharge !== undefined) {
      const recharge = readRechargeChange(change.autoRecharge);
      if (parts.autoRecharges === null) throw cardsNotConfigured();
      await parts.autoRecharges.change(record.accountId, recharge);
    }
    const outcome = await keys.update(record.id, {
      ...(change.label === undefined ? {} : { label: change.label === '' ? null : change.label }),
      ...(change.caps?.perCallUsd === undefined ? {} : { capPerCallMicros: change.caps.perCallUsd }),
      ...(cap === undefined ? {} : { capPerDayMicros: cap }),
    });
    if (outcome === 'ended') throw ended();
    if (outcome === 'cap_held') throw capFixed((await keys.record(record.id)) ?? record);
    return describeKey((await keys.record(record.id)) ?? record);
  });

  app.post('/api/keys/me/rotate', async (request, reply) => {
    const record = await ownKey(request, reply);
    const made = await keys.rotate(record.id);
    if (made === null) {
      throw new Problem(
        409,
        'KEY_NOT_ACTIVE',
        'Only an active key can be rotated, and another request did it first.',
      );
    }
    return {
      success: true,
      apiKey: made.apiKey,
      keyPrefix: made.prefix,
      replaced: record.prefix,
      usage: keyUsage(parts, made.apiKey),
      note: 'The old key has ended. Save this one now: it is shown once and cannot be retrieved again.',
    };
  });

  app.delete('/api/keys/me', async (request, reply) => {
    const record = await ownKey(request, reply);
    await keys.revoke(record.id);
    const { balanceMicros } = await ledger.balance(record.accountId);
    return {
      success: true,
      keyPrefix: record.prefix,
      status: 'revoked',
      balanceUsd: microsToUsd(balanceMicros),
      note: 'Nobody can spend with this key any more. Its balance stays on the books.',
    };
  });

  async function describeKey(record: KeyRecord): Promise<Record<string, unknown>> {
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
        fixedUntil: isHeld(record) ? (record.capFixedUntil?.toISOString() ?? null) : null,
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
}
