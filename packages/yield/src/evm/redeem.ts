/** The transaction by which a wallet leaves the vault. */

import { Problem } from '@farebox/core/http/problem';
import { type Address, encodeFunctionData } from 'viem';
import { VAULT_ABI } from '../contracts/abi.ts';
import { PROTOCOLS } from '../contracts/protocols.ts';
import { usdcText } from '../figures.ts';
import type { Leaving } from './asked.ts';
import { blockView, gasView, stepView, type Warning, wouldFail } from './deposit.ts';
import { CHAIN_ID, type Fixed, PROTOCOL_TITLES } from './fixed.ts';
import { type Node, quantityFrom } from './node.ts';
import { type Block, blockCallsOf, blockIn, PRICED_SHARES, sureOf, worthOf } from './snapshot.ts';
import { returnedBy, type Step, type Trial, tryOut } from './steps.ts';

/** A position in kind below this is too little to be told of: 0.0001 USDC. */
const LEAST_TOLD = 100n;
/** The most that the price may move against the leaver until the transaction is mined: a thousandth. */
const SLIPPAGE_PER_MILLE = 1n;
/** The parts that an exit in kind hands over: each protocol's own, in their order, and USDC that is idle. */
const PARTS = [
  ...PROTOCOLS.map((name) => `your part in ${PROTOCOL_TITLES[name]}`),
  'your part of the USDC that lies idle',
];

interface Held {
  block: Block;
  shares: bigint;
  /** Their worth in USDC units, by what can be read. */
  worth: bigint;
  /** USDC units of so many shares, by which a price is told. */
  pricedAssets: bigint;
  /** USDC units that can be had now. */
  withdrawable: bigint;
  /** Whether that is all that the shares are worth. */
  isAll: boolean;
  complete: boolean;
  /** The worth of the wallet's part of each position, in USDC units. */
  parts: readonly bigint[];
}

/** With how it is called: the bound beyond which it is reverted is among the parameters. */
type LeavingStep = Step & { call: { function: string; parameters: Record<string, string | number> } };

/**
 * Builds the transaction that a wallet signs to leave.
 *
 * @param asked.how with all shares for USDC; with as many as USDC can be had for now; with all for what can be read of them; or with
 *   its part of each position, of which what is not handed over is given up only by who asks for that
 * @throws Problem 409 when the wallet has no shares, a position cannot be read, or the transaction would fail; 503 while the chain is
 *   silent
 */
export async function redeemTransaction(
  node: Node,
  fixed: Fixed,
  { wallet, how, linkTo }: { wallet: Address; how: Leaving; linkTo(how: Leaving): string },
) {
  const [held, wei, gasPriceWei] = await Promise.all([
    heldBy(node, fixed, wallet),
    quantityFrom(node, 'eth_getBalance', [wallet, 'latest']),
    quantityFrom(node, 'eth_gasPrice'),
  ]);
  if (held.shares === 0n) throw nothingToRedeem(wallet, held.block);
  const links = (ways: readonly Leaving[]) =>
    ways.length === 0 ? {} : { instead: ways.map((way) => ({ how: way, url: linkTo(way) })) };
  if (!held.complete && (how === 'all' || how === 'available'))
    throw unread(held.block, await exitsOf(node, fixed, wallet, held, linkTo));
  const { step, trial, leaveBehind } = await tried(node, fixed, wallet, how, held);
  if (step === null) throw nothingToBeHad(held.block, links(['in-kind']));
  if (!trial.ok) throw wouldFail(trial, [step], held, links);
  const needed = (trial.steps[0]?.gasLimit ?? 0n) * gasPriceWei;
  const warnings: Warning[] = [];
  if (wei < needed)
    warnings.push({
      code: 'INSUFFICIENT_ETH',
      message: `${wallet} holds ${wei} wei, and the gas may cost ${needed} wei at the price of now.`,
      costs: true,
    });
  const expected = expectedOf(how, held, trial);
  warnings.push(...givenUp(held, leaveBehind), ...forfeited(how, held));
  return {
    success: true,
    wallet,
    chainId: CHAIN_ID,
    how,
    transactions: 1,
    steps: trial.steps.map((each, index) => ({ ...stepView(each, index), call: step.call })),
    expected,
    fees: { exitFeePct: 0, gas: gasView(trial.steps, gasPriceWei) },
    warnings,
    simulatedAt: blockView(held.block),
  };
}

type Tried =
  | { step: null; trial: null; leaveBehind: number }
  | { step: LeavingStep; trial: Trial; leaveBehind: number };

/** Tries a way out. Whoever gives up what is not handed over gives up no more than what the trials say is not. */
async function tried(node: Node, fixed: Fixed, wallet: Address, how: Leaving, held: Held): Promise<Tried> {
  let leaveBehind = 0;
  for (;;) {
    const step = leavingStep(fixed, wallet, how, { ...held, leaveBehind });
    if (step === null) return { step, trial: null, leaveBehind };
    const trial = await tryOut(node, fixed, wallet, [step], held.block);
    const refused =
      trial.ok || trial.failure.error !== 'NotHandedOver' ? null : Number(trial.failure.values[0]);
    const isNew = refused !== null && refused in PARTS && (leaveBehind & (1 << refused)) === 0;
    if (how !== 'in-kind-partly' || !isNew) return { step, trial, leaveBehind };
    leaveBehind |= 1 << refused;
  }
}

/** The transaction that takes a wallet's shares out, or null where it would take nothing. */
export function leavingStep(
  { vault }: Fixed,
  wallet: Address,
  how: Leaving,
  {
    shares,
    worth,
    pricedAssets,
    withdrawable,
    isAll,
    leaveBehind,
  }: Pick<Held, 'shares' | 'worth' | 'pricedAssets' | 'withdrawable' | 'isAll'> & { leaveBehind: number },
): LeavingStep | null {
  const whose = { receiver: wallet, owner: wallet };
  if (how === 'in-kind' || how === 'in-kind-partly')
    return {
      action: 'exitInKind',
      to: vault,
      data: encodeFunctionData({
        abi: VAULT_ABI,
        functionName: 'exitInKind',
        args: [shares, wallet, wallet, leaveBehind],
      }),
      note: 'Hands over your part of each position: USDC that is idle, aTokens, Comet balance, MetaMorpho shares.',
      call: { function: 'exitInKind', parameters: { shares: String(shares), ...whose, leaveBehind } },
    };
  if (how === 'partly' || how === 'all' || isAll) {
    const functionName = how === 'partly' ? 'redeemPartly' : 'redeem';
    const minAssets = worth - (worth * SLIPPAGE_PER_MILLE + 999n) / 1_000n;
    const args = [shares, wallet, wallet, minAssets > 0n ? minAssets : 0n] as const;
    return {
      action: functionName,
      to: vault,
      data: encodeFunctionData({ abi: VAULT_ABI, functionName, args }),
      note:
        how === 'partly'
          ? `Burns all shares for their part of what can be read, at least ${usdcText(args[3])} USDC, and forfeits the rest for ever.`
          : `Redeems all shares for USDC, and is reverted if they bring less than ${usdcText(args[3])}.`,
      call: {
        function: functionName,
        parameters: { shares: String(shares), ...whose, minAssets: String(args[3]) },
      },
    };
  }
  if (withdrawable === 0n || pricedAssets === 0n) return null;
  const costs = (withdrawable * PRICED_SHARES) / pricedAssets;
  const most = costs + (costs * SLIPPAGE_PER_MILLE) / 1_000n + 1n;
  const maxShares = most < shares ? most : shares;
  // By the amount and not by the shares: these are worth more when the transaction is mined, and then there would be too little.
  return {
    action: 'withdraw',
    to: vault,
    data: encodeFunctionData({
      abi: VAULT_ABI,
      functionName: 'withdraw',
      args: [withdrawable, wallet, wallet, maxShares],
    }),
    note: `Withdraws the USDC that can be had now, and is reverted if that costs more than ${maxShares} units of shares.`,
    call: {
      function: 'withdraw',
      parameters: { assets: String(withdrawable), ...whose, maxShares: String(maxShares) },
    },
  };
}

/** Both ways that stay open while a position cannot be read: how each is called, and what it would bring now. */
async function exitsOf(
  node: Node,
  fixed: Fixed,
  wallet: Address,
  held: Held,
  linkTo: (how: Leaving) => string,
): Promise<Record<string, unknown>[]> {
  const kinds: Leaving[] = ['partly', 'in-kind'];
  return Promise.all(
    kinds.map(async (asked) => {
      const first = await tried(node, fixed, wallet, asked, held);
      const isRefused = first.trial?.ok === false && first.trial.failure.error === 'NotHandedOver';
      const how = isRefused ? 'in-kind-partly' : asked;
      const { step, trial, leaveBehind } = isRefused ? await tried(node, fixed, wallet, how, held) : first;
      return {
        how,
        url: linkTo(how),
        ...step?.call,
        ...(trial?.ok === true
          ? { expected: expectedOf(how, held, trial), givesUp: partsIn(leaveBehind) }
          : { expected: null, failure: trial?.failure ?? null }),
      };
    }),
  );
}

async function heldBy(node: Node, { vault }: Fixed, wallet: Address): Promise<Held> {
  const { chain } = node;
  const its = { address: vault, abi: VAULT_ABI } as const;
  const answers = await chain.multicall({
    contracts: [
      ...blockCallsOf(chain),
      { ...its, functionName: 'balanceOf', args: [wallet] },
      { ...its, functionName: 'maxRedeem', args: [wallet] },
      { ...its, functionName: 'maxWithdraw', args: [wallet] },
      { ...its, functionName: 'holdings' },
      { ...its, functionName: 'totalSupply' },
      { ...its, functionName: 'convertToAssets', args: [PRICED_SHARES] },
    ],
    batchSize: 0,
  });
  const [number, timestamp, chainId, balance, redeemable, withdrawable, holdings, supply, price] = answers;
  const [, inProtocol, , complete] = sureOf(holdings);
  const [shares, whole, pricedAssets] = [sureOf(balance), sureOf(supply), sureOf(price)];
  return {
    block: blockIn(node, [number, timestamp, chainId]),
    shares,
    pricedAssets,
    worth: worthOf(shares, { pricedAssets }),
    withdrawable: sureOf(withdrawable),
    isAll: sureOf(redeemable) === shares,
    complete,
    parts: inProtocol.map((assets) => (whole === 0n ? 0n : (assets * shares) / whole)),
  };
}

function partsIn(bits: number): string[] {
  return PARTS.filter((_, index) => (bits & (1 << index)) !== 0);
}

/** Warns of positions that are not handed over and stay with the other holders. */
function givenUp({ parts }: Held, leaveBehind: number): Warning[] {
  const all = PARTS.flatMap((name, index) => {
    if ((leaveBehind & (1 << index)) === 0) return [];
    const worth = parts[index] ?? 0n;
    return [worth >= LEAST_TOLD ? `${name}, ${usdcText(worth)} USDC` : name];
  });
  if (all.length === 0) return [];
  const message = `This gives up ${all.join(', and ')}: it is not handed over now, and stays with those who stay, for ever. Wait, unless you mean to.`;
  return [{ code: 'PART_IS_GIVEN_UP', message, costs: true }];
}

/** Warns of what a leaver for USDC leaves behind while a position cannot be read. */
function forfeited(how: Leaving, { complete }: Held): Warning[] {
  if (complete || how !== 'partly') return [];
  const message =
    'A protocol that the vault has funds in cannot be read. This burns all shares for their part of what can be read, and forfeits their part of the rest to those who stay, for ever. Wait, or take your part in kind, unless you mean to.';
  return [{ code: 'PART_IS_FORFEITED', message, costs: true }];
}

interface Expected {
  usdc: string;
  usdcRaw: string;
  shares: string;
  /** In each protocol's own token: aUSDC, Comet balance, MetaMorpho shares. */
  handedOverRaw?: Readonly<Record<string, string>>;
}

function expectedOf(how: Leaving, held: Held, trial: Extract<Trial, { ok: true }>): Expected {
  if (how !== 'in-kind' && how !== 'in-kind-partly') {
    const [answered] = returnedBy(trial, [{ type: 'uint256' }]);
    const [assets, shares] =
      how !== 'available' || held.isAll ? [answered, held.shares] : [held.withdrawable, answered];
    return { usdc: usdcText(assets), usdcRaw: String(assets), shares: String(shares) };
  }
  const [idle, handedOver] = returnedBy(trial, [{ type: 'uint256' }, { type: 'uint256[3]' }]);
  return {
    usdc: usdcText(idle),
    usdcRaw: String(idle),
    shares: String(held.shares),
    handedOverRaw: Object.fromEntries(
      PROTOCOLS.map((name, index) => [name, String(handedOver[index] ?? 0n)]),
    ),
  };
}

function nothingToRedeem(wallet: Address, block: Block): Problem {
  const message = `${wallet} holds no shares of the vault at block ${block.number}.`;
  return new Problem(409, 'NO_SHARES', message, {
    details: { success: false, simulatedAt: blockView(block) },
  });
}

function nothingToBeHad(block: Block, more: Record<string, unknown>): Problem {
  const message = 'The protocols can pay nothing out at the moment. Take your part of each position itself.';
  return new Problem(409, 'NOT_ENOUGH_LIQUIDITY', message, {
    details: { success: false, simulatedAt: blockView(block), ...more },
  });
}

/** Why nothing is redeemed for USDC while a position cannot be read. */
export const UNREAD =
  'A protocol that the vault has funds in cannot be read at the moment, and its part would be lost: nothing is redeemed for USDC until it can be. Wait, or leave by one of two other ways.';

function unread(block: Block, instead: readonly Record<string, unknown>[]): Problem {
  return new Problem(409, 'PROTOCOL_UNREAD', UNREAD, {
    details: { success: false, simulatedAt: blockView(block), instead },
  });
}
