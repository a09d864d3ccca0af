import type { FastifyReply, FastifyRequest } from 'fastify';
import type { House, Part } from '../part.ts';
import type { OperatorToken } from './credentials.ts';
import { REFUSALS_PER_MINUTE } from './credentials.ts';
import { type OperatorParts, openOperatorDoor } from './operator.ts';

/** What an operator sees and does. @param settings.tokens none: there is neither page nor job */
export function openOperator(
  house: House,
  settings: { tokens: readonly OperatorToken[]; trialBudgetMicrosPerDay: bigint | null },
  needs: Pick<
    OperatorParts,
    'ledger' | 'keys' | 'cards' | 'collectDebts' | 'creditServices' | 'upstreamHealth' | 'dataLists' | 'gas'
  > & { sendPage(request: FastifyRequest, reply: FastifyReply): FastifyReply },
): Part {
  const { pools, logger, addressOf, nowMs } = house;
  const operator = openOperatorDoor(settings.tokens, {
    ...needs,
    sql: pools.sql,
    patient: pools.patient,
    trialBudgetMicrosPerDay: settings.trialBudgetMicrosPerDay,
    refusalLimit: house.limitByAddress(REFUSALS_PER_MINUTE),
    explainAddress: (request) => house.addresses.explain(request.raw),
    ...{ addressOf, logger, nowMs },
  });
  if (operator === null) return { name: 'operator' };
  return { name: 'operator', routes: operator.routes, jobs: [operator.job] };
}
