/**
 * A score of what a chain shows of a wallet's history and means, 0 to 1,000. No industry standard: the card is this
 * house's own, and told. Every part grows, or stays, as its fact becomes better.
 */

/** What is known of a wallet; null is what nobody could say. */
export interface CreditFacts {
  /** In a list of sanctions, or by an oracle: no score then. */
  sanctioned: boolean;
  ageDays: number | null;
  /** Transactions that it has sent. */
  transactions: number;
  /** What it holds and has a price. */
  holdingsUsd: number;
  /** Null: not asked for, or there is no such market on the chain. */
  lending: { collateralUsd: number; debtUsd: number; healthFactor: number | null } | null;
  /** Liquidations of its positions in what was searched; null: not searched. */
  liquidations: number | null;
}

export interface CreditPart {
  factor: string;
  /** Null: not evaluated. */
  points: number | null;
  maxPoints: number;
  because: string;
}

export interface CreditCard {
  /** 0 to 1,000: what could not be evaluated gives no points. */
  score: number;
  /** The score if all that could not be evaluated had full marks: the true one lies between the two. */
  highestScore: number;
  tier: 'Sanctioned' | 'Thin file' | 'Weak' | 'Fair' | 'Good' | 'Strong';
  parts: CreditPart[];
  /** Share of the points that could be evaluated, 0 to 1. */
  coverage: number;
}

const FULL_AGE_DAYS = 1_460;
const THIN_DAYS = 30;
const THIN_TRANSACTIONS = 5;

/** @returns the card; a sanctioned wallet has 0 outright, one without history is a thin file and not a middling one */
export function creditCard(facts: CreditFacts): CreditCard {
  const { ageDays, transactions, holdingsUsd, lending, liquidations } = facts;
  const hasPosition = lending !== null && (lending.collateralUsd > 0 || lending.debtUsd > 0);
  const parts: CreditPart[] = [
    part(
      'WALLET_AGE',
      200,
      ageDays === null ? null : (200 * Math.min(ageDays, FULL_AGE_DAYS)) / FULL_AGE_DAYS,
      [`first transaction ${ageDays} days ago; four years are full marks`, 'its age is not known'],
    ),
    part('ACTIVITY', 150, 50 * Math.log10(1 + transactions), [
      `${transactions} transactions sent; 999 are full marks`,
    ]),
    part('HOLDINGS', 200, 40 * Math.log10(1 + Math.max(0, holdingsUsd)), [
      `${holdingsUsd} USD held; 99,999 are full marks`,
    ]),
    part('LENDING_HEALTH', 250, lending === null ? null : healthPoints(lending), [
      lending === null ? '' : healthSays(lending),
      'lending positions were not asked for, or there is no such market on the chain',
    ]),
    part(
      'NO_LIQUIDATIONS',
      200,
      liquidations === null || !hasPosition ? null : ([200, 80][liquidations] ?? 0),
      [
        `${liquidations} liquidation(s) in what was searched`,
        'without a lending position there is nothing to liquidate, or it could not be searched',
      ],
    ),
  ];
  const sum = Math.round(parts.reduce((total, { points }) => total + (points ?? 0), 0));
  const score = facts.sanctioned ? 0 : Math.min(1_000, sum);
  const evaluated = parts.filter(({ points }) => points !== null);
  const open = parts.reduce((total, { points, maxPoints }) => total + (points === null ? maxPoints : 0), 0);
  return {
    score,
    highestScore: facts.sanctioned ? 0 : Math.min(1_000, sum + open),
    tier: tierOf(facts, score),
    parts,
    coverage:
      Math.round(
        (evaluated.reduce((total, { maxPoints }) => total + maxPoints, 0) /
          parts.reduce((total, { maxPoints }) => total + maxPoints, 0)) *
          1_000,
      ) / 1_000,
  };
}

function tierOf({ sanctioned, ageDays, transactions }: CreditFacts, score: number): CreditCard['tier'] {
  if (sanctioned) return 'Sanctioned';
  if (transactions < THIN_TRANSACTIONS || (ageDays !== null && ageDays < THIN_DAYS)) return 'Thin file';
  return score < 250 ? 'Weak' : score < 450 ? 'Fair' : score < 700 ? 'Good' : 'Strong';
}

/** Collateral without debt is worth something; debt that is well covered more, for it is being served. */
function healthPoints({ collateralUsd, debtUsd, healthFactor }: NonNullable<CreditFacts['lending']>): number {
  if (debtUsd <= 0) return collateralUsd > 0 ? 150 : 0;
  if (healthFactor === null || healthFactor < 1) return 0;
  return healthFactor < 1.2 ? 40 : healthFactor < 1.5 ? 120 : healthFactor < 2 ? 200 : 250;
}

function healthSays({ collateralUsd, debtUsd, healthFactor }: NonNullable<CreditFacts['lending']>): string {
  if (collateralUsd <= 0 && debtUsd <= 0) return 'no lending position';
  return debtUsd <= 0
    ? `${collateralUsd} USD of collateral, no debt`
    : `${debtUsd} USD of debt on ${collateralUsd} USD of collateral, health factor ${healthFactor}`;
}

function part(
  factor: string,
  maxPoints: number,
  points: number | null,
  [known, unknown = '']: readonly [string, string?],
): CreditPart {
  return points === null
    ? { factor, points: null, maxPoints, because: `not evaluated: ${unknown}` }
    : { factor, points: Math.round(Math.min(maxPoints, points) * 10) / 10, maxPoints, because: known };
}
