/** Figures as answers state them: no more digits than the source or the method means. */
import { type Answer, answer } from '@farebox/core/words/answer';

/** Digits of a statistic: more than its own error leaves, and enough to agree with a recomputation to a millionth. */
const STATISTIC_DIGITS = 8;
/** Digits of a price, a measurement or a place on the ground. */
const PRICE_DIGITS = 10;
/** Amounts keep their cents, however large they are. */
const LEAST_PLACES = 2;
const MOST_PLACES = 100;

/** A number to so many digits, and to the cent at least. */
function figure(value: number, digits: number): number {
  if (Number.isInteger(value) || !Number.isFinite(value)) return value;
  const places = digits - 1 - Math.floor(Math.log10(Math.abs(value)));
  return Number(value.toFixed(Math.min(MOST_PLACES, Math.max(LEAST_PLACES, places))));
}

/**
 * The fields of an answer with each number to so many digits, at any depth. Texts, whole numbers and amounts in base units stay
 * as they are.
 *
 * @param fields what JSON can hold
 */
function inFigures<Fields>(fields: Fields, digits: number): Fields {
  return JSON.parse(
    JSON.stringify(fields, (_name, value) => (typeof value === 'number' ? figure(value, digits) : value)),
  );
}

type Told = Parameters<typeof answer>[1];

/** Makes an answer of statistics, each to eight digits. */
export function statisticAnswer<Fields>(fields: Fields, told: Told): Answer<Fields> {
  return answer(inFigures(fields, STATISTIC_DIGITS), told);
}

/** Makes an answer of prices, amounts, measurements or places, each to ten digits. */
export function pricedAnswer<Fields>(fields: Fields, told: Told): Answer<Fields> {
  return answer(inFigures(fields, PRICE_DIGITS), told);
}
