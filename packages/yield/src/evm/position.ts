/** A wallet's position in the vault: its worth, its yield, and the ways to get it out. */
import type { Address } from 'viem';
import { VAULT_ABI } from '../contracts/abi.ts';
import { usdcText } from '../figures.ts';
import type { Leaving } from './asked.ts';
import { blockView, stepView } from './deposit.ts';
import { CHAIN_ID, type Fixed } from './fixed.ts';
import type { Node } from './node.ts';
import { leavingStep, UNREAD } from './redeem.ts';
import { type Block, blockCallsOf, blockIn, sureOf, vaultCallsOf, worthOf } from './snapshot.ts';
import { tryOut } from './steps.ts';

/** A share has twelve decimals, six more than what is told of it. */
const SHARE_UNITS_OF_SIX_PLACES = 1_000_000n;

/** The cost of the shares that a wallet holds, by its own movements on the chain. */
export interface EntryCost {
  /** The USDC units that it paid for the shares that it still holds, entry fee included. */
  paid: bigint;
  /** The worth of those shares when it got them. */
  worthAtEntry: bigint;
}

/** Null and why: it cannot be told. @param shares what the wallet holds at that block, to be held against */
export type EntryCostOf = (
  wallet: Address,
  at: { shares: bigint; block: Block },
) => Promise<{ cost: EntryCost } | { cost: null; reason: string }>;

export interface PositionLinks {
  deposit(wallet: Address): string;
  redeem(wallet: Address, how: Leaving): string;
}

/** @throws Problem 503 while the chain is silent */
export async function positionOf(
  node: Node,
  fixed: Fixed,
  wallet: Address,
  { entryCost, links }: { entryCost: EntryCostOf; links: PositionLinks },
) {
  const { chain } = node;
  const its = { address: fixed.vault, abi: VAULT_ABI } as const;
  const answers = await chain.multicall({
    contracts: [
      ...blockCallsOf(chain),
      { ...its, functionName: 'balanceOf', args: [wallet] },
      { ...its, functionName: 'maxWithdraw', args: [wallet] },
      ...vaultCallsOf(fixed),
    ],
    batchSize: 0,
  });
  const [number, timestamp, chainId, balance, maxWithdraw, , , price, fees, , , , , , holdings] = answers;
  const [, , , complete] = sureOf(holdings);
  const block = blockIn(node, [number, timestamp, chainId]);
  const shares = sureOf(balance);
  const pricedAssets = sureOf(price);
  const value = worthOf(shares, { pricedAssets });
  const { performanceBps } = sureOf(fees);
  const entry = shares === 0n ? NOTHING : await entryCost(wallet, { shares, block });
  const hint =
    shares === 0n
      ? null
      : await hintFor(node, fixed, wallet, { shares, worth: value, pricedAssets, block, complete });
  const { notes, ...figures } = yieldView(value, entry, performanceBps);
  return {
    success: true,
    wallet,
    position: {
      sharesHeld: sharesText(shares),
      sharesHeldRaw: String(shares),
      shareDecimals: fixed.shareDecimals,
      currentValueUsdc: usdcText(value),
      currentValueRaw: String(value),
      ...figures,
      everythingReadable: complete,
      notes: complete ? notes : [PART_COUNTS_AS_NOTHING, ...notes],
      withdrawableNowUsdc: usdcText(sureOf(maxWithdraw)),
      withdrawableNowRaw: String(sureOf(maxWithdraw)),
      shareToken: fixed.shareToken,
      vaultAddress: fixed.vault,
    },
    redeem_hint: hint?.ok === true ? hint.transaction : null,
    redeem_hint_reason: hint === null ? 'This wallet holds no shares.' : hint.ok ? null : hint.reason,
    next_action: nextActions(wallet, { shares, hint, complete, links }),
    readAt: blockView(block),
  };
}

/** Writes shares as a decimal string with six places, rounded down; the raw number beside it is exact. */
function sharesText(shares: bigint): string {
  return usdcText(shares / SHARE_UNITS_OF_SIX_PLACES);
}

const NOTHING = { cost: { paid: 0n, worthAtEntry: 0n } };

/**
 * The yield since the wallet's own entry. The price of a share has the performance fee taken off already, so what a wallet
 * sees of its shares is net; what the fee took of it is calculated back, and exact above the vault's mark.
 */
function yieldView(value: bigint, entry: Awaited<ReturnType<EntryCostOf>>, performanceBps: number) {
  if (entry.cost === null)
    return {
      depositedUsdc: null,
      depositedRaw: null,
      entryFeePaidUsdc: null,
      estimatedYieldUsdc: null,
      estimatedPerformanceFee: null,
      netYieldUsdc: null,
      gainUsdc: null,
      notes: [entry.reason],
    };
  const { paid, worthAtEntry } = entry.cost;
  const net = value - worthAtEntry;
  const rate = BigInt(performanceBps);
  const fee = net > 0n ? (net * rate) / (10_000n - rate) : 0n;
  return {
    depositedUsdc: usdcText(paid),
    depositedRaw: String(paid),
    entryFeePaidUsdc: usdcText(paid - worthAtEntry),
    estimatedYieldUsdc: usdcText(net + fee),
    estimatedPerformanceFee: usdcText(fee),
    netYieldUsdc: usdcText(net),
    gainUsdc: usdcText(value - paid),
    notes: [
      'netYieldUsdc is the value now less what the shares were worth when this wallet got them; gainUsdc is the value less what was paid, entry fee and all.',
    ],
  };
}

const PART_COUNTS_AS_NOTHING =
  'A protocol that the vault has funds in cannot be read at the moment: what is there counts as nothing in these figures until it can be.';

type Hint = { ok: true; transaction: Record<string, unknown> } | { ok: false; reason: string };

async function hintFor(
  node: Node,
  fixed: Fixed,
  wallet: Address,
  held: { shares: bigint; worth: bigint; pricedAssets: bigint; block: Block; complete: boolean },
): Promise<Hint> {
  if (!held.complete) return { ok: false, reason: UNREAD };
  const step = leavingStep(fixed, wallet, 'all', { ...held, withdrawable: 0n, isAll: true, leaveBehind: 0 });
  if (step === null) return { ok: false, reason: 'there are no shares' };
  const trial = await tryOut(node, fixed, wallet, [step], held.block);
  if (!trial.ok) return { ok: false, reason: trial.failure.message };
  const [measured] = trial.steps;
  if (measured === undefined) return { ok: false, reason: 'nothing was measured' };
  const { to, data, value, gas, note } = stepView(measured, 0);
  return { ok: true, transaction: { to, data, value, chainId: CHAIN_ID, gas, note } };
}

function nextActions(
  wallet: Address,
  {
    shares,
    hint,
    complete,
    links,
  }: { shares: bigint; hint: Hint | null; complete: boolean; links: PositionLinks },
) {
  if (shares === 0n)
    return [
      {
        action: 'deposit',
        description: 'This wallet holds no shares. Ask for the transactions of a deposit, and sign them.',
        url: links.deposit(wallet),
      },
    ];
  if (hint === null || hint.ok)
    return [
      { action: 'redeem', description: 'Sign redeem_hint to leave.', url: links.redeem(wallet, 'all') },
    ];
  if (!complete)
    return [
      { action: 'wait', description: hint.reason, url: links.redeem(wallet, 'all') },
      {
        action: 'redeem-in-kind',
        description:
          'Take your part of each position itself, also of the one that cannot be read, where its protocol hands it over.',
        url: links.redeem(wallet, 'in-kind'),
      },
      {
        action: 'redeem-partly',
        description: 'Or take your part of what can be read, for USDC, and forfeit the rest for ever.',
        url: links.redeem(wallet, 'partly'),
      },
    ];
  return [
    {
      action: 'redeem-available',
      description: `All of it cannot be redeemed for USDC now (${hint.reason}). Take what there is.`,
      url: links.redeem(wallet, 'available'),
    },
    {
      action: 'redeem-in-kind',
      description: 'Or take your part of each position itself, which needs no liquidity.',
      url: links.redeem(wallet, 'in-kind'),
    },
  ];
}
