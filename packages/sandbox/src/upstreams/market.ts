/**
 * The synthetic market from which every price in the sandbox is read. The same coin at the same second has the same price,
 * whoever asks and in whatever order. Prices follow from the seed and the time; caches only save computing them again.
 */
import { COINS, type Coin, type Sector } from './assets.ts';
import { keyOf, Path, smooth, uniform } from './noise.ts';
import { Recent } from './recent.ts';

/** The step of the grid on which prices are drawn. Between two grid points a price passes one high and one low. */
const STEP_SECONDS = 300;
const STEPS_PER_DAY = 288;
const DAY_SECONDS = 86_400;
const STEPS_PER_YEAR = 365.25 * STEPS_PER_DAY;
/** Every coin has its anchor price at this second (2026-11-01T00:00:00Z). */
const REFERENCE_SECOND = Date.UTC(2026, 10, 1) / 1000;
const REFERENCE_STEP = REFERENCE_SECOND / STEP_SECONDS;
/** Nothing was traded before this time (2020-01-01T00:00:00Z). */
export const FIRST_MS = Date.UTC(2020, 0, 1);
const MARKET_VOLATILITY = 0.45;
/** The sizes of the caches: 192 days take 2 MB, and so do 16,384 ranges of a day. */
const CACHED_DAYS = 192;
const CACHED_DAY_RANGES = 16_384;
/** A number above that of any day since 1970, so that a coin's index and a day together make one key. */
const DAY_KEYS = 2 ** 20;
/** The standard deviation of a stable coin's price from 1 USD, as a fraction. */
const STABLE_NOISE = 0.00015;
/** The annual volatility of a stable coin, measured over steps of five minutes. */
const STABLE_VOLATILITY = 0.004;
const PEG_NOISE = 0.0003;

const SECTORS: readonly Sector[] = ['money', 'platform', 'defi', 'meme', 'metal'];

export interface Candle {
  openMs: number;
  /** The first millisecond after the bar. It lies in the future if the bar is unfinished. */
  endMs: number;
  open: number;
  high: number;
  low: number;
  close: number;
  volumeUsd: number;
}

/** The high, the low and the volume between two times. High and low are logarithms of prices. */
interface Range {
  high: number;
  low: number;
  volumeUsd: number;
}

/** One coin's day on the grid: 289 prices, and the high, low and volume of the 288 steps between. Prices are logarithms. */
interface Day {
  points: Float64Array;
  highs: Float64Array;
  lows: Float64Array;
  volumes: Float64Array;
}

/** A coin with the random paths and keys that drive its price. */
interface Driven {
  index: number;
  coin: Coin;
  /** The coin that a pegged coin follows; null for other coins. */
  follows: Driven | null;
  sector: Path | null;
  own: Path;
  extremes: number;
  turns: number;
  noise: number;
  volatility: number;
  /**
   * Of a floating coin: the logarithm of its anchor price, less the moves of its paths up to the reference time. The price at a
   * step is this plus the moves up to that step.
   */
  origin: number;
}

export interface Market {
  readonly seed: number;
  coin(id: string): Coin | undefined;
  coinBySymbol(symbol: string): Coin | undefined;
  /** The price in USD at the second that holds `atMs`, rounded to the coin's tick. */
  priceUsd(coin: Coin, atMs: number): number;
  /** Places after the point that a price of this coin needs. */
  priceDecimals(coin: Coin): number;
  /**
   * The bars between each two neighbouring bounds, which are whole seconds in ascending order. A bar that is unfinished at
   * `nowMs` has its values up to then. Bars that begin after `nowMs` or before the first day of trade are left out.
   */
  candles(coin: Coin, boundsMs: readonly number[], nowMs: number): Candle[];
  /** The turnover in USD on all venues between two times. */
  volumeUsd(coin: Coin, fromMs: number, toMs: number): number;
  /** The annual volatility of the logarithm of the price. */
  volatility(coin: Coin): number;
}

/** Opens the market of a seed. Two markets of the same seed agree on everything. */
export function openMarket(seed: number): Market {
  const sigmaPerStep = 1 / Math.sqrt(STEPS_PER_YEAR);
  const marketPath = new Path(keyOf(seed, 'market'), MARKET_VOLATILITY * sigmaPerStep);
  const sectorPaths = new Map(
    SECTORS.map((sector) => [sector, new Path(keyOf(seed, `sector:${sector}`), sigmaPerStep)]),
  );
  const byId = new Map<string, Driven>();
  for (const [index, coin] of COINS.entries()) byId.set(coin.id, drive(coin, index));
  const bySymbol = new Map(COINS.map((coin) => [coin.symbol.toUpperCase(), coin]));
  const days = new Recent<number, Day>(CACHED_DAYS);
  const dayRanges = new Recent<number, Range>(CACHED_DAY_RANGES);
  const midnights = new Recent<number, number>(CACHED_DAY_RANGES);
  const scratch = [0, 1, 2].map(() => new Float64Array(STEPS_PER_DAY + 1));

  function drive(coin: Coin, index: number): Driven {
    const { motion } = coin;
    const follows = motion.kind === 'pegged' ? (byId.get(motion.to) ?? null) : null;
    if (motion.kind === 'pegged' && follows === null)
      throw new Error(`${coin.id} must stand after ${motion.to}`);
    const driven: Driven = {
      index,
      coin,
      follows,
      sector: motion.kind === 'floating' ? (sectorPaths.get(motion.sector) ?? null) : null,
      own: new Path(keyOf(seed, `own:${coin.id}`), sigmaPerStep),
      extremes: keyOf(seed, `extremes:${coin.id}`),
      turns: keyOf(seed, `turns:${coin.id}`),
      noise: keyOf(seed, `noise:${coin.id}`),
      volatility:
        motion.kind === 'floating'
          ? Math.hypot(motion.marketBeta * MARKET_VOLATILITY, motion.sectorVolatility, motion.ownVolatility)
          : (follows?.volatility ?? STABLE_VOLATILITY),
      origin: 0,
    };
    if (motion.kind === 'floating')
      driven.origin = Math.log(coin.anchorUsd) - logAtStep(driven, REFERENCE_STEP);
    return driven;
  }

  function drivenOf(coin: Coin): Driven {
    const found = byId.get(coin.id);
    if (found === undefined) throw new Error(`no coin ${coin.id}`);
    return found;
  }

  /**
   * The logarithm of a stable or pegged coin's price at a step, less that of the price that it follows. A stable coin follows
   * 1 USD.
   */
  function besideParent({ coin: { motion }, noise }: Driven, step: number): number {
    if (motion.kind !== 'pegged') return STABLE_NOISE * smooth(noise, step / 12);
    const years = (step - REFERENCE_STEP) / STEPS_PER_YEAR;
    return (
      Math.log(motion.ratio) + Math.log1p(motion.growthPerYear) * years + PEG_NOISE * smooth(noise, step / 24)
    );
  }

  /** The logarithm of the price at one step. It is the same number as `pointsOf` writes. */
  function logAtStep(driven: Driven, step: number): number {
    const { motion } = driven.coin;
    if (motion.kind !== 'floating') {
      return (driven.follows === null ? 0 : logAtStep(driven.follows, step)) + besideParent(driven, step);
    }
    return (
      driven.origin +
      (motion.marketBeta * marketPath.at(step) +
        motion.sectorVolatility * (driven.sector?.at(step) ?? 0) +
        motion.ownVolatility * driven.own.at(step))
    );
  }

  /** Writes what `logAtStep` returns for all steps of a day, at a twentieth of its cost for each step. */
  function pointsOf(driven: Driven, day: number, points: Float64Array): void {
    const first = day * STEPS_PER_DAY;
    const { motion } = driven.coin;
    if (motion.kind !== 'floating') {
      if (driven.follows === null) points.fill(0);
      else pointsOf(driven.follows, day, points);
      for (let at = 0; at < points.length; at++)
        points[at] = (points[at] ?? 0) + besideParent(driven, first + at);
      return;
    }
    const [market, sector, own] = scratch;
    if (market === undefined || sector === undefined || own === undefined) throw new Error('three are made');
    marketPath.fill(first, market);
    driven.sector?.fill(first, sector);
    driven.own.fill(first, own);
    for (let at = 0; at < points.length; at++) {
      points[at] =
        driven.origin +
        (motion.marketBeta * (market[at] ?? 0) +
          motion.sectorVolatility * (sector[at] ?? 0) +
          motion.ownVolatility * (own[at] ?? 0));
    }
  }

  /** A day on the grid. It is valid until the next call, which may use its arrays for another day. */
  function dayOf(driven: Driven, day: number): Day {
    return days.get(driven.index * DAY_KEYS + day, (spent) => {
      const made = spent ?? emptyDay();
      pointsOf(driven, day, made.points);
      const variance = driven.volatility ** 2 / STEPS_PER_YEAR;
      const meanVolume = driven.coin.turnoverUsd / STEPS_PER_DAY;
      for (let at = 0; at < STEPS_PER_DAY; at++) {
        const from = made.points[at] ?? 0;
        const to = made.points[at + 1] ?? 0;
        const step = day * STEPS_PER_DAY + at;
        // The maximum of a Brownian bridge from `from` to `to`, drawn by inverting its distribution. The minimum is drawn the
        // same way.
        const reach = (draw: number) => Math.sqrt((to - from) ** 2 - 2 * variance * Math.log(draw));
        made.highs[at] = (from + to + reach(uniform(driven.extremes, 2 * step))) / 2;
        made.lows[at] = (from + to - reach(uniform(driven.extremes, 2 * step + 1))) / 2;
        const busy =
          0.5 + uniform(driven.noise ^ 0x1f83d9ab, step) + (0.5 * Math.abs(to - from)) / Math.sqrt(variance);
        made.volumes[at] = meanVolume * Math.min(4, busy) * 0.7;
      }
      return made;
    });
  }

  function rangeOfDay(driven: Driven, day: number): Range {
    return dayRanges.get(driven.index * DAY_KEYS + day, () => {
      const { highs, lows, volumes } = dayOf(driven, day);
      const range = { high: Number.NEGATIVE_INFINITY, low: Number.POSITIVE_INFINITY, volumeUsd: 0 };
      for (let at = 0; at < STEPS_PER_DAY; at++) {
        range.high = Math.max(range.high, highs[at] ?? 0);
        range.low = Math.min(range.low, lows[at] ?? 0);
        range.volumeUsd += volumes[at] ?? 0;
      }
      return range;
    });
  }

  /** The course of the price within one step: four times, in seconds after its start, and the logarithms of the price then. */
  function course(driven: Driven, step: number): { seconds: readonly number[]; logs: readonly number[] } {
    const day = Math.floor(step / STEPS_PER_DAY);
    const at = step - day * STEPS_PER_DAY;
    const { points, highs, lows } = dayOf(driven, day);
    const one = 1 + Math.floor(uniform(driven.turns, 2 * step) * 149);
    const other = 150 + Math.floor(uniform(driven.turns, 2 * step + 1) * 149);
    const highFirst = uniform(driven.turns ^ 0x2545f491, step) < 0.5;
    const high = highs[at] ?? 0;
    const low = lows[at] ?? 0;
    return {
      seconds: [0, one, other, STEP_SECONDS],
      logs: [points[at] ?? 0, highFirst ? high : low, highFirst ? low : high, points[at + 1] ?? 0],
    };
  }

  function logAt(driven: Driven, second: number): number {
    const step = Math.floor(second / STEP_SECONDS);
    const within = second - step * STEP_SECONDS;
    if (second % DAY_SECONDS === 0) {
      // Long series ask mostly for midnights, and to compute a whole day for one point would be costly.
      return midnights.get(driven.index * DAY_KEYS + second / DAY_SECONDS, () => logAtStep(driven, step));
    }
    if (within === 0) {
      const day = Math.floor(step / STEPS_PER_DAY);
      return dayOf(driven, day).points[step - day * STEPS_PER_DAY] ?? 0;
    }
    const { seconds, logs } = course(driven, step);
    for (let at = 1; at < seconds.length; at++) {
      const from = seconds[at - 1] ?? 0;
      const to = seconds[at] ?? 0;
      if (within > to) continue;
      const share = (within - from) / (to - from);
      return (logs[at - 1] ?? 0) * (1 - share) + (logs[at] ?? 0) * share;
    }
    throw new Error('a step has 300 seconds');
  }

  /** The high, low and volume between two seconds. The prices at both ends count. */
  function rangeOf(driven: Driven, from: number, to: number): Range {
    const atFrom = logAt(driven, from);
    const atTo = logAt(driven, to);
    const range: Range = { high: Math.max(atFrom, atTo), low: Math.min(atFrom, atTo), volumeUsd: 0 };
    const add = (high: number, low: number, volumeUsd: number) => {
      range.high = Math.max(range.high, high);
      range.low = Math.min(range.low, low);
      range.volumeUsd += volumeUsd;
    };
    let at = from;
    while (at < to) {
      if (at % DAY_SECONDS === 0 && at + DAY_SECONDS <= to) {
        const day = at / DAY_SECONDS;
        const whole = rangeOfDay(driven, day);
        add(whole.high, whole.low, whole.volumeUsd);
        at += DAY_SECONDS;
        continue;
      }
      const step = Math.floor(at / STEP_SECONDS);
      const day = Math.floor(step / STEPS_PER_DAY);
      const { highs, lows, volumes } = dayOf(driven, day);
      const index = step - day * STEPS_PER_DAY;
      const end = Math.min(to, (step + 1) * STEP_SECONDS);
      const volume = volumes[index] ?? 0;
      if (end - at === STEP_SECONDS) {
        add(highs[index] ?? 0, lows[index] ?? 0, volume);
      } else {
        const { seconds, logs } = course(driven, step);
        const start = step * STEP_SECONDS;
        for (const [turn, second] of seconds.entries()) {
          if (start + second < at || start + second > end) continue;
          add(logs[turn] ?? 0, logs[turn] ?? 0, 0);
        }
        range.volumeUsd += (volume * (end - at)) / STEP_SECONDS;
      }
      at = end;
    }
    return range;
  }

  function priceDecimals(coin: Coin): number {
    const { follows } = drivenOf(coin);
    const typical =
      coin.motion.kind === 'pegged' ? coin.motion.ratio * (follows?.coin.anchorUsd ?? 1) : coin.anchorUsd;
    return Math.max(2, 6 - Math.floor(Math.log10(typical)));
  }

  function rounded(coin: Coin, log: number): number {
    return Number(Math.exp(log).toFixed(priceDecimals(coin)));
  }

  return {
    seed,
    coin: (id) => byId.get(id)?.coin,
    coinBySymbol: (symbol) => bySymbol.get(symbol.toUpperCase()),
    priceDecimals,
    volatility: (coin) => drivenOf(coin).volatility,
    priceUsd: (coin, atMs) => rounded(coin, logAt(drivenOf(coin), Math.floor(atMs / 1000))),
    volumeUsd: (coin, fromMs, toMs) =>
      rangeOf(drivenOf(coin), Math.floor(fromMs / 1000), Math.floor(toMs / 1000)).volumeUsd,
    candles(coin, boundsMs, nowMs) {
      const driven = drivenOf(coin);
      const bars: Candle[] = [];
      for (let at = 0; at + 1 < boundsMs.length; at++) {
        const openMs = boundsMs[at] ?? 0;
        const endMs = boundsMs[at + 1] ?? 0;
        if (openMs > nowMs || openMs < FIRST_MS) continue;
        const from = openMs / 1000;
        const to = Math.min(endMs / 1000, Math.floor(nowMs / 1000));
        const range = rangeOf(driven, from, to);
        bars.push({
          openMs,
          endMs,
          open: rounded(coin, logAt(driven, from)),
          high: rounded(coin, range.high),
          low: rounded(coin, range.low),
          close: rounded(coin, logAt(driven, to)),
          volumeUsd: range.volumeUsd,
        });
      }
      return bars;
    },
  };
}

function emptyDay(): Day {
  const steps = () => new Float64Array(STEPS_PER_DAY);
  return { points: new Float64Array(STEPS_PER_DAY + 1), highs: steps(), lows: steps(), volumes: steps() };
}
