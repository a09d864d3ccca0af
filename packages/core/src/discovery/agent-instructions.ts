import { DAILY_LIMITS } from '../keys/credit-tiers.ts';
import { CALL_ERRORS, CHARGING_RULE, REPEAT_RULE } from './call-errors.ts';
import { capabilitiesDocument, directCard, publishedTiers, trialOf } from './capabilities.ts';
import {
  type DiscoveryContext,
  firstService,
  priceRange,
  SOLANA_YIELD_MANIFEST,
  serves,
  shopOf,
  YIELD_MANIFEST,
} from './context.ts';
import {
  firstServiceByMpp,
  mppCommandOf,
  mppMethodsOf,
  mppProgramOf,
  mppRules,
  soldByMpp,
} from './pay-by-mpp.ts';
import { firstServiceByWallet, walletProgramOf, walletRules } from './pay-by-wallet.ts';

/**
 * `/.well-known/agent-instructions.json`: the numbered steps from nothing to a first answer, which a program can run as
 * they stand. `{{apiKey}}` stands for the field of that name in the reply to the step that returns a key.
 */
export function agentInstructionsDocument(context: DiscoveryContext) {
  const { baseUrl } = context;
  const range = priceRange(context.services);
  const steps = stepsOf(context);
  return {
    title: `${context.shop.name}: instructions for agents`,
    ...shopOf(context),
    version: context.version,
    summary: `Buy single HTTP calls. ${CHARGING_RULE} Every answer names its sources; what is not known is null.`,
    recommended_next_step: steps[0] ?? null,
    steps: steps.map((step, index) => ({ n: index + 1, ...step })),
    paymentMethods: capabilitiesDocument(context).authModes.map(({ mode, header, description }) => ({
      mode,
      header,
      description,
    })),
    freeTrial: trialOf(context),
    byCard: context.cardCheckout
      ? { tiers: publishedTiers(context), dailyLimits: DAILY_LIMITS, direct: directCard(context) }
      : null,
    byWallet: byWallet(context),
    byMpp: byMpp(context),
    pricing: {
      currency: 'USD',
      rule: CHARGING_RULE,
      minUsd: range?.minUsd ?? null,
      maxUsd: range?.maxUsd ?? null,
      fullCatalog: `${baseUrl}/x402/catalog`,
    },
    repeating: REPEAT_RULE,
    limits: context.limits,
    errors: Object.fromEntries(CALL_ERRORS.map(({ status, ...error }) => [status, error])),
    links: {
      catalog: `${baseUrl}/x402/catalog`,
      capabilities: `${baseUrl}/api/auth/capabilities`,
      openapi: `${baseUrl}/openapi.json`,
      docs: `${baseUrl}/docs`,
      llms: `${baseUrl}/llms.txt`,
      ...(context.rails.x402 === null ? {} : { paymentManifest: `${baseUrl}/x402/payment-manifest.json` }),
      ...(context.rails.mpp === null ? {} : { mppCatalog: `${baseUrl}/mpp/catalog` }),
      ...(serves(context, 'GET', YIELD_MANIFEST) ? { yieldVault: baseUrl + YIELD_MANIFEST } : {}),
      ...(serves(context, 'GET', SOLANA_YIELD_MANIFEST)
        ? { yieldOnSolana: baseUrl + SOLANA_YIELD_MANIFEST }
        : {}),
    },
  };
}

/** The steps of a wallet, which needs no key; null while no chain takes payments. */
function byWallet(context: DiscoveryContext) {
  const { x402 } = context.rails;
  if (x402 === null) return null;
  const first = firstServiceByWallet(context);
  return {
    description:
      'In place of a key: a wallet that holds USDC signs the price of each call. No account, no gas.',
    networks: x402.networks,
    firstCall:
      first === null
        ? null
        : { service: first.path, priceUsd: first.priceUsd, program: walletProgramOf(first, context) },
    rules: walletRules(context),
  };
}

/** The steps of a wallet that speaks MPP; null while MPP is off. */
function byMpp(context: DiscoveryContext) {
  if (context.rails.mpp === null) return null;
  const first = firstServiceByMpp(context);
  return {
    description:
      'In place of a key: a wallet answers the challenge of an endpoint below /mpp/, by the Machine Payments Protocol.',
    methods: mppMethodsOf(context),
    endpoints: soldByMpp(context).map(({ path }) => `${context.baseUrl}/mpp/${path}`),
    firstCall:
      first === null
        ? null
        : {
            service: first.path,
            priceUsd: first.priceUsd,
            command: mppCommandOf(first, context),
            program: mppProgramOf(first, context),
          },
    rules: mppRules(context),
  };
}

interface Step {
  do: string;
  request: { method: string; path: string; headers?: Record<string, string>; body?: Record<string, unknown> };
  expect: { status: number; fields: readonly string[] };
}

function stepsOf(context: DiscoveryContext): Step[] {
  const first = firstService(context);
  const withKey = { 'X-API-KEY': '{{apiKey}}' };
  const steps: Step[] = [];
  if (context.trial !== null) {
    steps.push({
      do: `Get a free key with ${context.trial.creditsUsd} USD of credits. Keep it: it is shown once.`,
      request: { method: 'GET', path: '/api/m2m/credits/trial' },
      expect: { status: 200, fields: ['apiKey'] },
    });
  }
  steps.push({
    do: 'Choose a service whose `available` is true.',
    request: { method: 'GET', path: '/x402/catalog' },
    expect: { status: 200, fields: ['services'] },
  });
  if (first !== null) {
    steps.push({
      do: `Buy one call of ${first.path} for ${first.priceUsd} USD.`,
      request: {
        method: 'POST',
        path: `/x402/${first.path}`,
        headers: { ...withKey, 'Content-Type': 'application/json' },
        body: first.example,
      },
      expect: { status: 200, fields: ['success', 'provenance'] },
    });
  }
  if (serves(context, 'GET', '/api/keys/me')) {
    steps.push({
      do: 'See what is left and what was spent.',
      request: { method: 'GET', path: '/api/keys/me', headers: withKey },
      expect: { status: 200, fields: ['balanceUsd', 'spentUsd'] },
    });
  }
  return steps;
}
