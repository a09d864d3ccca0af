/** The transaction of a withdrawal: gives collateral back, and pays the fees from what comes out. */

import { Problem, unavailable } from '@farebox/core/http/problem';
import type { Address } from '@solana/kit';
import { timeText, usdcText } from '../figures.ts';
import { USDC_MINT } from './addresses.ts';
import {
  feesOf,
  lacksSol,
  lifetimeView,
  priorityView,
  type Terms,
  TOKEN_RENT_LAMPORTS,
  transactionViews,
  unsigned,
  type Warning,
  type Work,
} from './bundle.ts';
import { type CostBasis, yieldIn } from './cost-basis.ts';
import { fromNode } from './from-node.ts';
import {
  createTokenAccount,
  type OwnAccounts,
  ownAccountsOf,
  redeemReserveCollateral,
  transferUsdc,
} from './instructions.ts';
import { INTENT_MS } from './intents.ts';
import { cTokensToBurn, usdcFor } from './model/interest.ts';
import type { Moves } from './moves.ts';
import type { Account } from './node.ts';
import { type Payable, payableNow } from './payable.ts';
import { type Portal, type ReserveNow, readTokenAccount } from './portal.ts';
import { PERFORMANCE_FEE_BPS, partOf, WITHDRAWAL_FEE_BPS } from './terms.ts';
import { type TrialParts, type Tried, tryOut } from './tried.ts';
import type { Priority } from './unit-price.ts';

/** Compute units: a redemption takes some 42,000, an account that is opened 25,000 more. */
const UNITS = 120_000;
const CLOSED_RETRY_MS = 600_000;

export interface WithdrawParts extends TrialParts {
  portal: Portal;
  moves: Moves;
  /** The terms that bundles are made with now. */
  terms(priority: Priority): Promise<Terms>;
  nowMs(): number;
}

export interface WithdrawAsked {
  wallet: Address;
  /** The USDC units that the reserve pays, before fees. */
  amount: bigint | 'MAX';
  priority: Priority;
}

/** The sums of a withdrawal, at the slot that it is reckoned in. */
interface Reckoned {
  burned: bigint;
  gross: bigint;
  earned: bigint;
  flatFee: bigint;
  performanceFee: bigint;
}

/**
 * `POST /api/solana-yield/withdraw-tx`
 *
 * @throws Problem 409 when there is nothing to withdraw, less than was asked for, or when it would fail; 503 while the chain is silent
 */
export async function withdrawalTransaction(parts: WithdrawParts, asked: WithdrawAsked) {
  const { portal, moves, nowMs } = parts;
  const { wallet, amount } = asked;
  const own = ownAccountsOf(wallet);
  const treasury = portal.treasuryAccount;
  const [now, terms] = await Promise.all([
    portal.look([wallet, own.usdc, own.collateral]),
    fromNode(parts.terms(asked.priority)),
  ]);
  const [walletAccount = null, usdcAccount = null, collateralAccount = null] = now.accounts;
  const held = readTokenAccount(collateralAccount)?.amount ?? 0n;
  const burned = toBurn(now, wallet, held, amount);
  const payable = payableNow(now, nowMs());
  checkLiquidity(now, burned, payable);
  const basis = await moves.costBasis(wallet, held);
  // Whoever sends SOL to its address makes an account that is not open.
  const opensUsdc = readTokenAccount(usdcAccount) === null;
  const builtFor = (gross: bigint): Built => {
    const reckoned = reckon(basis, { gross, burned, held });
    return { reckoned, work: workOf(own, treasury, { burned, fee: feeOf(reckoned), opensUsdc }) };
  };
  const modelled = builtFor(usdcFor(now.reserve, burned));
  const rent = opensUsdc ? TOKEN_RENT_LAMPORTS : 0n;
  const lacking = lacksSol(wallet, walletAccount, { fees: feesOf([modelled.work], terms), rent });
  const { reckoned, work, tried } =
    lacking === null
      ? await tryBuilt(parts, { own, terms, now, before: usdcAccount }, modelled, builtFor)
      : { ...modelled, tried: null };
  return {
    success: true,
    wallet,
    transactions: transactionViews(wallet, [work], terms),
    bundle_expires_at: timeText(nowMs() + INTENT_MS),
    ...lifetimeView(terms),
    priority_fee: priorityView([work], terms),
    ...amountsView(now.slot, amount, reckoned),
    ...availableView(payable),
    isFullExit: burned === held,
    warnings: [...(lacking === null ? [] : [lacking]), ...differenceOf(tried, modelled.reckoned)],
    simulation: simulationView(tried),
    instructions: ['Sign and send transactions[0]. It is one transaction: all of it happens, or nothing.'],
    agent_hint:
      'Only the wallet can sign. What it receives is net_raw or, with each slot that passes, a little more: the fees are fixed in the transaction, and the collateral goes on earning until it lands.',
  };
}

/** A transaction, and what it was reckoned for. */
interface Built {
  reckoned: Reckoned;
  work: Work;
}

/** Builds and tries a withdrawal by what the program does: where the model says something else, all is reckoned from the simulation anew. */
async function tryBuilt(
  parts: WithdrawParts,
  { own, terms, now, before }: { own: OwnAccounts; terms: Terms; now: ReserveNow; before: Account | null },
  modelled: Built,
  builtFor: (gross: bigint) => Built,
): Promise<Built & { tried: Tried }> {
  const tryOne = ({ work, reckoned }: Built) =>
    tryOut(parts, {
      transaction: unsigned(own.owner, work, terms),
      account: own.usdc,
      now,
      before,
      model: (reserve) => usdcFor(reserve, reckoned.burned) - feeOf(reckoned),
    });
  const first = await tryOne(modelled);
  if (first.agrees) return { ...modelled, tried: first };
  const paid = first.change + feeOf(modelled.reckoned);
  const anew = builtFor(paid > 0n ? paid : 0n);
  return { ...anew, tried: await tryOne(anew) };
}

function reckon(
  basis: CostBasis,
  { gross, burned, held }: { gross: bigint; burned: bigint; held: bigint },
): Reckoned {
  const earned = yieldIn(basis, { gross, burned, held });
  return {
    burned,
    gross,
    earned,
    flatFee: partOf(gross, WITHDRAWAL_FEE_BPS),
    performanceFee: partOf(earned, PERFORMANCE_FEE_BPS),
  };
}

function feeOf({ flatFee, performanceFee }: Reckoned): bigint {
  return flatFee + performanceFee;
}

function differenceOf(tried: Tried | null, { gross }: Reckoned): Warning[] {
  if (tried === null || tried.agrees) return [];
  return [
    {
      code: 'MODEL_DIFFERS',
      message: `The lending program pays another amount than this portal’s model of it, which says ${usdcText(gross)} USDC before fees. All figures here are those of the simulation; compare them with what your wallet shows before you sign.`,
    },
  ];
}

function simulationView(tried: Tried | null) {
  if (tried === null)
    return { done: false, note: 'Not simulated: the wallet cannot pay yet, as warnings say.' };
  return {
    done: true,
    slot: String(tried.slot),
    unitsConsumed: tried.unitsConsumed,
    received_usdc: usdcText(tried.change),
    received_raw: String(tried.change),
    agrees_with_model: tried.agrees,
  };
}

function amountsView(slot: bigint, amount: bigint | 'MAX', reckoned: Reckoned) {
  const { burned, gross, earned, flatFee, performanceFee } = reckoned;
  const fee = feeOf(reckoned);
  const requested = amount === 'MAX' ? gross : amount;
  return {
    fee_breakdown: {
      flat_fee_usdc: usdcText(flatFee),
      perf_fee_usdc: usdcText(performanceFee),
      yield_earned_usdc: usdcText(earned),
      total_fee_usdc: usdcText(fee),
    },
    requestedUsdc: usdcText(requested),
    requestedRaw: String(requested),
    gross_usdc: usdcText(gross),
    grossRaw: String(gross),
    feeUsdc: usdcText(fee),
    feeRaw: String(fee),
    net_usdc: usdcText(gross - fee),
    net_raw: String(gross - fee),
    at_slot: String(slot),
    collateralRaw: String(burned),
  };
}

/** The collateral to give back. @throws Problem 409 */
function toBurn(
  { reserve }: ReserveNow,
  wallet: string,
  held: bigint,
  amount: WithdrawAsked['amount'],
): bigint {
  if (held === 0n)
    throw new Problem(409, 'NOTHING_TO_WITHDRAW', `${wallet} holds no collateral of this reserve.`, {
      details: { success: false, next_action: ['POST /api/solana-yield/deposit-tx'] },
    });
  if (amount === 'MAX') return held;
  const worth = usdcFor(reserve, held);
  if (amount > worth)
    throw new Problem(409, 'EXCEEDS_POSITION', `The position is worth ${usdcText(worth)} USDC.`, {
      details: {
        success: false,
        max_usdc: usdcText(worth),
        max_raw: String(worth),
        hint: 'Set amount to MAX to take all of it.',
      },
    });
  const burned = cTokensToBurn(reserve, amount);
  return burned < held ? burned : held;
}

/** @throws Problem 409 where the reserve cannot pay so much when it lands, 503 where it pays nobody */
function checkLiquidity({ reserve, market }: ReserveNow, burned: bigint, payable: Payable): void {
  if (reserve.isEmergency || market.isEmergency) {
    const reason = 'the lending market is in emergency mode';
    throw unavailable('RESERVE_CLOSED', `Nothing can be withdrawn, since ${reason}.`, CLOSED_RETRY_MS, {
      success: false,
      reason,
    });
  }
  if (payable.pays(burned)) return;
  const available = usdcText(payable.usdcRaw);
  throw new Problem(
    409,
    payable.isCapped ? 'WITHDRAWAL_CAP' : 'INSUFFICIENT_LIQUIDITY',
    `The reserve can pay ${available} USDC out now; ${payable.isCapped ? 'its cap lets no more out in this interval' : 'the rest is lent out'}.`,
    {
      details: {
        success: false,
        ...availableView(payable),
        hint: 'Withdraw that much now with amount_usdc, and the rest later.',
      },
    },
  );
}

function availableView({ usdcRaw }: Payable) {
  return { available_usdc: usdcText(usdcRaw), available_raw: String(usdcRaw) };
}

function workOf(
  own: OwnAccounts,
  treasury: Address,
  { burned, fee, opensUsdc }: { burned: bigint; fee: bigint; opensUsdc: boolean },
): Work {
  const { owner, usdc } = own;
  return {
    action: 'withdraw',
    note: `Gives ${burned} units of collateral back, and pays ${usdcText(fee)} USDC of fees from what comes out.`,
    units: UNITS,
    instructions: [
      ...(opensUsdc ? [createTokenAccount(owner, { owner, mint: USDC_MINT, account: usdc })] : []),
      redeemReserveCollateral(own, burned),
      ...(fee > 0n ? [transferUsdc({ owner, from: usdc, to: treasury, amountRaw: fee })] : []),
    ],
  };
}
