import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isInternal } from '../http/caller-address.ts';
import { readJsonBody } from '../http/json-body.ts';
import { Problem, unavailable } from '../http/problem.ts';
import { admit, type RateLimit } from '../http/rate-limit.ts';
import { microsToUsd } from '../ledger/money.ts';
import type { NewApiKey } from './api-key.ts';
import { type FirstCall, keyUsage } from './key-usage.ts';
import { TRIAL_DAYS, TRIAL_USD, type Trials } from './trial.ts';
import type { TrialOutcome } from './trial-outcome.ts';

/** Trials and demo keys that one address may ask for in a minute, granted or not. */
export const CLAIMS_PER_MINUTE = 10;

export interface TrialRouteParts {
  trials: Trials;
  baseUrl: string;
  firstCall: FirstCall;
  servicesAvailable(): number;
  trialAllowInternal: boolean;
  claimLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
}

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

/** Getting a key that costs nothing. */
export function trialRoutes(app: FastifyInstance, parts: TrialRouteParts): void {
  const { baseUrl } = parts;

  /** Checks for both trial and demo keys: who may ask, and how often. */
  async function claim(
    request: FastifyRequest,
    reply: FastifyReply,
    installId: string | null,
  ): Promise<Extract<TrialOutcome, { key: NewApiKey }>> {
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
    if (outcome.status === 'spent') {
      throw unavailable(
        'TRIALS_TEMPORARILY_DISABLED',
        'All trials that there are for now are given out: they come evenly over the day. The next one is free at nextTrialAt.',
        outcome.untilMs - parts.nowMs(),
        {
          nextTrialAt: new Date(outcome.untilMs).toISOString(),
          paidEndpoint: '/api/m2m/credits/purchase',
        },
      );
    }
    if (outcome.status === 'claimed') {
      const retryAfterSeconds = Math.max(1, Math.ceil(outcome.retryAfterMs / 1_000));
      throw new Problem(
        429,
        'TRIAL_ALREADY_CLAIMED',
        `${outcome.by === 'site' ? 'The network of this address has had its trials' : 'This address has had its trial'}. The next one is free in ${untilWords(retryAfterSeconds)}.`,
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
    return {
      success: true,
      apiKey: outcome.key.apiKey,
      keyPrefix: outcome.key.prefix,
      credits: TRIAL_USD,
      currency: 'USD',
      serviceCalls: `~80-100 calls across all ${parts.servicesAvailable()} /x402/* services`,
      expiresIn: `${TRIAL_DAYS} days`,
      usage: keyUsage(parts, outcome.key.apiKey),
      upgradeAt: '/api/m2m/credits/purchase',
      note: 'Save this key now: it is shown once and cannot be retrieved again.',
    };
  });

  app.post('/api/sdk/demo-key', async (request, reply) => {
    const { installId } = readJsonBody(request, demoKeyRequest);
    const outcome = await claim(request, reply, installId);
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
}

/** Time left, in the largest unit that says enough. */
function untilWords(seconds: number): string {
  if (seconds >= 2 * 86_400) return `${Math.ceil(seconds / 86_400)} days`;
  if (seconds >= 2 * 3_600) return `${Math.ceil(seconds / 3_600)} hours`;
  return `${Math.ceil(seconds / 60)} minutes`;
}
