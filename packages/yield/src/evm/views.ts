/** The public views of the vault as a whole: rates, figures, how it is used. */

import { PERMIT_DEPOSIT_ABI, VAULT_ABI } from '../contracts/abi.ts';
import { PROTOCOLS, type ProtocolName } from '../contracts/protocols.ts';
import { percentOf, timeText, usdcText } from '../figures.ts';
import type { ReportedLook } from '../keeper/report.ts';
import { PRESETS_USD } from './asked.ts';
import { blockView } from './deposit.ts';
import { CHAIN_ID, type Fixed, PROTOCOL_TITLES } from './fixed.ts';
import { daysToEarnBack, netApyPercent, rounded } from './rates.ts';
import { type ProtocolState, pendingFeeOf, type Snapshot, type VaultState, worthOf } from './snapshot.ts';

const SHARE_DECIMALS_ONE = 10n ** 12n;
const MICROS_IN_USD = 1_000_000n;
export const EXAMPLE_WALLET = '0x1111111111111111111111111111111111111111';
const AUDIT_STATUS = 'not audited by others';

export interface About {
  baseUrl: string;
  fixed: Fixed;
}

/** `/api/yield/rates` */
export function ratesView({ baseUrl }: About, { readAtMs, block, vault, protocols }: Snapshot) {
  const best = bestOf(protocols);
  const netOf = (state: ProtocolState) => netOrNull(state, vault);
  return {
    success: true,
    timestamp: timeText(readAtMs),
    rates: byProtocol((name) => {
      const state = protocols[name];
      const gross = roundedOrNull(state.grossApyPercent);
      return {
        protocol: PROTOCOL_TITLES[name],
        network: 'base',
        apyPercent: gross,
        grossApyPercent: gross,
        netApyPercent: netOf(state),
        status: gross === null ? 'unreadable' : state.paused === true ? 'paused' : 'live',
        ...(state.reason === null ? {} : { reason: state.reason }),
      };
    }),
    currentBest:
      best === null
        ? null
        : {
            protocol: best.protocol,
            apyPercent: roundedOrNull(best.grossApyPercent),
            netApyPercent: netOf(best),
          },
    netAPY: byProtocol((name) => netOf(protocols[name])),
    method:
      'A year’s yield in percent, compounded. gross: as the protocol pays it, without rewards in other tokens; net: less the performance fee of the vault.',
    fees: feeFigures(vault),
    ...readAt(block),
    links: { manifest: `${baseUrl}/api/yield/manifest`, history: `${baseUrl}/api/yield/history` },
  };
}

/** Shows what the keeper did last or left, and why. */
function keeperView({ at, report }: ReportedLook) {
  const { outcome, why, block, yearlyPercent, proposal, transaction, conduct = null } = report;
  return {
    lookedAt: at,
    outcome,
    why,
    block,
    transaction,
    yearlyPercent,
    conduct,
    bestMove:
      proposal === null
        ? null
        : {
            from: proposal.from,
            to: proposal.to,
            partial: proposal.partial,
            amountUsdc: usdcText(BigInt(proposal.amountMicros)),
            amountRaw: proposal.amountMicros,
            gainUsdcPerYear: usdcText(BigInt(proposal.gainMicrosPerYear)),
            gasCostUsd: usdcText(BigInt(proposal.costMicros)),
            yearlyPercentAfter: proposal.yearlyPercentAfter,
          },
  };
}

/** `/api/yield/stats` */
export function statsView(
  { fixed, baseUrl }: About,
  snapshot: Snapshot,
  { nowMs, look }: { nowMs: number; look: ReportedLook | null },
) {
  const { block, vault, protocols } = snapshot;
  const pending = pendingFeeOf(vault);
  const shares = worthOf(vault.totalSupply, vault);
  return {
    success: true,
    vault: vaultView(fixed),
    stats: {
      tvlUsdc: usdcText(vault.totalAssets),
      tvlRaw: String(vault.totalAssets),
      totalSharesUsdc: usdcText(shares),
      totalShares: String(vault.totalSupply),
      pricePerShare: usdcText(worthOf(SHARE_DECIMALS_ONE, vault)),
      pendingFeesUsdc: usdcText(pending),
      pendingFeesRaw: String(pending),
      nextRebalanceInSec: Math.max(0, vault.nextMoveAtS - Math.floor(nowMs / 1_000)),
      withdrawableNowUsdc: usdcText(vault.liquidity),
      idleUsdc: usdcText(vault.idle),
      inProtocolUsdc: byProtocol((name) => usdcText(protocols[name].vaultAssets)),
      everythingReadable: vault.complete,
      depositsOpen: vault.complete && vault.seeded && !vault.depositsPaused,
    },
    routing: {
      strategy:
        'One protocol takes new deposits until it has its share of the vault, then the next; a keeper moves funds among the three, within limits on chain.',
      currentProtocol: vault.active,
      leftProtocols: vault.left,
      ...currentView(snapshot),
      // Of this server's keeper; of another nobody tells it.
      minImprovementBps: look?.report.minGainBps ?? null,
      rebalanceInterval: `at the earliest ${vault.cooldownSeconds / 3_600} h after the last`,
      maxShareOfOneProtocolPct: percentOf(vault.maxShareBps),
      maxShareOfLiquidityPerMovePct: percentOf(vault.maxOfLiquidityBps),
      protocols: PROTOCOLS,
      keeper: look === null ? null : keeperView(look),
    },
    fees: {
      ...feeFigures(vault),
      // The fee on the yield is minted with whatever is done next, however little it is.
      minHarvestUsd: 0,
      feeTimelockHours: fixed.feeDelaySeconds / 3_600,
      maxEntryFeePct: percentOf(fixed.maxEntryFeeBps),
      maxPerformanceFeePct: percentOf(fixed.maxPerformanceFeeBps),
      queued: queuedFees(vault),
    },
    security: {
      ...securityView(fixed),
      adminCanWithdrawPrincipal: false,
      feeChangeTimelock: timelockOf(fixed),
      auditStatus: AUDIT_STATUS,
      roles: {
        owner: vault.owner,
        keeper: vault.keeper,
        guardian: vault.guardian,
        feeRecipient: vault.feeRecipient,
      },
    },
    ...readAt(block),
    links: { rates: `${baseUrl}/api/yield/rates`, contract: `${baseUrl}/api/yield/contract` },
  };
}

/** The fees that the owner has announced; null: none. */
function queuedFees({ queued }: VaultState) {
  return queued === null
    ? null
    : {
        entryFeePct: percentOf(queued.entryBps),
        performanceFeePct: percentOf(queued.performanceBps),
        notBefore: timeText(queued.readyAtS * 1_000),
      };
}

/** `/api/yield/manifest` */
export function manifestView({ fixed, baseUrl }: About, snapshot: Snapshot) {
  const at = (path: string) => `${baseUrl}/api/yield/${path}`;
  const { vault, block } = snapshot;
  return {
    name: fixed.name,
    description:
      'A vault of USDC that lends through three protocols. This server builds transactions and holds no key and no funds: the caller signs and sends.',
    version: '1.0.0',
    type: 'yield-vault',
    network: 'base',
    chainId: CHAIN_ID,
    asset: { symbol: 'USDC', address: fixed.usdc, decimals: 6 },
    vault: { address: fixed.vault, shareToken: fixed.shareToken, standard: 'ERC-4626' },
    ...currentView(snapshot),
    fees: {
      entry: `${percentOf(vault.entryBps)}%`,
      performance: `${percentOf(vault.performanceBps)}% of yield`,
      exit: '0%',
      switch: '0%',
    },
    endpoints: {
      manifest: `GET ${at('manifest')}`,
      rates: `GET ${at('rates')}`,
      stats: `GET ${at('stats')}`,
      presets: `GET ${at('presets')}`,
      depositTx: `GET ${at('deposit-tx')}?recipient={wallet}&preset={10|50|100|250|1000}, or &amount={usd}; &mode=permit for one transaction`,
      redeemTx: `GET ${at('redeem-tx')}?wallet={wallet}; &how=available or &how=in-kind when not all USDC can be had; &how=partly or &how=in-kind while a protocol cannot be read`,
      position: `GET ${at('position/{wallet}')}`,
      contract: `GET ${at('contract')}`,
      history: `GET ${at('history')}?days={1-365}`,
    },
    agentQuickStart: [
      `GET ${at(`deposit-tx?recipient=${EXAMPLE_WALLET}&preset=100`)} with your wallet as recipient.`,
      'Read warnings, and stop at each whose costs is true. Sign and send each of steps in order, from that wallet, and wait until one is mined before the next.',
      `GET ${at(`position/${EXAMPLE_WALLET}`)} shows what it is worth, and redeem_hint is the transaction that takes it out.`,
    ],
    security: securityView(fixed),
    page: `${baseUrl}/yield`,
    x402Compatible: false,
    agentReadable: true,
    ...readAt(block),
  };
}

/** `/api/yield/presets` */
export function presetsView({ fixed, baseUrl }: About, snapshot: Snapshot) {
  const { vault, block } = snapshot;
  const { currentAPY } = currentView(snapshot);
  return {
    success: true,
    presets: PRESETS_USD.map((usd) => {
      const units = BigInt(usd) * MICROS_IN_USD;
      const fee = (units * BigInt(vault.entryBps) + 9_999n) / 10_000n;
      const query = `recipient={wallet}&preset=${usd}`;
      return {
        usd,
        entryFeeUsdc: usdcText(fee),
        netDepositUsd: usdcText(units - fee),
        depositTx: `${baseUrl}/api/yield/deposit-tx?${query}`,
        ...(fixed.permitDeposit === null
          ? {}
          : { depositTxWithPermit: `${baseUrl}/api/yield/deposit-tx?${query}&mode=permit` }),
      };
    }),
    anyAmount: `${baseUrl}/api/yield/deposit-tx?recipient={wallet}&amount={usd}`,
    daysToEarnBackEntryFee: currentAPY === null ? null : daysToEarnBack(vault.entryBps, currentAPY),
    ...readAt(block),
  };
}

/** `/api/yield/contract` */
export function contractView({ fixed, baseUrl }: About, { vault, block }: Snapshot) {
  const { permitDeposit } = fixed;
  return {
    success: true,
    vault: { ...vaultView(fixed), abi: VAULT_ABI },
    usdc: { address: fixed.usdc, decimals: 6, permitDomain: { ...fixed.usdcDomain, chainId: CHAIN_ID } },
    permitHelper: permitDeposit === null ? null : { address: permitDeposit, abi: PERMIT_DEPOSIT_ABI },
    protocols: {
      aave: { pool: fixed.aavePool, aToken: fixed.aToken },
      compound: { comet: fixed.comet },
      morpho: { metaMorpho: fixed.metaMorpho },
    },
    howToDeposit: [
      'USDC.approve(vault, assets), then vault.deposit(assets, receiver, minShares).',
      ...(permitDeposit === null
        ? []
        : ['Or sign a permit of USDC for the helper, and helper.depositWithPermit(…): one transaction.']),
    ],
    howToWithdraw: [
      'vault.redeem(shares, receiver, owner, minAssets): no approval, no fee; reverted when it would bring less than minAssets.',
      'When the protocols lack the cash: vault.maxRedeem(owner) tells how many shares can be redeemed now.',
      'Or vault.exitInKind(shares, receiver, owner, 0): your part of each position itself, which needs no cash. With 0 nothing happens unless all of it is handed over.',
      'Where a part is not handed over, leaveBehind names it, and gives it up for ever: bits 0 to 2 the protocols, bit 3 idle USDC.',
      'While a protocol cannot be read, redeem and withdraw revert with NotRead. Wait, or exitInKind, or redeemPartly(shares, receiver, owner, minAssets), which pays your part of what can be read and forfeits the rest for ever.',
    ],
    keyFunctions: {
      price: 'convertToAssets(1e12) is the price of a share, fees taken off',
      whereItIs:
        'holdings() returns idle USDC, what is in each protocol, what could be paid out now, and whether all of it could be read',
      whatComes:
        'queuedFees() returns fees that were announced, and when they may hold; they lapse a week after that',
      rewards:
        'skim(token) offers a token that the vault was given; auction(token) tells its price, which falls to 0 within a day; buy(token, maxPrice) pays the vault',
    },
    fees: feeFigures(vault),
    auditStatus: AUDIT_STATUS,
    integrationGuide: `${baseUrl}/api/yield/manifest`,
    agentIntegrationExample: [
      `const { steps, warnings } = await (await fetch('${baseUrl}/api/yield/deposit-tx?recipient=' + wallet.account.address + '&preset=100')).json();`,
      'const stops = warnings.filter(({ costs }) => costs).map(({ message }) => message);',
      "if (stops.length > 0) throw new Error(stops.join(' '));",
      'for (const { to, data, gas } of steps) {',
      '  const hash = await wallet.sendTransaction({ to, data, gas: BigInt(gas) });',
      '  await client.waitForTransactionReceipt({ hash });',
      '}',
    ],
    ...readAt(block),
  };
}

/** Works out what a holder earns now after the fee on the yield, in percent a year; null: a protocol could not be read. */
export function currentRateOf({ vault, protocols }: Snapshot) {
  const gross = grossNow(protocols, vault);
  if (gross !== null) return { netApyPercent: rounded(netApyPercent(gross, vault.performanceBps)) };
  const reason = PROTOCOLS.map((name) => protocols[name].reason).find((each) => each !== null);
  return { netApyPercent: null, reason: reason ?? 'A protocol of the vault cannot be read at the moment.' };
}

/** Works out what all the vault's funds earn now, by where they are: idle funds earn nothing. Of a vault with next to nothing, what a deposit gets. */
function grossNow(protocols: Snapshot['protocols'], { active, idle, complete }: VaultState): number | null {
  if (!complete) return null;
  const lent = PROTOCOLS.reduce((sum, name) => sum + protocols[name].vaultAssets, 0n);
  if (lent + idle < MICROS_IN_USD) return protocols[active].grossApyPercent;
  let earned = 0;
  for (const name of PROTOCOLS) {
    const { grossApyPercent, vaultAssets } = protocols[name];
    if (vaultAssets === 0n) continue;
    if (grossApyPercent === null) return null;
    earned += grossApyPercent * Number(vaultAssets);
  }
  return earned / Number(lent + idle);
}

/** Shows what a holder earns now, and which protocol pays the most. */
function currentView({ vault, protocols }: Snapshot) {
  const gross = grossNow(protocols, vault);
  const net = gross === null ? null : rounded(netApyPercent(gross, vault.performanceBps));
  return {
    currentAPY: net,
    currentGrossAPY: roundedOrNull(gross),
    currentBest: bestOf(protocols)?.protocol ?? null,
    daysToEarnBackEntryFee: net === null ? null : daysToEarnBack(vault.entryBps, net),
  };
}

function bestOf(protocols: Snapshot['protocols']): ProtocolState | null {
  const readable = Object.values(protocols).filter(
    ({ grossApyPercent, paused }) => grossApyPercent !== null && paused !== true,
  );
  return readable.toSorted((a, b) => (b.grossApyPercent ?? 0) - (a.grossApyPercent ?? 0))[0] ?? null;
}

function netOrNull({ grossApyPercent }: ProtocolState, { performanceBps }: VaultState): number | null {
  return grossApyPercent === null ? null : rounded(netApyPercent(grossApyPercent, performanceBps));
}

function roundedOrNull(percent: number | null): number | null {
  return percent === null ? null : rounded(percent);
}

function byProtocol<Value>(of: (name: ProtocolName) => Value): Record<ProtocolName, Value> {
  return Object.fromEntries(PROTOCOLS.map((name) => [name, of(name)])) as Record<ProtocolName, Value>;
}

function feeFigures({ entryBps, performanceBps }: VaultState) {
  return {
    entryFeePct: percentOf(entryBps),
    performanceFeePct: percentOf(performanceBps),
    exitFeePct: 0,
    switchFeePct: 0,
  };
}

function vaultView(fixed: Fixed) {
  return {
    address: fixed.vault,
    network: 'base',
    chainId: CHAIN_ID,
    asset: 'USDC',
    assetAddress: fixed.usdc,
    standard: 'ERC-4626',
    shareToken: fixed.shareToken,
    shareDecimals: fixed.shareDecimals,
  };
}

function securityView(fixed: Fixed) {
  return {
    nonCustodial: true,
    emergencyExitAlways: true,
    adminCannotWithdrawPrincipal: true,
    feeTimelock: timelockOf(fixed),
  };
}

function timelockOf({ feeDelaySeconds }: Fixed): string {
  return `${feeDelaySeconds / 3_600}h`;
}

function readAt(block: Snapshot['block']) {
  return { readAt: blockView(block) };
}
