import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import type { LawPageChanges } from '../law-page-changes.ts';
import { runContext } from '../run-context.fixture.ts';
import consultation from './compliance-consultation.ts';

interface Told {
  subjects: string[];
  jurisdictions: string[];
  applicableRegimes: {
    id: string;
    citation: string;
    url: string;
    inForce: boolean | null;
    appliesFrom: string | null;
    pageChangedOn: string | null;
    readOn: string;
    readAt: string[];
    threshold: { reached: boolean | null } | null;
  }[];
  licences: { jurisdiction: string }[];
  openQuestions: string[];
  notCovered: string[];
  asOf: string;
}

async function ask(body: Record<string, unknown>, day = '2026-11-22', lawPages?: LawPageChanges) {
  const made = await consultation.run(consultation.input.parse(consultation.adapt?.(body) ?? body), {
    ...runContext({}),
    lawPages,
    nowMs: () => Date.parse(`${day}T12:00:00Z`),
  });
  consultation.output.parse(made.fields);
  return { ...(made.fields as unknown as Told), notes: made.notes };
}

function refusal(code: string, covered: RegExp) {
  return (error: unknown) =>
    error instanceof ServiceFailure &&
    error.status === 422 &&
    error.code === code &&
    covered.test(error.message);
}

describe('compliance-consultation', () => {
  it('lists rules of each place with citation and address, licences and open questions', async () => {
    const told = await ask({ operationType: 'crypto-exchange', jurisdiction: 'EU, Singapore' });
    assert.deepEqual(told.jurisdictions, ['EU', 'SG']);
    const ids = told.applicableRegimes.map(({ id }) => id);
    assert(ids.includes('eu-mica-casp') && ids.includes('eu-tfr') && ids.includes('sg-psa'));
    assert(!ids.some((id) => id.startsWith('us-')));
    assert(
      told.applicableRegimes.every(({ citation, url }) => citation !== '' && url.startsWith('https://')),
    );
    assert(told.licences.some(({ jurisdiction }) => jurisdiction === 'SG'));
    assert(told.openQuestions.length > 0 && /^\d{4}-\d{2}-\d{2}$/.test(told.asOf));
  });

  it('says of a rule that does not apply yet that it does not', async () => {
    const { applicableRegimes } = await ask({ operationType: 'custody', jurisdiction: ['EU'] });
    assert.equal(applicableRegimes.find(({ id }) => id === 'eu-amlr')?.inForce, false);
    assert.equal(applicableRegimes.find(({ id }) => id === 'eu-mica-casp')?.inForce, true);
    // The day itself decides, and not the day on which the base was written.
    const later = await ask({ operationType: 'custody', jurisdiction: ['EU'] }, '2027-07-10');
    const regime = later.applicableRegimes.find(({ id }) => id === 'eu-amlr');
    assert.deepEqual([regime?.inForce, regime?.appliesFrom], [true, null]);
    assert(later.notes.some((note) => /223 days ago/.test(note)));
  });

  it('does not say whether a rule applies that an event may have brought forward', async () => {
    const { applicableRegimes } = await ask({ operationType: 'stablecoin issuance', jurisdiction: 'US' });
    const genius = applicableRegimes.find(({ id }) => id === 'us-genius');
    assert.equal(genius?.inForce, null);
    assert.match(genius?.appliesFrom ?? '', /^2027-01-18; or .*120 days/);
  });

  it('names the pages that each entry was held against, with the day', async () => {
    const { applicableRegimes } = await ask({ operationType: 'payments', jurisdiction: 'UK, US' });
    for (const { id, readOn, readAt } of applicableRegimes) {
      assert(readAt.length > 0 && readAt.every((page) => /^https?:/.test(page)), id);
      assert.match(readOn, /^\d{4}-\d{2}-\d{2}$/, id);
    }
  });

  it('says of a rule whose official page has changed that it has, once for a page of several rules', async () => {
    const body = { operationType: 'custody', jurisdiction: 'EU' };
    const url = 'https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32023R1114';
    const change = { firstReadAt: '2026-12-01T09:00:00.000Z', changedAt: '2027-02-03T23:59:00.000Z' };
    const elsewhere = 'https://law.example/not-asked-about';
    const told = await ask(body, '2027-02-04', {
      changed: async () => new Map([url, elsewhere].map((at) => [at, change] as const)),
    });
    const changed = told.applicableRegimes.filter(({ pageChangedOn }) => pageChangedOn !== null);
    assert.deepEqual(
      changed.map(({ id, pageChangedOn }) => [id, pageChangedOn]),
      [['eu-mica-casp', '2027-02-03']],
    );
    const notes = told.notes.filter((note) => note.includes('has changed'));
    assert.deepEqual(notes, [
      'The official page of eu-mica-casp has changed since it was read on 2026-12-01: another text was seen on 2027-02-03 at https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32023R1114. Read it before you rely on the entry.',
    ]);
    const several = await ask({ operationType: 'custody, stablecoins', jurisdiction: 'EU' }, '2027-02-04', {
      changed: async () => new Map([[url, change]]),
    });
    assert(several.notes.some((note) => note.includes('of eu-mica-casp, eu-mica-stablecoins has changed')));
  });

  it('says nothing of changes where nobody has looked, or nothing has changed', async () => {
    for (const lawPages of [undefined, { changed: async () => new Map() }]) {
      const told = await ask({ operationType: 'custody', jurisdiction: 'EU, US' }, '2026-11-29', lawPages);
      assert(told.applicableRegimes.every(({ pageChangedOn }) => pageChangedOn === null));
      assert(!told.notes.some((note) => note.includes('changed')));
    }
  });

  it('holds an amount against thresholds in its currency, and no other', async () => {
    const reached = async (amountUsd: number) => {
      const { applicableRegimes } = await ask({
        operationType: 'payments',
        jurisdiction: 'US,CA',
        details: { amountUsd },
      });
      return ['us-travel-rule', 'ca-pcmltfa'].map(
        (id) => applicableRegimes.find((rule) => rule.id === id)?.threshold?.reached,
      );
    };
    assert.deepEqual(await reached(3_000), [true, null]);
    assert.deepEqual(await reached(2_999.99), [false, null]);
  });

  it('answers different questions differently', async () => {
    const idsOf = async (operationType: string, jurisdiction: string) =>
      (await ask({ operationType, jurisdiction })).applicableRegimes.map(({ id }) => id).join();
    const all = await Promise.all([
      idsOf('custody', 'US'),
      idsOf('custody', 'UK'),
      idsOf('stablecoin issuance', 'US'),
      idsOf('privacy', 'EU'),
    ]);
    assert.equal(new Set(all).size, all.length);
  });

  it('says what it does not hold: a member state’s own law, a place, a detail', async () => {
    const told = await ask({
      operationType: 'crypto-exchange',
      jurisdiction: ['Germany', 'Atlantis'],
      details: { mood: 'good' },
    });
    assert.deepEqual(told.jurisdictions, ['EU']);
    assert.equal(told.notCovered.length, 2);
    assert(told.notes.some((note) => note.includes('details.mood')));
  });

  it('refuses what is outside the rule base, and says what is in it', async () => {
    await assert.rejects(
      ask({ operationType: 'deep-sea fishing', jurisdiction: 'EU' }),
      refusal('SUBJECT_NOT_COVERED', /crypto-exchange.*sanctions/),
    );
    await assert.rejects(
      ask({ operationType: 'custody', jurisdiction: 'Atlantis' }),
      refusal('JURISDICTION_NOT_COVERED', /Singapore/),
    );
    // Both are known, and not together.
    await assert.rejects(
      ask({ operationType: 'tax reporting', jurisdiction: 'JP' }),
      refusal('SUBJECT_NOT_COVERED', /tax-reporting/),
    );
  });

  it('takes the words of its clients', async () => {
    const body = { services: ['custody', 'payments'], jurisdiction: 'US' };
    assert.deepEqual((await ask(body)).subjects, ['custody', 'payments']);
  });
});
