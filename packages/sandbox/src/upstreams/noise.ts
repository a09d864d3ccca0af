/** Deterministic noise: the same key and index give the same number, in whatever order and on whatever machine. */

/** A key of 32 bits, made of a seed and a name that says what the key is for. */
export function keyOf(seed: number, name: string): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  return scramble(hash);
}

/** Uniform on the open interval (0, 1). `index` may be any integer; only its low 32 bits count. */
export function uniform(key: number, index: number): number {
  return (scramble(key ^ scramble(index ^ 0x9e3779b9)) + 0.5) / 4_294_967_296;
}

/** A standard normal number, by the method of Box and Muller. */
export function gaussian(key: number, index: number): number {
  const radius = Math.sqrt(-2 * Math.log(uniform(key, index)));
  return radius * Math.cos(2 * Math.PI * uniform(key ^ 0x5bd1e995, index));
}

/** A smooth curve through independent standard normal numbers at whole positions. It keeps nothing in memory. */
export function smooth(key: number, position: number): number {
  const left = Math.floor(position);
  const share = position - left;
  const weight = share * share * (3 - 2 * share);
  return gaussian(key, left) * (1 - weight) + gaussian(key, left + 1) * weight;
}

/** The finaliser of MurmurHash3: every input bit flips every output bit with a chance near one half. */
function scramble(value: number): number {
  let hash = value | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** The number of steps between two knots of a path: 2^18 steps of 5 minutes are 910 days. */
const SPAN = 2 ** 18;

/**
 * A Brownian path that can be read at any step without computing the steps before it. It is made by midpoint displacement between
 * knots, so that a single point costs 18 draws, and a run of points about one draw each. The knots keep the path from drifting
 * away over the years.
 */
export class Path {
  readonly #key: number;
  readonly #sigmaPerStep: number;
  readonly #knotSigma: number;

  constructor(key: number, sigmaPerStep: number) {
    this.#key = key;
    this.#sigmaPerStep = sigmaPerStep;
    this.#knotSigma = 0.25 * sigmaPerStep * Math.sqrt(SPAN);
  }

  /** The value at one step. */
  at(step: number): number {
    return this.fill(step, new Float64Array(1))[0] ?? 0;
  }

  /** Fills an array with the values at the steps from `from` on, and returns it. */
  fill(from: number, out: Float64Array): Float64Array {
    const last = from + out.length - 1;
    for (let knot = Math.floor(from / SPAN); knot * SPAN <= last; knot++) {
      this.#descend(knot * SPAN, (knot + 1) * SPAN, this.#knot(knot), this.#knot(knot + 1), from, out);
    }
    return out;
  }

  #knot(index: number): number {
    return this.#knotSigma * gaussian(this.#key ^ 0x3c6ef372, index);
  }

  #descend(low: number, high: number, atLow: number, atHigh: number, from: number, out: Float64Array): void {
    if (low >= from && low < from + out.length) out[low - from] = atLow;
    if (high - low === 1) return;
    const middle = (low + high) / 2;
    const atMiddle =
      (atLow + atHigh) / 2 + (this.#sigmaPerStep * Math.sqrt(high - low) * gaussian(this.#key, middle)) / 2;
    if (from < middle) this.#descend(low, middle, atLow, atMiddle, from, out);
    if (from + out.length > middle) this.#descend(middle, high, atMiddle, atHigh, from, out);
  }
}
