import type { Configured } from '../../declared.ts';
import type { CallMetrics } from '../../paid-call/metrics.ts';
import type { SettlementStore } from '../../paid-call/settlements.ts';
import type { House, Part } from '../../part.ts';
import type { GasTanks } from '../../relayer/gas-tanks.ts';
import type { Secrets } from '../../secrets/secrets.ts';
import { RECEIPTS_AT } from '../on-chain/receipts.ts';
import { watchRails } from '../on-chain/standing.ts';
import { X402 } from './declared.ts';
import { ASSET_DECIMALS, nodesOf } from './networks.ts';
import { RECEIPT_OPERATIONS } from './operations.ts';
import { createX402Rail, type X402Rail } from './rail.ts';
import { receiptRoutes } from './routes.ts';
import type { SignInChallenge } from './sign-in.ts';

export { X402 };

const FACILITATORS_ASKED_EVERY_MS = 30_000;

/** Payment from a wallet by x402. */
export function openX402(
  { pools, baseUrl, sandbox, logger, nowMs }: House,
  { settings, secrets }: Configured<typeof X402.variables>,
  needs: {
    upstreams: Parameters<typeof nodesOf>[0];
    secrets: Secrets;
    gas: GasTanks;
    settlement: CallMetrics['settlement'];
  },
): Part & {
  x402: X402Rail;
  /** The path below which receipts of on-chain payments stand. */
  receiptsAt: string;
  /** Whether a chain is ready on which a wallet could pay now. */
  walletsPay(): boolean;
  /** What documents say about x402; null while no chain is ready. */
  offer(): ReturnType<typeof offerOf>;
} {
  const x402 = createX402Rail(
    {
      ...settings,
      ...secrets.reveal(),
      facilitatorToken: () => secrets.reveal().facilitatorToken,
      rpcUrls: nodesOf(needs.upstreams),
    },
    {
      sql: pools.sql,
      baseUrl,
      secrets: needs.secrets,
      gas: needs.gas,
      sandbox,
      nowMs,
      report: needs.settlement,
    },
  );
  const watch = watchRails(x402.networks, { nowMs, logger });
  return {
    name: 'x402',
    x402,
    railStandings: watch.standings,
    receiptsAt: RECEIPTS_AT,
    walletsPay: () => x402.offered().length > 0,
    offer: () => offerOf(x402),
    requestHeaders: ['PAYMENT-SIGNATURE', 'X-PAYMENT', 'SIGN-IN-WITH-X'],
    prepare: x402.refresh,
    jobs: [
      {
        name: 'ask-facilitators',
        intervalMs: FACILITATORS_ASKED_EVERY_MS,
        async run() {
          await x402.refresh();
          await watch.look();
        },
      },
      { name: 'drop-sign-ins', intervalMs: 60_000, run: x402.dropExpired },
    ],
    resume: x402.resume,
    close: x402.close,
  };
}

/** The receipts of on-chain payments, for whoever has a call's id. */
export function openReceipts(
  { addressOf, limitByAddress, baseUrl }: House,
  {
    settlements,
    x402: { signIn },
    walletsPay,
  }: { settlements: SettlementStore; x402: { signIn: SignInChallenge }; walletsPay(): boolean },
): Part {
  return {
    name: 'receipts',
    operations: [{ ...RECEIPT_OPERATIONS, offered: walletsPay }],
    routes(http) {
      receiptRoutes(http, { settlements, signIn, baseUrl, accountLimit: limitByAddress(), addressOf });
    },
  };
}

function offerOf(x402: X402Rail) {
  const [first, ...rest] = x402.offered().map(({ network, payTo }) => ({
    network: network.id,
    name: network.name,
    payTo,
    asset: { symbol: 'USDC', address: network.asset, decimals: ASSET_DECIMALS },
    canRefund: x402.rail.chains?.canRefund(network.id) === true,
  }));
  if (first === undefined) return null;
  const networks: [typeof first, ...(typeof first)[]] = [first, ...rest];
  return { facilitatorUrl: x402.facilitatorUrl, networks };
}
