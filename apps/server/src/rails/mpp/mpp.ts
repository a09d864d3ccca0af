/**
 * The MPP rail: the HTTP "Payment" authentication scheme, with the reference library for challenges and credentials.
 * What it does not do is take money: credentials are claimed, verified, settled and looked up by the same steps and in
 * the same table as x402 payments. https://paymentauth.org  https://mpp.dev
 */
import { createHash, randomUUID } from 'node:crypto';
import { Challenge, Credential, Receipt } from 'mppx';
import { challengeHash } from 'mppx/evm';
import { evm, Mppx, Store, tempo } from 'mppx/server';
import { createClient, defineChain, http } from 'viem';
import { connectRpc, type Rpc } from '../../chain-rpc/json-rpc.ts';
import type { Database } from '../../db/connection.ts';
import { Problem, unavailable } from '../../http/problem.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import { microsToUsd } from '../../ledger/money.ts';
import {
  type BesideCredential,
  type Chains,
  type OnChainPayment,
  type Payment,
  PaymentRefused,
  type Quote,
  type Rail,
  type Recalled,
  type Headers as RequestHeaders,
} from '../../paid-call/rail.ts';
import { createEndingSender } from '../../relayer/ending-sender.ts';
import type { GasTanks } from '../../relayer/gas-tanks.ts';
import { addressOf } from '../../relayer/sign.ts';
import { auditNetwork, type ChainAudit } from '../x402/audit.ts';
import type { Hex } from '../x402/eip3009.ts';
import { hasEverReceived, tellingStrangers } from '../x402/strangers.ts';
import type { AuthorizationSettler } from '../x402/x402.ts';
import {
  isBoundTo,
  readTempoTransaction,
  type TempoEvidence,
  type TempoTransaction,
  tempoPayments,
} from './tempo-payments.ts';
import { tempoChain, tempoGas, tempoRefunds } from './tempo-refunds.ts';

const TEMPO_CHAIN_ID = 4217;
const TEMPO = `eip155:${TEMPO_CHAIN_ID}`;
/** Every token that is taken counts millionths of a dollar. */
const DECIMALS = 6;
const RPC_TIMEOUT_MS = 5_000;
/** A key that cannot pay the fees of so many refunds is as good as none. */
const LEAST_REFUNDS = 20n;
const MAX_CREDENTIAL_CHARS = 16_000;
/** No payment may stay good for longer: as long as it is, somebody has to watch it. */
const MAX_VALIDITY_MS = 3_600_000;

interface MppConfig {
  methods: readonly ('tempo' | 'evm')[];
  /** At least 32 characters each; the same on all replicas. The first makes challenges, all recognize them. */
  secretKeys: readonly [string, ...string[]];
  /** The name that challenges are bound to; the host of the public address. */
  realm: string;
  tempo: { rpcUrl: string; recipient: Hex; currency: Hex; refundKey: Hex | null } | null;
}

export interface MppRail {
  rail: Rail;
  /** The methods that are offered, in order of preference. */
  methods: readonly { method: 'tempo' | 'evm'; chainId: number; currency: Hex; recipient: Hex }[];
  /** A fresh 402 in the standard's form. `request` without its credential. */
  challenge(
    quote: Quote,
    request: { method: string; headers: RequestHeaders; rawBody: Buffer | undefined },
  ): Promise<{ headers: Record<string, string>; body: Record<string, unknown> }>;
  /** Holds the books against the Tempo chain; the other chains are the x402 rail's to ask. */
  audit(sql: Database): Promise<ChainAudit[]>;
  /** One round over our own transactions that are on their way. */
  resume(): Promise<void>;
  close(): Promise<void>;
}

/** Why a credential does not pay. `problem` is the last part of the problem's type. */
function refuse(problem: string, message: string, hint: string): PaymentRefused {
  return new PaymentRefused(`MPP_${problem.replaceAll('-', '_').toUpperCase()}`, message, hint, { problem });
}

/** The 402 of a service that no method here can serve: other rails may. */
const UNPAID = {
  type: 'https://paymentauth.org/problems/payment-required',
  title: 'Payment Required',
  status: 402,
  detail: 'Payment is required, and no MPP method can serve this service here.',
};
const AGAIN = 'Answer a fresh challenge of this 402.';

/** The rail as it is configured; null when no method is, or no secret to bind challenges with. */
export function openMppRail(
  config: {
    methods: readonly ('tempo' | 'evm')[];
    secretKeys: readonly string[];
    tempoRpcUrl: string;
    tempoRecipient: Hex | null;
    tempoCurrency: Hex;
    tempoRefundKey: Hex | null;
  },
  realm: string,
  parts: Parameters<typeof createMppRail>[1],
): MppRail | null {
  const { methods, tempoRpcUrl: rpcUrl, tempoRecipient: recipient, tempoCurrency: currency } = config;
  const { tempoRefundKey: refundKey } = config;
  const [first, ...others] = config.secretKeys;
  if (methods.length === 0 || first === undefined) return null;
  const onTempo = recipient === null ? null : { rpcUrl, recipient, currency, refundKey };
  return createMppRail({ methods, secretKeys: [first, ...others], realm, tempo: onTempo }, parts);
}

function createMppRail(
  config: MppConfig,
  parts: {
    sql: Database;
    evm: AuthorizationSettler | null;
    /** Whether the money is that of a sandbox, which every challenge says. */
    sandbox: boolean;
    /** Where our keys' gas is watched. */
    gas: GasTanks;
    nowMs(): number;
    report(network: string, step: 'verify' | 'settle', outcome: string): void;
  },
): MppRail {
  const { realm, secretKeys } = config;
  const rpc: Rpc | null =
    config.tempo === null ? null : connectRpc(config.tempo.rpcUrl, { timeoutMs: RPC_TIMEOUT_MS });
  const evmMethod = config.methods.includes('evm') ? parts.evm : null;
  const tempoMethod = config.methods.includes('tempo') ? config.tempo : null;
  const offered = offeredMethods();
  const payments = openMppx(secretKeys[0]);
  const bySecret = new Map(secretKeys.map((key, index) => [key, index === 0 ? payments : openMppx(key)]));

  function openMppx(secretKey: string) {
    return Mppx.create({ realm, secretKey, methods: offered as never }) as unknown as MppxServer;
  }

  /** The library's, for the secret that made a challenge; null for a challenge of somebody else. */
  function libraryFor(challenge: MppCredential['challenge']): MppxServer | null {
    for (const [secretKey, library] of bySecret) {
      if (Challenge.verify(challenge as never, { secretKey })) return library;
    }
    return null;
  }

  function offeredMethods() {
    const offered: unknown[] = [];
    for (const method of config.methods) {
      if (method === 'tempo' && tempoMethod !== null) {
        const chain = defineChain({
          id: TEMPO_CHAIN_ID,
          name: 'Tempo',
          nativeCurrency: { name: 'USD', symbol: 'USD', decimals: 18 },
          rpcUrls: { default: { http: [tempoMethod.rpcUrl] } },
        });
        const client = createClient({
          chain,
          transport: http(tempoMethod.rpcUrl, { timeout: RPC_TIMEOUT_MS }),
        });
        offered.push(
          tempo.charge({
            currency: tempoMethod.currency,
            recipient: tempoMethod.recipient,
            decimals: DECIMALS,
            getClient: () => client,
            // A credential that was paid before it came could not be given back. Pull ones cost nothing until we say so.
            supportedModes: ['pull'],
            // Claims are rows of `calls`; the library only ever validates here, which needs no memory.
            store: Store.memory(),
          }),
        );
      }
      if (method === 'evm' && evmMethod !== null) {
        offered.push(
          evm.charge({
            currency: evmMethod.asset,
            chainId: evmMethod.chainId,
            decimals: DECIMALS,
            authorization: evmMethod.domain,
            recipient: evmMethod.payTo,
            settle: () => Promise.reject(new Error('payments are settled by the paid call')),
          }),
        );
      }
    }
    return offered;
  }

  /** What the library is to validate: credentials as they came, which are stored nowhere. */
  const presented = new WeakMap<OnChainPayment, { credential: MppCredential; quote: Quote }>();
  const amountOf = (quote: Quote) => microsToUsd(quote.priceMicros, DECIMALS);
  const pathOf = (quote: Quote) => new URL(quote.resourceUrl).pathname;
  const scopeOf = (quote: Quote) => `POST ${pathOf(quote)}`;
  const digestOf = (rawBody: Buffer | undefined) =>
    rawBody === undefined || rawBody.length === 0
      ? null
      : createHash('sha256').update(rawBody).digest('base64url');

  /** Reads a credential that was answered to a challenge of ours, whatever the terms are by now. */
  function openCredential(headers: RequestHeaders): MppCredential {
    const header = headers.authorization;
    if (typeof header !== 'string')
      throw refuse('malformed-credential', 'The credential is malformed.', AGAIN);
    if (header.length > MAX_CREDENTIAL_CHARS)
      throw refuse(
        'malformed-credential',
        `The credential has more than ${MAX_CREDENTIAL_CHARS} characters.`,
        AGAIN,
      );
    const isBesideX402 = headers['payment-signature'] !== undefined || headers['x-payment'] !== undefined;
    if (isBesideX402 || header.match(/(^|,\s*)payment\s/gi)?.length !== 1) {
      throw new Problem(400, 'TWO_CREDENTIALS', 'One request carries one payment.', {
        details: { charged: false },
      });
    }
    let credential: MppCredential;
    let isOurs: boolean;
    try {
      credential = Credential.deserialize(
        Credential.extractPaymentScheme(header) ?? '',
      ) as unknown as MppCredential;
      isOurs = libraryFor(credential.challenge) !== null;
    } catch {
      throw refuse(
        'malformed-credential',
        'The credential is malformed: it is not base64url of JSON.',
        AGAIN,
      );
    }
    const { challenge, payload } = credential;
    if (!isOurs) throw refuse('invalid-challenge', 'The challenge was not issued by this server.', AGAIN);
    if (typeof payload !== 'object' || payload === null)
      throw refuse('invalid-payload', 'The payload is not an object.', AGAIN);
    if (challenge.realm !== realm)
      throw refuse('invalid-challenge', 'The challenge is for another realm.', AGAIN);
    return credential;
  }

  /** Reads a credential, as far as that takes no chain: it was answered to a challenge of ours, for this service. */
  function readCredential(headers: RequestHeaders, quote: Quote): MppCredential {
    const credential = openCredential(headers);
    const { challenge } = credential;
    if (metaOf(credential)._mppx_scope !== scopeOf(quote))
      throw refuse('invalid-challenge', 'The challenge is for another service.', AGAIN);
    if (challenge.request.amount !== String(quote.priceMicros))
      throw refuse('invalid-challenge', 'The challenge is for another price.', AGAIN);
    return credential;
  }

  async function read(
    headers: RequestHeaders,
    quote: Quote,
    { rawBody }: BesideCredential,
  ): Promise<Payment> {
    const credential = readCredential(headers, quote);
    const { challenge } = credential;
    const { b: boundTo } = metaOf(credential);
    if (boundTo !== undefined && boundTo !== digestOf(rawBody))
      throw refuse('invalid-challenge', 'The challenge is for another body.', AGAIN);
    const onChain =
      challenge.method === 'tempo' ? readTempo(credential, quote) : await readEvm(credential, quote);
    presented.set(onChain, { credential, quote });
    return {
      rail: 'mpp',
      accountId: HOUSE_ACCOUNTS.chain_clearing,
      keyId: null,
      revenue: 'revenue_mpp',
      identity: onChain.identity,
      onChain,
      claim: challenge.id,
      payer: onChain.payer,
      proof: { by: 'signature', network: onChain.network, address: onChain.payer },
      limitBy: `mpp:${onChain.payer}`,
      network: onChain.network,
      receipt: receiptOf(challenge.method),
    };
  }

  function readTempo(credential: MppCredential, quote: Quote): OnChainPayment {
    if (tempoMethod === null) throw refuse('method-unsupported', 'Tempo payments are not taken here.', AGAIN);
    const transaction = transactionOf(credential);
    const { currency, recipient } = tempoMethod;
    const { raw, hash, chainId, sender, validBefore, validAfter, callCount, transfers } = transaction;
    if (chainId !== TEMPO_CHAIN_ID)
      throw refuse('verification-failed', 'The transaction is for another chain.', AGAIN);
    const nowMs = parts.nowMs();
    if (validBefore === null || validBefore * 1_000 > nowMs + MAX_VALIDITY_MS)
      throw refuse(
        'invalid-payload',
        'The transaction must end within an hour.',
        'Sign it with validBefore.',
      );
    if (validAfter !== null && validAfter * 1_000 > nowMs)
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
      identity: keyOfTempo(transaction),
      network: TEMPO,
      asset: currency,
      payer: sender,
      payTo: recipient,
      amountUnits: quote.priceMicros,
      deadAfterMs: validBefore * 1_000,
      evidence,
    };
  }

  const keyOfTempo = ({ hash }: TempoTransaction) => `${TEMPO}:tx:${hash}`;

  function transactionOf({ payload }: MppCredential): TempoTransaction {
    if (payload.type !== 'transaction' || typeof payload.signature !== 'string') {
      throw refuse(
        'invalid-payload',
        'Only credentials of type "transaction" are taken: the server sends the transaction.',
        'Let the client pay in pull mode.',
      );
    }
    try {
      return readTempoTransaction(payload.signature as Hex);
    } catch {
      throw refuse('invalid-payload', 'The credential holds no signed Tempo transaction.', AGAIN);
    }
  }

  async function readEvm(credential: MppCredential, quote: Quote): Promise<OnChainPayment> {
    if (evmMethod === null || credential.challenge.method !== 'evm')
      throw refuse('method-unsupported', 'This method is not taken here.', AGAIN);
    if (!evmMethod.offers(quote))
      throw refuse('method-unsupported', 'This method is not taken for this service now.', AGAIN);
    const { authorization, signature } = authorizationIn(credential);
    if (authorization.to !== evmMethod.payTo.toLowerCase())
      throw refuse('verification-failed', 'The payment is made out to somebody else.', AGAIN);
    if (authorization.value !== String(quote.priceMicros))
      throw refuse('verification-failed', 'The authorization is not over the price.', AGAIN);
    const deadAfterMs = Number(authorization.validBefore) * 1_000;
    if (deadAfterMs > parts.nowMs() + MAX_VALIDITY_MS)
      throw refuse('verification-failed', 'The authorization is valid for more than an hour.', AGAIN);
    const signed = await evmMethod.isSignedByPayer(authorization, signature).catch((error: unknown) => {
      throw unavailable('CHAIN_UNAVAILABLE', 'The chain does not answer.', 5_000, {}, error);
    });
    if (!signed) throw refuse('verification-failed', 'The signature is not by the payer.', AGAIN);
    const network = `eip155:${evmMethod.chainId}`;
    return {
      // The same key as by x402: the chain takes the nonce once, whichever rail brought it.
      identity: keyOfEvm(network, evmMethod.asset, authorization),
      network,
      asset: evmMethod.asset,
      payer: authorization.from,
      payTo: evmMethod.payTo.toLowerCase(),
      amountUnits: quote.priceMicros,
      deadAfterMs,
      evidence: evmMethod.evidenceOf(authorization, signature, quote),
    };
  }

  const keyOfEvm = (network: string, asset: string, { from, nonce }: { from: string; nonce: string }) =>
    `${network}:${asset.toLowerCase()}:${from}:${nonce}`;

  /** The authorization of a credential, whose nonce follows from the challenge that only its payer was told. */
  function authorizationIn(credential: MppCredential) {
    const { payload } = credential;
    const text = (name: string) => String(payload[name] ?? '').toLowerCase();
    const authorization = {
      from: text('from'),
      to: text('to'),
      value: text('value'),
      validAfter: text('validAfter'),
      validBefore: text('validBefore'),
      nonce: text('nonce'),
    };
    const signature = text('signature');
    const isWellFormed =
      payload.type === 'authorization' &&
      /^0x[0-9a-f]{40}$/.test(authorization.from) &&
      /^0x[0-9a-f]{64}$/.test(authorization.nonce) &&
      [authorization.value, authorization.validAfter, authorization.validBefore].every((value) =>
        /^\d{1,20}$/.test(value),
      ) &&
      // Of a key: the reference library knows no other.
      /^0x[0-9a-f]{130}$/.test(signature);
    if (!isWellFormed) throw refuse('invalid-payload', 'The payload is no EIP-3009 authorization.', AGAIN);
    if (authorization.nonce !== challengeHash(credential.challenge as never))
      throw refuse('verification-failed', 'The authorization is for another challenge.', AGAIN);
    return { authorization, signature: signature as Hex };
  }

  /** What a payment may have bought, whatever the terms are by now. @throws when it is none */
  function recall(headers: RequestHeaders): Recalled | null {
    const credential = openCredential(headers);
    const { id, method, request } = credential.challenge;
    const { chainId } = request.methodDetails;
    let identity: string;
    if (method === 'tempo') {
      const transaction = transactionOf(credential);
      // The transaction itself stands on the chain for all to see: only whoever was given the challenge may ask.
      if (!transaction.transfers.some(({ memo }) => isBoundTo(memo, credential.challenge.id))) return null;
      identity = keyOfTempo(transaction);
    } else {
      identity = keyOfEvm(`eip155:${chainId}`, request.currency, authorizationIn(credential).authorization);
    }
    const accountId = HOUSE_ACCOUNTS.chain_clearing;
    return { accountId, identities: [identity], claim: id, receipt: receiptOf(method) };
  }

  const receiptOf =
    (method: string): Payment['receipt'] =>
    ({ callId, transaction }) =>
      transaction === null ? {} : receiptHeaders(method, callId, transaction);

  /** The library's own checks: expiry, the binding of payment to challenge, and on Tempo a trial of the transaction. */
  async function validate(payment: OnChainPayment): Promise<void> {
    const read = presented.get(payment);
    if (read === undefined) throw new Error('a payment is verified in the request that brought it');
    const { credential, quote } = read;
    const { _mppx_scope: scope = '', ...meta } = metaOf(credential);
    try {
      await (libraryFor(credential.challenge) ?? payments).validateCredential(credential, {
        scope,
        meta,
        request: { amount: amountOf(quote) },
        capturedRequest: {
          headers: new Headers(),
          hasBody: true,
          method: 'POST',
          url: new URL(pathOf(quote), `https://${realm}`),
        },
      });
    } catch (error) {
      const { status, type } = error as { status?: number; type?: string };
      const problem =
        String(type ?? '')
          .split('/')
          .at(-1) ?? '';
      if (status === 402 && /^[a-z-]{1,40}$/.test(problem)) {
        throw refuse(
          problem,
          problem === 'payment-expired'
            ? 'The challenge has expired.'
            : 'The payment does not fit its challenge, or would fail.',
          AGAIN,
        );
      }
      if (isRefusedByNode(error))
        throw refuse(
          'payment-insufficient',
          'The chain would refuse this payment.',
          'Fund the wallet, and answer a fresh challenge.',
        );
      throw unavailable('CHAIN_UNAVAILABLE', 'The chain does not answer.', 5_000, {}, error);
    }
  }

  const sender =
    rpc === null
      ? null
      : createEndingSender({ sql: parts.sql, network: TEMPO, chain: tempoChain(rpc), nowMs: parts.nowMs });
  const refundKey = config.tempo?.refundKey ?? null;
  const onTempo =
    rpc === null || sender === null
      ? null
      : tellingStrangers(
          parts.sandbox,
          tempoPayments({
            rpc,
            refunds:
              refundKey === null
                ? null
                : tempoRefunds({ rpc, sender, chainId: TEMPO_CHAIN_ID, privateKey: refundKey }),
            nowMs: parts.nowMs,
            report: (step, outcome) => parts.report(TEMPO, step, outcome),
          }),
          (payment) => hasEverReceived(rpc, payment),
        );
  const refundTank =
    rpc === null || refundKey === null || config.tempo === null
      ? null
      : parts.gas.open({
          ...{ network: TEMPO, duty: 'refund', addresses: [addressOf(refundKey)] },
          token: { symbol: 'USD', decimals: DECIMALS },
          source: tempoGas(rpc, config.tempo.currency),
          least: (cost) => LEAST_REFUNDS * cost,
        });

  const chains: Chains = {
    async verify(payment) {
      try {
        const validated = validate(payment);
        // Both at once; ours has the first word, because it says more exactly what is wrong.
        validated.catch(() => {});
        if (payment.network === TEMPO) await onTempo?.verify(payment);
        await validated;
        if (payment.network !== TEMPO) await evmMethod?.chains.verify(payment);
      } catch (error) {
        // It may have paid already: its payer sent it, or nobody heard the end of it. Then it buys what it paid for.
        if (error instanceof PaymentRefused && (await chains.look(payment)).status === 'settled') return;
        throw error;
      }
    },
    async settle(payment) {
      if (payment.network === TEMPO) return onTempo?.settle(payment) ?? { status: 'unknown' };
      return evmMethod?.chains.settle(payment) ?? { status: 'unknown' };
    },
    async look(payment) {
      if (payment.network === TEMPO) return onTempo?.look(payment) ?? { status: 'unknown' };
      return evmMethod?.chains.look(payment) ?? { status: 'unknown' };
    },
    async finality(payment, transaction) {
      if (payment.network === TEMPO) return onTempo?.finality(payment, transaction) ?? 'unknown';
      return evmMethod?.chains.finality(payment, transaction) ?? 'unknown';
    },
    canRefund: (network) =>
      network === TEMPO
        ? onTempo?.canRefund === true && refundTank?.isAble !== false
        : evmMethod?.chains.canRefund(network) === true,
    canEverRefund: (network) =>
      (network === TEMPO ? onTempo?.canRefund : evmMethod?.chains.canEverRefund(network)) === true,
    refund: async (refund) =>
      (await (refund.network === TEMPO ? onTempo : evmMethod?.chains)?.refund(refund)) ?? null,
  };

  const methods: MppRail['methods'] = config.methods.flatMap((method): MppRail['methods'] => {
    if (method === 'tempo') {
      if (tempoMethod === null) return [];
      const { currency, recipient } = tempoMethod;
      return [{ method, chainId: TEMPO_CHAIN_ID, currency, recipient }];
    }
    if (evmMethod === null) return [];
    return [{ method, chainId: evmMethod.chainId, currency: evmMethod.asset, recipient: evmMethod.payTo }];
  });

  /** Of what leaves something behind the money must come first, and be able to go back. */
  const isOffered = ({ method, chainId }: { method: string; chainId: number }, quote: Quote) =>
    method === 'evm'
      ? evmMethod?.offers(quote) === true
      : quote.service.effect === 'read' || chains.canRefund(`eip155:${chainId}`);

  const rail: Rail = {
    name: 'mpp',
    chains,
    offer: () => ({ headers: {}, accepts: [], body: {} }),
    recognizes: ({ authorization }) =>
      typeof authorization === 'string' && /(^|,\s*)payment\s/i.test(authorization),
    read,
    async recall(headers) {
      try {
        return recall(headers);
      } catch {
        return null;
      }
    },
  };

  return {
    rail,
    methods,
    async challenge(quote, request) {
      const digest = digestOf(request.rawBody);
      const accept = request.headers['accept-payment'];
      const offered = methods.filter((each) => isOffered(each, quote));
      if (offered.length === 0) return { headers: {}, body: { ...UNPAID } };
      const options = {
        amount: amountOf(quote),
        description: parts.sandbox ? `${quote.service.name} (sandbox: no real money)` : quote.service.name,
        scope: scopeOf(quote),
        // Without something of its own a challenge would be the same as any other of its millisecond.
        meta: { n: randomUUID(), ...(digest === null ? {} : { b: digest }) },
      };
      const answered = await payments.compose(
        ...offered.map(({ method }) => [`${method}/charge`, options] as const),
      )(
        new Request(quote.resourceUrl, {
          method: 'POST',
          headers: typeof accept === 'string' ? { 'accept-payment': accept } : {},
        }),
      );
      const headers = Object.fromEntries(answered.challenge.headers);
      // The library's own x402 offer: the x402 rail makes a fuller one, and settles what it brings.
      delete headers['payment-required'];
      return {
        headers,
        body: (await answered.challenge.json()) as Record<string, unknown>,
      };
    },
    async audit(sql) {
      if (tempoMethod === null) return [];
      const payTo = tempoMethod.recipient;
      return [await auditNetwork({ sql, network: TEMPO, payTo, evm: null, finality: chains.finality })];
    },
    async resume() {
      await sender?.resume();
    },
    async close() {
      await rpc?.close();
    },
  };

  function receiptHeaders(method: string, callId: string, transaction: string): Record<string, string> {
    const receipt = Receipt.from({
      method,
      reference: transaction,
      status: 'success',
      // The call's id begins with its time: the same receipt however often it is asked for.
      timestamp: new Date(Number.parseInt(callId.replaceAll('-', '').slice(0, 12), 16)).toISOString(),
    });
    return { 'payment-receipt': Receipt.serialize(receipt), 'x-payment-transaction': transaction };
  }
}

/** What we use of the library, whose own types follow from the list of methods. */
interface MppxServer {
  compose(
    ...offers: (readonly [
      method: string,
      options: { amount: string; description: string; scope: string; meta: Record<string, string> },
    ])[]
  ): (request: Request) => Promise<{ status: number; challenge: Response }>;
  validateCredential(
    credential: MppCredential,
    options: {
      scope: string;
      meta: Record<string, string>;
      request: { amount: string };
      capturedRequest: { headers: Headers; hasBody: boolean; method: string; url: URL };
    },
  ): Promise<unknown>;
}

interface MppCredential {
  challenge: {
    id: string;
    realm: string;
    method: string;
    intent: string;
    request: { amount: string; currency: string; methodDetails: { chainId: number } };
    meta?: Record<string, string>;
    /** base64url of JSON: what `meta` was made into. */
    opaque?: string;
  };
  payload: Record<string, unknown>;
}

/** What we put into the challenge beside the library's own fields: what the credential echoes as `opaque`. */
function metaOf({ challenge }: MppCredential): Record<string, string> {
  if (challenge.meta !== undefined) return challenge.meta;
  try {
    const meta: unknown = JSON.parse(Buffer.from(challenge.opaque ?? '', 'base64url').toString('utf8'));
    return typeof meta === 'object' && meta !== null ? (meta as Record<string, string>) : {};
  } catch {
    return {};
  }
}

/** Whether a node answered, and said that it would not take the transaction. */
function isRefusedByNode(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { name, code } = cause as { name: string; code?: number };
    if (name === 'RpcRequestError') return code === 3 || code === -32000 || code === -32003;
  }
  return false;
}
