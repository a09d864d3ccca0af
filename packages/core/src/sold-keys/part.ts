import type { Keys } from '../keys/keys.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { AnswerSeal } from '../paid-call/sealed-answer.ts';
import type { House, Part } from '../part.ts';
import type { KeySales } from '../service/define.ts';
import { SOLD_KEYS } from './declared.ts';
import { createSoldKeyMetrics } from './metrics.ts';
import { SoldKeys } from './sold-keys.ts';

export { SOLD_KEYS };

/** Keys that agents buy with a single call, each with what was paid for it. */
export function openSoldKeys(
  house: House,
  settings: { reconcileIntervalMs: number; newCardMicrosPerDay: bigint | null },
  needs: { ledger: Ledger; keys: Keys; seal: AnswerSeal },
): Part {
  const { logger, nowMs } = house;
  const metrics = createSoldKeyMetrics();
  const sold = new SoldKeys(house.pools.sql, {
    ...needs,
    nowMs,
    newCardMicrosPerDay: settings.newCardMicrosPerDay,
    report(outcome, callId) {
      metrics.soldKey(outcome);
      if (outcome === 'taken_back') logger.error({ callId }, 'a key was taken back whose price went back');
      else if (outcome !== 'closed') logger.warn({ callId, outcome }, 'sold key');
    },
  });
  return {
    name: 'sold-keys',
    creditServices: ['instant-api-key'],
    metrics: metrics.registry,
    queues: [sold.queue],
    capabilities: [
      {
        name: 'keySales',
        configured: true,
        setBy: 'it needs no variable',
        forPayer: (proof): KeySales => {
          const payerAccount = proof.by === 'account' ? proof.accountId : HOUSE_ACCOUNTS.chain_clearing;
          return { keyFor: (sale) => sold.keyFor({ ...sale, payerAccount }) };
        },
        beforeAnswer: (callId) => sold.grant(callId),
      },
    ],
    jobs: [
      {
        name: 'finish-sold-keys',
        intervalMs: settings.reconcileIntervalMs,
        run: async () => void (await sold.finish()),
      },
    ],
  };
}
