import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ServiceFailure } from '../failure.ts';
import { runContext } from '../run-context.fixture.ts';
import consultation from './compliance-consultation.ts';

interface Told {
  subjects: string[];
  jurisdictions: string[];
  applicableRegimes: {
    id: string;
    citation: string;
    url: string;
    inForce: boolean;
    threshold: { reached: boolean | null } | null;
  }[];
  licences: { jurisdiction: string }[];
  openQuestions: string[];
  notCovered: string[];
  asOf: string;
}

async function ask(body: Record<string, unknown>) {
  const made = await consultation.run(
    consultation.input.parse(consultation.adapt?.(body) ?? body),
    runContext({}),
  );
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
