/** Reads MPP credentials: whether one pays for a quote, as far as that takes no settlement. */
import { unavailable } from '../../http/problem.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import { HOUSE_BUCKET } from '../../ledger/buckets.ts';
import type {
  BesideCredential,
  Headers,
  OnChainPayment,
  Payment,
  Quote,
  Recalled,
} from '../../paid-call/rail.ts';
import { identityOf } from '../evm/eip3009.ts';
import { type MppLibrary, mppLibrary } from './library.ts';
import { type Methods, TEMPO, TEMPO_CHAIN_ID } from './methods.ts';
import { type Challenges, digestOf, scopeOf } from './offer.ts';
import { identityOfTempo, isBoundTo, type TempoEvidence } from './tempo-payments.ts';
import {
  AGAIN,
  authorizationIn,
  type MppCredential,
  metaOf,
  openCredential,
  refuse,
  transactionIn,
} from './wire.ts';

/** No payment may stay good for longer: as long as it is, somebody has to watch it. */
const MAX_VALIDITY_MS = 3_600_000;

export interface Reading {
  methods: Methods;
  /** The name that challenges are bound to. */
  realm: string;
  challenges: Pick<Challenges, 'isOurs'>;
  nowMs(): number;
}

/**
 * Reads a credential, as far as that takes no chain: it was answered to a challenge of ours, for this service.
 *
 * @throws PaymentRefused when it cannot pay for the quote; Problem (503) when a wallet's chain does not say who signed
 */
export async function readPayment(
  reading: Reading,
  headers: Headers,
  quote: Quote,
  { rawBody }: BesideCredential,
): Promise<{ payment: Payment & { onChain: OnChainPayment }; credential: MppCredential }> {
  const credential = await openCredential(headers, {
    realm: reading.realm,
    isOurs: reading.challenges.isOurs,
  });
  const { challenge } = credential;
  const { _mppx_scope: scope, b: boundTo } = metaOf(credential);
  if (scope !== scopeOf(quote))
    throw refuse('invalid-challenge', 'The challenge is for another service.', AGAIN);
  if (challenge.request.amount !== String(quote.priceMicros))
    throw refuse('invalid-challenge', 'The challenge is for another price.', AGAIN);
  if (boundTo !== undefined && boundTo !== digestOf(rawBody))
    throw refuse('invalid-challenge', 'The challenge is for another body.', AGAIN);
  const onChain =
    challenge.method === 'tempo'
      ? await readTempo(reading, credential, quote)
      : await readEvm(reading, credential, quote);
  const { network, payer } = onChain;
  const payment = {
    rail: 'mpp' as const,
    accountId: HOUSE_ACCOUNTS.chain_clearing,
    bucket: HOUSE_BUCKET,
    keyId: null,
    revenue: 'revenue_mpp' as const,
    identity: onChain.identity,
    onChain,
    claim: challenge.id,
    payer,
    proof: { by: 'signature' as const, network, address: payer },
    limitBy: `mpp:${payer}`,
    network,
    receipt: receiptOf(await mppLibrary(), challenge.method),
  };
  return { payment, credential };
}

async function readTempo(
  { methods, nowMs }: Reading,
  credential: MppCredential,
  quote: Quote,
): Promise<OnChainPayment> {
  if (methods.tempo === null) throw refuse('method-unsupported', 'Tempo payments are not taken here.', AGAIN);
  const transaction = await transactionIn(credential);
  const { currency, recipient } = methods.tempo;
  const { raw, hash, chainId, sender, validBefore, validAfter, callCount, transfers } = transaction;
  if (chainId !== TEMPO_CHAIN_ID)
    throw refuse('verification-failed', 'The transaction is for another chain.', AGAIN);
  const now = nowMs();
  if (validBefore === null || validBefore * 1_000 > now + MAX_VALIDITY_MS)
    throw refuse('invalid-payload', 'The transaction must end within an hour.', 'Sign it with validBefore.');
  if (validAfter !== null && validAfter * 1_000 > now)
    throw refuse('verification-failed', 'The transaction is not valid yet.', 'Sign it without validAfter.');
  const transfer = transfers.find(
    ({ token, to, amountUnits, memo }) =>
      token === currency.toLowerCase() &&
      to === recipient.toLowerCase() &&
      amountUnits === quote.priceMicros &&
      isBoundTo(memo, credential.challenge.id),
  );
  if (transfer === undefined)
    throw refuse('verification-failed', 'The transaction does not pay this challenge.', AGAIN);
  const data = callCount === 1 ? transfer.data : null;
  const evidence: TempoEvidence = { scheme: 'tempo', raw, hash, data, validBefore };
  return {
    identity: identityOfTempo(transaction),
    network: TEMPO,
    asset: currency,
    payer: sender,
    payTo: recipient,
    amountUnits: quote.priceMicros,
    deadAfterMs: validBefore * 1_000,
    evidence,
  };
}

async function readEvm(
  { methods: { evm }, nowMs }: Reading,
  credential: MppCredential,
  quote: Quote,
): Promise<OnChainPayment> {
  if (evm === null || credential.challenge.method !== 'evm')
    throw refuse('method-unsupported', 'This method is not taken here.', AGAIN);
  if (!evm.offers(quote))
    throw refuse('method-unsupported', 'This method is not taken for this service now.', AGAIN);
  const { authorization, signature } = await authorizationIn(credential);
  if (authorization.to !== evm.payTo.toLowerCase())
    throw refuse('verification-failed', 'The payment is made out to somebody else.', AGAIN);
  if (authorization.value !== String(quote.priceMicros))
    throw refuse('verification-failed', 'The authorization is not over the price.', AGAIN);
  const deadAfterMs = Number(authorization.validBefore) * 1_000;
  if (deadAfterMs > nowMs() + MAX_VALIDITY_MS)
    throw refuse('verification-failed', 'The authorization is valid for more than an hour.', AGAIN);
  const signed = await evm.isSignedByPayer(authorization, signature).catch((error: unknown) => {
    throw unavailable('CHAIN_UNAVAILABLE', 'The chain does not answer.', 5_000, {}, error);
  });
  if (!signed) throw refuse('verification-failed', 'The signature is not by the payer.', AGAIN);
  const network = `eip155:${evm.chainId}`;
  return {
    identity: identityOf({ network, asset: evm.asset }, authorization),
    network,
    asset: evm.asset,
    payer: authorization.from,
    payTo: evm.payTo.toLowerCase(),
    amountUnits: quote.priceMicros,
    deadAfterMs,
    evidence: evm.evidenceOf(authorization, signature, quote),
  };
}

/** What a payment may have bought, whatever the terms are by now. @throws when it is none */
export async function recallPayment(
  { realm, challenges }: Reading,
  headers: Headers,
): Promise<Recalled | null> {
  const credential = await openCredential(headers, { realm, isOurs: challenges.isOurs });
  const { id, method, request } = credential.challenge;
  const accountId = HOUSE_ACCOUNTS.chain_clearing;
  const receipt = receiptOf(await mppLibrary(), method);
  const recalled = (identity: string) => ({
    accountId,
    identities: [identity],
    claim: id,
    receipt,
  });
  if (method !== 'tempo') {
    const place = { network: `eip155:${request.methodDetails.chainId}`, asset: request.currency };
    return recalled(identityOf(place, (await authorizationIn(credential)).authorization));
  }
  const transaction = await transactionIn(credential);
  // The transaction itself stands on the chain for all to see: only whoever was given the challenge may ask.
  const isTheirs = transaction.transfers.some(({ memo }) => isBoundTo(memo, id));
  return isTheirs ? recalled(identityOfTempo(transaction)) : null;
}

function receiptOf({ Receipt }: MppLibrary, method: string): Payment['receipt'] {
  return ({ callId, transaction }) => {
    if (transaction === null) return {};
    const receipt = Receipt.from({
      method,
      reference: transaction,
      status: 'success',
      // The call's id begins with its time: the same receipt however often it is asked for.
      timestamp: new Date(Number.parseInt(callId.replaceAll('-', '').slice(0, 12), 16)).toISOString(),
    });
    return { 'payment-receipt': Receipt.serialize(receipt), 'x-payment-transaction': transaction };
  };
}
