import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { covered, jurisdictionOf, rulesFor, subjectsOf } from './consult.ts';
import { JURISDICTIONS, RULES, RULES_AS_OF, SUBJECTS } from './rules.ts';

describe('the rule base', () => {
  it('gives each rule a citation, an address and a date that exists', () => {
    const ids = new Set<string>();
    for (const { id, citation, url, since, trigger, obligations, jurisdiction, subjects } of RULES) {
      assert(!ids.has(id), `${id} stands twice`);
      ids.add(id);
      // A law, regulation, rule, notice or judgment has a number, or a year.
      assert.match(citation, /\d/, id);
      assert.match(url, /^https:\/\/[a-z0-9.-]+\.[a-z]{2,}(\/\S*)?$/, id);
      const day = new Date(`${since}T00:00:00Z`);
      assert.equal(day.toISOString().slice(0, 10), since, `${id}: ${since}`);
      assert(since <= RULES_AS_OF, id);
      assert(trigger.length > 20 && obligations.length > 0, id);
      assert(jurisdiction in JURISDICTIONS && subjects.every((subject) => subject in SUBJECTS), id);
    }
  });

  it('holds something of every subject and jurisdiction that it says it covers', () => {
    for (const subject of Object.keys(SUBJECTS)) {
      assert(
        RULES.some(({ subjects }) => (subjects as readonly string[]).includes(subject)),
        subject,
      );
      assert(covered().subjects.includes(subject));
    }
    for (const place of Object.keys(JURISDICTIONS)) {
      assert(
        RULES.some(({ jurisdiction }) => jurisdiction === place),
        place,
      );
    }
  });
});

describe('what an operation is taken for', () => {
  const asked: readonly (readonly [string, readonly string[]])[] = [
    ['crypto-exchange', ['crypto-exchange']],
    ['Cryptocurrency exchange', ['crypto-exchange']],
    ['money_transmission', ['payments']],
    ['cross-border payments', ['payments']],
    ['custodial wallet service', ['custody']],
    ['stablecoin issuance', ['stablecoin-issuance']],
    ['GDPR', ['personal-data']],
    ['sanctions screening', ['sanctions']],
    ['OTC trading and custody', ['custody', 'crypto-exchange']],
    ['deep-sea fishing', []],
    ['employment of minors', []],
  ];
  for (const [operation, subjects] of asked) {
    it(`${operation}: ${subjects.join(', ') || 'nothing that it holds'}`, () => {
      assert.deepEqual(subjectsOf(operation), subjects);
    });
  }

  it('reads jurisdictions by name, short form and membership', () => {
    assert.equal(jurisdictionOf(' united States').jurisdiction, 'US');
    assert.deepEqual(jurisdictionOf('Germany'), { asked: 'Germany', jurisdiction: 'EU', memberState: true });
    assert.equal(jurisdictionOf('Atlantis').jurisdiction, null);
  });

  it('lists the rules of the place, federal ones for New York too, and the international ones last', () => {
    const ids = rulesFor(['crypto-exchange'], ['US-NY']).map(({ id }) => id);
    assert(ids.includes('us-ny-bitlicense') && ids.includes('us-msb') && !ids.includes('eu-mica-casp'));
    assert.equal(ids.at(-1), 'fatf-r15-r16');
  });
});
