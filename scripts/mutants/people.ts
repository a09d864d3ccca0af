/** Bugs in what an export shows of a person, and in what an erasure leaves. */
import type { MutantsOfFile } from '../mutant.ts';

const PERSON_TEST = 'apps/shop/test/people/person.test.ts';

export const PEOPLE_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/people/person.ts',
    tests: ['packages/core/src/people/person.test.ts', PERSON_TEST],
    bugs: [
      ['(?<![a-z0-9.!#$%&', '(?<![!#$%&'],
      ['bool_and(email = :email)', 'bool_or(email = :email)'],
      ['if (first === undefined) continue;', 'continue;'],
    ],
  },
  {
    file: 'packages/core/src/people/erasure.ts',
    tests: [PERSON_TEST],
    bugs: [
      ['if (obstacles.length > 0) return', 'if (obstacles.length > 99) return'],
      ['new Set([...begun.accounts, ...found.accounts])', 'new Set(found.accounts)'],
      ['await parts.forgetCustomer?.(customer);', 'customer.length;'],
      ['secrets.all.some((secret) => digests.has(digestOf(secret, email)))', 'digests.size > 0'],
    ],
  },
  {
    file: 'packages/core/src/people/erasure-list.ts',
    tests: [PERSON_TEST],
    bugs: [["if (text !== '' && !text.endsWith('\\n'))", 'if (text.length < 0)']],
  },
  {
    file: 'packages/core/src/cards/delivery/key-links.ts',
    tests: [PERSON_TEST],
    bugs: [[' || order.isErased)', ')']],
  },
  {
    file: 'packages/core/src/operator/act-routes.ts',
    tests: [PERSON_TEST],
    bugs: [['!/[^\\s@]@[^\\s@]+\\.[^\\s@]/.test(text)', 'text.length > 0']],
  },
];
