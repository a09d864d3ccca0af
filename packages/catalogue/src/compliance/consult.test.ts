import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { covered, inForceOn, jurisdictionOf, rulesFor, subjectsOf } from './consult.ts';
import { followedPage, JURISDICTIONS, type Rule, SUBJECTS } from './rule.ts';
import { RULES, RULES_AS_OF } from './rules.ts';

/** YYYY, YYYY-MM or YYYY-MM-DD of a day, month or year that exists. */
const isDate = (text: string) =>
  /^\d{4}(-\d{2}(-\d{2})?)?$/.test(text) &&
  new Date(`${text}${'-01'.repeat((10 - text.length) / 3)}T00:00:00Z`).toISOString().startsWith(text);

describe('the rule base', () => {
  it('gives each rule a citation, an address, a date that exists, and the pages it was held against', () => {
    const ids = new Set<string>();
    for (const rule of RULES) {
      const { id, citation, url, since, begins, trigger, obligations, jurisdiction, subjects, read } = rule;
      assert(!ids.has(id), `${id} stands twice`);
      ids.add(id);
      // A law, regulation, rule, notice or judgment has a number, or a year.
      assert.match(citation, /\d/, id);
      assert.match(url, /^https:\/\/[a-z0-9.-]+\.[a-z]{2,}(\/\S*)?$/, id);
      assert(isDate(since) && since <= RULES_AS_OF, `${id}: ${since}`);
      assert(begins === undefined || (isDate(begins.date) && begins.date.length === 10), id);
      assert(read.at.length > 0 && new Set(read.at).size === read.at.length, id);
      for (const page of read.at) assert.equal(new URL(page).href.length > 0, true, id);
      assert(isDate(read.on) && read.on.length === 10 && read.on <= RULES_AS_OF, id);
      assert(trigger.length > 20 && obligations.length > 0, id);
      assert(jurisdiction in JURISDICTIONS && subjects.every((subject) => subject in SUBJECTS), id);
    }
  });

  it('leads to the law’s own site, or its authority’s, for every rule', () => {
    const official =
      /(^|\.)(gov|gov\.(uk|au|sg|hk|ae)|go\.jp|admin\.ch|gc\.ca|canada\.ca|europa\.eu|house\.gov|fatf-gafi\.org|centralbank\.ae)$/;
    const pages = RULES.flatMap(({ id, url, amendments = url }) =>
      [url, amendments].map((at) => ({ id, at })),
    );
    const elsewhere = pages.filter(({ at }) => !official.test(new URL(at).hostname));
    assert.deepEqual(
      elsewhere.map(({ id, at }) => `${id}: ${at}`),
      [],
    );
  });

  it('follows no page of a text as it was on one day, which never changes', () => {
    const frozen = RULES.map(followedPage).filter((at) =>
      /\/oj(\/|$)|legislation\.gov\.uk.*\/(made|enacted|\d{4}-\d{2}-\d{2})$/.test(at),
    );
    assert.deepEqual(frozen, []);
    assert.equal(followedPage({ url: 'a' }), 'a');
    assert.equal(followedPage({ url: 'a', amendments: 'b' }), 'b');
  });

  it('says whether a rule applies by the day it is asked, and not what it does not follow', () => {
    const dated: Rule = { ...(RULES[0] as Rule), begins: { date: '2027-07-10' } };
    assert.deepEqual(
      ['2027-07-09', '2027-07-10'].map((day) => inForceOn(dated, day)),
      [false, true],
    );
    const conditional: Rule = { ...dated, begins: { date: '2027-01-18', orEarlier: 'some event' } };
    assert.deepEqual(
      ['2027-01-17', '2027-01-18'].map((day) => inForceOn(conditional, day)),
      [null, true],
    );
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

  it('holds the licences of states of America beside federal law, and tells California from Canada', () => {
    for (const [asked, own] of [
      ['California', 'us-ca-dfal'],
      ['US-LA', 'us-la-vcba'],
      ['Illinois', 'us-il-dacpa'],
    ] as const) {
      const { jurisdiction } = jurisdictionOf(asked);
      assert(jurisdiction !== null);
      const ids = rulesFor(['payments'], [jurisdiction]).map(({ id }) => id);
      assert(ids.includes(own) && ids.includes('us-msb') && !ids.includes('us-ny-bitlicense'), asked);
    }
    assert.equal(jurisdictionOf('CA').jurisdiction, 'CA');
  });

  it('lists the rules of the place, federal ones for New York too, and the international ones last', () => {
    const ids = rulesFor(['crypto-exchange'], ['US-NY']).map(({ id }) => id);
    assert(ids.includes('us-ny-bitlicense') && ids.includes('us-msb') && !ids.includes('eu-mica-casp'));
    assert.equal(ids.at(-1), 'fatf-r15-r16');
  });
});
