/** The table of contents of the server: what it is made of, and which part needs which. What is not listed is off. */
import { openSources, SOURCES, TERMS, upstreamsOf } from '@farebox/catalogue/data-lists/part';
import { DEVICES, openDevices } from '@farebox/catalogue/devices/part';
import { openPictures, PICTURES } from '@farebox/catalogue/pictures/part';
import { checksOf } from '@farebox/catalogue/preflight/own-check';
import { A2A, openA2a } from '@farebox/core/a2a/part';
import { openAccount } from '@farebox/core/account/part';
import { CARDS, openCardMoney } from '@farebox/core/cards/part';
import type { ConfigOf } from '@farebox/core/config';
import { CUSTODY, openCustody } from '@farebox/core/custody/part';
import { DATABASE } from '@farebox/core/db/declared';
import { booksOf } from '@farebox/core/declared';
import { openDiscovery } from '@farebox/core/discovery/part';
import { assemble, type HouseNeeds, openHouse } from '@farebox/core/house';
import { IDENTITY, openIdentity } from '@farebox/core/identity/part';
import { KEYS, openKeys } from '@farebox/core/keys/part';
import { createLedger } from '@farebox/core/ledger/ledger';
import { openLegacy } from '@farebox/core/legacy/part';
import { MAIL, openMail } from '@farebox/core/mail/part';
import { MCP, openMcp } from '@farebox/core/mcp/part';
import { OPERATIONS, openOperations } from '@farebox/core/operations/part';
import { OPERATOR, openOperator } from '@farebox/core/operator/part';
import { createCallMetrics } from '@farebox/core/paid-call/metrics';
import { openSales, openX402Door, PAID_CALL } from '@farebox/core/paid-call/part';
import { createAnswerSeal } from '@farebox/core/paid-call/sealed-answer';
import type { Part } from '@farebox/core/part';
import { PEOPLE } from '@farebox/core/people/declared';
import { creditsRail } from '@farebox/core/rails/credits/rail';
import { MPP, openMpp, openMppDoor } from '@farebox/core/rails/mpp/part';
import { openReceipts, openX402, X402 } from '@farebox/core/rails/x402/part';
import { openRecovery } from '@farebox/core/recovery/part';
import { openGas } from '@farebox/core/relayer/part';
import { openSecretRegister, SECRETS } from '@farebox/core/secrets/part';
import { openSoldKeys, SOLD_KEYS } from '@farebox/core/sold-keys/part';
import { openStatus } from '@farebox/core/status/part';
import { openStock, type StockSource } from '@farebox/core/stock/part';
import { openTopup, TOPUP } from '@farebox/core/topup/part';
import { openWebhooks, WEBHOOKS } from '@farebox/core/webhooks/part';
import { type LiveRoutes, openProxy, PROXY } from '@farebox/proxy/part';
import { EVM_YIELD, openEvmYield } from '@farebox/yield/evm/part';
import { FREE_READS, openFreeReads } from '@farebox/yield/free-reads/part';
import { openYieldKeeper, YIELD_KEEPER } from '@farebox/yield/keeper/part';
import { openSolanaYield, SOLANA_YIELD } from '@farebox/yield/solana/part';
import { GUIDES, openGuidedPages } from './guides.ts';

const FOUNDATION = [DATABASE, SECRETS, PEOPLE, SOURCES, TERMS, MAIL, WEBHOOKS, OPERATOR, OPERATIONS] as const;
const PAYMENT = [KEYS, PAID_CALL, X402, MPP, CARDS, SOLD_KEYS, TOPUP, MCP, A2A] as const;
const OFFERS = [CUSTODY, IDENTITY, DEVICES, PICTURES, PROXY] as const;
const YIELD = [FREE_READS, EVM_YIELD, YIELD_KEEPER, SOLANA_YIELD] as const;

/** The parts' declarations, known before they are opened, such as what they are configured by. */
export const DECLARED = [...FOUNDATION, ...PAYMENT, ...OFFERS, ...YIELD] as const;

export type App = ReturnType<typeof createApp>;
type AppNeeds = HouseNeeds & {
  config: ConfigOf<typeof DECLARED>;
  routes?: LiveRoutes | null;
  source?: StockSource;
};

/** Puts the server together. It does not listen yet, and its jobs do not run yet. */
export function createApp({ config, routes, source, ...given }: AppNeeds) {
  const { host, production, publicUrl } = config.house;
  const known = { elsewhere: routes?.now.elsewhere ?? [], errorCodes: GUIDES.errors };
  const house = openHouse(config.house, { ...given, ...known });
  const secrets = config.secrets.secrets.reveal().versions;
  const ledger = createLedger(given.pools, given.nowMs, config.database.settings);
  const seal = createAnswerSeal(secrets);
  const metrics = createCallMetrics();
  const keyed = openKeys(house, config.keys, { ledger, secrets });
  const { keys, trials } = keyed;
  const mail = openMail(house, config.mail);
  const cardMoney = openCardMoney(house, config.cards, { ledger, keys, secrets, mailer: mail.mailer });
  const { cards, debts, walks, collectAfter } = cardMoney;
  const upstreams = upstreamsOf(config.sources, config.terms.settings.accepted);
  const sources = openSources(house, { upstreams, acceptSandbox: !production }, config.sources);
  const fuelled = openGas(house);
  const { gas } = fuelled;
  const webhooks = openWebhooks(house, config.webhooks, { keys, mailer: mail.mailer, secrets, seal });
  const freeReads = openFreeReads(house, config.freeReads);
  const vault = openEvmYield(house, config.evmYield, { upstreams, freeReads, check: checksOf(sources) });
  const byX402 = openX402(house, config.x402, { upstreams, secrets, gas, settlement: metrics.settlement });
  const { x402, walletsPay } = byX402;
  const byMpp = openMpp(house, config.mpp, { x402, gas, settlement: metrics.settlement });
  const credits = creditsRail(house, { keys, debts, walletsPay, chargesCards: cards !== null });
  // Who sends a payment beside a key means the payment: clients keep sending a key that ran dry.
  const rails = [x402.rail, ...byMpp.elsewhere, credits];
  const sales = openSales(house, config.paidCall.settings, {
    ledger,
    seal,
    metrics,
    sources: sources.upstreams,
    receiptsAt: byX402.receiptsAt,
    railsOnChains: [x402.rail, ...byMpp.rails],
    capable: () => parts,
    keyUsed: webhooks.keyUsed,
  });
  const atX402 = openX402Door(house, { rails, sales });
  const stock = openStock(house, { source, replica: sales.replicaId, parts: () => parts });
  const pages = openGuidedPages(house);
  const shown = { x402: byX402.offer, mpp: byMpp.offer, pages, sales, parts: () => parts };
  const desk = { ledger, keys, cardMoney, pages, parts: () => parts, stock: stock.desk, gas: gas.standings };
  const parts: Part[] = [
    // First: while it prepares nothing else waits, and what its calls left open is ended before anything closes.
    sales,
    openRecovery(house, config.database, sales.replicaId),
    stock,
    openSecretRegister(house, config.secrets, seal),
    openOperations(house, config.operations, { parts: () => parts, publicUrl }),
    openStatus(house, shown),
    mail,
    keyed,
    openAccount(house, { keys, ledger, debts, autoRecharges: cards?.recharges ?? null }),
    cardMoney,
    webhooks,
    sources,
    openCustody(house, config.custody, { keys }),
    openDevices(house, config.devices, { keys, host, shares: sales.shares, acceptSimulated: !production }),
    openPictures(house, config.pictures, { secrets, upstreams: sources.upstreams }),
    fuelled,
    openIdentity(house, config.identity, { gas, rpcUrl: upstreams.base.baseUrl }),
    vault,
    openYieldKeeper(house, config.yieldKeeper, { gas, upstreams, vault: vault.address }),
    openSolanaYield(house, config.solanaYield, { upstreams, freeReads, vault, check: checksOf(sources) }),
    byX402,
    byMpp,
    openDiscovery(house, config.paidCall.settings, secrets, { ...shown, cardCheckout: cards !== null }),
    atX402,
    openMppDoor(house, { mpp: byMpp.mpp, sales, x402: x402.rail, credits }),
    openMcp(house, config.mcp, { sales, keys, mpp: byMpp.mpp, x402: x402.rail, credits }),
    openA2a(house, config.a2a, { sales, keys, x402: x402.rail, credits }),
    openLegacy(house, { sales, credits, checkout: cards?.checkout ?? null, walletsPay }),
    openTopup(house, config.paidCall.settings, { ledger, keys, sales, x402, collectAfter }),
    openSoldKeys(house, { ...config.paidCall.settings, ...config.soldKeys.settings }, { ledger, keys, seal }),
    openReceipts(house, { settlements: sales.settlements, x402, walletsPay }),
    openProxy(house, { routes, sales, mpp: byMpp.mpp, x402: x402.rail, credits }),
    openOperator(house, config.operator, {
      ...desk,
      payments: sales.payments,
      books: booksOf(DECLARED),
      trialBudgetMicrosPerDay: config.keys.settings.trialBudgetMicrosPerDay,
      sources: sources.forOperator,
    }),
  ];
  const ofMoney = { keys, ledger, trials, cards, debts, walks, x402, byMpp, sales };
  const { calls, reconciler, settlementFinisher } = sales;
  const ofCalls = { calls, reconciler, settlementFinisher, paidCall: atX402.paidCall, reload: stock.reload };
  return { ...assemble(house, config.house, parts, pages.routes), ...ofMoney, ...ofCalls, sources };
}
