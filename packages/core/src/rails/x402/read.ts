/** Reads x402 payments: whether what is presented pays for a quote, as far as that takes no settlement. */
import { unavailable } from '../../http/problem.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import { HOUSE_BUCKET } from '../../ledger/buckets.ts';
import type { Headers, OnChainPayment, Payment, Quote, Recalled } from '../../paid-call/rail.ts';
import { type AuthorizationText, type Hex, identityOf, textOf } from '../evm/eip3009.ts';
import type { EvmEvidence } from '../evm/evidence.ts';
import type { AuthorizationSettler } from '../evm/settler.ts';
import type { PaymentForFacilitator } from '../on-chain/facilitator.ts';
import { refuse } from '../on-chain/refusals.ts';
import type { EvidenceOfTransfer, FindTransfer } from './chains.ts';
import { bazaarOf, type Requirements, requirementsV1, requirementsV2 } from './offer.ts';
import type { Offered, OfferedNetwork } from './offered.ts';
import type { Opened, OpenNetworks } from './open-networks.ts';
import { readSolanaTransfer } from './solana-transfer.ts';
import { type SvmEvidence, solanaDeadAfterMs } from './svm-payments.ts';
import { type Presented, type PresentedTransfer, readPresented, unsupportedNetwork } from './wire.ts';

/** A payment that is good for longer is refused: it would have to be watched for as long. */
const MAX_VALIDITY_MS = 3_600_000;
/** What settling takes at worst, beyond the service's own time. */
const SETTLE_MARGIN_MS = 6_000;

export interface Reading {
  networks: Pick<OpenNetworks, 'all'>;
  offered: Offered;
  findTransfer: FindTransfer;
  nowMs(): number;
}

/** In which words the payer speaks, and what it named beside the money. */
interface Spoken {
  paymentId: string | null;
  claim: string | null;
  version: 1 | 2;
  legacyName: string | null;
}

/** @throws PaymentRefused when it cannot pay for the quote; Problem (503) when the chain does not say */
export async function readPayment(reading: Reading, headers: Headers, quote: Quote): Promise<Payment> {
  const presented = readPresented(headers);
  return presented.scheme === 'transfer'
    ? readTransfer(reading, presented, quote)
    : readExact(reading, presented, quote);
}

async function readExact(reading: Reading, presented: Presented, quote: Quote): Promise<Payment> {
  const { network, version, paymentId, claim } = presented;
  const { found, open } = reading.offered.ready(network, quote);
  checkAccepted(presented, requirementsV2(found, quote));
  const common = {
    network: network.id,
    asset: network.asset,
    payTo: open.payTo,
    amountUnits: quote.priceMicros,
  };
  const forFacilitator = facilitatorWords(presented, found, quote);
  const own =
    presented.scheme === 'exact-svm'
      ? await readTransaction(reading, presented, { found, open, quote, forFacilitator })
      : await readAuthorization(reading, presented, { found, open, quote, forFacilitator });
  return paymentOf({ ...common, ...own }, { paymentId, claim, version, legacyName: network.legacyName });
}

type Own = Pick<OnChainPayment, 'identity' | 'payer' | 'deadAfterMs' | 'evidence'>;
type ForFacilitator = (payload: Record<string, unknown>) => PaymentForFacilitator;
interface Sold {
  found: OfferedNetwork;
  open: Opened;
  quote: Quote;
  forFacilitator: ForFacilitator;
}

/** What a facilitator is given, in our own words: what the caller wrote beside the payment is neither stored nor passed on. */
function facilitatorWords(presented: Presented, found: OfferedNetwork, quote: Quote): ForFacilitator {
  const { version, network, echoesBazaar } = presented;
  const requirements = version === 2 ? requirementsV2(found, quote) : requirementsV1(found, quote);
  return (payload) => ({
    x402Version: version,
    paymentPayload:
      version === 2
        ? {
            x402Version: 2,
            accepted: requirements,
            payload,
            resource: { url: quote.resourceUrl, mimeType: quote.service.mediaType },
            ...(echoesBazaar ? { extensions: { bazaar: bazaarOf(quote) } } : {}),
          }
        : { x402Version: 1, scheme: 'exact', network: network.legacyName, payload },
    paymentRequirements: requirements,
  });
}

/** A Solana transaction that moves the price. */
async function readTransaction(
  { nowMs }: Reading,
  { network, transaction }: Presented & { scheme: 'exact-svm' },
  { found, open, quote, forFacilitator }: Sold,
): Promise<Own> {
  const wanted = { asset: network.asset, payTo: open.payTo };
  const transfer = await readSolanaTransfer(transaction, wanted);
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
    forFacilitator: forFacilitator({ transaction }),
  };
  const identity = `${network.id}:${transfer.messageHash}`;
  return { identity, payer: transfer.payer, deadAfterMs: solanaDeadAfterMs(nowMs()), evidence };
}

/** An authorization of the price, signed by its payer. */
async function readAuthorization(
  { nowMs }: Reading,
  { network, authorization, signature }: Presented & { scheme: 'exact-evm' },
  { found, open, quote, forFacilitator }: Sold,
): Promise<Own> {
  if (!('chain' in open)) throw unsupportedNetwork();
  if (authorization.to !== open.payTo) throw refuse('PAYMENT_RECIPIENT_MISMATCH', { payTo: found.payTo });
  if (authorization.value !== quote.priceMicros)
    throw refuse('PAYMENT_AMOUNT_MISMATCH', { requiredUnits: String(quote.priceMicros) });
  const deadAfterMs = Number(authorization.validBefore) * 1_000;
  if (deadAfterMs > nowMs() + MAX_VALIDITY_MS) throw refuse('PAYMENT_VALID_TOO_LONG');
  const signed = await open.chain.isSignedByPayer(authorization, signature).catch((error: unknown) => {
    throw unavailable('CHAIN_UNAVAILABLE', `${network.title} does not answer.`, 5_000, {}, error);
  });
  if (!signed) throw refuse('PAYMENT_SIGNATURE_INVALID');
  const identity = identityOf({ network: network.id, asset: network.asset }, textOf(authorization));
  const evidence = evidenceOf(textOf(authorization), signature, quote, forFacilitator);
  return { identity, payer: authorization.from, deadAfterMs, evidence };
}

/** What the reconciler needs to go on with an authorization, and what a facilitator is given. */
function evidenceOf(
  authorization: AuthorizationText,
  signature: Hex,
  quote: Quote,
  forFacilitator: ForFacilitator,
): EvmEvidence {
  return {
    scheme: 'exact-evm',
    authorization,
    signature,
    mustLastMs: quote.service.timeoutMs + SETTLE_MARGIN_MS,
    forFacilitator: forFacilitator({ signature: withHighV(signature), authorization }),
  };
}

/** The evidence of authorizations to a recipient that another protocol brings; facilitators are given x402's own words. */
export function evidenceAt(found: OfferedNetwork): AuthorizationSettler['evidenceOf'] {
  return (authorization, signature, quote) => {
    const requirements = requirementsV2(found, quote);
    return evidenceOf(authorization, signature, quote, (payload) => ({
      x402Version: 2,
      paymentPayload: { x402Version: 2, accepted: requirements, payload },
      paymentRequirements: requirements,
    }));
  };
}

async function readTransfer(
  { networks, offered, findTransfer, nowMs }: Reading,
  presented: PresentedTransfer,
  quote: Quote,
): Promise<Payment> {
  const candidates = offered
    .for(quote)
    .filter(({ network }) =>
      presented.network === null ? network.kind === 'evm' : network.id === presented.network.id,
    );
  if (candidates.length === 0) throw unsupportedNetwork(offered.for(quote).map(({ network }) => network.id));
  if (quote.service.secretAnswer) throw refuse('PAYMENT_HASH_NOT_TAKEN_HERE');
  const { transaction } = presented;
  for (const { network } of candidates) {
    const open = networks.all.get(network.id);
    if (open === undefined) continue;
    const transfer = await findTransfer(open, transaction, quote.priceMicros);
    if (transfer === null) continue;
    const priceUnits = String(quote.priceMicros);
    const evidence: EvidenceOfTransfer = { scheme: 'transfer', transaction, priceUnits };
    return paymentOf(
      {
        identity: identityOfTransfer(network.id, transaction),
        network: network.id,
        asset: network.asset,
        payer: transfer.payer,
        payTo: open.payTo,
        amountUnits: transfer.amountUnits,
        movedBefore: true,
        deadAfterMs: nowMs() + MAX_VALIDITY_MS,
        evidence,
      },
      { paymentId: null, claim: null, version: 2, legacyName: network.legacyName },
    );
  }
  throw refuse('PAYMENT_TRANSACTION_NOT_FOUND', { networks: candidates.map(({ network }) => network.id) });
}

/** Who paid and with what, whatever the terms were and are: as far as one may ask for what was bought before. */
export async function recallPayment(
  { networks }: Pick<Reading, 'networks'>,
  headers: Headers,
): Promise<Recalled | null> {
  const presented = readPresented(headers);
  const accountId = HOUSE_ACCOUNTS.chain_clearing;
  if (presented.scheme === 'transfer') {
    const { network, transaction } = presented;
    const ids = network === null ? [...networks.all.keys()] : [network.id];
    const identities = ids.map((id) => identityOfTransfer(id, transaction));
    return { accountId, identities, claim: null, receipt: plainReceipt };
  }
  const { network, version, claim } = presented;
  const open = networks.all.get(network.id);
  if (open === undefined) return null;
  const told = (payer: string, amountUnits: bigint): Payment['receipt'] => {
    const paid = { payer, amountUnits, network: network.id };
    return ({ transaction }) =>
      receiptHeaders(paid, transaction, { version, legacyName: network.legacyName });
  };
  if (presented.scheme === 'exact-svm') {
    const wanted = { asset: network.asset, payTo: null };
    const { messageHash, payer, amountUnits } = await readSolanaTransfer(presented.transaction, wanted);
    const identities = [`${network.id}:${messageHash}`];
    return { accountId, identities, claim, receipt: told(payer, amountUnits) };
  }
  if (!('chain' in open)) return null;
  const { authorization, signature } = presented;
  // Before it settles only its payer has the signature. Afterwards anybody has: what is bound to a claim asks for that too.
  if (!(await open.chain.isSignedByPayer(authorization, signature))) return null;
  const identity = identityOf({ network: network.id, asset: network.asset }, textOf(authorization));
  return { accountId, identities: [identity], claim, receipt: told(authorization.from, authorization.value) };
}

function paymentOf(onChain: OnChainPayment, spoken: Spoken): Payment {
  const { payer, network, evidence } = onChain;
  return {
    rail: 'x402',
    accountId: HOUSE_ACCOUNTS.chain_clearing,
    bucket: HOUSE_BUCKET,
    keyId: null,
    revenue: 'revenue_x402',
    identity: spoken.paymentId === null ? onChain.identity : `id:${payer}:${spoken.paymentId}`,
    onChain,
    claim: spoken.claim,
    payer,
    proof:
      evidence.scheme === 'transfer'
        ? { by: 'transfer', network, transaction: (evidence as EvidenceOfTransfer).transaction }
        : { by: 'signature', network, address: payer },
    limitBy: `x402:${payer}`,
    network,
    receipt: ({ transaction }) => receiptHeaders(onChain, transaction, spoken),
  };
}

function checkAccepted({ accepted }: Presented, wanted: Requirements): void {
  if (accepted === null) return;
  for (const field of ['network', 'amount', 'asset', 'payTo'] as const) {
    const written = accepted[field];
    // A client may write the amount as a number.
    const theirs = typeof written === 'number' ? String(written) : written;
    if (typeof theirs !== 'string' || theirs.toLowerCase() !== wanted[field].toLowerCase())
      throw refuse('PAYMENT_REQUIREMENTS_MISMATCH', { field: `accepted.${field}` });
  }
}

function identityOfTransfer(networkId: string, transaction: string): string {
  return `${networkId}:transfer:${transaction}`;
}

/** The token wants v as 27 or 28; some wallets write 0 or 1. */
function withHighV(signature: Hex): Hex {
  if (signature.length !== 132) return signature;
  const v = Number(`0x${signature.slice(130)}`);
  return v < 27 ? `0x${signature.slice(2, 130)}${(v + 27).toString(16)}` : signature;
}

/** Where the money moved, for whoever paid in words that we do not know any more. */
export const plainReceipt: Payment['receipt'] = ({ transaction }) => ({
  'x-payment-method': 'x402',
  ...(transaction === null ? {} : { 'x-payment-transaction': transaction }),
});

/** In the words of the generation that paid. */
function receiptHeaders(
  payment: Pick<OnChainPayment, 'network' | 'payer' | 'amountUnits'>,
  transaction: string | null,
  { version, legacyName }: Pick<Spoken, 'version' | 'legacyName'>,
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
