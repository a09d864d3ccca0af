import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Configured } from '../declared.ts';
import type { House, Part } from '../part.ts';
import { REFUSALS_PER_MINUTE } from './credentials.ts';
import { OPERATOR } from './declared.ts';
import { type OperatorParts, openOperatorDoor } from './operator.ts';
import { owedBy } from './owed.ts';
import { SIGN_INS_PER_MINUTE } from './sign-in/routes.ts';

export { OPERATOR };

/** Opens the operator's page, its routes and jobs. Without a token and a provider there is neither page nor job. */
export function openOperator(
  house: House,
  { secrets, settings }: Configured<typeof OPERATOR.variables>,
  needs: Pick<
    OperatorParts,
    'books' | 'ledger' | 'keys' | 'payments' | 'stock' | 'trialBudgetMicrosPerDay' | 'gas'
  > & {
    sources: Pick<
      OperatorParts,
      'upstreamHealth' | 'sourceTerms' | 'sourceCosts' | 'sourceCostsOn' | 'dataLists' | 'lawPages'
    >;
    parts(): readonly Part[];
    cardMoney: {
      cards: OperatorParts['cards'];
      /** Collects an account's debt within the commit that credited the account; the reason stands in the ledger. */
      collectAfter(reason: string): OperatorParts['collectDebts'];
    };
    pages: { send(request: FastifyRequest, reply: FastifyReply, file: string): FastifyReply };
  },
): Part {
  const { pools, logger, addressOf, nowMs } = house;
  const operator = openOperatorDoor(() => secrets.reveal().tokens, {
    ...needs,
    ...needs.sources,
    secondAboveMicros: settings.secondAboveMicros,
    serviceCosts: settings.serviceCosts,
    creditServices: () => needs.parts().flatMap(({ creditServices = [] }) => creditServices),
    cards: needs.cardMoney.cards,
    collectDebts: needs.cardMoney.collectAfter('credit by an operator to'),
    sendPage: (request, reply) => needs.pages.send(request, reply, 'admin.html'),
    shut: () => needs.parts().flatMap((part) => part.shut?.() ?? [])[0] ?? null,
    rails: () => needs.parts().flatMap((part) => part.railStandings?.() ?? []),
    owed: (page) => owedBy(needs.parts(), page),
    sql: pools.sql,
    patient: pools.patient,
    distribution: pools.distribution,
    signIn: {
      issuer: settings.oidcIssuer,
      clientId: settings.oidcClientId,
      scopes: settings.oidcScopes,
      rules: settings.roles,
      idleMs: settings.sessionIdleMinutes * 60_000,
      longestMs: settings.sessionHours * 3_600_000,
      retentionDays: settings.sessionRetentionDays,
    },
    signInSecret: () => secrets.reveal().oidcClientSecret,
    baseUrl: house.baseUrl,
    refusalLimit: house.limitByAddress(REFUSALS_PER_MINUTE),
    signInLimit: house.limitByAddress(SIGN_INS_PER_MINUTE),
    explainAddress: (request) => house.addresses.explain(request.raw),
    addressOf,
    logger,
    nowMs,
  });
  if (operator === null) return { name: 'operator' };
  return {
    name: 'operator',
    operations: [{ operations: [], untold: [{ path: '/admin*', because: 'It is for the operator.' }] }],
    routes: operator.routes,
    jobs: [operator.job],
  };
}
