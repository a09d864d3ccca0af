/** Where the vault's funds should be: by what all of it would earn after a move, and not by today's rates. */
import { PROTOCOLS, type ProtocolName } from '../contracts/protocols.ts';
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
  /** What a move costs in gas. */
  costMicros: bigint;
}

export interface Proposal {
  from: ProtocolName;
  to: ProtocolName;
  amountMicros: bigint;
  /** Less than the whole position, and why. */
  partial: 'liquidity' | 'share' | 'room' | 'depth' | null;
  /** What the whole vault earns more in a year. */
  gainMicrosPerYear: bigint;
  /** What the target would pay after the move, a year, as a part of one. */
  rateAfter: number;
}

export type Verdict =
  | { do: 'move'; proposal: Proposal }
  | {
      do: 'stay';
      why: 'EMPTY' | 'BEST' | 'TOO_SMALL_A_GAIN' | 'COSTS_MORE' | 'STUCK';
      proposal: Proposal | null;
    };

const BPS = 10_000n;
/** Less is not worth a look: USDC micros. */
const LEAST_MICROS = 1_000_000n;
/** A move must have earned its cost back by then. */
const EARN_BACK_DAYS = 30n;
const DAYS_PER_YEAR = 365n;
/** Of the most that can be moved: the more goes, the less the target pays. */
const PARTS = [1n, 2n, 4n, 8n] as const;

/**
 * Finds the move after which the vault earns most, and says whether it is worth its cost.
 *
 * @param lenders those that could be read
 * @throws what a protocol's curve throws
 */
export async function decide(
  standing: Standing,
  lenders: Readonly<Partial<Record<ProtocolName, Lender>>>,
  { minGainBps, costMicros }: Terms,
): Promise<Verdict> {
  const held = PROTOCOLS.filter((name) => standing.inProtocol[name] >= LEAST_MICROS);
  if (held.length === 0) return { do: 'stay', why: 'EMPTY', proposal: null };
  const possible = candidates(standing, lenders);
  if (possible.length === 0) return { do: 'stay', why: 'STUCK', proposal: null };
  let best: Proposal | null = null;
  for (const each of possible) {
    const proposal = await reckon(standing, lenders, each);
    if (best === null || proposal.gainMicrosPerYear > best.gainMicrosPerYear) best = proposal;
  }
  if (best === null || best.gainMicrosPerYear <= 0n) return { do: 'stay', why: 'BEST', proposal: best };
  const { gainMicrosPerYear, amountMicros } = best;
  // Hysteresis: two protocols that pay about the same would have the funds go to and fro.
  if (gainMicrosPerYear * BPS < amountMicros * BigInt(minGainBps))
    return { do: 'stay', why: 'TOO_SMALL_A_GAIN', proposal: best };
  if (gainMicrosPerYear * EARN_BACK_DAYS < costMicros * DAYS_PER_YEAR)
    return { do: 'stay', why: 'COSTS_MORE', proposal: best };
  return { do: 'move', proposal: best };
}

type Candidate = Pick<Proposal, 'from' | 'to' | 'amountMicros' | 'partial'>;

/** What could be moved: from each position to each other protocol, the most that the vault's limits let through, or a part. */
function candidates(
  { inProtocol, total, limits }: Standing,
  lenders: Readonly<Partial<Record<ProtocolName, Lender>>>,
): Candidate[] {
  const found: Candidate[] = [];
  for (const from of PROTOCOLS) {
    const source = lenders[from];
    const position = inProtocol[from];
    if (source === undefined || position < LEAST_MICROS) continue;
    const liquid =
      ((source.liquid < position ? source.liquid : position) * BigInt(limits.maxOfLiquidityBps)) / BPS;
    for (const to of PROTOCOLS) {
      const target = lenders[to];
      if (to === from || target === undefined) continue;
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

/** What the whole vault would earn more, by the rates that both protocols would pay after the move. */
async function reckon(
  { inProtocol }: Standing,
  lenders: Readonly<Partial<Record<ProtocolName, Lender>>>,
  candidate: Candidate,
): Promise<Proposal> {
  const { from, to, amountMicros } = candidate;
  const [source, target] = [lenders[from], lenders[to]];
  if (source === undefined || target === undefined) throw new Error(`${from} or ${to} was not read`);
  const [sourceNow, targetNow, sourceAfter, rateAfter] = await Promise.all([
    source.yearlyRate(0n),
    target.yearlyRate(0n),
    source.yearlyRate(-amountMicros),
    target.yearlyRate(amountMicros),
  ]);
  const earns = (micros: bigint, rate: number) => Number(micros) * rate;
  const gain =
    earns(inProtocol[from] - amountMicros, sourceAfter) +
    earns(inProtocol[to] + amountMicros, rateAfter) -
    earns(inProtocol[from], sourceNow) -
    earns(inProtocol[to], targetNow);
  return { ...candidate, gainMicrosPerYear: BigInt(Math.floor(gain)), rateAfter };
}
