import { createHash } from 'node:crypto';
import { sourceUnavailable } from '../../../../../core/src/words/failure.ts';
import type { ListedParty } from '../../../upstreams/adapters/published-list.ts';
import { addressKey, type ListName, type Lists } from '../../listed-parties.ts';
import { NOW_MS } from '../../run-context.fixture.ts';

/** For tests: an entry of a list. */
export function party(uid: string, name: string, more: Partial<ListedParty> = {}): ListedParty {
  return { uid, kind: 'individual', name, aliases: [], programs: ['TEST'], addresses: [], ...more };
}

/** For tests: lists with these entries, published the day before. A list that is `'old'` is beyond its bound. */
export function listsOf(given: Partial<Record<ListName, readonly ListedParty[] | 'old'>>): Lists {
  return {
    configured: Object.keys(given) as ListName[],
    async current(name) {
      const parties = given[name];
      if (parties === undefined || parties === 'old') {
        throw sourceUnavailable('ofac', 'upstream_down', `${name} is too old`);
      }
      const publishedAt = new Date(NOW_MS - 86_400_000).toISOString();
      const confirmedAt = new Date(NOW_MS).toISOString();
      return {
        name,
        title: `List ${name}`,
        publishedAt,
        confirmedAt,
        sha256: createHash('sha256').update(JSON.stringify(parties)).digest('hex'),
        parties,
        holdersOf: (address) =>
          parties.filter(({ addresses }) =>
            addresses.some((each) => addressKey(each.address) === addressKey(address)),
          ),
        source: {
          name: 'ofac',
          url: 'https://ofac.test/',
          asOf: publishedAt,
          retrievedAt: confirmedAt,
          cached: true,
          sandbox: false,
        },
      };
    },
  };
}
