/**
 * The borrower at the lending protocols, without whom they would pay no interest. The borrower's debt follows from the time
 * alone, in waves of some days that differ for each protocol, so that the interest rates change.
 */
import { type Address, encodeFunctionData, type Hex, parseAbi } from 'viem';
import { BUILDERS } from '../accounts.ts';
import { USDC } from '../addresses.ts';
import { type Node, transact } from '../node.ts';
import { mintUsdc, usdcBalanceMicros } from '../usdc.ts';
import { AAVE_POOL, AAVE_USDC, COMET, MORPHO } from './addresses.ts';
import { readManifest } from './snapshot.ts';

const borrower = BUILDERS.borrower.address;
const DAY_MS = 86_400_000;
/** A debt stays as it is while it is off by less than this part (in millionths) of what the protocol was lent. */
const CLOSE_ENOUGH_PARTS = 2_000n;
const PARTS = 1_000_000n;
/** Morpho's target utilization. Its rates rise over time while utilization is above the target, and fall while it is below. */
const MORPHO_TARGET_USE = 0.9;

const TOKEN = parseAbi(['function totalSupply() view returns (uint256)']);
const AAVE = parseAbi([
  'function getReserveVariableDebtToken(address asset) view returns (address)',
  'function borrow(address asset, uint256 amount, uint256 interestRateMode, uint16 referralCode, address onBehalfOf)',
  'function repay(address asset, uint256 amount, uint256 interestRateMode, address onBehalfOf) returns (uint256)',
]);
const COMPOUND = parseAbi([
  'function totalSupply() view returns (uint256)',
  'function totalBorrow() view returns (uint256)',
  'function sandboxBorrow(uint256 amount)',
  'function supply(address asset, uint256 amount)',
]);
const BLUE = parseAbi([
  'struct Market { address loanToken; address collateralToken; address oracle; address irm; uint256 lltv; }',
  'function market(bytes32 id) view returns (uint128 totalSupplyAssets, uint128 totalSupplyShares, uint128 totalBorrowAssets, uint128 totalBorrowShares, uint128 lastUpdate, uint128 fee)',
  'function borrow(Market market, uint256 assets, uint256 shares, address onBehalf, address receiver) returns (uint256, uint256)',
  'function repay(Market market, uint256 assets, uint256 shares, address onBehalf, bytes data) returns (uint256, uint256)',
]);

/** A protocol as its borrowers see it. Amounts are USDC micros. */
interface Lender {
  address: Address;
  lent(): Promise<{ supplied: bigint; borrowed: bigint }>;
  borrow(amount: bigint): Hex;
  repay(amount: bigint): Hex;
  /** The utilization that is wanted at a time: the part of the supply, 0 to 1, that is borrowed. */
  use(atMs: number): number;
}

/**
 * Borrows or repays at each protocol until its utilization is the one wanted at this time. A protocol that refuses, such
 * as in a drill, is left as it is.
 */
export async function borrowAndRepay(node: Node, atMs: number): Promise<void> {
  for (const lender of lendersOf(node)) {
    const { supplied, borrowed } = await lender.lent();
    const wanted = (supplied * BigInt(Math.round(lender.use(atMs) * Number(PARTS)))) / PARTS;
    const more = wanted - borrowed;
    if (more * PARTS < CLOSE_ENOUGH_PARTS * supplied && -more * PARTS < CLOSE_ENOUGH_PARTS * supplied)
      continue;
    if (more < 0n) {
      const held = await usdcBalanceMicros(node, borrower);
      if (held < -more) await mintUsdc(node, borrower, -more - held);
    }
    const data = more > 0n ? lender.borrow(more) : lender.repay(-more);
    await transact(node, { from: borrower, to: lender.address, data }).catch(() => undefined);
  }
}

function lendersOf(node: Node): Lender[] {
  const { morphoMarket } = readManifest();
  const { id, ...market } = { ...morphoMarket, lltv: BigInt(morphoMarket.lltv) };
  const supplyOf = (token: Address) =>
    node.readContract({ address: token, abi: TOKEN, functionName: 'totalSupply' });
  return [
    {
      address: AAVE_POOL,
      async lent() {
        const debt = await node.readContract({
          address: AAVE_POOL,
          abi: AAVE,
          functionName: 'getReserveVariableDebtToken',
          args: [USDC],
        });
        return { supplied: await supplyOf(AAVE_USDC), borrowed: await supplyOf(debt) };
      },
      borrow: (amount) =>
        encodeFunctionData({ abi: AAVE, functionName: 'borrow', args: [USDC, amount, 2n, 0, borrower] }),
      repay: (amount) =>
        encodeFunctionData({ abi: AAVE, functionName: 'repay', args: [USDC, amount, 2n, borrower] }),
      use: (atMs) => 0.8 + 0.06 * wave(atMs, 8.7),
    },
    {
      address: COMET,
      async lent() {
        const [supplied, borrowed] = await Promise.all([
          node.readContract({ address: COMET, abi: COMPOUND, functionName: 'totalSupply' }),
          node.readContract({ address: COMET, abi: COMPOUND, functionName: 'totalBorrow' }),
        ]);
        return { supplied, borrowed };
      },
      borrow: (amount) =>
        encodeFunctionData({ abi: COMPOUND, functionName: 'sandboxBorrow', args: [amount] }),
      repay: (amount) => encodeFunctionData({ abi: COMPOUND, functionName: 'supply', args: [USDC, amount] }),
      use: (atMs) => 0.8 + 0.04 * wave(atMs, 6.3),
    },
    {
      address: MORPHO,
      async lent() {
        const [supplied, , borrowed] = await node.readContract({
          address: MORPHO,
          abi: BLUE,
          functionName: 'market',
          args: [id],
        });
        return { supplied, borrowed };
      },
      borrow: (amount) =>
        encodeFunctionData({
          abi: BLUE,
          functionName: 'borrow',
          args: [market, amount, 0n, borrower, borrower],
        }),
      repay: (amount) =>
        encodeFunctionData({ abi: BLUE, functionName: 'repay', args: [market, amount, 0n, borrower, '0x'] }),
      // In the measure of Morpho's curve, as far above the target as below it: the rate returns to where it was.
      use(atMs) {
        const away = 0.06 * wave(atMs, 5.3);
        return MORPHO_TARGET_USE + away * (away > 0 ? 1 - MORPHO_TARGET_USE : MORPHO_TARGET_USE);
      },
    },
  ];
}

/** Between -1 and 1. */
function wave(atMs: number, periodDays: number): number {
  return Math.sin((2 * Math.PI * atMs) / (periodDays * DAY_MS));
}
