/** The transaction by which a wallet leaves the vault. */
import { type Address, encodeFunctionData } from 'viem';
import { Problem } from '../../http/problem.ts';
import { VAULT_ABI } from '../contracts/abi.ts';
import { PROTOCOLS } from '../contracts/protocols.ts';
import { usdcText } from '../figures.ts';
import type { Leaving } from './asked.ts';
import { blockView, gasView, stepView, type Warning, wouldFail } from './deposit.ts';
import { CHAIN_ID, type Fixed, PROTOCOL_TITLES } from './fixed.ts';
import { type Node, quantityFrom } from './node.ts';
import { type Block, blockCallsOf, blockIn, sureOf } from './snapshot.ts';
import { returnedBy, type Step, type Trial, tryOut } from './steps.ts';

/** Of a position in kind, what is too little to be told of: 0.0001 USDC. */
const LEAST_TOLD = 100n;
/** Each protocol, and USDC that is idle. */
const ALL_PARTS = 0b1111;

interface Held {
  block: Block;
  shares: bigint;
  /** USDC units that can be had now. */
  withdrawable: bigint;
  /** Whether that is all that the shares are worth. */
  isAll: boolean;
  complete: boolean;
  /** What the wallet's part of each position is worth, in USDC units. */
  parts: readonly bigint[];
}

/**
 * What a wallet signs to leave.
 *
 * @param asked.how with all shares for USDC; with as many as USDC can be had for now; or with its part of each position, of which a
 *   protocol that hands nothing over is given up only by who asks for that
 * @throws Problem 409 when the wallet has no shares, or the transaction would fail; 503 while the chain is silent
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
  const step = leavingStep(fixed, wallet, how, held);
  const links = (ways: readonly Leaving[]) =>
    ways.length === 0 ? {} : { instead: ways.map((way) => ({ how: way, url: linkTo(way) })) };
  if (step === null) throw nothingToBeHad(held.block, links(['in-kind']));
  const trial = await tryOut(node, fixed, wallet, [step], held.block);
  if (!trial.ok) throw wouldFail(trial, [step], held, links);
  const needed = (trial.steps[0]?.gasLimit ?? 0n) * gasPriceWei;
  const warnings: Warning[] = [];
  if (wei < needed)
    warnings.push({
      code: 'INSUFFICIENT_ETH',
      message: `${wallet} holds ${wei} wei, and the gas may cost ${needed} wei at the price of now.`,
    });
  const expected = expectedOf(how, held, trial);
  warnings.push(...givenUp(how, held, expected));
  if (!held.complete && (how === 'all' || how === 'available'))
    warnings.push({
      code: 'PART_IS_LEFT_BEHIND',
      message: `A protocol that the vault has funds in cannot be read. Whoever redeems for USDC leaves their part of it to those who stay; how=in-kind hands it over where the protocol lets it: ${linkTo('in-kind')}`,
    });
  return {
    success: true,
    wallet,
    chainId: CHAIN_ID,
    how,
    transactions: 1,
    steps: trial.steps.map(stepView),
    expected,
    fees: { exitFeePct: 0, gas: gasView(trial.steps, gasPriceWei) },
    warnings,
    simulatedAt: blockView(held.block),
  };
}

/** The transaction that takes a wallet's shares out, or null where it would take nothing. */
export function leavingStep(
  { vault }: Fixed,
  wallet: Address,
  how: Leaving,
  { shares, withdrawable, isAll }: Pick<Held, 'shares' | 'withdrawable' | 'isAll'>,
): Step | null {
  if (how === 'in-kind' || how === 'in-kind-partly')
    return {
      action: 'exitInKind',
      to: vault,
      data: encodeFunctionData({
        ...{ abi: VAULT_ABI, functionName: 'exitInKind' },
        args: [shares, wallet, wallet, how === 'in-kind-partly' ? ALL_PARTS : 0],
      }),
      note: 'Hands over your part of each position: USDC that is idle, aTokens, Comet balance, MetaMorpho shares.',
    };
  if (how === 'all' || isAll)
    return {
      action: 'redeem',
      to: vault,
      data: encodeFunctionData({ abi: VAULT_ABI, functionName: 'redeem', args: [shares, wallet, wallet] }),
      note: 'Redeems all shares for USDC.',
    };
  if (withdrawable === 0n) return null;
  // By the amount and not by the shares: these are worth more when the transaction is mined, and then there would be too little.
  return {
    action: 'withdraw',
    to: vault,
    data: encodeFunctionData({
      ...{ abi: VAULT_ABI, functionName: 'withdraw', args: [withdrawable, wallet, wallet] },
    }),
    note: 'Withdraws the USDC that can be had now, for as many shares as it takes.',
  };
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
    ],
    batchSize: 0,
  });
  const [number, timestamp, chainId, balance, redeemable, withdrawable, holdings, supply] = answers;
  const [, inProtocol, , complete] = sureOf(holdings);
  const [shares, whole] = [sureOf(balance), sureOf(supply)];
  return {
    block: blockIn(node, [number, timestamp, chainId]),
    ...{ shares, withdrawable: sureOf(withdrawable), isAll: sureOf(redeemable) === shares, complete },
    parts: inProtocol.map((assets) => (whole === 0n ? 0n : (assets * shares) / whole)),
  };
}

/** What is not handed over, and stays with those who stay. */
function givenUp(how: Leaving, { parts, complete }: Held, expected: Expected): Warning[] {
  if (how !== 'in-kind-partly') return [];
  const handed = expected.handedOverRaw ?? {};
  const lost = PROTOCOLS.flatMap((name, index) =>
    (parts[index] ?? 0n) >= LEAST_TOLD && handed[name] === '0'
      ? [`${usdcText(parts[index] ?? 0n)} USDC in ${PROTOCOL_TITLES[name]}`]
      : [],
  );
  const unread = complete ? [] : ['whatever is in a protocol that cannot be read and hands nothing over'];
  const all = [...lost, ...unread];
  if (all.length === 0) return [];
  const message = `This gives up ${all.join(', and ')}: it stays with those who stay. Wait, unless you mean to.`;
  return [{ code: 'PART_IS_GIVEN_UP', message }];
}

interface Expected {
  usdc: string;
  usdcRaw: string;
  shares: string;
  /** In each protocol's own token: aUSDC, Comet balance, MetaMorpho shares. */
  handedOverRaw?: Readonly<Record<string, string>>;
}

function expectedOf(how: Leaving, held: Held, trial: Extract<Trial, { ok: true }>): Expected {
  if (how === 'all' || how === 'available') {
    const [answered] = returnedBy(trial, [{ type: 'uint256' }]);
    const [assets, shares] =
      how === 'all' || held.isAll ? [answered, held.shares] : [held.withdrawable, answered];
    return { usdc: usdcText(assets), usdcRaw: String(assets), shares: String(shares) };
  }
  const [idle, handedOver] = returnedBy(trial, [{ type: 'uint256' }, { type: 'uint256[3]' }]);
  return {
    ...{ usdc: usdcText(idle), usdcRaw: String(idle), shares: String(held.shares) },
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
