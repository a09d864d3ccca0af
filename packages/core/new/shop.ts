import type { ConfigOf } from '@farebox/core/config';
import { DATABASE } from '@farebox/core/db/declared';
import { assemble, type HouseNeeds, openHouse } from '@farebox/core/house';
import { KEYS, openKeys } from '@farebox/core/keys/part';
import { createLedger } from '@farebox/core/ledger/ledger';
import { createCallMetrics } from '@farebox/core/paid-call/metrics';
import { openSales, openX402Door, PAID_CALL } from '@farebox/core/paid-call/part';
import { createAnswerSeal } from '@farebox/core/paid-call/sealed-answer';
import type { Part } from '@farebox/core/part';
import { creditsRail, NO_DEBTS } from '@farebox/core/rails/credits/rail';
import { SECRETS } from '@farebox/core/secrets/part';
import { serve } from '@farebox/core/serve';
import { defineService } from '@farebox/core/service/define';
import { NO_SOURCES } from '@farebox/core/service/sources';
import { answer } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';

const squareRoot = defineService({
  path: 'square-root',
  name: 'Square Root',
  tag: 'Arithmetic',
  priceUsd: '0.01',
  summary: 'The square root of a number.',
  input: z.object({ of: z.number().min(-1e9).max(1e9).describe('Any number, without a unit') }),
  output: z.object({ root: z.number().describe('Its square root, without a unit') }),
  example: { of: 2 },
  async run({ of }) {
    if (of < 0) throw noAnswer('NO_REAL_ROOT', 'A negative number has no real square root.', 'of');
    return answer({ root: Math.sqrt(of) }, { method: 'IEEE 754 square root.', sources: [] });
  },
});

const DECLARED = [DATABASE, SECRETS, KEYS, PAID_CALL] as const;

function createApp({ config, ...given }: HouseNeeds & { config: ConfigOf<typeof DECLARED> }) {
  const house = openHouse(config.house, given);
  const secrets = config.secrets.secrets.reveal().versions;
  const ledger = createLedger(house.pools, house.nowMs);
  const keyed = openKeys(house, config.keys, { ledger, secrets });
  const { keys } = keyed;
  const credits = creditsRail(house, { keys, debts: NO_DEBTS, walletsPay: () => false, chargesCards: false });
  const sales = openSales(house, config.paidCall.settings, {
    ledger,
    seal: createAnswerSeal(secrets),
    metrics: createCallMetrics(),
    sources: NO_SOURCES,
    receiptsAt: '/receipts',
    railsOnChains: [],
    capable: () => parts,
    keyUsed: () => {},
  });
  const parts: Part[] = [
    sales,
    keyed,
    openX402Door(house, { rails: [credits], sales }),
  ];
  return assemble(house, config.house, parts, []);
}

const tags = { Arithmetic: 'Calculations with numbers.' };
serve({ declared: DECLARED, createApp, services: () => [squareRoot], tags, version: '1.0.0' }, process.env);
