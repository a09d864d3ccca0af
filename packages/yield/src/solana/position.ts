/** A wallet's position in the reserve: its worth, its yield, and what a full withdrawal would pay now. */
import type { Address } from '@solana/kit';
import { timeText, usdcText } from '../figures.ts';
import { tokenAccountOf } from './address-bytes.ts';
import { COLLATERAL_MINT } from './addresses.ts';
import { type CostBasis, costBasisOf, yieldIn } from './cost-basis.ts';
import { usdcFor } from './model/interest.ts';
import type { Moves, WalletMove } from './moves.ts';
import { payableNow } from './payable.ts';
import { type Portal, type ReserveNow, readTokenAccount } from './portal.ts';
import { CLOCK_SYSVAR, chainTimeMs } from './standing.ts';
import { PERFORMANCE_FEE_BPS, partOf, WITHDRAWAL_FEE_BPS } from './terms.ts';
import { exchangeRateText, openView, readAtView } from './views.ts';

/** So many of a wallet's moves are listed, the newest first. */
const LISTED = 20;
/** At most one of so many parts of a position is dust. */
const DUST_PARTS = 1_000n;

export interface PositionParts {
  portal: Pick<Portal, 'look'>;
  moves: Pick<Moves, 'of'>;
  /** How many deposits were claimed that the chain could not be asked about yet. */
  pendingOf(wallet: string): Promise<number>;
  nowMs(): number;
  links: Record<'deposit' | 'withdraw' | 'confirm' | 'refunds', string>;
}

/** A reserve as it was read, with when that was. */
type Read = ReserveNow & { chainAtMs: number | null; readAtMs: number };

interface Held {
  collateral: bigint;
  basis: CostBasis;
  valueRaw: bigint;
  /** The yield of the collateral that has a known cost. */
  yieldRaw: bigint;
}

/** @throws Problem 503 while the chain is silent */
export async function positionOf(wallet: Address, { portal, moves, pendingOf, nowMs, links }: PositionParts) {
  const account = tokenAccountOf(wallet, COLLATERAL_MINT);
  const [{ accounts, ...now }, known, pending] = await Promise.all([
    portal.look([account, CLOCK_SYSVAR]),
    moves.of(wallet),
    pendingOf(wallet),
  ]);
  const [own = null, clock = null] = accounts;
  const token = readTokenAccount(own);
  const read: Read = { ...now, chainAtMs: chainTimeMs(clock?.data), readAtMs: nowMs() };
  const held = heldOf(read, known, token?.amount ?? 0n);
  const leavingNow = leavingView(read, held, token?.isFrozen === true);
  return {
    success: true,
    wallet,
    position: {
      status: statusOf(held),
      collateralBalance: usdcText(held.collateral),
      collateralBalanceRaw: String(held.collateral),
      collateralMint: COLLATERAL_MINT,
      collateralAccount: account,
      usdcPerCollateral: exchangeRateText(read),
      currentValueUsdc: usdcText(held.valueRaw),
      currentValueRaw: String(held.valueRaw),
      ...depositedView(held),
      leavingNow,
      notes: notesOn(held),
    },
    platformRecord: {
      verifiedDeposits: known.filter(({ kind }) => kind === 'deposit').length,
      verifiedWithdrawals: known.filter(({ kind }) => kind === 'withdrawal').length,
      pendingConfirmations: pending,
      newest: known.toReversed().slice(0, LISTED).map(moveView),
    },
    next_action: nextActions(held, { leavingNow, pending, links }),
    readAt: readAtView(read),
  };
}

function heldOf({ reserve }: Read, known: readonly WalletMove[], collateral: bigint): Held {
  const basis = costBasisOf(known, collateral);
  const valueRaw = collateral === 0n ? 0n : usdcFor(reserve, collateral);
  const yieldRaw = yieldIn(basis, { gross: valueRaw, burned: collateral, held: collateral });
  return { collateral, basis, valueRaw, yieldRaw };
}

function statusOf(held: Held): 'empty' | 'earning' | 'partly-from-elsewhere' | 'from-elsewhere' {
  const { collateral, basis } = held;
  if (collateral === 0n) return 'empty';
  if (basis.collateral === 0n) return 'from-elsewhere';
  return isCostKnown(held) ? 'earning' : 'partly-from-elsewhere';
}

/** Whether the cost is known of all but dust, which anybody may send. */
function isCostKnown({ collateral, basis }: Held): boolean {
  return (collateral - basis.collateral) * DUST_PARTS <= collateral;
}

/** Null where the whole cost is not known: what came from elsewhere may have cost anything. */
function depositedView(held: Held) {
  const { basis, yieldRaw } = held;
  const isKnown = isCostKnown(held);
  const told = (units: bigint) =>
    isKnown ? { usdc: usdcText(units), raw: String(units) } : { usdc: null, raw: null };
  const [deposited, earned] = [told(basis.usdc), told(yieldRaw)];
  const fee = partOf(yieldRaw, PERFORMANCE_FEE_BPS);
  return {
    depositedUsdc: deposited.usdc,
    depositedRaw: deposited.raw,
    estimatedYieldUsdc: earned.usdc,
    estimatedYieldRaw: earned.raw,
    estimatedPerformanceFeeUsdc: told(fee).usdc,
    netYieldUsdc: told(yieldRaw - fee).usdc,
    knownPart: {
      collateralRaw: String(basis.collateral),
      depositedUsdc: usdcText(basis.usdc),
      estimatedYieldUsdc: usdcText(yieldRaw),
    },
  };
}

/** Shows what a withdrawal of everything comes to at this slot; later ones pay more. */
function leavingView(read: Read, { collateral, valueRaw, yieldRaw }: Held, isFrozen: boolean) {
  const payable = payableNow(read, read.chainAtMs ?? read.readAtMs);
  const withdrawalFee = partOf(valueRaw, WITHDRAWAL_FEE_BPS);
  const performanceFee = partOf(yieldRaw, PERFORMANCE_FEE_BPS);
  const receives = valueRaw - withdrawalFee - performanceFee;
  const reasons = [
    ...openView(read).withdrawals,
    ...(isFrozen ? ['The wallet’s account of the receipt token is frozen.'] : []),
    ...(payable.pays(collateral)
      ? []
      : [
          payable.isCapped
            ? 'The reserve’s withdrawal cap lets a part out now.'
            : 'The reserve cannot pay all of it out now; a part can be withdrawn.',
        ]),
  ];
  return {
    possible: collateral > 0n && reasons.length === 0,
    ...(collateral > 0n && reasons.length > 0 ? { reasons: [...new Set(reasons)] } : {}),
    grossUsdc: usdcText(valueRaw),
    withdrawalFeeUsdc: usdcText(withdrawalFee),
    performanceFeeUsdc: usdcText(performanceFee),
    receivesUsdc: usdcText(receives),
    receivesRaw: String(receives),
    availableUsdc: usdcText(payable.usdcRaw),
  };
}

function notesOn({ collateral, basis }: Held): string[] {
  if (collateral === 0n || basis.collateral === collateral) return [];
  const part = basis.collateral === 0n ? 'All' : 'A part';
  return [
    `${part} of the receipt tokens did not come through this portal, or came too recently to be verified. What they cost is not known, so no yield is counted on them and no performance fee is taken.`,
  ];
}

function moveView({ kind, signature, slot, atMs, usdc, collateral, fee }: WalletMove) {
  return {
    kind,
    signature,
    slot: Number(slot),
    at: atMs === null ? null : timeText(atMs),
    usdc: usdcText(usdc),
    usdcRaw: String(usdc),
    collateralRaw: String(collateral),
    feeUsdc: usdcText(fee),
  };
}

function nextActions(
  held: Held,
  {
    leavingNow,
    pending,
    links,
  }: { leavingNow: { possible: boolean }; pending: number } & Pick<PositionParts, 'links'>,
) {
  const waits = {
    action: 'wait',
    description:
      'A deposit was claimed that the chain could not be asked about yet. It is verified within the hour.',
    url: null,
  };
  if (held.collateral === 0n)
    return [
      ...(pending > 0 ? [waits] : []),
      {
        action: 'deposit',
        description: 'This wallet holds nothing here. Ask for the transactions of a deposit, and sign them.',
        url: links.deposit,
      },
      {
        action: 'fee-refunds',
        description: 'If a deposit of yours stopped after its fee: here is what is due back.',
        url: links.refunds,
      },
    ];
  return [
    ...(pending > 0 ? [waits] : []),
    ...(!isCostKnown(held) && pending === 0
      ? [
          {
            action: 'confirm',
            description: 'If you have just deposited: confirm it by the signature of its transaction.',
            url: links.confirm,
          },
        ]
      : []),
    {
      action: 'withdraw',
      description: leavingNow.possible
        ? 'Ask for a withdrawal, of everything or of a part, and sign it.'
        : 'Not all can be withdrawn now. Ask for a part.',
      url: links.withdraw,
    },
  ];
}
