/**
 * Works out what a wallet paid for the collateral that it holds. The chain knows what it holds; what that cost follows from its deposits and
 * withdrawals, one after the other. Whatever it did elsewhere is seen by what it held before the next of them.
 */

/** A deposit or a withdrawal, as the chain shows it. */
export interface Move {
  kind: 'deposit' | 'withdrawal';
  slot: bigint;
  /** Minted by a deposit, burned by a withdrawal. */
  collateral: bigint;
  /** USDC units that a deposit paid into the reserve, or a withdrawal took out of it. */
  usdc: bigint;
  heldBefore: bigint;
  heldAfter: bigint;
}

/** Collateral with a known price, and that price in USDC units. */
export interface CostBasis {
  collateral: bigint;
  usdc: bigint;
}

const NOTHING: CostBasis = { collateral: 0n, usdc: 0n };

/**
 * The cost of what a wallet holds now. Collateral that left takes its share of the cost with it. Collateral that came from elsewhere
 * has no price here: it is not part of what is returned, and no yield is counted on it.
 *
 * @param moves all of the wallet's, in any order
 * @param heldNow what its own account of the collateral token holds
 */
export function costBasisOf(moves: readonly Move[], heldNow: bigint): CostBasis {
  let basis = NOTHING;
  for (const move of inOrder(moves)) {
    basis = atMost(basis, move.heldBefore);
    if (move.kind === 'deposit')
      basis = { collateral: basis.collateral + move.collateral, usdc: basis.usdc + move.usdc };
    else basis = after(basis, move);
    basis = atMost(basis, move.heldAfter);
  }
  return atMost(basis, heldNow);
}

/**
 * The yield in a withdrawal: what comes out, less what that share of the collateral cost.
 *
 * @param of.gross USDC units that the reserve pays
 * @param of.burned collateral that is given for it, of `of.held`
 */
export function yieldIn(
  basis: CostBasis,
  { gross, burned, held }: { gross: bigint; burned: bigint; held: bigint },
): bigint {
  if (held === 0n) return 0n;
  const known = smaller(basis.collateral, held);
  // Of what has a price and what has none, a withdrawal takes the same part. Its cost is rounded up, in the wallet's favour.
  const earned = (gross * known) / held - dividedUp(basis.usdc * burned, held);
  return earned > 0n ? earned : 0n;
}

/** Takes a withdrawal off the basis: the same part of collateral with a price and without. */
function after(basis: CostBasis, { heldBefore, collateral }: Move): CostBasis {
  if (heldBefore === 0n) return basis;
  const left = heldBefore > collateral ? heldBefore - collateral : 0n;
  return {
    collateral: dividedUp(basis.collateral * left, heldBefore),
    usdc: dividedUp(basis.usdc * left, heldBefore),
  };
}

/** Cuts the basis down to what can still be there. */
function atMost(basis: CostBasis, held: bigint): CostBasis {
  if (basis.collateral <= held) return basis;
  return { collateral: held, usdc: dividedUp(basis.usdc * held, basis.collateral) };
}

/** Orders moves by slot; within one, each begins with what the one before it left. */
function inOrder(moves: readonly Move[]): Move[] {
  const bySlot = Map.groupBy(moves, ({ slot }) => slot);
  const slots = [...bySlot.keys()].sort((one, other) => (one < other ? -1 : 1));
  return slots.flatMap((slot) => chained(bySlot.get(slot) ?? []));
}

function chained(moves: readonly Move[]): readonly Move[] {
  if (moves.length === 1) return moves;
  const open = [...moves];
  const ordered: Move[] = [];
  while (open.length > 0) {
    const held = ordered.at(-1)?.heldAfter;
    const follows = open.findIndex(({ heldBefore }) => heldBefore === held);
    const begins = open.findIndex(({ heldBefore }) =>
      open.every(({ heldAfter }) => heldAfter !== heldBefore),
    );
    ordered.push(...open.splice(follows >= 0 ? follows : Math.max(begins, 0), 1));
  }
  return ordered;
}

function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
