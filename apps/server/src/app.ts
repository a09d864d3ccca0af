/** The table of contents of the server: what it is made of, and which part needs which. What is not listed is off. */
import { A2A, openA2a } from './a2a/part.ts';
import { openAccount } from './account/part.ts';
import type { Debts } from './cards/disputes/debts.ts';
import { CARDS, openCardMoney } from './cards/part.ts';
import type { ConfigOf } from './config.ts';
import { CUSTODY, openCustody } from './custody/part.ts';
import { openSources, SOURCES, TERMS, upstreamsOf } from './data-lists/part.ts';
import type { Transaction } from './db/connection.ts';
import { DATABASE } from './db/declared.ts';
import { booksOf } from './declared.ts';
import { DEVICES, openDevices } from './devices/part.ts';
import type { Route } from './discovery/context.ts';
import { openPages } from './discovery/pages.ts';
import { openDiscovery } from './discovery/part.ts';
import { assemble, type HouseParts, openHouse } from './house.ts';
import { IDENTITY, openIdentity } from './identity/part.ts';
import type { Keys } from './keys/keys.ts';
import { KEYS, openKeys } from './keys/part.ts';
import { createLedger } from './ledger/ledger.ts';
import { openLegacy } from './legacy/part.ts';
import { MAIL, openMail } from './mail/part.ts';
import { MCP, openMcp } from './mcp/part.ts';
import { OPERATIONS, openOperations } from './operations/part.ts';
import { OPERATOR, openOperator } from './operator/part.ts';
import { createCallMetrics } from './paid-call/metrics.ts';
import { openSales, openX402Door, PAID_CALL } from './paid-call/part.ts';
import { createAnswerSeal } from './paid-call/sealed-answer.ts';
import type { House, Part } from './part.ts';
import { openPictures, PICTURES } from './pictures/part.ts';
import { creditsRail } from './rails/credits/rail.ts';
import { MPP, mppOfferOf, openMpp, openMppDoor } from './rails/mpp/part.ts';
import { RECEIPTS_AT } from './rails/on-chain/receipts.ts';
import { openReceipts, openX402, X402, x402OfferOf } from './rails/x402/part.ts';
import { openGas } from './relayer/part.ts';
import { openSecretRegister, SECRETS } from './secrets/part.ts';
import { openSoldKeys, SOLD_KEYS } from './sold-keys/part.ts';
import { openTopup, TOPUP } from './topup/part.ts';
import { openWebhooks, WEBHOOKS } from './webhooks/part.ts';
import { EVM_YIELD, openEvmYield } from './yield/evm/part.ts';
import { openYieldKeeper, YIELD_KEEPER } from './yield/keeper/part.ts';
import { openSolanaYield, SOLANA_YIELD } from './yield/solana/part.ts';

/** What is known of the parts before they are opened, such as what they are configured by. */
export const DECLARED = [
  ...[DATABASE, SECRETS, KEYS, PAID_CALL, X402, MPP, CARDS, MAIL, CUSTODY, IDENTITY],
  ...[SOLD_KEYS, TOPUP, OPERATOR, OPERATIONS, SOURCES, TERMS, MCP, A2A, DEVICES, EVM_YIELD, YIELD_KEEPER],
  ...[SOLANA_YIELD, WEBHOOKS, PICTURES],
] as const;

/** What the names of services begin with that sell credit. */
const CREDIT_SERVICES = ['credits/topup/', 'instant-api-key'];

export type Config = ConfigOf<typeof DECLARED>;

type GivenToHouse = 'pools' | 'baseUrl' | 'version' | 'services' | 'leftOut' | 'logger' | 'nowMs';

export interface AppParts extends Pick<HouseParts, GivenToHouse> {
  config: Config;
}

export type App = ReturnType<typeof createApp>;

/** Puts the server together. It does not listen yet, and its jobs do not run yet. */
export function createApp({ config, ...given }: AppParts) {
  const { nowMs, pools, services } = given;
  const house = openHouse({ ...config.house, ...given });
  const secrets = config.secrets.secrets.reveal().versions;
  const ledger = createLedger(pools, nowMs);
  const seal = createAnswerSeal(secrets);

  const register = openSecretRegister(house, config.secrets, seal);
  const keyed = openKeys(house, config.keys, { ledger, secrets, servicesAvailable: services.length });
  const { keys, trials } = keyed;
  const mail = openMail(house, config.mail);
  const cardMoney = openCardMoney(house, config.cards, { ledger, keys, secrets, mailer: mail.mailer });
  const { cards, debts } = cardMoney;
  const upstreams = upstreamsOf(config.sources, config.terms.settings.accepted);
  const { contactEmail, host, production } = config.house;
  const sources = openSources(house, { upstreams, contactEmail, acceptSandbox: !production });
  const fuelled = openGas(house);
  const { gas } = fuelled;
  const webhooks = openWebhooks(house, config.webhooks, { keys, mailer: mail.mailer, secrets, seal });
  const metrics = createCallMetrics();

  const needed = { upstreams, secrets, gas, services, keys, debts, byCard: cards !== null };
  const waysToPay = openWaysToPay(house, config, { ...needed, settlement: metrics.settlement });
  const { onChains, byMpp, x402, credits, walletsPay, rails } = waysToPay;

  // What is sold, and at which doors.
  const sales = openSales(house, config.paidCall.settings, {
    ...{ ledger, seal, services, metrics, upstreams: sources.upstreams, receiptsAt: RECEIPTS_AT },
    ...{ capable: () => parts, keyUsed: webhooks.keyUsed },
    chainsOf: (name) => [x402, byMpp.mpp].find((each) => each?.rail.name === name)?.rail.chains,
  });
  const atX402 = openX402Door(house, { services, rails, sales });
  const forLegacy = { services, sales, credits, checkout: cards?.checkout ?? null, walletsPay };
  const collect = (why: string) => (transaction: Transaction, accountId: bigint) =>
    debts.collect(transaction, accountId, `${why} account ${accountId}`);

  const routes: Route[] = [];
  const pages = openPages(house, routes);
  const parts: Part[] = [
    // First: while it prepares nothing else waits, and what its calls left open is ended before anything closes.
    sales,
    register,
    openOperations(house, config.operations, { parts: () => parts, publicUrl: config.house.publicUrl }),
    ...[mail, keyed],
    openAccount(house, { keys, ledger, debts, autoRecharges: cards?.recharges ?? null }),
    ...[cardMoney, webhooks, sources],
    openCustody(house, config.custody, { keys }),
    openDevices(house, config.devices, { keys, host, shares: sales.shares, acceptSimulated: !production }),
    openPictures(house, config.pictures, { secrets, upstreams: sources.upstreams }),
    fuelled,
    openIdentity(house, config.identity, { gas, rpcUrl: upstreams.base.baseUrl }),
    ...openYields(house, config, { gas, upstreams, contactEmail }),
    onChains,
    byMpp,
    openDiscovery(
      house,
      { requestsPerMinute: config.paidCall.settings.rateLimitPerKey },
      {
        ...{ pages, services, routes, parts: () => parts, availability: sales.availability },
        ...{ cardCheckout: cards !== null, x402: () => x402OfferOf(x402) },
        mpp: () => mppOfferOf(byMpp.mpp, byMpp.sold.length > 0),
      },
    ),
    atX402,
    openMppDoor(house, { ...byMpp, sales, x402, credits }),
    openMcp(house, config.mcp, { services, sales, mpp: byMpp.mpp, x402: x402.rail, credits }),
    openA2a(house, config.a2a, { services, sales, keys, x402: x402.rail, credits }),
    openLegacy(house, forLegacy),
    openTopup(house, config.paidCall.settings, { ledger, keys, sales, x402, credited: collect('top-up of') }),
    openSoldKeys(house, config.paidCall.settings, { ledger, keys, seal }),
    openReceipts(house, { ...sales, x402 }),
    openOperator(house, config.operator, {
      ...config.keys.settings,
      ...{ ledger, keys, cards, books: booksOf(DECLARED), creditServices: CREDIT_SERVICES },
      ...{ ...sources.forOperator, gas: gas.standings, parts: () => parts },
      collectDebts: collect('credit by an operator to'),
      sendPage: (request, reply) => pages.send(request, reply, 'admin.html'),
    }),
  ];
  const { calls, reconciler, settlementFinisher } = sales;
  const made = { calls, keys, ledger, trials, cards, debts, reconciler, settlementFinisher };
  const { dataLists } = sources;
  return { ...assemble(house, config.house, parts, routes), ...made, dataLists, paidCall: atX402.paidCall };
}

/** What USDC earns, and who sees to it. */
function openYields(
  house: House,
  config: Config,
  {
    gas,
    upstreams,
    contactEmail,
  }: Pick<Parameters<typeof openYieldKeeper>[2], 'gas'> & {
    upstreams: ReturnType<typeof upstreamsOf>;
    contactEmail: string | null;
  },
): Part[] {
  const vault = openEvmYield(house, config.evmYield, { rpcUrl: upstreams.base.baseUrl });
  const forPortal = { rpcUrl: upstreams.solana.baseUrl, contactEmail, baseRate: vault.currentRate };
  return [
    vault,
    openYieldKeeper(house, config.yieldKeeper, { gas, upstreams, ...config.evmYield.settings }),
    openSolanaYield(house, config.solanaYield, forPortal),
  ];
}

/** The ways to pay. Who sends a payment beside its key means the payment: clients keep sending a key that ran dry. */
function openWaysToPay(
  house: House,
  config: Config,
  needs: Pick<Parameters<typeof openX402>[2], 'upstreams' | 'secrets'> &
    Omit<Parameters<typeof openMpp>[2], 'x402'> & { keys: Keys; debts: Debts; byCard: boolean },
) {
  const { baseUrl } = house;
  const { keys, debts, byCard } = needs;
  const onChains = openX402(house, config.x402, needs);
  const { x402 } = onChains;
  const byMpp = openMpp(house, config.mpp, { ...needs, x402 });
  const walletsPay = () => x402.offered().length > 0;
  const credits = creditsRail({
    ...{ keys, baseUrl, frozenBecause: debts.standing, chargesCards: byCard },
    addCreditAt: () => creditUrls(baseUrl, walletsPay(), byCard),
  });
  return { onChains, byMpp, x402, credits, walletsPay, rails: [x402.rail, ...byMpp.elsewhere, credits] };
}

/** Where credit can be bought for a key now, best first. */
function creditUrls(baseUrl: string, byWallet: boolean, byCard: boolean): string[] {
  const ways = [...(byWallet ? ['topup'] : []), ...(byCard ? ['purchase', 'checkout/session'] : [])];
  return ways.map((way) => `${baseUrl}/api/m2m/credits/${way}`);
}
