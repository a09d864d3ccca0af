import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { AutoRecharges, RechargeView } from '../cards/auto-recharge.ts';
import { cardsNotConfigured } from '../cards/closed.ts';
import type { Standing } from '../cards/debts.ts';
import { readRechargeChange } from '../cards/recharge-settings.ts';
import { isInternal } from '../http/caller-address.ts';
import { readJsonBody } from '../http/json-body.ts';
import { Problem } from '../http/problem.ts';
import { type RateLimit, rateExceeded, rateHeaders } from '../http/rate-limit.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { microsToUsd, usdToMicros } from '../ledger/money.ts';
import { type NewApiKey, presentedApiKey } from './api-key.ts';
import type { KeyRecord, Keys } from './keys.ts';
import { TRIAL_DAYS, TRIAL_USD, type TrialOutcome, type Trials } from './trial.ts';

const SPENDING_DAYS = 30;
/** Trials and demo keys that one address may ask for in a minute, granted or not. */
export const CLAIMS_PER_MINUTE = 10;

export interface KeyRouteParts {
  keys: Keys;
  trials: Trials;
  ledger: Ledger;
  /** Null: there is no card provider. */
  autoRecharges: Pick<AutoRecharges, 'describe' | 'change'> | null;
  /** What stands between an account and its credit. */
  standing(accountId: bigint): Promise<Standing>;
  baseUrl: string;
  servicesAvailable: number;
  trialAllowInternal: boolean;
  claimLimit: RateLimit;
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
  label: z
    .string()
    .trim()
    .max(100)
    .regex(/^\P{Cc}*$/u, 'must not hold control characters')
    .nullable()
    .optional(),
  caps: z.strictObject({ perCallUsd: usdAmount.optional(), perDayUsd: usdAmount.optional() }).optional(),
  /** Read by whom it is for: what is wrong with it has a code of its own. */
  autoRecharge: z.unknown().optional(),
});

const demoKeyRequest = z.object({
  installId: z
    .string()
    .min(8)
    .max(64)
    .regex(/^[\w.:-]+$/, 'may hold letters, digits and _ . : -'),
  sdkType: z.string().min(1).max(40),
});

const telemetry = z.object({
  installId: z.string().max(64),
  sdkType: z.string().max(40),
  sdkVersion: z.string().max(40).optional(),
  event: z.string().max(40),
  environment: z.record(z.string().max(64), z.unknown()).optional(),
});

/** Getting a key, looking at it, and changing it. */
export function keyRoutes(app: FastifyInstance, parts: KeyRouteParts): void {
  const { keys, ledger, baseUrl } = parts;

  /** What trial and demo keys have in common: who may ask, and how often. */
  async function claim(
    request: FastifyRequest,
    reply: FastifyReply,
    installId: string | null,
  ): Promise<TrialOutcome> {
    const address = parts.addressOf(request);
    admit(parts.claimLimit, address, reply);
    if (isInternal(address) && !parts.trialAllowInternal) {
      throw new Problem(
        403,
        'INTERNAL_IP',
        'Trials are for callers from the open internet; this is an internal address.',
        {
          details: {
            hint: 'On your own machine use the key that npm start printed, or set TRIAL_ALLOW_INTERNAL=true.',
            paidEndpoint: '/api/m2m/credits/purchase',
          },
        },
      );
    }
    const outcome = await parts.trials.claim(address, installId);
    if (outcome.status === 'claimed') {
      const retryAfterSeconds = Math.max(1, Math.ceil(outcome.retryAfterMs / 1_000));
      throw new Problem(
        429,
        'TRIAL_ALREADY_CLAIMED',
        `This address has had its trial. The next one is free in ${untilWords(retryAfterSeconds)}.`,
        {
          details: {
            retryAfterSeconds,
            nextTrialAt: new Date(parts.nowMs() + outcome.retryAfterMs).toISOString(),
          },
          headers: { 'retry-after': String(retryAfterSeconds) },
        },
      );
    }
    return outcome;
  }

  app.get('/api/m2m/credits/trial', { exposeHeadRoute: false }, async (request, reply) => {
    const outcome = await claim(request, reply, null);
    if (outcome.status === 'claimed') throw new Error('a refused claim has been answered');
    return {
      success: true,
      apiKey: outcome.key.apiKey,
      keyPrefix: outcome.key.prefix,
      credits: TRIAL_USD,
      currency: 'USD',
      serviceCalls: `~80-100 calls across all ${parts.servicesAvailable} /x402/* services`,
      expiresIn: `${TRIAL_DAYS} days`,
      usage: keyUsage(baseUrl, outcome.key.apiKey),
      upgradeAt: '/api/m2m/credits/purchase',
      note: 'Save this key now: it is shown once and cannot be retrieved again.',
    };
  });

  app.post('/api/sdk/demo-key', async (request, reply) => {
    const { installId } = readJsonBody(request, demoKeyRequest);
    const outcome = await claim(request, reply, installId);
    if (outcome.status === 'claimed') throw new Error('a refused claim has been answered');
    return {
      success: true,
      api_key: outcome.key.apiKey,
      credits_remaining:
        outcome.status === 'issued' ? TRIAL_USD : Number(microsToUsd(outcome.availableMicros)),
      expires_at: new Date(outcome.expiresAtMs).toISOString(),
      status: outcome.status === 'issued' ? 'new' : 'existing',
      usage: { header: 'X-API-KEY', documentation: `${baseUrl}/docs` },
      next_steps: { catalog: `${baseUrl}/x402/catalog`, balance: `${baseUrl}/api/keys/me` },
    };
  });

  app.post('/api/sdk/telemetry', async (request, reply) => {
    // Clients wait for this before every call. It is checked for shape and forgotten: nothing is stored.
    readJsonBody(request, telemetry);
    return reply.code(202).send({ success: true, message: 'accepted; nothing is stored' });
  });

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
    if (record.status === 'revoked') {
      throw new Problem(401, 'API_KEY_REVOKED', 'This API key was revoked or rotated.');
    }
    return record;
  }

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
    const isDone = await keys.update(record.id, {
      ...(change.label === undefined ? {} : { label: change.label === '' ? null : change.label }),
      ...(change.caps?.perCallUsd === undefined ? {} : { capPerCallMicros: change.caps.perCallUsd }),
      ...(cap === undefined ? {} : { capPerDayMicros: cap }),
    });
    if (!isDone) throw capFixed((await keys.record(record.id)) ?? record);
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
      usage: keyUsage(baseUrl, made.apiKey),
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
    const [balance, spending, spentToday, autoRecharge, standing] = await Promise.all([
      ledger.balance(record.accountId),
      keys.spending(record.accountId, since),
      keys.spentToday(record.accountId),
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
      spentUsd: usd(balance.spentMicros),
      owedUsd: usd(standing.owedMicros),
      frozenUsd: usd(standing.frozenMicros),
      frozenFor: standing.frozenFor,
      caps: {
        perCallUsd: usd(record.capPerCallMicros),
        perDayUsd: usd(record.capPerDayMicros),
        fixedUntil: isHeld(record) ? (record.capFixedUntil?.toISOString() ?? null) : null,
      },
      spentTodayUsd: usd(spentToday),
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

/** Counts a request, says so in the answer's headers, and refuses it when it is one too many. */
function admit(limit: RateLimit, address: string, reply: FastifyReply): void {
  const verdict = limit.take(address);
  reply.headers(rateHeaders(verdict)).header('cache-control', 'no-store');
  if (!verdict.allowed) throw rateExceeded(verdict);
}

function keyUsage(baseUrl: string, apiKey: NewApiKey['apiKey']): Record<string, string> {
  return {
    header: 'X-API-KEY',
    example: `curl -X POST ${baseUrl}/x402/first-call -H 'X-API-KEY: ${apiKey}' -H 'Content-Type: application/json' -d '{}'`,
    alternativeHeader: `Authorization: Bearer ${apiKey}`,
  };
}

/** Time left, in the largest unit that says enough. */
function untilWords(seconds: number): string {
  if (seconds >= 2 * 86_400) return `${Math.ceil(seconds / 86_400)} days`;
  if (seconds >= 2 * 3_600) return `${Math.ceil(seconds / 3_600)} hours`;
  return `${Math.ceil(seconds / 60)} minutes`;
}
