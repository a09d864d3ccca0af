/** Looks at what people rely on: the documents that a buyer is shown, and who may work at the operator's page. */
import { LEGAL_NAMES, LEGAL_TITLES, type Legal } from '@farebox/core/words/legal';
import { z } from 'zod';
import { type Finding, findingsOf, type Look } from './finding.ts';

/**
 * Whether each of the operator's documents is there, and answers where it is a link.
 *
 * @param options.needed whether somebody asks for them already: a card provider does
 */
export function lookAtDocuments({ legal, needed }: { legal: Legal; needed: boolean }): Look[] {
  const says = findingsOf('your documents');
  const missing = LEGAL_NAMES.filter((name) => legal[name] === null);
  const shown = LEGAL_NAMES.filter((name) => legal[name] !== null);
  const named = (names: readonly string[]) => names.map((name) => name.toUpperCase()).join(', ');
  const all: Look = {
    step: 'your documents',
    async look() {
      if (missing.length === 0) return says.fine('buyers are shown all four');
      const told = `buyers are not shown ${named(missing)}`;
      const mend = 'Name each by a link or a file; your card provider and your law ask for them.';
      return needed ? says.mend(told, mend) : says.note(told, mend);
    },
  };
  return [
    all,
    ...shown.flatMap((name): Look[] => {
      const document = legal[name];
      if (document?.kind !== 'url') return [];
      return [
        {
          step: 'your documents',
          async look(signal): Promise<Finding> {
            const { ok, status, body } = await fetch(document.url, { signal });
            await body?.cancel();
            return ok
              ? says.fine(`${LEGAL_TITLES[name]} is there`)
              : says.mend(
                  `${name.toUpperCase()} leads to an answer of ${status}`,
                  'Name an address that everybody can read.',
                );
          },
        },
      ];
    }),
  ];
}

const discovery = z.object({ issuer: z.string(), authorization_endpoint: z.string() });

/** Whether operators sign in at a provider that can be reached, and whether tokens are still taken beside it. */
export function lookAtOperators({ issuer, tokens }: { issuer: string | null; tokens: number }): Look {
  const says = findingsOf('operators');
  return {
    step: 'operators',
    async look(signal) {
      if (issuer === null)
        return tokens === 0
          ? says.note('there is no operator’s page, and nobody can refund', 'Set ADMIN_TOKENS.')
          : says.note(
              'operators have tokens, and no sign-in of their own',
              'Set ADMIN_OIDC_ISSUER and ADMIN_ROLES once you are several.',
            );
      const at = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
      const answer = await fetch(at, { signal });
      if (!answer.ok)
        return says.mend(`the sign-in provider answers ${answer.status}`, 'Compare ADMIN_OIDC_ISSUER.');
      const told = discovery.safeParse(await answer.json());
      if (!told.success || told.data.issuer !== issuer)
        return says.mend(
          'the sign-in provider names another issuer',
          'Set ADMIN_OIDC_ISSUER to the address that the provider calls itself by.',
        );
      return tokens === 0
        ? says.fine('operators sign in at a provider, and no token is configured')
        : says.note(
            `operators sign in at a provider, and ${tokens === 1 ? 'a token is' : `${tokens} tokens are`} configured beside it`,
            'Keep one for emergencies, and turn tokens off on the operator’s page.',
          );
    },
  };
}
