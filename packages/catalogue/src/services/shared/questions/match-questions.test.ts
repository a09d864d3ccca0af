import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compareQuestions, matchQuestions } from './match-questions.ts';
import { readQuestion } from './read-question.ts';

const YEAR_END = '2026-12-31T23:59:00Z';

function compare(a: string, b: string, closesA: string | null = YEAR_END, closesB: string | null = YEAR_END) {
  return compareQuestions(readQuestion(a, closesA), readQuestion(b, closesB));
}

describe('the same bet in other words', () => {
  for (const [a, b] of [
    ['Will Bitcoin be above $150,000 on December 31, 2026?', 'BTC above $150k on Dec 31, 2026'],
    [
      'Will the Fed cut rates by 25 bps in December 2026?',
      'Federal Reserve to cut rates by 0.25% in December 2026?',
    ],
    ['US recession by December 31, 2026?', 'Will the U.S. have a recession before Jan 1, 2027?'],
    ['US recession in 2026?', 'Will there be a recession in the United States before 2027?'],
    ["Won't the GOP win the House?", 'Will Republicans not win the House?'],
    ['Will named storms be at least 1.5 million?', 'Named storms ≥ 1,500,000'],
  ] as const) {
    it(`${a} = ${b}`, () => {
      assert.deepEqual(compare(a, b), { score: 1, confidence: 'high', doubts: [] });
    });
  }
});

describe('another bet that sounds the same is no match', () => {
  for (const [what, a, b] of [
    [
      'strike',
      'Will Bitcoin be above $150,000 on December 31?',
      'Will Bitcoin be above $140,000 on December 31?',
    ],
    ['scale', 'Will X sell 1.5 million cars?', 'Will X sell 1.5 billion cars?'],
    ['unit', 'Fed cut of 25 bps in December?', 'Fed cut of 25% in December?'],
    ['range', 'Will CPI be between 3% and 4%?', 'Will CPI be above 3%?'],
    [
      'day',
      'Will Bitcoin be above $150,000 on December 31?',
      'Will Bitcoin be above $150,000 on December 30?',
    ],
    ['deadline', 'US recession by June 30, 2026?', 'US recession by December 31, 2026?'],
    ['year', 'Will Spain win the World Cup in 2026?', 'Will Spain win the World Cup in 2030?'],
    [
      'direction',
      'Will Bitcoin be above $90,000 on December 31?',
      'Will Bitcoin be below $90,000 on December 31?',
    ],
    ['cut or hike', 'Will the Fed cut rates in December 2026?', 'Will the Fed hike rates in December 2026?'],
    ['negation', 'Will the Fed cut rates in 2026?', 'Will the Fed not cut rates in 2026?'],
    ['contracted negation', 'Will the bill pass in 2026?', "Won't the bill pass in 2026?"],
    ['subject', 'Will it rain in Paris?', 'Will GPT-6 be released?'],
  ] as const) {
    it(what, () => assert.equal(compare(a, b), null));
  }
});

describe('what may be another bet is never of high confidence', () => {
  for (const [what, a, b, expected] of [
    ['person', 'Will Trump win the 2028 election?', 'Will Biden win the 2028 election?', 'low'],
    [
      'version',
      'Will the GPT-5 model be released in 2026?',
      'Will the GPT-6 model be released in 2026?',
      'low',
    ],
    [
      'touch or end',
      'Will Bitcoin reach $150k by December 31, 2026?',
      'Bitcoin above $150k on December 31, 2026',
      'low',
    ],
    [
      'strike in one only',
      'Will US inflation rise above 3% in 2026?',
      'Will US inflation rise in 2026?',
      'low',
    ],
    ['boundary', 'Will CPI be above 3%?', 'Will CPI be 3% or higher?', 'medium'],
    [
      'day or period',
      'Will gold be above $5,000 in 2026?',
      'Will gold be above $5,000 on December 31, 2026?',
      'medium',
    ],
    [
      'verb',
      'Will the Senate approve the Clarity crypto bill?',
      'Will the Senate reject the Clarity crypto bill?',
      'medium',
    ],
    [
      'one more condition',
      'Will JD Vance win the US presidential election of 2028?',
      'Will JD Vance win the popular vote of the US presidential election of 2028?',
      'medium',
    ],
  ] as const) {
    it(what, () => assert.equal(compare(a, b)?.confidence, expected));
  }

  it('closing days apart', () => {
    const question = 'Will CPI be above 3%?';
    assert.equal(
      compare(question, question, '2026-12-10T00:00:00Z', '2026-12-12T00:00:00Z')?.confidence,
      'high',
    );
    assert.equal(
      compare(question, question, '2026-12-10T00:00:00Z', '2026-12-12T00:00:01Z')?.confidence,
      'low',
    );
    assert.equal(compare(question, question, null, YEAR_END)?.confidence, 'low');
  });
});

it('takes the year of a date without one from the closing time', () => {
  const question = readQuestion('Above $90,000 on January 2?', '2027-01-02T17:00:00Z');
  assert.equal(question.date?.last, Date.UTC(2027, 0, 2) / 86_400_000);
  assert.deepEqual([...question.strikes], ['90000']);
});

it('pairs each question once, with its best counterpart', () => {
  const read = (text: string) => readQuestion(text, YEAR_END);
  const pairs = matchQuestions(
    ['Ethereum above $5k on Dec 31?', 'Ethereum above $4k on Dec 31?', 'Will it snow in Rome?'],
    ['Will Ethereum be above $4,000 on December 31?', 'Will Ethereum be above $5,000 on December 31?'],
    read,
    read,
  );
  assert.deepEqual(
    pairs.map(({ a, b }) => [a, b]),
    [
      ['Ethereum above $5k on Dec 31?', 'Will Ethereum be above $5,000 on December 31?'],
      ['Ethereum above $4k on Dec 31?', 'Will Ethereum be above $4,000 on December 31?'],
    ],
  );
});
