/**
 * The x402 rail: USDC on a chain, moved by an authorization that the caller sends, or by a transfer that the caller
 * made before. `read.ts` decides whether it pays, `offer.ts` writes the 402, `chains.ts` moves the money.
 */
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import type { Chains, Rail } from '../../paid-call/rail.ts';
import { addressOf } from '../../relayer/sign.ts';
import type { Secrets } from '../../secrets/secrets.ts';
import { auditNetwork, type ChainAudit } from '../evm/audit.ts';
import { authorizationOf } from '../evm/eip3009.ts';
import { forgottenPayment } from '../evm/forgotten-payment.ts';
import { type PaidOnNetwork, paidSince } from '../evm/paid-since.ts';
import type { AuthorizationSettler } from '../evm/settler.ts';
import type { Seen } from '../on-chain/standing.ts';
import { transferFinder, x402Chains } from './chains.ts';
import { openFacilitators } from './facilitators.ts';
import { offerMaker } from './offer.ts';
import { type Offered, type OfferedNetwork, offeredOf } from './offered.ts';
import { type NetworkNeeds, type Opened, openNetworks, type X402Config } from './open-networks.ts';
import { evidenceAt, plainReceipt, readPayment, recallPayment } from './read.ts';
import { createSignIn, type SignInChallenge } from './sign-in.ts';
import { solanaPaidSince } from './solana-paid-since.ts';
import { lookerAt } from './standing.ts';
import { BLOCKHASH_LIFE_MS } from './svm-payments.ts';
import { hasPayment } from './wire.ts';

export interface X402Rail {
  /** How a wallet that has paid proves who it is. */
  signIn: SignInChallenge;
  rail: Rail;
  /** The chains that are offered now, in order. */
  offered(): readonly OfferedNetwork[];
  facilitatorUrl: string | null;
  /** The configured chains, by their CAIP-2 names, and how to see whether somebody could pay there now. */
  networks: readonly { network: string; look(): Promise<Seen> }[];
  /** Asks the facilitators what they settle. Keeps the last answer of one that does not reply. */
  refresh(): Promise<void>;
  /** One round over our own pending transactions. */
  resume(): Promise<void>;
  /** Deletes old sign-ins and old failures of settlements. */
  dropExpired(): Promise<void>;
  /** The chain with this id, for another rail whose payments are also authorizations; null when it is not offered. */
  authorizations(chainId: number): AuthorizationSettler | null;
  /** Compares the books with every chain that is configured. */
  audit(): Promise<ChainAudit[]>;
  /** What each configured chain says was paid since a time; null: it cannot be read so. @throws when a node does not say */
  paidSince(sinceMs: number): Promise<readonly PaidOnNetwork[]>;
  close(): Promise<void>;
}

export function createX402Rail(
  config: X402Config,
  parts: Omit<NetworkNeeds, 'facilitators'> & { baseUrl: string; secrets: Secrets },
): X402Rail {
  const { sql, baseUrl, secrets, sandbox, gas, nowMs } = parts;
  const facilitators = openFacilitators(config.facilitatorUrls, config.facilitatorToken);
  const networks = openNetworks(config, { ...parts, facilitators });
  const opened = [...networks.all.values()];
  const offered = offeredOf(networks, { facilitators, sandbox });
  const signIn = createSignIn({ baseUrl, secrets, sql, chains: [...networks.all.keys()], nowMs });
  const findTransfer = transferFinder(facilitators, nowMs);
  const reading = { networks, offered, findTransfer, nowMs };
  const chains = x402Chains(networks, reading);
  const revision = () => facilitators.revision + gas.revision;

  const rail: Rail = {
    name: 'x402',
    chains,
    get revision() {
      return revision();
    },
    ...offerMaker({ offered, signIn, baseUrl, networks: [...networks.all.keys()], revision }),
    recognizes: hasPayment,
    read: (headers, quote) => readPayment(reading, headers, quote),
    recall: (headers) => recallPayment(reading, headers).catch(() => null),
    async signIn(headers, quote) {
      const header = headers['sign-in-with-x'];
      if (typeof header !== 'string') return null;
      const payer = await signIn.check(header, quote.resourceUrl);
      return { accountId: HOUSE_ACCOUNTS.chain_clearing, payer, receipt: plainReceipt };
    },
  };

  return {
    rail,
    signIn,
    offered: offered.now,
    facilitatorUrl: config.facilitatorUrls[0] ?? null,
    networks: opened.map((open) => lookerAt(open, { offered, facilitators })),
    refresh: facilitators.refresh,
    async resume() {
      const senders = opened.flatMap((open) => open.senders);
      const resumed = await Promise.allSettled(senders.map((sender) => sender.resume()));
      const failed = resumed.find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    },
    async dropExpired() {
      await Promise.all([signIn.dropExpired(), networks.lostGas.dropExpired()]);
    },
    authorizations: (chainId) =>
      settlerOf(networks.all.get(`eip155:${chainId}`), { offered, chains, sandbox }),
    audit: () =>
      Promise.all(
        opened.map((open) =>
          auditNetwork({
            sql,
            network: open.network.id,
            payTo: open.payTo,
            evm: 'chain' in open ? open : null,
            finality: chains.finality,
          }),
        ),
      ),
    paidSince: (sinceMs) =>
      Promise.all(opened.map((open) => paidAt(open, config.refundKeys.map(addressOf), sinceMs))),
    async close() {
      await Promise.all([facilitators.close(), ...opened.map((open) => open.close())]);
    },
  };
}

/** Reads what came to us on one chain since a time. */
async function paidAt(open: Opened, refunders: readonly string[], sinceMs: number): Promise<PaidOnNetwork> {
  const { network, payTo, rpc } = open;
  if (!('chain' in open)) {
    const { refunder } = open;
    const place = { rpc, network: network.id, asset: network.asset, payTo, refunder };
    const paid = await solanaPaidSince(place, sinceMs);
    return { network: network.id, rail: 'x402', paid, landsWithinMs: BLOCKHASH_LIFE_MS };
  }
  const asset = network.asset.toLowerCase();
  const paid = await paidSince(
    {
      title: network.title,
      rpc,
      asset,
      payTo,
      refunders,
      paymentOf: (moved) => forgottenPayment(open.network, payTo, moved),
    },
    sinceMs,
  );
  return { network: network.id, rail: 'x402', paid, landsWithinMs: 0 };
}

/** Null for a chain that is not open, or that takes no authorizations. */
function settlerOf(
  open: Opened | undefined,
  { offered, chains, sandbox }: { offered: Offered; chains: Chains; sandbox: boolean },
): AuthorizationSettler | null {
  if (open === undefined || !('chain' in open)) return null;
  const { network, chain, recipient: payTo } = open;
  return {
    chainId: network.chainId,
    offers: (quote) => offered.for(quote).some((each) => each.network.id === network.id),
    asset: network.asset,
    domain: network.domain,
    payTo,
    chains,
    isSignedByPayer: (authorization, signature) =>
      chain.isSignedByPayer(authorizationOf(authorization), signature),
    evidenceOf: evidenceAt({ network, payTo, feePayer: null, sandbox }),
  };
}
