/** The table of contents of the server: what it is made of, and which part needs which. What is not listed is off. */
import { openAccount } from './account/part.ts';
import { openCardMoney } from './cards/part.ts';
import { type Config, rpcUrlsOf } from './config.ts';
import { openCustody } from './custody/part.ts';
import { openSources } from './data-lists/part.ts';
import type { Transaction } from './db/connection.ts';
import type { Route } from './discovery/context.ts';
import { openPages } from './discovery/pages.ts';
import { openDiscovery } from './discovery/part.ts';
import { assemble, type HouseParts, openHouse } from './house.ts';
import { openIdentity } from './identity/part.ts';
import { openKeys } from './keys/part.ts';
import { createLedger } from './ledger/ledger.ts';
import { openLegacy } from './legacy/part.ts';
import { openMail } from './mail/part.ts';
import { openOperations } from './operations/part.ts';
import { openOperator } from './operator/part.ts';
import { openSales, openX402Door } from './paid-call/part.ts';
import { createAnswerSeal } from './paid-call/sealed-answer.ts';
import type { Part } from './part.ts';
import { creditsRail } from './rails/credits/credits.ts';
import { mppOfferOf, openMpp, openMppDoor } from './rails/mpp/part.ts';
import { RECEIPTS_AT } from './rails/receipts.ts';
import { openReceipts, openX402, x402OfferOf } from './rails/x402/part.ts';
import { openGas } from './relayer/part.ts';
import { openSecretRegister } from './secrets/part.ts';
import type { Service } from './services/define.ts';
import { openTopup } from './topup/part.ts';

export interface AppParts extends Omit<HouseParts, 'sandbox' | 'proxyTrust'> {
  config: Config;
  /** What is sold, in catalog order. */
  services: readonly Service[];
}

export type App = ReturnType<typeof createApp>;

/** Puts the server together. It does not listen yet, and its jobs do not run yet. */
export function createApp({ config, services, ...given }: AppParts) {
  const { baseUrl, nowMs, pools } = given;
  const house = openHouse({ ...given, sandbox: config.sandbox, proxyTrust: config.proxyTrust });
  const { secrets } = config;
  const ledger = createLedger(pools, nowMs);
  const seal = createAnswerSeal(secrets);

  const register = openSecretRegister(house, { secrets, lostIds: config.secretsLost }, seal);
  const keyed = openKeys(house, { ...config, servicesAvailable: services.length }, { ledger, secrets });
  const { keys } = keyed;
  const mail = openMail(house, config.mail);
  const { mailer } = mail;
  const cardMoney = openCardMoney(
    house,
    { ...config, provider: config.cards },
    { ledger, keys, mailer, secrets },
  );
  const { cards, debts } = cardMoney;
  const sources = openSources(house, { ...config, acceptSandbox: !config.production });
  const custody = openCustody(house, { encryptionKeys: config.walletEncryptionKeys }, { keys });
  const registrar = { rpcUrl: config.upstreams.base.baseUrl, privateKey: config.identityRegistrarKey };
  const fuelled = openGas(house);
  const { gas } = fuelled;
  const identity = openIdentity(house, registrar, { gas });

  // The ways to pay. Who sends a payment beside its key means the payment: clients keep sending a key that ran dry.
  const onChains = openX402(house, { ...config.x402, rpcUrls: rpcUrlsOf(config) }, { secrets, gas });
  const { x402 } = onChains;
  const byMpp = openMpp(house, config.mpp, { x402, gas, services });
  const { mpp } = byMpp;
  const walletsPay = () => x402.offered().length > 0;
  const credits = creditsRail({
    ...{ keys, baseUrl, frozenBecause: debts.standing },
    addCreditAt: () => creditUrls(baseUrl, walletsPay(), cards !== null),
  });
  const rails = [x402.rail, ...byMpp.elsewhere, credits];

  // What is sold, and at which doors.
  const sales = openSales(
    house,
    { ...config, refundAfterMs: config.x402.refundAfterMs },
    {
      ...{ ledger, seal, services, upstreams: sources.upstreams, receiptsAt: RECEIPTS_AT },
      capable: [custody, identity, sources],
      chainsOf: (rail) => (rail === 'x402' ? x402 : rail === 'mpp' ? mpp : null)?.rail.chains,
    },
  );
  const atX402 = openX402Door(house, { services, rails, sales });
  const forLegacy = { services, sales, credits, checkout: cards?.checkout ?? null, walletsPay };
  const collect = (why: string) => (transaction: Transaction, accountId: bigint) =>
    debts.collect(transaction, accountId, `${why} account ${accountId}`);

  const pages = openPages({ sandbox: config.sandbox });
  const routes: Route[] = [];
  const parts: Part[] = [
    // First: while it prepares nothing else waits, and what its calls left open is ended before anything closes.
    sales,
    register,
    openOperations(house, config, { parts: () => parts }),
    mail,
    keyed,
    openAccount(house, config, { keys, ledger, debts, autoRecharges: cards?.recharges ?? null }),
    cardMoney,
    sources,
    custody,
    fuelled,
    identity,
    onChains,
    byMpp,
    openDiscovery(
      house,
      { ...config, requestsPerMinute: config.rateLimitPerKey },
      {
        ...{ pages, services, routes, availability: sales.availability, cardCheckout: cards !== null },
        x402: () => x402OfferOf(x402),
        mpp: () => mppOfferOf(mpp, byMpp.sold.length > 0),
      },
    ),
    atX402,
    openMppDoor(house, { ...byMpp, sales, x402, credits }),
    openLegacy(house, config, forLegacy),
    openTopup(house, config, { ledger, keys, sales, x402, credited: collect('top-up of') }),
    openReceipts(house, config, sales),
    openOperator(
      house,
      { ...config, tokens: config.adminTokens },
      {
        ...{ ledger, keys, cards, creditServices: 'credits/topup/' },
        ...{ upstreamHealth: sources.health, dataLists: sources.dataLists.states, gas: gas.standings },
        collectDebts: collect('credit by an operator to'),
        sendPage: (request, reply) => pages.send(request, reply, 'admin.html'),
      },
    ),
  ];
  house.watch(parts);
  const { trials } = keyed;
  const { calls, reconciler, settlementFinisher } = sales;
  return {
    ...assemble(house, config, parts, routes),
    ...{ calls, keys, ledger, trials, cards, debts, reconciler, settlementFinisher },
    dataLists: sources.dataLists,
    paidCall: atX402.paidCall,
  };
}

/** Where credit can be bought for a key now, best first. */
function creditUrls(baseUrl: string, byWallet: boolean, byCard: boolean): string[] {
  const ways = [...(byWallet ? ['topup'] : []), ...(byCard ? ['purchase', 'checkout/session'] : [])];
  return ways.map((way) => `${baseUrl}/api/m2m/credits/${way}`);
}
