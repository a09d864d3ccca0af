/** Where the vault's funds should be: by what all of it would earn after a move, and by what protocols paid over hours. */
import { PROTOCOLS, type ProtocolName } from '../contracts/protocols.ts';
import type { Conduct } from './conduct.ts';
import type { Lender } from './lenders.ts';

/** The vault at one block. Amounts are USDC micros. */
export interface Standing {
  inProtocol: Readonly<Record<ProtocolName, bigint>>;
  /** Everything that it has, with what lies idle. */
  total: bigint;
  limits: { maxShareBps: number; maxOfLiquidityBps: number };
}

export interface Terms {
  /** A move must raise what the moved part earns by so much a year, in hundredths of a percent. */
  minGainBps: number;
  /** The cost of so much gas, in USDC micros. */
  costOf(gas: bigint): bigint;
}

/** A protocol as it was read, and what it did over hours. */
export type Known = Lender & { conduct: Conduct };
export type Lenders = Readonly<Partial<Record<ProtocolName, Known>>>;

export interface Proposal {
  from: ProtocolName;
  to: ProtocolName;
  amountMicros: bigint;
  /** Less than the whole position, and why. */
  partial: 'liquidity' | 'share' | 'room' | 'depth' | null;
  /** The additional earnings of the whole vault in a year. */
  gainMicrosPerYear: bigint;
  costMicros: bigint;
  /** The target's yearly rate after the move, as a part of one. */
  rateAfter: number;
}

export type Verdict =
  | { do: 'move'; proposal: Proposal }
  | {
      do: 'stay';
      why: 'EMPTY' | 'NO_HISTORY' | 'UNREST' | 'BEST' | 'TOO_SMALL_A_GAIN' | 'COSTS_MORE' | 'STUCK';
      proposal: Proposal | null;
    };

const BPS = 10_000n;
/** Less is not worth a look: USDC micros. */
const LEAST_MICROS = 1_000_000n;
/** A move must have earned its cost back by then. */
const EARN_BACK_DAYS = 30n;
const DAYS_PER_YEAR = 365n;
/** The divisors of the most that can be moved: the more goes, the less the target pays. */
const PARTS = [1n, 2n, 4n, 8n] as const;
/** Between two protocols of which neither has many markets, and with the vault's own reading. */
const MOVE_GAS = 600_000n;

/**
 * Finds the move after which the vault earns most, and says whether it is worth its cost.
 *
 * @param lenders those that could be read
 * @throws what a protocol's curve throws
 */
export async function decide(
  standing: Standing,
  lenders: Lenders,
  { minGainBps, costOf }: Terms,
): Promise<Verdict> {
  const stay = (why: Extract<Verdict, { do: 'stay' }>['why'], proposal: Proposal | null = null) =>
    ({ do: 'stay', why, proposal }) as const;
  const held = PROTOCOLS.filter((name) => standing.inProtocol[name] >= LEAST_MICROS);
  if (held.length === 0) return stay('EMPTY');
  const possible = candidates(standing, lenders);
  if (possible.length === 0) return stay(whyNone(held, lenders));
  let best: Proposal | null = null;
  for (const each of possible) {
    const proposal = await reckon(standing, lenders, each, costOf);
    if (best === null || proposal.gainMicrosPerYear > best.gainMicrosPerYear) best = proposal;
  }
  if (best === null || best.gainMicrosPerYear <= 0n) return stay('BEST', best);
  const { gainMicrosPerYear, amountMicros, costMicros } = best;
  // Hysteresis: two protocols that pay about the same would have the funds go to and fro.
  if (gainMicrosPerYear * BPS < amountMicros * BigInt(minGainBps)) return stay('TOO_SMALL_A_GAIN', best);
  if (gainMicrosPerYear * EARN_BACK_DAYS < costMicros * DAYS_PER_YEAR) return stay('COSTS_MORE', best);
  return { do: 'move', proposal: best };
}

function whyNone(held: readonly ProtocolName[], lenders: Lenders): 'NO_HISTORY' | 'UNREST' | 'STUCK' {
  const targets = PROTOCOLS.filter((name) => held.length > 1 || held[0] !== name).flatMap(
    (name) => lenders[name] ?? [],
  );
  if (held.every((name) => lenders[name]?.conduct.averageRate === null)) return 'NO_HISTORY';
  if (targets.some(({ conduct }) => conduct.averageRate === null && conduct.unrest === null))
    return 'NO_HISTORY';
  return targets.some(({ conduct }) => conduct.unrest !== null) ? 'UNREST' : 'STUCK';
}

type Candidate = Pick<Proposal, 'from' | 'to' | 'amountMicros' | 'partial'>;

/** Lists the possible moves: from each position to each other protocol, the most that the vault's limits let through, or a part. */
function candidates({ inProtocol, total, limits }: Standing, lenders: Lenders): Candidate[] {
  const found: Candidate[] = [];
  for (const from of PROTOCOLS) {
    const source = lenders[from];
    const position = inProtocol[from];
    if (source === undefined || source.conduct.averageRate === null || position < LEAST_MICROS) continue;
    const liquid =
      ((source.liquid < position ? source.liquid : position) * BigInt(limits.maxOfLiquidityBps)) / BPS;
    for (const to of PROTOCOLS) {
      const target = lenders[to];
      if (to === from || target === undefined) continue;
      const { averageRate, unrest } = target.conduct;
      if (averageRate === null || unrest !== null) continue;
      const share = (total * BigInt(limits.maxShareBps)) / BPS - inProtocol[to];
      let [most, partial]: [bigint, Candidate['partial']] = [position, null];
      for (const [bound, why] of [
        [liquid, 'liquidity'],
        [share, 'share'],
        [target.room, 'room'],
      ] as const)
        if (bound < most) [most, partial] = [bound, why];
      for (const part of PARTS) {
        const amountMicros = most / part;
        if (amountMicros < LEAST_MICROS) continue;
        found.push({ from, to, amountMicros, partial: part === 1n ? partial : 'depth' });
      }
    }
  }
  return found;
}

/**
 * Reckons what a move would add to the earnings of the whole vault. The source counts with what it paid on average, and what remains there is not thought to
 * earn more. The target counts with the lower of its average and its rate of now, less what comes takes away from it by its curve: a
 * rate that somebody arranged for a block lures nobody, and one that somebody spoilt for a block costs a look.
 */
async function reckon(
  { inProtocol }: Standing,
  lenders: Lenders,
  candidate: Candidate,
  costOf: Terms['costOf'],
): Promise<Proposal> {
  const { from, to, amountMicros } = candidate;
  const [source, target] = [lenders[from], lenders[to]];
  const [paid, averageRate] = [source?.conduct.averageRate ?? null, target?.conduct.averageRate ?? null];
  if (!source || !target || paid === null || averageRate === null)
    throw new Error(`${from} or ${to} was not read`);
  const [spotNow, spotAfter] = await Promise.all([target.yearlyRate(0n), target.yearlyRate(amountMicros)]);
  const rateNow = Math.min(averageRate, spotNow);
  const rateAfter = rateNow > 0 ? Math.min(rateNow, (rateNow * spotAfter) / spotNow) : rateNow;
  const gain = Number(amountMicros) * (rateAfter - paid) + Number(inProtocol[to]) * (rateAfter - rateNow);
  const costMicros = costOf(gasOf(lenders, from));
  return { ...candidate, gainMicrosPerYear: BigInt(Math.floor(gain)), costMicros, rateAfter };
}

/** The gas that a move out of a protocol takes. The others are read by the vault, which costs about as much as coming there. */
function gasOf(lenders: Lenders, from: ProtocolName): bigint {
  return PROTOCOLS.reduce((gas, name) => {
    const more = lenders[name]?.moreGas;
    return gas + ((name === from ? more?.leaving : more?.coming) ?? 0n);
  }, MOVE_GAS);
}
