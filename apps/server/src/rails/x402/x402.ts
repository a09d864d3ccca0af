/**
 * The x402 rail: USDC on a chain, moved by a signature that the caller sends along. Reads and checks what is presented,
 * and hands the chain's part to `evm-payments.ts`, `svm-payments.ts` and `transfers.ts`.
 */
import { type BatchingRpc, connectRpc, type Rpc } from '../../chain-rpc/json-rpc.ts';
import type { Database } from '../../db/connection.ts';
import { unavailable } from '../../http/problem.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import { priceInUsd } from '../../ledger/money.ts';
import type {
  Chains,
  ChainVerdict,
  OnChainPayment,
  Payment,
  Quote,
  Rail,
  Recalled,
  Headers as RequestHeaders,
} from '../../paid-call/rail.ts';
import { createEndingSender, type EndingSender } from '../../relayer/ending-sender.ts';
import { evmGas } from '../../relayer/evm-gas.ts';
import type { Duty, GasTank, GasTanks } from '../../relayer/gas-tanks.ts';
import { createRelayer, type Relayer } from '../../relayer/relayer.ts';
import { addressOf } from '../../relayer/sign.ts';
import type { Secrets } from '../../secrets/secrets.ts';
import { auditNetwork, type ChainAudit } from './audit.ts';
import type { Authorization, Hex } from './eip3009.ts';
import { type EvmChain, openEvmChain } from './evm-chain.ts';
import { authorizationOf, type EvmEvidence, evmPayments, type NetworkPayments } from './evm-payments.ts';
import {
  connectFacilitator,
  type Facilitator,
  type PaymentForFacilitator,
  type SupportedKinds,
} from './facilitator.ts';
import { openLostGas } from './lost-gas.ts';
import { type EvmNetwork, NETWORKS, type Network, type NetworkName, type SolanaNetwork } from './networks.ts';
import {
  bazaarOf,
  CLAIM_RULE,
  legacyAccepts,
  type OfferedNetwork,
  paymentRequiredHeader,
  requirementsV1,
  requirementsV2,
} from './offers.ts';
import { refuse } from './refusals.ts';
import { createSignIn } from './sign-in.ts';
import { readSolanaKey, type SolanaKey } from './solana-key.ts';
import { LEAST_REFUND_LAMPORTS, REFUND_LAMPORTS, solanaRefunds } from './solana-refunds.ts';
import { solanaChain, solanaGas } from './solana-sending.ts';
import {
  LEAST_SETTLER_LAMPORTS,
  SETTLEMENT_LAMPORTS,
  type SolanaSettler,
  solanaSettler,
} from './solana-settler.ts';
import { hasEverReceived, hasTokenAccount, tellingStrangers } from './strangers.ts';
import {
  isPoor,
  readSolanaTransfer,
  type SvmEvidence,
  solanaDeadAfterMs,
  svmPayments,
} from './svm-payments.ts';
import { findEvmTransfer, findSolanaTransfer, lookAtTransfer } from './transfers.ts';
import {
  hasPayment,
  type Presented,
  type PresentedTransfer,
  readPresented,
  unsupportedNetwork,
} from './wire.ts';

/** A payment that is good for longer is refused: it would have to be watched for as long. */
const MAX_VALIDITY_MS = 3_600_000;
/** What a settlement uses, a little more than was measured. */
const SETTLEMENT_GAS = 70_000n;
/** A key that cannot pay for so many settlements takes no more of them on. */
const LEAST_SETTLEMENTS = 20n;
/** What settling takes at worst, beyond the service's own time. */
const SETTLE_MARGIN_MS = 6_000;
const RPC_TIMEOUT_MS = 5_000;
/** What wallets' own code may cost us in a day on one chain, when settlements that passed a trial fail. */
const LOST_GAS_MICROS_PER_DAY = 5_000_000n;
/** For a chain whose currency nobody put a price on: too much rather than too little. */
const DEAREST_GAS_TOKEN_USD = 10_000;

export interface X402Config {
  networks: readonly NetworkName[];
  /** Null: EVM chains are not offered. */
  recipient: Hex | null;
  /** The owner of the token account, not the account. Null: Solana is not offered. */
  recipientSolana: string | null;
  /** Null for a chain whose node is not configured: it is not offered then. */
  rpcUrls: Readonly<Record<NetworkName, string | null>>;
  facilitatorUrls: readonly string[];
  facilitatorToken: string | null;
  /** Keys of our own settler; with none, facilitators settle. */
  relayerKeys: readonly Hex[];
  /** Keys that hold USDC and gas for refunds. */
  refundKeys: readonly Hex[];
  /** Those that our settler calls to put a wallet on the chain (ERC-6492). */
  walletFactories: readonly Hex[];
  /** What a whole unit of each chain's own currency is taken to be worth, in whole USD. */
  gasTokenUsd: Readonly<Partial<Record<NetworkName, number>>>;
  /** As `readSolanaKey` takes it. Null: facilitators settle on Solana. */
  relayerKeySolana: string | null;
  /** Holds USDC and SOL for refunds. */
  refundKeySolana: string | null;
}

export interface X402Rail {
  rail: Rail;
  /** The chains that are offered now, in order. */
  offered(): readonly OfferedNetwork[];
  facilitatorUrl: string | null;
  /** Asks the facilitators what they settle. Keeps what it knew of one that does not answer. */
  refresh(): Promise<void>;
  /** One round over our own pending transactions. */
  resume(): Promise<void>;
  /** Forgets sign-ins and failed settlements that are too old to matter. */
  dropExpired(): Promise<void>;
  /** The chain with this id, for another rail whose payments are authorizations too; null when it is not offered. */
  authorizations(chainId: number): AuthorizationSettler | null;
  /** Holds the books against every chain that is configured. */
  audit(): Promise<ChainAudit[]>;
  close(): Promise<void>;
}

/** Settles EIP-3009 authorizations that came by another protocol, with the same chain, keys and facilitators. */
export interface AuthorizationSettler {
  chainId: number;
  /** Whether such payments are taken for this now. */
  offers(quote: Quote): boolean;
  asset: Hex;
  domain: { name: string; version: string };
  payTo: Hex;
  chains: Chains;
  isSignedByPayer(authorization: EvmEvidence['authorization'], signature: Hex): Promise<boolean>;
  evidenceOf(authorization: EvmEvidence['authorization'], signature: Hex, quote: Quote): EvmEvidence;
}

interface EvidenceOfTransfer extends Record<string, unknown> {
  scheme: 'transfer';
  transaction: string;
  /** The price when it was presented; absent from those of before. */
  priceUnits?: string;
}

/** A relayer of ours, and what is known of its gas. */
interface Sending {
  relayer: Relayer;
  tank: GasTank;
}

/** What a network needs to take payments, once its node is configured. */
type Opened = { rpc: BatchingRpc; payTo: string } & (
  | {
      network: EvmNetwork;
      chain: EvmChain;
      payments: NetworkPayments;
      settling: Sending | null;
      refunding: Sending | null;
    }
  | {
      network: SolanaNetwork;
      payments: NetworkPayments;
      settler: SolanaSettler;
      sender: EndingSender;
      refunding: { tank: GasTank } | null;
    }
);

export function createX402Rail(
  config: X402Config,
  parts: {
    sql: Database;
    baseUrl: string;
    secrets: Secrets;
    /** Whether the money is that of a sandbox, which every offer says. */
    sandbox: boolean;
    /** Where our keys' gas is watched. */
    gas: GasTanks;
    nowMs(): number;
    report(network: string, step: 'verify' | 'settle', outcome: string): void;
  },
): X402Rail {
  const { nowMs, sandbox, gas } = parts;
  const facilitators = config.facilitatorUrls.map((url) => ({
    client: connectFacilitator(url, config.facilitatorToken),
    kinds: [] as SupportedKinds,
  }));
  let facilitatorsRevision = 0;
  const revision = () => facilitatorsRevision + gas.revision;

  /** The facilitators that settle a network for clients of a generation, in the configured order. */
  function facilitatorsFor(network: Network, version: 1 | 2): Facilitator[] {
    const name = version === 2 ? network.id : network.legacyName;
    return facilitators
      .filter(({ kinds }) =>
        kinds.some(
          (kind) => kind.scheme === 'exact' && kind.x402Version === version && kind.network === name,
        ),
      )
      .map(({ client }) => client);
  }

  /** Ours while it can pay; else that of a facilitator. */
  function feePayerOf(network: Network): string | null {
    if (network.kind === 'evm') return null;
    const own = ownFeePayer(network);
    if (own !== null) return own;
    for (const { kinds } of facilitators) {
      const kind = kinds.find((each) => each.scheme === 'exact' && each.network === network.id);
      if (typeof kind?.extra?.feePayer === 'string') return kind.extra.feePayer;
    }
    return null;
  }

  /** What so many micro-USD buy of the chain's own currency. */
  const worthWei = (network: Network, micros: bigint) =>
    (micros * 10n ** 12n) / BigInt(config.gasTokenUsd[network.name] ?? DEAREST_GAS_TOKEN_USD);
  const factories = new Set(config.walletFactories.map((address) => address.toLowerCase()));
  const lostGas = openLostGas(parts.sql, nowMs, (id) => {
    const network = NETWORKS.find((each) => each.id === id);
    return network === undefined ? 0n : worthWei(network, LOST_GAS_MICROS_PER_DAY);
  });

  const opened = new Map<string, Opened>();

  function ownFeePayer(network: Network): string | null {
    const open = opened.get(network.id);
    return open !== undefined && 'settler' in open ? open.settler.feePayer : null;
  }

  const closing: Rpc[] = [];
  for (const network of NETWORKS) {
    const rpcUrl = config.rpcUrls[network.name];
    const payTo = network.kind === 'evm' ? config.recipient : config.recipientSolana;
    if (!config.networks.includes(network.name) || rpcUrl === null || payTo === null) continue;
    const rpc = connectRpc(rpcUrl, { timeoutMs: RPC_TIMEOUT_MS });
    const common = {
      facilitators: (version: 1 | 2) => facilitatorsFor(network, version),
      report: (step: 'verify' | 'settle', outcome: string) => parts.report(network.id, step, outcome),
    };
    if (network.kind === 'solana') {
      const chain = solanaChain(rpc, nowMs);
      const sender = createEndingSender({ sql: parts.sql, network: network.id, chain, nowMs });
      const keyOf = (text: string | null) => (text === null ? null : readSolanaKey(text));
      const [key, refundKey] = [keyOf(config.relayerKeySolana), keyOf(config.refundKeySolana)];
      const tankOf = (duty: Duty, { address }: SolanaKey, lamports: { each: bigint; least: bigint }) =>
        gas.open({
          ...{ network: network.id, duty, token: network.gasToken, addresses: [address] },
          source: solanaGas(rpc, lamports.each),
          least: () => lamports.least,
        });
      const settler = solanaSettler({
        ...{ rpc, sender, key, nowMs },
        tank:
          key === null
            ? null
            : tankOf('settle', key, { each: SETTLEMENT_LAMPORTS, least: LEAST_SETTLER_LAMPORTS }),
        isPoor: (payment) => isPoor(rpc, payment),
      });
      const refunds = refundKey === null ? null : solanaRefunds({ rpc, sender, key: refundKey, nowMs });
      const payments = tellingStrangers(
        sandbox,
        svmPayments({ network, rpc, nowMs, settler, refunds, ...common }),
        (payment) => hasTokenAccount(rpc, payment),
      );
      const refunding =
        refundKey === null
          ? null
          : { tank: tankOf('refund', refundKey, { each: REFUND_LAMPORTS, least: LEAST_REFUND_LAMPORTS }) };
      opened.set(network.id, { network, rpc, payTo, payments, settler, sender, refunding });
      continue;
    }
    const chain = openEvmChain(network, rpc, nowMs);
    // Sending waits for blocks: with connections of its own it keeps nobody from asking.
    const sending = connectRpc(rpcUrl, { timeoutMs: RPC_TIMEOUT_MS });
    closing.push(sending);
    const sendingWith = (duty: Duty, keys: readonly Hex[]): Sending | null => {
      if (keys.length === 0) return null;
      const tank = gas.open({
        ...{ network: network.id, duty, token: network.gasToken, addresses: keys.map(addressOf) },
        source: evmGas({ sql: parts.sql, rpc: sending, network: network.id, gasEach: SETTLEMENT_GAS, nowMs }),
        least: (cost) => LEAST_SETTLEMENTS * cost,
      });
      const relayer = createRelayer({
        ...{ sql: parts.sql, rpc: sending, network: network.id, chainId: network.chainId, keys, tank, nowMs },
      });
      return { relayer, tank };
    };
    const settling = sendingWith('settle', config.relayerKeys);
    const refunding = sendingWith('refund', config.refundKeys);
    opened.set(network.id, {
      network,
      rpc,
      payTo: payTo.toLowerCase(),
      chain,
      payments: tellingStrangers(
        sandbox,
        evmPayments({
          ...{ chain, relayer: settling?.relayer ?? null, refunds: refunding?.relayer ?? null, ...common },
          wallets: { factories, lostGas, worthWei: (units) => worthWei(network, units) },
        }),
        (payment) => hasEverReceived(rpc, payment),
      ),
      settling,
      refunding,
    });
  }

  const signIn = createSignIn({
    baseUrl: parts.baseUrl,
    secrets: parts.secrets,
    sql: parts.sql,
    chains: [...opened.keys()],
    nowMs,
  });

  function offered(): OfferedNetwork[] {
    return [...opened.values()].flatMap((open) => {
      const { network } = open;
      const payTo = network.kind === 'evm' ? config.recipient : config.recipientSolana;
      const feePayer = feePayerOf(network);
      const settling = 'chain' in open ? open.settling : null;
      const settles =
        settling?.tank.isAble ?? (ownFeePayer(network) !== null || facilitatorsFor(network, 2).length > 0);
      if (payTo === null || !settles || (network.kind === 'solana' && feePayer === null)) return [];
      return [{ network, payTo, feePayer, sandbox }];
    });
  }

  function canRefund(networkId: string): boolean {
    const open = opened.get(networkId);
    return open?.payments.canRefund === true && open.refunding?.tank.isAble !== false;
  }

  /** Whether settling a price costs less than it brings, at the fees that were seen last. */
  function isWorthIt(network: Network, priceMicros: bigint): boolean {
    const open = opened.get(network.id);
    if (open === undefined || !('chain' in open) || open.settling === null) return true;
    return open.settling.tank.cost <= worthWei(network, priceMicros);
  }

  /** A service that leaves something behind is sold only where the money can be sent back. */
  function offeredFor(quote: Quote): OfferedNetwork[] {
    return offered().filter(
      ({ network }) =>
        (quote.service.effect === 'read' || canRefund(network.id)) && isWorthIt(network, quote.priceMicros),
    );
  }

  const headers = new Map<string, { revision: number; header: ReturnType<typeof paymentRequiredHeader> }>();
  function headerOf(quote: Quote) {
    const { path } = quote.service;
    let known = headers.get(path);
    if (known === undefined || known.revision !== revision()) {
      known = { revision: revision(), header: paymentRequiredHeader(offeredFor(quote), quote, signIn) };
      headers.set(path, known);
    }
    return known.header;
  }

  function ready(network: Network, quote: Quote): { found: OfferedNetwork; open: Opened } {
    const offers = offeredFor(quote);
    const found = offers.find((each) => each.network.id === network.id);
    const open = opened.get(network.id);
    if (found === undefined || open === undefined)
      throw unsupportedNetwork(offers.map((each) => each.network.id));
    return { found, open };
  }

  function paymentOf(
    onChain: OnChainPayment,
    details: {
      paymentId: string | null;
      claim: string | null;
      version: 1 | 2;
      legacyName: string | null;
    },
  ): Payment {
    const { payer, network } = onChain;
    return {
      rail: 'x402',
      accountId: HOUSE_ACCOUNTS.chain_clearing,
      keyId: null,
      revenue: 'revenue_x402',
      identity: details.paymentId === null ? onChain.identity : `id:${payer}:${details.paymentId}`,
      onChain,
      claim: details.claim,
      payer,
      proof:
        onChain.evidence.scheme === 'transfer'
          ? { by: 'transfer', network, transaction: String(onChain.evidence.transaction) }
          : { by: 'signature', network, address: payer },
      limitBy: `x402:${payer}`,
      network,
      receipt: ({ transaction }) => receiptHeaders(onChain, transaction, details),
    };
  }

  function checkAccepted(presented: Presented, wanted: Record<string, unknown>): void {
    if (presented.accepted === null) return;
    for (const field of ['network', 'amount', 'asset', 'payTo'] as const) {
      const [theirs, ours] = [presented.accepted[field], wanted[field]].map((value) =>
        String(value).toLowerCase(),
      );
      if (theirs !== ours) throw refuse('PAYMENT_REQUIREMENTS_MISMATCH', { field: `accepted.${field}` });
    }
  }

  async function readExact(presented: Presented, quote: Quote): Promise<Payment> {
    const { found, open } = ready(presented.network, quote);
    const requirements =
      presented.version === 2 ? requirementsV2(found, quote) : requirementsV1(found, quote);
    checkAccepted(presented, requirementsV2(found, quote));
    const { version, network } = presented;
    // In our own words: what the caller wrote beside the payment is neither stored nor passed on.
    const forFacilitator = (payload: Record<string, unknown>): PaymentForFacilitator => ({
      x402Version: version,
      paymentPayload:
        version === 2
          ? {
              x402Version: 2,
              accepted: requirements,
              payload,
              resource: { url: quote.resourceUrl, mimeType: 'application/json' },
              ...(presented.echoesBazaar ? { extensions: { bazaar: bazaarOf(quote) } } : {}),
            }
          : { x402Version: 1, scheme: 'exact', network: network.legacyName, payload },
      paymentRequirements: requirements,
    });
    const { paymentId, claim } = presented;
    const details = { paymentId, claim, version, legacyName: network.legacyName };
    const common = {
      network: network.id,
      asset: network.asset,
      payTo: open.payTo,
      amountUnits: quote.priceMicros,
    };

    if (presented.scheme === 'exact-svm') {
      const transfer = await readSolanaTransfer(presented.transaction, {
        asset: network.asset,
        payTo: open.payTo,
      });
      if (transfer.amountUnits !== quote.priceMicros) throw refuse('PAYMENT_AMOUNT_MISMATCH');
      if (transfer.feePayer !== found.feePayer)
        throw refuse('PAYMENT_TRANSACTION_UNSUITABLE', { feePayer: found.feePayer });
      const evidence: SvmEvidence = {
        scheme: 'exact-svm',
        source: transfer.source,
        blockhash: transfer.blockhash,
        messageHash: transfer.messageHash,
        memo: transfer.memo,
        feePayer: transfer.feePayer,
        forFacilitator: forFacilitator({ transaction: presented.transaction }),
      };
      const identity = `${network.id}:${transfer.messageHash}`;
      const deadAfterMs = solanaDeadAfterMs(nowMs());
      return paymentOf({ ...common, identity, payer: transfer.payer, deadAfterMs, evidence }, details);
    }

    if (!('chain' in open)) throw unsupportedNetwork();
    const { authorization, signature } = presented;
    if (authorization.to !== open.payTo) throw refuse('PAYMENT_RECIPIENT_MISMATCH', { payTo: found.payTo });
    if (authorization.value !== quote.priceMicros)
      throw refuse('PAYMENT_AMOUNT_MISMATCH', { requiredUnits: String(quote.priceMicros) });
    const deadAfterMs = Number(authorization.validBefore) * 1_000;
    if (deadAfterMs > nowMs() + MAX_VALIDITY_MS) throw refuse('PAYMENT_VALID_TOO_LONG');
    const signed = await open.chain.isSignedByPayer(authorization, signature).catch((error: unknown) => {
      throw unavailable('CHAIN_UNAVAILABLE', `${network.title} does not answer.`, 5_000, {}, error);
    });
    if (!signed) throw refuse('PAYMENT_SIGNATURE_INVALID');
    const evidence = evidenceOf(textOf(authorization), signature, quote, forFacilitator);
    const identity = keyOfAuthorization(network, authorization);
    return paymentOf({ ...common, identity, payer: authorization.from, deadAfterMs, evidence }, details);
  }

  /** What the reconciler needs to go on with an authorization, and what a facilitator is given. */
  function evidenceOf(
    authorization: EvmEvidence['authorization'],
    signature: Hex,
    quote: Quote,
    forFacilitator: (payload: Record<string, unknown>) => PaymentForFacilitator,
  ): EvmEvidence {
    return {
      scheme: 'exact-evm',
      authorization,
      signature,
      mustLastMs: quote.service.timeoutMs + SETTLE_MARGIN_MS,
      forFacilitator: forFacilitator({ signature: withHighV(signature), authorization }),
    };
  }

  /** Who paid and with what, whatever the terms were and are: as far as one may ask for what was bought before. */
  async function recall(requestHeaders: RequestHeaders): Promise<Recalled | null> {
    const presented = readPresented(requestHeaders);
    const accountId = HOUSE_ACCOUNTS.chain_clearing;
    if (presented.scheme === 'transfer') {
      const { network, transaction } = presented;
      const ids = network === null ? [...opened.keys()] : [network.id];
      return {
        accountId,
        identities: ids.map((id) => keyOfTransfer(id, transaction)),
        claim: null,
        receipt: ({ transaction: settled }) => ({
          'x-payment-method': 'x402',
          ...(settled === null ? {} : { 'x-payment-transaction': settled }),
        }),
      };
    }
    const { network, version, claim } = presented;
    const open = opened.get(network.id);
    if (open === undefined) return null;
    const told = (payer: string, amountUnits: bigint): Payment['receipt'] => {
      const paid = { payer, amountUnits, network: network.id };
      return ({ transaction }) =>
        receiptHeaders(paid, transaction, { version, legacyName: network.legacyName });
    };
    if (presented.scheme === 'exact-svm') {
      const wanted = { asset: network.asset, payTo: open.payTo };
      const { messageHash, payer, amountUnits } = await readSolanaTransfer(presented.transaction, wanted);
      const identities = [`${network.id}:${messageHash}`];
      return { accountId, identities, claim, receipt: told(payer, amountUnits) };
    }
    if (!('chain' in open)) return null;
    const { authorization, signature } = presented;
    // Before it settles only its payer has the signature. Afterwards anybody has: what is bound to a claim asks for that too.
    if (!(await open.chain.isSignedByPayer(authorization, signature))) return null;
    const identities = [keyOfAuthorization(open.network, authorization)];
    return { accountId, identities, claim, receipt: told(authorization.from, authorization.value) };
  }

  async function findTransfer(open: Opened, transaction: string, amountUnits: bigint) {
    const wanted = { payTo: open.payTo, amountUnits };
    if ('chain' in open)
      return findEvmTransfer({ chain: open.chain, rpc: open.rpc, nowMs }, transaction, wanted);
    const own = ownFeePayer(open.network);
    const feePayers = new Set([
      ...(own === null ? [] : [own]),
      ...facilitators.flatMap(({ kinds }) =>
        kinds.map((kind) => kind.extra?.feePayer).filter((each) => typeof each === 'string'),
      ),
    ]);
    return findSolanaTransfer({ rpc: open.rpc, nowMs }, transaction, {
      ...wanted,
      asset: open.network.asset,
      feePayers,
    });
  }

  async function readTransfer(presented: PresentedTransfer, quote: Quote): Promise<Payment> {
    const candidates = offeredFor(quote).filter(({ network }) =>
      presented.network === null ? network.kind === 'evm' : network.id === presented.network.id,
    );
    if (candidates.length === 0) throw unsupportedNetwork(offeredFor(quote).map(({ network }) => network.id));
    if (quote.service.secretAnswer) throw refuse('PAYMENT_HASH_NOT_TAKEN_HERE');
    for (const { network } of candidates) {
      const open = opened.get(network.id);
      if (open === undefined) continue;
      const transfer = await findTransfer(open, presented.transaction, quote.priceMicros);
      if (transfer === null) continue;
      const evidence: EvidenceOfTransfer = {
        scheme: 'transfer',
        transaction: presented.transaction,
        priceUnits: String(quote.priceMicros),
      };
      return paymentOf(
        {
          identity: keyOfTransfer(network.id, presented.transaction),
          network: network.id,
          asset: network.asset,
          payer: transfer.payer,
          payTo: open.payTo,
          amountUnits: transfer.amountUnits,
          deadAfterMs: nowMs() + MAX_VALIDITY_MS,
          evidence,
        },
        { paymentId: null, claim: null, version: 2, legacyName: network.legacyName },
      );
    }
    throw refuse('PAYMENT_TRANSACTION_NOT_FOUND', { networks: candidates.map(({ network }) => network.id) });
  }

  const transferOf = (payment: OnChainPayment) =>
    payment.evidence.scheme === 'transfer' ? (payment.evidence as EvidenceOfTransfer).transaction : null;

  function openOf(payment: OnChainPayment): Opened {
    const open = opened.get(payment.network);
    if (open === undefined)
      throw unavailable('CHAIN_UNAVAILABLE', 'The chain of this payment is not configured here.', 60_000);
    return open;
  }

  async function lookOrSettle(payment: OnChainPayment, how: 'look' | 'settle'): Promise<ChainVerdict> {
    const open = opened.get(payment.network);
    if (open === undefined) return { status: 'unknown' };
    const transaction = transferOf(payment);
    if (transaction === null) return open.payments[how](payment);
    return lookAtTransfer(
      () => findTransfer(open, transaction, payment.amountUnits),
      transaction,
      nowMs() > payment.deadAfterMs,
    );
  }

  const chains: Chains = {
    async verify(payment) {
      // A transfer was found on its chain when it was read; there is nothing left that could go wrong.
      if (transferOf(payment) !== null) return;
      const { mustLastMs } = payment.evidence;
      if (typeof mustLastMs === 'number' && payment.deadAfterMs < nowMs() + mustLastMs) {
        // Unless somebody sent it to the chain already: then it buys what it paid for.
        if ((await lookOrSettle(payment, 'look')).status === 'settled') return;
        throw refuse('PAYMENT_EXPIRED', { neededSeconds: Math.ceil(mustLastMs / 1_000) });
      }
      await openOf(payment).payments.verify(payment);
    },
    settle: (payment) => lookOrSettle(payment, 'settle'),
    look: (payment) => lookOrSettle(payment, 'look'),
    async finality(payment, transaction) {
      const open = opened.get(payment.network);
      if (open === undefined) return 'unknown';
      if (transferOf(payment) !== null && 'chain' in open) return open.chain.finality(transaction, null);
      return open.payments.finality(payment, transaction);
    },
    overpaidUnits: ({ evidence, amountUnits }) =>
      evidence.scheme === 'transfer' && typeof evidence.priceUnits === 'string'
        ? amountUnits - BigInt(evidence.priceUnits)
        : 0n,
    canRefund,
    canEverRefund: (networkId) => opened.get(networkId)?.payments.canRefund === true,
    refund: async (refund) => (await opened.get(refund.network)?.payments.refund(refund)) ?? null,
  };

  const rail: Rail = {
    name: 'x402',
    chains,
    get revision() {
      return revision();
    },

    offer(quote) {
      const offers = offeredFor(quote);
      const [first] = offers;
      if (first === undefined) return { headers: {}, accepts: [], body: {} };
      const priceUsd = priceInUsd(quote.priceMicros);
      return {
        headers: {
          'x-payment-price': `$${priceUsd} USDC`,
          'x-payment-network': `${first.network.id} (${first.network.title})`,
          'x-recharge-url': `${parts.baseUrl}/api/m2m/credits/checkout/session`,
        },
        freshHeaders: () => ({ 'payment-required': headerOf(quote).current() }),
        accepts: legacyAccepts(offers, quote),
        body: {
          x402Version: 1,
          payment_address: first.payTo,
          network: first.network.id,
          ...(quote.service.secretAnswer ? { claim: CLAIM_RULE } : {}),
          supportedNetworks: offers.map(({ network, payTo }) => ({
            name: network.name,
            network: network.id,
            token: 'USDC',
            contract: network.asset,
            payTo,
            active: true,
          })),
          ...(quote.priceMicros > 100_000n
            ? {
                spendingCap:
                  'x402 clients refuse prices above 1 USD (first generation: 0.10) until their cap is raised.',
              }
            : {}),
        },
      };
    },

    recognizes: hasPayment,

    async read(requestHeaders, quote) {
      const presented = readPresented(requestHeaders);
      return presented.scheme === 'transfer' ? readTransfer(presented, quote) : readExact(presented, quote);
    },

    recall: (requestHeaders) => recall(requestHeaders).catch(() => null),

    refusedHeaders(refused, quote) {
      const [first] = offeredFor(quote);
      if (first === undefined) return {};
      const response = {
        success: false,
        errorReason: refused.code,
        transaction: '',
        network: first.network.id,
      };
      return {
        'payment-required': headerOf(quote).refused(refused.code),
        'payment-response': Buffer.from(JSON.stringify(response)).toString('base64'),
      };
    },

    async signIn(requestHeaders, quote) {
      const header = requestHeaders['sign-in-with-x'];
      if (typeof header !== 'string') return null;
      const payer = await signIn.check(header, quote.resourceUrl);
      return {
        accountId: HOUSE_ACCOUNTS.chain_clearing,
        payer,
        receipt: ({ transaction }) => ({
          'x-payment-method': 'x402',
          ...(transaction === null ? {} : { 'x-payment-transaction': transaction }),
        }),
      };
    },
  };

  return {
    rail,
    offered,
    facilitatorUrl: config.facilitatorUrls[0] ?? null,
    async refresh() {
      await Promise.all(
        facilitators.map(async (facilitator) => {
          const kinds = await facilitator.client.supported().catch(() => null);
          if (kinds === null || JSON.stringify(kinds) === JSON.stringify(facilitator.kinds)) return;
          facilitator.kinds = kinds;
          facilitatorsRevision += 1;
        }),
      );
    },
    async resume() {
      const relayers = [...opened.values()].flatMap((open): { resume(): Promise<number> }[] =>
        'sender' in open
          ? [open.sender]
          : [open.settling, open.refunding].flatMap((sending) => sending?.relayer ?? []),
      );
      const resumed = await Promise.allSettled(relayers.map((relayer) => relayer.resume()));
      const failed = resumed.find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    },
    async dropExpired() {
      await Promise.all([signIn.dropExpired(), lostGas.dropExpired()]);
    },
    authorizations(chainId) {
      const open = opened.get(`eip155:${chainId}`);
      if (open === undefined || !('chain' in open) || config.recipient === null) return null;
      const { network, chain } = open;
      const payTo = config.recipient;
      return {
        chainId,
        offers: (quote) => offeredFor(quote).some((each) => each.network.id === network.id),
        asset: network.asset,
        domain: network.domain,
        payTo,
        chains,
        isSignedByPayer: (authorization, signature) =>
          chain.isSignedByPayer(authorizationOf(authorization), signature),
        evidenceOf: (authorization, signature, quote) => {
          const requirements = requirementsV2({ network, payTo, feePayer: null, sandbox }, quote);
          return evidenceOf(authorization, signature, quote, (payload) => ({
            x402Version: 2,
            paymentPayload: { x402Version: 2, accepted: requirements, payload },
            paymentRequirements: requirements,
          }));
        },
      };
    },
    audit: () =>
      Promise.all(
        [...opened.values()].map((open) =>
          auditNetwork({
            sql: parts.sql,
            network: open.network.id,
            payTo: open.payTo,
            evm: 'chain' in open ? open : null,
            finality: chains.finality,
          }),
        ),
      ),
    async close() {
      await Promise.all([
        ...facilitators.map(({ client }) => client.close()),
        ...[...opened.values()].map(({ rpc }) => rpc.close()),
        ...closing.map((rpc) => rpc.close()),
      ]);
    },
  };
}

/** An authorization as JSON: numbers as decimal strings. */
function textOf(authorization: Authorization): EvmEvidence['authorization'] {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return {
    from,
    to,
    value: String(value),
    validAfter: String(validAfter),
    validBefore: String(validBefore),
    nonce,
  };
}

/** What the asset takes once. */
function keyOfAuthorization(
  network: Network,
  { from, nonce }: Pick<Authorization, 'from' | 'nonce'>,
): string {
  return `${network.id}:${network.asset.toLowerCase()}:${from}:${nonce}`;
}

function keyOfTransfer(networkId: string, transaction: string): string {
  return `${networkId}:transfer:${transaction}`;
}

/** The token wants v as 27 or 28; some wallets write 0 or 1. */
function withHighV(signature: Hex): Hex {
  if (signature.length !== 132) return signature;
  const v = Number(`0x${signature.slice(130)}`);
  return v < 27 ? `0x${signature.slice(2, 130)}${(v + 27).toString(16)}` : signature;
}

/** In the words of the generation that paid. */
function receiptHeaders(
  payment: Pick<OnChainPayment, 'network' | 'payer' | 'amountUnits'>,
  transaction: string | null,
  { version, legacyName }: { version: 1 | 2; legacyName: string | null },
): Record<string, string> {
  if (transaction === null) return { 'x-payment-method': 'x402' };
  const receipt = (network: string) =>
    Buffer.from(
      JSON.stringify({
        success: true,
        transaction,
        network,
        payer: payment.payer,
        amount: String(payment.amountUnits),
      }),
    ).toString('base64');
  return {
    'x-payment-method': 'x402',
    'x-payment-transaction': transaction,
    ...(version === 2
      ? { 'payment-response': receipt(payment.network) }
      : { 'x-payment-response': receipt(legacyName ?? payment.network) }),
  };
}
