/** The state of the prediction markets at a time: which are open, their quotes, and how they ended. */
import { createHash } from 'node:crypto';
import type { Market } from './market.ts';
import { gaussian, keyOf, smooth, uniform } from './noise.ts';
import { type Occasion, type Outcome, QUESTIONS, type Question, type Venue } from './prediction-questions.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365.25 * DAY_MS;
/** Quotes change only once in this time, so that two requests in a row mostly get the same quote. */
const QUOTE_MS = 15_000;
const BOOK_LEVELS = 8;
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

/** A question, asked for one period on one venue. */
export interface PredictionEvent {
  venue: Venue;
  question: Question;
  /** The place in `QUESTIONS` and the number of the period since 1970. Together they identify the event on its venue. */
  questionIndex: number;
  periodIndex: number;
  startMs: number;
  endMs: number;
  title: string;
  occasion: Occasion;
  markets: readonly PredictionMarket[];
}

/** One yes/no market. */
export interface PredictionMarket {
  event: PredictionEvent;
  index: number;
  outcome: Outcome;
  title: string;
  /** The meaning of yes, such as "Above $95,000". It is "Yes" if the event has one market only. */
  label: string;
  /** The bounds in the unit of the question; null where there is no bound. */
  low: number | null;
  high: number | null;
}

/** The quote of a market. Prices are whole cents from 1 to 99. */
export interface Quote {
  bidCents: number;
  askCents: number;
  lastCents: number;
  volumeUsd: number;
  volume24hUsd: number;
  liquidityUsd: number;
  openInterestUsd: number;
}

export interface Level {
  cents: number;
  size: number;
}

export interface Predictions {
  /** The events of a venue in the periods that are running at a time, and the closed ones of the periods just before. */
  events(venue: Venue, atMs: number): readonly PredictionEvent[];
  quote(market: PredictionMarket, atMs: number): Quote;
  /** The bids and asks for yes, the best price first. */
  book(market: PredictionMarket, atMs: number): { bids: Level[]; asks: Level[] };
  /** The mid price of yes from 0 to 1. It may be asked for past times. */
  midpoint(market: PredictionMarket, atMs: number): number;
  /** The outcome of a market; null while it is open. */
  result(market: PredictionMarket, atMs: number): 'yes' | 'no' | null;
  /** A digest of 64 hexadecimal digits that identifies a market and a purpose. */
  digest(market: PredictionMarket, purpose: string): string;
}

export function openPredictions(market: Market): Predictions {
  const { seed } = market;
  let known: { at: string; venue: Venue; events: PredictionEvent[] }[] = [];

  /** The mean and the standard deviation, expected at a time, of the deciding value or, for a price, of its logarithm. */
  function expectation(event: PredictionEvent, atMs: number): { mean: number; deviation: number } {
    const { measure, id } = event.question;
    const leftMs = Math.max(0, event.endMs - atMs);
    if (measure.kind === 'price') {
      const coin = market.coin(measure.coin);
      if (coin === undefined) throw new Error(`no coin ${measure.coin}`);
      return {
        mean: Math.log(market.priceUsd(coin, Math.min(atMs, event.endMs))),
        deviation: market.volatility(coin) * Math.sqrt(leftMs / YEAR_MS),
      };
    }
    const key = keyOf(seed, `question:${id}:${event.periodIndex}`);
    const until = Math.min(atMs, event.endMs);
    const news =
      0.45 * smooth(key, until / (18 * DAY_MS)) +
      0.12 * smooth(key ^ 1, until / (3 * DAY_MS)) +
      0.03 * smooth(key ^ 2, until / (5 * HOUR_MS));
    return {
      mean: measure.mean + measure.deviation * news,
      deviation: measure.deviation * Math.sqrt(leftMs / (event.endMs - event.startMs)),
    };
  }

  /**
   * The chance of yes as one venue sees it. The venues differ by a few hundredths: one part of the difference lasts for the whole
   * period, the other changes within hours.
   */
  function chance(of: PredictionMarket, atMs: number): number {
    const { mean, deviation } = expectation(of.event, atMs);
    const price = of.event.question.measure.kind === 'price';
    const key = keyOf(seed, `view:${of.event.venue}:${of.event.question.id}`);
    const view = 0.05 * gaussian(key, of.event.periodIndex) + 0.05 * smooth(key, atMs / (9 * HOUR_MS));
    const below = (bound: number | null, whenNone: number): number => {
      if (bound === null) return whenNone;
      const at = price ? Math.log(bound) : bound;
      return deviation === 0 ? Number(mean < at) : normalCumulative((at - mean) / deviation - view);
    };
    return below(of.high, 1) - below(of.low, 0);
  }

  function at15s(atMs: number): number {
    return Math.floor(atMs / QUOTE_MS) * QUOTE_MS;
  }

  function touch(of: PredictionMarket, atMs: number): { bidCents: number; askCents: number } {
    const then = at15s(Math.min(atMs, of.event.endMs - 1));
    const key = keyOf(seed, `touch:${of.event.venue}:${of.event.question.id}:${of.index}`);
    const width = 1 + Math.floor(uniform(key, Math.floor(then / (2 * HOUR_MS))) * 3);
    const bidCents = Math.max(1, Math.min(99 - width, Math.round(chance(of, then) * 100 - width / 2)));
    return { bidCents, askCents: bidCents + width };
  }

  function result(of: PredictionMarket, atMs: number): 'yes' | 'no' | null {
    return atMs < of.event.endMs ? null : chance(of, of.event.endMs) > 0.5 ? 'yes' : 'no';
  }

  function eventOf(
    venue: Venue,
    question: Question,
    questionIndex: number,
    periodIndex: number,
  ): PredictionEvent | null {
    const words = question[venue];
    if (words === undefined) return null;
    const startMs = periodStartMs(question.period, periodIndex);
    const endMs = periodStartMs(question.period, periodIndex + 1);
    const occasion = occasionOf(question.period, startMs, endMs);
    const markets: PredictionMarket[] = [];
    const event: PredictionEvent = {
      venue,
      question,
      questionIndex,
      periodIndex,
      startMs,
      endMs,
      title: words.title(occasion),
      occasion,
      markets,
    };
    for (const [index, outcome] of question.outcomes.entries()) {
      const low = boundOf(question, outcome.low, startMs);
      const high = boundOf(question, outcome.high, startMs);
      const bound = question.outcomes.length === 1 ? '' : phrase(question, low, high);
      markets.push({
        event,
        index,
        outcome,
        title: words.market(occasion, bound),
        label: bound === '' ? 'Yes' : bound.charAt(0).toUpperCase() + bound.slice(1),
        low,
        high,
      });
    }
    return event;
  }

  /** A bound in the question's unit. A bound of a price is rounded; it is a fraction of the price at the period's start. */
  function boundOf(question: Question, bound: number | null, startMs: number): number | null {
    if (bound === null || question.measure.kind === 'forecast') return bound;
    const coin = market.coin(question.measure.coin);
    if (coin === undefined) throw new Error(`no coin ${question.measure.coin}`);
    const raw = market.priceUsd(coin, startMs) * bound;
    const grain = 10 ** Math.floor(Math.log10(raw) - 1.5);
    return Number((Math.round(raw / grain) * grain).toPrecision(4));
  }

  function events(venue: Venue, atMs: number): readonly PredictionEvent[] {
    const day = `${Math.floor(atMs / DAY_MS)}`;
    const found = known.find((entry) => entry.venue === venue && entry.at === day);
    if (found !== undefined) return found.events;
    const made = QUESTIONS.flatMap((question, index) => {
      const period = periodAt(question.period, atMs);
      return [period, period - 1]
        .map((number) => eventOf(venue, question, index, number))
        .filter((event) => event !== null);
    });
    known = [...known.filter((entry) => entry.at === day), { at: day, venue, events: made }];
    return made;
  }

  return {
    events,
    result,
    midpoint(of, atMs) {
      const { bidCents, askCents } = touch(of, atMs);
      return (bidCents + askCents) / 200;
    },
    quote(of, atMs) {
      const { bidCents, askCents } = touch(of, atMs);
      const key = keyOf(seed, `trade:${of.event.venue}:${of.event.question.id}:${of.index}`);
      const share = 1 / of.event.markets.length;
      const lively = Math.exp(0.4 * smooth(key, atMs / DAY_MS));
      const days = Math.max(0, Math.min(atMs, of.event.endMs) - of.event.startMs) / DAY_MS;
      const turnover = of.event.question.turnoverUsd * share;
      const bought = uniform(key, Math.floor(at15s(atMs) / QUOTE_MS)) < 0.5;
      return {
        bidCents,
        askCents,
        lastCents: bought ? askCents : bidCents,
        volumeUsd: Math.round(turnover * days * 100) / 100,
        volume24hUsd:
          atMs >= of.event.endMs ? 0 : Math.round(turnover * Math.min(1, days) * lively * 100) / 100,
        liquidityUsd: Math.round(turnover * 0.35 * (0.8 + 0.4 * uniform(key, 1)) * 100) / 100,
        openInterestUsd: Math.round(turnover * Math.sqrt(days) * 0.5),
      };
    },
    book(of, atMs) {
      const { bidCents, askCents } = touch(of, atMs);
      const key = keyOf(seed, `book:${of.event.venue}:${of.event.question.id}:${of.index}`);
      const minute = Math.floor(at15s(atMs) / 60_000);
      const scale = 20 + of.event.question.turnoverUsd / of.event.markets.length / 400;
      const side = (best: number, step: number) =>
        Array.from({ length: BOOK_LEVELS }, (_, level) => ({
          cents: best + step * level,
          size: Math.round(
            scale * (0.5 + uniform(key, minute * 64 + level * 2 + (step > 0 ? 1 : 0))) * (1 + level),
          ),
        })).filter(({ cents }) => cents >= 1 && cents <= 99);
      return { bids: side(bidCents, -1), asks: side(askCents, 1) };
    },
    digest: (of, purpose) =>
      createHash('sha256')
        .update(`${of.event.venue}:${of.event.question.id}:${of.event.periodIndex}:${of.index}:${purpose}`)
        .digest('hex'),
  };
}

function periodAt(period: Question['period'], atMs: number): number {
  const date = new Date(atMs);
  const months = (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
  return Math.floor(months / monthsOf(period));
}

function periodStartMs(period: Question['period'], index: number): number {
  return Date.UTC(1970, index * monthsOf(period), 1);
}

function monthsOf(period: Question['period']): number {
  return period === 'month' ? 1 : period === 'quarter' ? 3 : 12;
}

function occasionOf(period: Question['period'], startMs: number, endMs: number): Occasion {
  const start = new Date(startMs);
  const last = new Date(endMs - 1);
  const year = start.getUTCFullYear();
  const name =
    period === 'year'
      ? `${year}`
      : period === 'quarter'
        ? `Q${start.getUTCMonth() / 3 + 1} ${year}`
        : `${MONTHS[start.getUTCMonth()]} ${year}`;
  return {
    period: name,
    lastDay: `${MONTHS[last.getUTCMonth()]} ${last.getUTCDate()}, ${last.getUTCFullYear()}`,
  };
}

function phrase(question: Question, low: number | null, high: number | null): string {
  if (low === null && high !== null) return `fewer than ${question.unit(high)}`;
  if (low !== null && high === null)
    return `${question.exclusive ? 'at least' : 'above'} ${question.unit(low)}`;
  if (low !== null && high !== null) return `${question.unit(low)} to ${question.unit(high - 1)}`;
  return '';
}

/** The standard normal distribution function, by Abramowitz and Stegun 7.1.26 (error below 1.5e-7). */
export function normalCumulative(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const series =
    t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const error = 1 - series * Math.exp(-x * x);
  return z < 0 ? (1 - error) / 2 : (1 + error) / 2;
}
