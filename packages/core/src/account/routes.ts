import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { cardsNotConfigured } from '../cards/closed.ts';
import { readRechargeChange } from '../cards/recharge/recharge-settings.ts';
import { readJsonBody } from '../http/json-body.ts';
import { Problem } from '../http/problem.ts';
import { admit, type RateLimit } from '../http/rate-limit.ts';
import { presentedApiKey } from '../keys/api-key.ts';
import { type FirstCall, keyUsage } from '../keys/key-usage.ts';
import type { KeyRecord } from '../keys/keys.ts';
import { microsToUsd, usdToMicros } from '../ledger/money.ts';
import { isNameable, NOT_NAMEABLE } from '../words/name.ts';
import { describeKey, isCapHeld, type KeyViewParts } from './key-view.ts';

export interface AccountRouteParts extends KeyViewParts {
  baseUrl: string;
  firstCall: FirstCall;
  accountLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
}

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

/** Routes by which a key's owner sees it and its account, and changes them. */
export function accountRoutes(app: FastifyInstance, parts: AccountRouteParts): void {
  const { keys, ledger } = parts;

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

  app.get('/api/keys/me', async (request, reply) => describeKey(parts, await ownKey(request, reply)));

  app.patch('/api/keys/me', async (request, reply) => {
    const record = await ownKey(request, reply);
    const change = readJsonBody(request, keyChange);
    const cap = change.caps?.perDayUsd;
    // First: what can be refused, so that nothing is done of a request that is.
    if (
      cap !== undefined &&
      isCapHeld(record, parts.nowMs()) &&
      (cap === null || cap > (record.capPerDayMicros ?? cap))
    )
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
    return describeKey(parts, (await keys.record(record.id)) ?? record);
  });

  app.post('/api/keys/me/rotate', async (request, reply) => {
    const record = await ownKey(request, reply);
    const made = await keys.rotate(record.id);
    if (made === null) {
      throw new Problem(
        409,
        'KEY_NOT_ACTIVE',
        'Only an active key can be rotated. This one is frozen, or another request rotated it first.',
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
}
