/** The bundle of a deposit: a transaction that pays the fee, and one that deposits the rest. */

import { Problem, unavailable } from '@farebox/core/http/problem';
import { type Address, address } from '@solana/kit';
import { timeText, usdcText } from '../figures.ts';
import { COLLATERAL_MINT } from './addresses.ts';
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
import { fromNode } from './from-node.ts';
import {
  createTokenAccount,
  depositReserveLiquidity,
  type OwnAccounts,
  ownAccountsOf,
  transferUsdc,
} from './instructions.ts';
import { INTENT_MS, type Intent, type Intents, LANDS_WITHIN_SLOTS } from './intents.ts';
import { accrue, cTokensFor, depositRoomRaw } from './model/interest.ts';
import type { Account } from './node.ts';
import { type Portal, type ReserveNow, readTokenAccount } from './portal.ts';
import { DEPOSIT_FEE_BPS, partOf } from './terms.ts';
import { modelDiffers, type TrialParts, type Tried, tryOut } from './tried.ts';
import type { Priority } from './unit-price.ts';

/** Compute units: a transfer takes some 7,000, a deposit that opens an account some 65,000. */
const UNITS = { fee: 40_000, deposit: 200_000 };
const CLOSED_RETRY_MS = 600_000;

export interface DepositParts extends TrialParts {
  portal: Portal;
  intents: Intents;
  /** The terms that bundles are made with now. */
  terms(priority: Priority): Promise<Terms>;
  nowMs(): number;
}

export interface DepositAsked {
  wallet: Address;
  /** USDC units, with the fee. */
  amount: bigint;
  /** Null: the caller gave none. */
  idempotencyKey: string | null;
  priority: Priority;
}

/**
 * `POST /api/solana-yield/deposit-tx`
 *
 * @throws Problem 409 when one was built for the same key, wallet and amount, or when it would fail for another reason than what the
 *   wallet lacks; 503 while the chain is silent, the reserve is closed, or the program does something else than the model says
 */
export async function depositBundle(parts: DepositParts, asked: DepositAsked) {
  const { wallet, amount, idempotencyKey } = asked;
  if (idempotencyKey === null) return build(parts, asked, null);
  const intent = await parts.intents.take(idempotencyKey, wallet, amount);
  if (intent.isTaken) throw repeated(intent, parts.nowMs());
  try {
    return await build(parts, asked, intent);
  } catch (error) {
    await parts.intents.giveBack(intent);
    throw error;
  }
}

async function build(parts: DepositParts, asked: DepositAsked, intent: Intent | null) {
  const { portal, nowMs } = parts;
  const { wallet, amount } = asked;
  const expiresAtMs = intent?.expiresAtMs ?? nowMs() + INTENT_MS;
  const own = ownAccountsOf(wallet);
  const treasury = portal.treasuryAccount;
  const [now, terms] = await Promise.all([
    portal.look([wallet, own.usdc, own.collateral]),
    fromNode(parts.terms(asked.priority)),
  ]);
  const fee = partOf(amount, DEPOSIT_FEE_BPS);
  const deposit = amount - fee;
  checkReserve(now, deposit);
  const works = worksOf(own, treasury, { fee, deposit });
  const warnings = warningsFor(asked, now.accounts, feesOf(works, terms));
  const tried = warnings.length > 0 ? null : await tryBoth(parts, own, works, terms, { now, deposit });
  const expected = tried?.change ?? cTokensFor(now.reserve, deposit).cTokensRaw;
  return {
    success: true,
    wallet,
    transactions: transactionViews(wallet, works, terms),
    bundle_expires_at: timeText(expiresAtMs),
    ...lifetimeView(terms),
    priority_fee: priorityView(works, terms),
    ...(intent === null ? {} : { idempotency_key: asked.idempotencyKey, intent_id: intent.id }),
    amountUsdc: usdcText(amount),
    amountRaw: String(amount),
    feeUsdc: usdcText(fee),
    feeRaw: String(fee),
    depositUsdc: usdcText(deposit),
    depositRaw: String(deposit),
    expected: { collateralMint: COLLATERAL_MINT, collateralRaw: String(expected), account: own.collateral },
    warnings,
    simulation:
      tried === null
        ? { done: false, note: 'Not simulated: the wallet cannot pay yet, as warnings say.' }
        : {
            done: true,
            slot: String(tried.slot),
            unitsConsumed: tried.unitsConsumed,
            agrees_with_model: true,
          },
    instructions: [
      'Sign and send transactions[0], which pays the fee, and wait until it is confirmed.',
      'Sign and send transactions[1], which deposits, and wait until it is confirmed.',
      'Send its signature to POST /api/solana-yield/confirm as txSignature.',
    ],
    agent_hint:
      'Only the wallet can sign. If the first transaction is confirmed and the second fails, ask for a new bundle with a new idempotency_key; the fee is listed for refund by itself at /api/solana-yield/fee-refunds/{wallet}.',
  };
}

function repeated({ id, expiresAtMs }: Intent, nowMs: number): Problem {
  const seconds = Math.max(1, Math.ceil((expiresAtMs - nowMs) / 1_000));
  return new Problem(
    409,
    'DUPLICATE_INTENT',
    'A bundle was built for this idempotency_key, wallet and amount, and has not expired.',
    {
      details: {
        success: false,
        hint: 'Sign the bundle that you have, or ask again with a new idempotency_key.',
        bundle_expires_at: timeText(expiresAtMs),
        existing_intent_id: id,
      },
      headers: { 'retry-after': String(seconds) },
    },
  );
}

/** @throws Problem 503 where the reserve takes no deposits, 409 where it takes less when this one lands */
function checkReserve({ slot, reserve, market }: ReserveNow, deposit: bigint): void {
  const closed =
    reserve.isEmergency || market.isEmergency
      ? 'the lending market is in emergency mode'
      : reserve.status !== 'active'
        ? `the reserve is ${reserve.status}`
        : reserve.isCollateralTokenBlocked
          ? 'the reserve gives no collateral tokens out at the moment'
          : null;
  if (closed !== null)
    throw unavailable('RESERVE_CLOSED', `No deposit can be made, since ${closed}.`, CLOSED_RETRY_MS, {
      success: false,
      reason: closed,
    });
  // Interest takes room too.
  const room = depositRoomRaw(accrue(reserve, slot + LANDS_WITHIN_SLOTS, market.referralFeeBps));
  if (deposit > room)
    throw new Problem(409, 'DEPOSIT_LIMIT', `The reserve takes ${usdcText(room)} USDC more, after the fee.`, {
      details: { success: false, max_deposit_usdc: usdcText(room), max_deposit_raw: String(room) },
    });
}

function worksOf(
  own: OwnAccounts,
  treasury: Address,
  { fee, deposit }: { fee: bigint; deposit: bigint },
): [fee: Work, deposit: Work] {
  const { owner, usdc, collateral } = own;
  return [
    {
      action: 'fee',
      note: `Pays the deposit fee of ${usdcText(fee)} USDC.`,
      units: UNITS.fee,
      instructions: [transferUsdc({ owner, from: usdc, to: treasury, amountRaw: fee })],
    },
    {
      action: 'deposit',
      note: `Deposits ${usdcText(deposit)} USDC; the collateral tokens go to the wallet’s own account.`,
      units: UNITS.deposit,
      instructions: [
        createTokenAccount(owner, { owner, mint: address(COLLATERAL_MINT), account: collateral }),
        depositReserveLiquidity(own, deposit),
      ],
    },
  ];
}

function warningsFor(
  { wallet, amount }: DepositAsked,
  [walletAccount = null, usdcAccount = null, collateralAccount = null]: readonly (Account | null)[],
  fees: bigint,
): Warning[] {
  const warnings: Warning[] = [];
  const usdc = readTokenAccount(usdcAccount);
  if (usdc?.isFrozen) throw frozen(wallet);
  const held = usdc?.amount ?? 0n;
  if (held < amount)
    warnings.push({
      code: 'INSUFFICIENT_USDC',
      message: `${wallet} holds ${usdcText(held)} USDC, which is ${usdcText(amount - held)} too little. Nothing can be deposited before it holds more.`,
    });
  // Whoever sends SOL to its address makes an account that is not open.
  const rent = readTokenAccount(collateralAccount) === null ? TOKEN_RENT_LAMPORTS : 0n;
  const lacking = lacksSol(wallet, walletAccount, { fees, rent });
  if (lacking !== null) warnings.push(lacking);
  return warnings;
}

function frozen(wallet: string): Problem {
  return new Problem(409, 'ACCOUNT_FROZEN', `The USDC account of ${wallet} is frozen by its issuer.`, {
    details: { success: false },
  });
}

/**
 * Tries both transactions as one, since the second is built upon what the first has done.
 *
 * @throws Problem 409 when it would fail, 503 when it would do something else than the model says
 */
async function tryBoth(
  parts: TrialParts,
  { owner, collateral }: OwnAccounts,
  works: readonly Work[],
  terms: Terms,
  { now, deposit }: { now: ReserveNow & { accounts: readonly (Account | null)[] }; deposit: bigint },
): Promise<Tried> {
  const both = {
    units: works.reduce((sum, { units }) => sum + units, 0),
    instructions: works.flatMap(({ instructions }) => instructions),
  };
  const tried = await tryOut(parts, {
    transaction: unsigned(owner, both, terms),
    account: collateral,
    now,
    before: now.accounts[2] ?? null,
    model: (reserve) => cTokensFor(reserve, deposit).cTokensRaw,
  });
  if (!tried.agrees) throw modelDiffers(tried);
  return tried;
}
