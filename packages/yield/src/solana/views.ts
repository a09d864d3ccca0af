/** The public views of the reserve and of the portal as a whole: rates, figures, how it is used. */
import { sandboxMark } from '@farebox/core/http/sandbox-notice';
import { timeText, usdcText } from '../figures.ts';
import {
  COLLATERAL_MINT,
  LENDING_MARKET,
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  USDC_MINT,
  USDC_RESERVE,
} from './addresses.ts';
import {
  depositRoomRaw,
  freeLiquidityRaw,
  supplySf,
  toNumber,
  utilizationSf,
  withdrawalRoomRaw,
} from './model/interest.ts';
import { AT, EXAMPLE_WALLET } from './routes.ts';
import { daysToEarnBackFees, type Standing } from './standing.ts';
import { DEPOSIT_FEE_BPS, MIN_DEPOSIT, PERFORMANCE_FEE_BPS, WITHDRAWAL_FEE_BPS } from './terms.ts';

const PROTOCOL = 'Kamino Lend';
const CHAIN = 'solana';
/** CAIP-2. */
const NETWORK = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const VERSION = '1.0.0';
const FRACTION_BITS = 60n;
const RATE_PLACES = 12;
const RATE_ONE = 10n ** BigInt(RATE_PLACES);
/** A node that is further back than this is said to be. */
const BEHIND_SECONDS = 60;
const [DEPOSIT_PCT, WITHDRAWAL_PCT, PERFORMANCE_PCT] = [
  DEPOSIT_FEE_BPS,
  WITHDRAWAL_FEE_BPS,
  PERFORMANCE_FEE_BPS,
].map((bps) => Number(bps) / 100) as [number, number, number];
const METHOD =
  'A year’s yield of a deposit in percent, compounded in every slot, from the reserve’s own curve and from how long slots last now. netApyPct is less the performance fee; neither counts the fees of coming and leaving. Rewards in other tokens are not earned.';

export interface About {
  baseUrl: string;
  /** Whether the chain is a sandbox's: its lending program is a double. */
  sandbox: boolean;
}

/** `/api/solana-yield/rates` */
export function ratesView(about: About, now: Standing) {
  const usdc = earnedView(now);
  return {
    success: true,
    timestamp: timeText(now.readAtMs),
    ...whereView(about),
    usdc,
    topOpportunities: [{ protocol: PROTOCOL, market: LENDING_MARKET, asset: 'USDC', apyPct: usdc.apyPct }],
    onChain: {
      market: LENDING_MARKET,
      reserve: USDC_RESERVE,
      collateralMint: COLLATERAL_MINT,
      depositTvlUsdc: usdcText(suppliedRaw(now)),
      liquidityUsdc: usdcText(freeLiquidityRaw(now.reserve)),
      utilizationPct: utilizationPct(now),
    },
    minDeposit: { raw: Number(MIN_DEPOSIT), usdc: Number(MIN_DEPOSIT) / 1e6 },
    fees: feesView(),
    daysToEarnBackFees: now.earns.rates === null ? null : daysToEarnBackFees(now.earns.rates.supplyApy),
    comparison: comparisonView(now),
    method: METHOD,
    attribution: `Read from the accounts of ${PROTOCOL} (${LENDING_PROGRAM}) on Solana.`,
    readAt: readAtView(now),
    links: { manifest: at(about, 'manifest'), stats: at(about, 'stats') },
  };
}

/** `/api/solana-yield/stats` */
export function statsView(about: About, now: Standing) {
  const { reserve, market } = now;
  const { deposits, withdrawals } = openView(now);
  const room = depositRoomRaw(reserve);
  const available = freeLiquidityRaw(reserve);
  const supplied = suppliedRaw(now);
  const borrowed = reserve.borrowedSf >> FRACTION_BITS;
  return {
    success: true,
    timestamp: timeText(now.readAtMs),
    ...whereView(about),
    reserve: {
      address: USDC_RESERVE,
      market: LENDING_MARKET,
      marketName: market.name,
      program: LENDING_PROGRAM,
      asset: 'USDC',
      mint: USDC_MINT,
      collateralMint: COLLATERAL_MINT,
      liquidityVault: LIQUIDITY_VAULT,
      status: reserve.status,
    },
    stats: {
      tvlUsdc: usdcText(supplied),
      tvlRaw: String(supplied),
      availableUsdc: usdcText(available),
      availableRaw: String(available),
      borrowedUsdc: usdcText(borrowed),
      borrowedRaw: String(borrowed),
      utilizationPct: utilizationPct(now),
      depositLimitUsdc: usdcText(reserve.depositLimitRaw),
      depositRoomUsdc: usdcText(room),
      collateralSupplyRaw: String(reserve.collateralSupplyRaw),
      usdcPerCollateral: exchangeRateText(now),
      queuedCollateralRaw: String(reserve.queuedCollateralRaw),
      protocolTakePct: reserve.protocolTakePercent,
    },
    health: {
      depositsOpen: deposits.length === 0,
      withdrawalsOpen: withdrawals.length === 0,
      reasons: [...new Set([...deposits, ...withdrawals])],
    },
    usdc: earnedView(now),
    fees: feesView(),
    readAt: readAtView(now),
    links: { rates: at(about, 'rates'), manifest: at(about, 'manifest') },
  };
}

/** `/api/solana-yield/manifest`: how it is used does not depend on the chain. @param now or why it cannot be read */
export function manifestView(about: About, now: Standing | { unread: string }) {
  const wallet = `"wallet": "${EXAMPLE_WALLET}"`;
  return {
    name: 'USDC yield on Solana',
    description: `Lends USDC in a reserve of ${PROTOCOL}. This server builds transactions and holds no key and no funds: the wallet signs and sends, and the receipt tokens of the deposit are in the wallet itself.`,
    version: VERSION,
    ...whereView(about),
    asset: { symbol: 'USDC', address: USDC_MINT, decimals: 6 },
    currentAPY: 'unread' in now ? { ...NOT_EARNED, reason: now.unread } : earnedView(now),
    endpoints: endpointsView(about),
    fees: feesView(),
    limits: {
      min_deposit_usdc: Number(MIN_DEPOSIT) / 1e6,
      min_deposit_raw: String(MIN_DEPOSIT),
      token: 'USDC',
      mint: USDC_MINT,
    },
    agent_instructions: {
      step0: `GET ${at(about, 'rates')}: what USDC earns, and after how many days the fees are earned back.`,
      step1: `POST ${at(about, 'deposit-tx')} {${wallet}, "amount_usdc": 100, "idempotency_key": "<a new UUID>"}: transactions to sign, and warnings about what the wallet lacks. The fee is part of the amount.`,
      step2:
        'Sign and send each of transactions in their order, from that wallet, and wait until one is confirmed before the next.',
      step3: `A blockhash holds for about a minute. Unsigned transactions may have a younger one: GET ${at(about, 'blockhash')}.`,
      step4: `POST ${at(about, 'confirm')} {${wallet}, "txSignature": "<the last one>"}. The chain is asked; what a caller says is not believed.`,
      step5: `GET ${at(about, `position/${EXAMPLE_WALLET}`)}: what it is worth, and what the wallet would receive if it left now.`,
      withdraw_partial: `POST ${at(about, 'withdraw-tx')} {${wallet}, "amount_usdc": 25}: one transaction to sign.`,
      withdraw_all: `POST ${at(about, 'withdraw-tx')} {${wallet}, "amount": "MAX"}`,
      retry_on_partial_fail: `If the fee was confirmed and the deposit was not: send the same deposit transaction with a younger blockhash. Given up, the fee is found by this server and listed at GET ${at(about, `fee-refunds/${EXAMPLE_WALLET}`)}; a new bundle takes a new idempotency_key and a new fee.`,
    },
    signing_code_snippet: [
      "import { Connection, VersionedTransaction } from '@solana/web3.js';",
      'for (const { base64 } of bundle.transactions) {',
      "  const transaction = VersionedTransaction.deserialize(Buffer.from(base64, 'base64'));",
      "  const latest = await connection.getLatestBlockhash('confirmed');",
      '  transaction.message.recentBlockhash = latest.blockhash;',
      '  transaction.sign([keypair]);',
      '  const signature = await connection.sendTransaction(transaction);',
      "  await connection.confirmTransaction({ signature, ...latest }, 'confirmed');",
      '}',
    ],
    amount_formats: {
      amount_raw: 'A string of whole units, 1 USDC = "1000000". It is taken before the others.',
      amount_usdc: 'A number of USDC with at most six places.',
      amount: 'Older: a number below 10000 is USDC, any other is units. "MAX" when withdrawing: everything.',
    },
    cross_chain_note: {
      solana: 'Only Solana mainnet-beta. USDC of another chain must be brought there first, by other means.',
      base: `${about.baseUrl}/api/yield/manifest`,
    },
    comparison: 'unread' in now ? { solana: null, base: null, reason: now.unread } : comparisonView(now),
    notEarned: 'Rewards in other tokens, which the protocol pays on positions within its own accounts alone.',
    security: {
      nonCustodial: true,
      serverHoldsKeys: false,
      receiptTokensInWallet: true,
      withdrawWithoutServer: `redeem_reserve_collateral of ${LENDING_PROGRAM} takes the receipt tokens back; this server is not needed for it.`,
    },
    page: `${about.baseUrl}/yield`,
    x402Compatible: false,
    agentReadable: true,
    readAt: 'unread' in now ? null : readAtView(now),
  };
}

/** When and at which slot something was read. */
export function readAtView({ slot, chainAtMs, readAtMs }: Pick<Standing, 'slot' | 'chainAtMs' | 'readAtMs'>) {
  const behind = chainAtMs === null ? 0 : Math.round((readAtMs - chainAtMs) / 1_000);
  return {
    slot: Number(slot),
    time: chainAtMs === null ? null : timeText(chainAtMs),
    ...(behind > BEHIND_SECONDS
      ? {
          behindSeconds: behind,
          note: 'The chain, or the node that is asked, is behind: this is how it stood then.',
        }
      : {}),
  };
}

/** Why nothing can be deposited or withdrawn now, whoever it is. */
export function openView({
  reserve,
  market,
  chainAtMs,
  readAtMs,
}: Pick<Standing, 'reserve' | 'market' | 'chainAtMs' | 'readAtMs'>) {
  const both =
    reserve.isEmergency || market.isEmergency ? ['The protocol has stopped for an emergency.'] : [];
  const cap = withdrawalRoomRaw(reserve, BigInt(Math.floor((chainAtMs ?? readAtMs) / 1_000)));
  return {
    deposits: [
      ...both,
      ...(reserve.isCollateralTokenBlocked
        ? ['The protocol has stopped deposits that stay in the wallet.']
        : []),
      ...(reserve.status === 'active' ? [] : [`The reserve is ${reserve.status}.`]),
      ...(depositRoomRaw(reserve) === 0n ? ['The reserve is full: its deposit limit is reached.'] : []),
    ],
    withdrawals: [
      ...both,
      ...(freeLiquidityRaw(reserve) === 0n ? ['All of the reserve is lent out.'] : []),
      ...(cap === 0n ? ['The reserve’s withdrawal cap is reached.'] : []),
    ],
  };
}

/** USDC for one collateral token, to twelve places. */
export function exchangeRateText({ reserve }: Pick<Standing, 'reserve'>): string {
  const { collateralSupplyRaw: supply } = reserve;
  const rate = supply === 0n ? RATE_ONE : (supplySf(reserve) * RATE_ONE) / (supply << FRACTION_BITS);
  return `${rate / RATE_ONE}.${String(rate % RATE_ONE).padStart(RATE_PLACES, '0')}`;
}

function feesView() {
  return {
    deposit: `${DEPOSIT_PCT.toFixed(2)}%`,
    withdrawal: `${WITHDRAWAL_PCT.toFixed(2)}%`,
    performance: `${PERFORMANCE_PCT}% of yield`,
    depositPct: DEPOSIT_PCT,
    withdrawalPct: WITHDRAWAL_PCT,
    performancePct: PERFORMANCE_PCT,
  };
}

function whereView({ sandbox }: About) {
  return {
    chain: CHAIN,
    network: NETWORK,
    protocol: PROTOCOL,
    ...sandboxMark(sandbox),
    ...(sandbox ? { program: 'test double' } : {}),
  };
}

function endpointsView(about: About) {
  return {
    manifest: `GET ${at(about, 'manifest')}`,
    rates: `GET ${at(about, 'rates')}`,
    stats: `GET ${at(about, 'stats')}`,
    depositTx: `POST ${at(about, 'deposit-tx')} {wallet, amount_usdc | amount_raw, idempotency_key}`,
    confirm: `POST ${at(about, 'confirm')} {wallet, txSignature, amountUsdcRaw}`,
    position: `GET ${at(about, 'position/{wallet}')}`,
    withdrawTx: `POST ${at(about, 'withdraw-tx')} {wallet, amount_usdc} or {wallet, "amount": "MAX"}`,
    feeRefunds: `GET ${at(about, 'fee-refunds/{wallet}')}`,
    transaction: `GET ${at(about, 'transaction/{signature}')}: for wallets without a node of their own`,
    blockhash: `GET ${at(about, 'blockhash')}: the same`,
  };
}

const NOT_EARNED = { apyPct: null, apyBps: null, formatted: null, netApyPct: null };

function earnedView({ earns }: Standing) {
  if (earns.rates === null) return { ...NOT_EARNED, reason: earns.reason };
  const { supplyApr, supplyApy, borrowApr } = earns.rates;
  const apyPct = rounded(100 * supplyApy);
  return {
    apyPct,
    apyBps: Math.round(10_000 * supplyApy),
    formatted: `${apyPct.toFixed(2)}%`,
    netApyPct: netApyPct(supplyApy),
    aprPct: rounded(100 * supplyApr),
    borrowAprPct: rounded(100 * borrowApr),
    slotMs: Math.round(earns.slotMs),
  };
}

/** Both after the fee on the yield. */
function comparisonView({ earns, base }: Standing) {
  const solana = earns.rates === null ? null : netApyPct(earns.rates.supplyApy);
  return {
    solana: { netApyPct: solana, ...(earns.rates === null ? { reason: earns.reason } : {}) },
    base:
      base.netApyPercent === null
        ? { netApyPct: null, reason: base.reason }
        : { netApyPct: base.netApyPercent },
    differencePct:
      solana === null || base.netApyPercent === null ? null : rounded(solana - base.netApyPercent),
    note: `Both after the performance fee. Solana takes ${DEPOSIT_PCT} % on coming and ${WITHDRAWAL_PCT} % on leaving; the vault on Base takes its entry fee once, and leaving it is free.`,
  };
}

function netApyPct(apy: number): number {
  return rounded(100 * (apy > 0 ? apy * (1 - PERFORMANCE_PCT / 100) : apy));
}

function suppliedRaw({ reserve }: Standing): bigint {
  return supplySf(reserve) >> FRACTION_BITS;
}

function utilizationPct({ reserve }: Standing): number {
  return rounded(100 * toNumber(utilizationSf(reserve)));
}

function at({ baseUrl }: About, path: string): string {
  return `${baseUrl}${AT}/${path}`;
}

/** To four places: a hundredth of a basis point. */
function rounded(percent: number): number {
  return Math.round(percent * 10_000) / 10_000;
}
