/** How risky a wallet is: a card of points, each with what it rests on. The weights are this house's own, and told. */

export type RiskTier = 'LOW' | 'MEDIUM' | 'HIGH' | 'CRITICAL';

/** What is known of a wallet; null is what nobody could say. */
export interface WalletFacts {
  /** It stands in a list of sanctions. */
  listed: boolean | null;
  /** The oracle on a chain says that it is sanctioned. */
  oracle: boolean | null;
  /** It belongs to a listed mixing service. */
  mixer: boolean | null;
  /** Different listed addresses that it exchanged tokens with, in what was searched. */
  sanctionedCounterparties: number | null;
  mixerCounterparties: number | null;
  /** Since its first transaction. */
  ageDays: number | null;
  /** Transactions that it has sent. */
  transactions: number;
  account: 'externally_owned' | 'contract' | 'delegated';
}

export interface RiskPart {
  code: string;
  /** Null: not evaluated. */
  points: number | null;
  maxPoints: number;
  because: string;
}

export interface RiskCard {
  /** 0 to 100. */
  score: number;
  tier: RiskTier;
  parts: RiskPart[];
  /** Share of the card's points that could be evaluated, 0 to 1. What is unknown lowers this and not the score. */
  coverage: number;
}

/** Exposure to a sanctioned address alone reaches this. */
const EXPOSURE_FLOOR = 75;

/** @returns the card; a listed wallet has 100 points outright */
export function walletRisk(facts: WalletFacts): RiskCard {
  const parts: RiskPart[] = [
    part('SANCTIONS_LIST', 100, facts.listed, (hit) => (hit ? 100 : 0), [
      'stands in a list of sanctions',
      'stands in none of the lists that were looked at',
    ]),
    part('SANCTIONS_ORACLE', 100, facts.oracle, (hit) => (hit ? 100 : 0), [
      'the oracle on the chain lists it',
      'the oracle on the chain does not list it',
    ]),
    part('SANCTIONED_COUNTERPARTY', 85, facts.sanctionedCounterparties, (count) =>
      count === 0 ? 0 : Math.min(85, EXPOSURE_FLOOR + 5 * (count - 1)),
    ),
    part('MIXER', 60, facts.mixer, (hit) => (hit ? 60 : 0), [
      'is an address of a listed mixing service',
      'is no address of a listed mixing service',
    ]),
    part('MIXER_COUNTERPARTY', 45, facts.mixerCounterparties, (count) =>
      count === 0 ? 0 : Math.min(45, 30 + 5 * (count - 1)),
    ),
    part('AGE', 15, facts.ageDays, (days) => (days < 7 ? 15 : days < 30 ? 10 : days < 180 ? 5 : 0)),
    part('ACTIVITY', 10, facts.transactions, (sent) => (sent === 0 ? 10 : sent < 5 ? 5 : 0)),
    part('ACCOUNT', 5, facts.account, (kind) => (kind === 'externally_owned' ? 0 : 5)),
  ];
  const sum = parts.reduce((total, { points }) => total + (points ?? 0), 0);
  const score = Math.min(100, sum);
  const evaluated = parts.filter(({ points }) => points !== null);
  const weight = (of: readonly RiskPart[]) => of.reduce((total, { maxPoints }) => total + maxPoints, 0);
  return {
    score,
    tier: tierOf(score),
    parts,
    coverage: Math.round((weight(evaluated) / weight(parts)) * 1_000) / 1_000,
  };
}

/** LOW below 25, MEDIUM below 50, HIGH below 75, CRITICAL from there. */
export function tierOf(score: number): RiskTier {
  return score < 25 ? 'LOW' : score < 50 ? 'MEDIUM' : score < 75 ? 'HIGH' : 'CRITICAL';
}

const SAYS: Readonly<Record<string, (value: string | number | boolean) => string>> = {
  SANCTIONED_COUNTERPARTY: (count) =>
    `exchanged tokens with ${count} listed address(es) in what was searched`,
  MIXER_COUNTERPARTY: (count) => `exchanged tokens with ${count} mixing address(es) in what was searched`,
  AGE: (days) => `its first transaction was ${days} days ago`,
  ACTIVITY: (sent) => `has sent ${sent} transactions`,
  ACCOUNT: (kind) =>
    `is ${kind === 'contract' ? 'a contract' : kind === 'delegated' ? 'delegated to a contract (EIP-7702)' : 'externally owned'}`,
};

function part<Value extends string | number | boolean>(
  code: string,
  maxPoints: number,
  value: Value | null,
  pointsOf: (value: Value) => number,
  [yes, no]: readonly [string, string] | readonly [] = [],
): RiskPart {
  if (value === null) return { code, points: null, maxPoints, because: 'not evaluated: nobody could say' };
  const because = SAYS[code]?.(value) ?? (value === true ? yes : no) ?? '';
  return { code, points: pointsOf(value), maxPoints, because };
}
