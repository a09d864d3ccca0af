import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ListedParty } from '../../../upstreams/adapters/published-list.ts';
import { listsOf, party } from './lists.fixture.ts';
import { type KnownOfParty, nameMatches } from './name-screening.ts';

const WHOLE = 'Vladimir Vladimirovich Putin';

/** How the one entry of a list matches, and what clears it. */
async function matched(entry: Partial<ListedParty>, known: Partial<KnownOfParty>, asked = 'Vladimir Putin') {
  const list = await listsOf({ 'ofac-sdn': [party('9', 'PUTIN, Vladimir Vladimirovich', entry)] }).current(
    'ofac-sdn',
  );
  const [match] = await nameMatches(list, asked, { birthDate: null, kind: null, ...known });
  return [match?.strength, match?.clearedBy];
}

describe('what clears an entry with a similar name', () => {
  it('is a whole date of birth more than two years from every one that it states', async () => {
    const known = { birthDate: '1960-10-07' };
    for (const date of ['1952-10-07', '1958-10-06', '1962-10-09'])
      assert.deepEqual(await matched({ birthDates: [date] }, known), ['review', 'birthDate'], date);
    for (const birthDates of [['1958-10-08'], ['1962-10-06'], ['1952-10-07', null], [null], []]) {
      assert.deepEqual(await matched({ birthDates }, known), ['review', null], `${birthDates}`);
    }
  });

  it('is the other kind, where the list states one', async () => {
    assert.deepEqual(await matched({}, { kind: 'entity' }), ['review', 'entityType']);
    assert.deepEqual(await matched({ kindUnstated: true }, { kind: 'entity' }), ['review', null]);
    assert.deepEqual(await matched({}, { kind: 'person' }), ['review', null]);
    assert.deepEqual(await matched({}, { kind: null }), ['review', null]);
  });

  it('takes a strong match down to one for review, and no further', async () => {
    assert.deepEqual(await matched({}, {}, WHOLE), ['strong', null]);
    assert.deepEqual(await matched({ birthDates: ['1952-10-07'] }, { birthDate: '1990-01-01' }, WHOLE), [
      'review',
      null,
    ]);
    assert.deepEqual(await matched({}, { kind: 'entity' }, WHOLE), ['review', null]);
  });
});
