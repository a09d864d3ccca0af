/** Verifying and settling `exact` payments on one EVM chain. */
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeFunctionData, erc20Abi } from 'viem';
import { RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import { unavailable } from '../../http/problem.ts';
import type { ChainVerdict, OnChainPayment, PaymentRefused } from '../../paid-call/rail.ts';
import type { MinedTransaction } from '../../relayer/node-reply.ts';
import { OutOfGas, type Relayer } from '../../relayer/relayer.ts';
import type { Facilitator, PaymentForFacilitator } from '../on-chain/facilitator.ts';
import { refusalFromFacilitator } from '../on-chain/facilitator-reasons.ts';
import { type NetworkPayments, type Report, reported } from '../on-chain/payments.ts';
import { refuse } from '../on-chain/refusals.ts';
import { type EvmChain, MAX_GAS, type PayersCode } from './chain.ts';
import { type Authorization, type AuthorizationText, authorizationOf, type Hex } from './eip3009.ts';
import type { LostGas, Party } from './lost-gas.ts';

/** For how long a settlement is waited for. What takes longer is looked up later. */
const SETTLE_TIMEOUT_MS = 15_000;
/** No further facilitator is tried after this. */
const FAIL_OVER_MS = 18_000;
/** How long the chain is asked after a facilitator that did not say what it did. */
const LOOK_TIMEOUT_MS = 4_000;
/**
 * A payment that would have settled so shortly ago is sent without being tried again. If its payer was faster, the
 * transaction fails: that costs them a transaction too, and nobody is charged.
 */
const TRIED_FRESH_MS = 1_500;
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 1_000;
/** Above what the asset's transfer uses by a half: 68,600 were measured. What needs more is measured each time. */
const PLAIN_GAS_LIMIT = 120_000n;
const LEAST_GAS = 50_000n;

/** How our own settler sends a payment. */
interface Sending {
  /** Measured when it is sent, if not given. */
  gasLimit?: bigint;
  maxCostWei?: bigint;
  /** Against whom it counts when it fails. */
  party?: Party;
  runsPayersCode: boolean;
}
const MEASURED: Sending = { runsPayersCode: false };

export interface EvmEvidence extends Record<string, unknown> {
  scheme: 'exact-evm';
  authorization: AuthorizationText;
  signature: Hex;
  /** As a facilitator wants it. */
  forFacilitator: PaymentForFacilitator;
}

export interface EvmPaymentParts {
  chain: EvmChain;
  /** Our own settler; null: facilitators settle. */
  relayer: Relayer | null;
  /** What our settler does for wallets whose own code runs when they pay. */
  wallets: {
    /** Those that may be called to put a wallet on the chain, in small letters. */
    factories: ReadonlySet<string>;
    lostGas: LostGas;
    /** What so many units of the asset are worth in gas. */
    worthWei(units: bigint): bigint;
  };
  /** Those that settle this chain, in order. */
  facilitators(version: 1 | 2): readonly Facilitator[];
  /** Sends refunds; null: none can be sent on this chain. */
  refunds: Relayer | null;
  report: Report;
}

export function evmPayments(parts: EvmPaymentParts): NetworkPayments {
  const { chain, relayer } = parts;
  const { wallets } = parts;
  /** Payments that were tried a moment ago by this process: when, and how they may be sent. */
  const tried = new WeakMap<OnChainPayment, { atMs: number; sending: Sending }>();

  /** Tries the payment on the chain's state as it is. @returns why it would fail, and how it may be sent by ourselves */
  async function tryOut(
    payment: OnChainPayment,
  ): Promise<{ refusal: PaymentRefused | null; sending: Sending }> {
    const found = relayer === null ? await tryPlainly(payment) : await tryAsSent(relayer, payment);
    if (found.refusal === null) tried.set(payment, { atMs: performance.now(), sending: found.sending });
    return found;
  }

  async function tryPlainly(payment: OnChainPayment) {
    const { authorization, signature } = evidenceOf(payment);
    return { refusal: await chain.whyNot(authorization, signature), sending: MEASURED };
  }

  /** As our own settler would send it. */
  async function tryAsSent(
    own: Relayer,
    payment: OnChainPayment,
  ): Promise<{ refusal: PaymentRefused | null; sending: Sending }> {
    const { authorization, signature } = evidenceOf(payment);
    const [code, isPlain] = await Promise.all([
      chain.codeOf(authorization, signature),
      signature.length === 132 &&
        chain.whyNot(authorization, signature, PLAIN_GAS_LIMIT).then((refusal) => refusal === null),
    ]);
    const party = partyOf(payment, code);
    const tooOften = await wallets.lostGas.refusal(party);
    if (tooOften !== null) return { refusal: tooOften, sending: MEASURED };
    if (code.is === 'none')
      return isPlain
        ? { refusal: null, sending: { ...MEASURED, gasLimit: PLAIN_GAS_LIMIT, party } }
        : { refusal: await chain.whyNot(authorization, signature), sending: { ...MEASURED, party } };

    // From here on code of the payer's runs, and we pay for it: no more than the price is worth, and tried as it is sent.
    if (code.is === 'factory' && !wallets.factories.has(code.address))
      return {
        refusal: refuse('PAYMENT_WALLET_NOT_DEPLOYED', { factory: code.address }),
        sending: MEASURED,
      };
    const from = own.payer;
    if (from === undefined) throw new Error('a settler without a key');
    const fees = await own.fees();
    const maxCostWei = wallets.worthWei(payment.amountUnits);
    const affordable = maxCostWei / (fees.maxFeePerGas === 0n ? 1n : fees.maxFeePerGas);
    const gasLimit = affordable < MAX_GAS ? affordable : MAX_GAS;
    const sending: Sending = { maxCostWei, party, runsPayersCode: true };
    const as = { from, ...fees };
    const tooDear = { refusal: refuse('PAYMENT_GAS_ABOVE_PRICE'), sending };
    // Less than any settlement takes: a node would not even try it.
    if (gasLimit < LEAST_GAS) return tooDear;
    const refusal = await chain.whyNot(authorization, signature, gasLimit, as);
    if (refusal === null || gasLimit === MAX_GAS) return { refusal, sending };
    const withMore = await chain.whyNot(authorization, signature, MAX_GAS, as);
    return withMore === null ? tooDear : { refusal, sending };
  }

  const partyOf = (payment: OnChainPayment, code: PayersCode): Party => ({
    network: payment.network,
    payer: payment.payer,
    factory: code.is === 'factory' ? code.address : null,
  });

  async function whyNot(payment: OnChainPayment) {
    try {
      return (await tryOut(payment)).refusal;
    } catch (error) {
      throw unavailable('CHAIN_UNAVAILABLE', `${chain.network.title} does not answer.`, 5_000, {}, error);
    }
  }

  async function verifyOnChain(payment: OnChainPayment): Promise<void> {
    const head = await chain.head().catch((error: unknown) => {
      throw unavailable('CHAIN_UNAVAILABLE', `${chain.network.title} does not answer.`, 5_000, {}, error);
    });
    if (chain.isBehind(head))
      throw unavailable('CHAIN_BEHIND', `Our node of ${chain.network.title} is behind.`, 10_000);
    const refusal = await whyNot(payment);
    if (refusal === null) return;
    if (refusal.code !== 'PAYMENT_AUTHORIZATION_USED') throw refusal;
    // It may have paid us already, by a settlement that nobody heard the end of. Then it buys what it paid for.
    const looked = await chain.look(evidenceOf(payment).authorization);
    if (looked.status === 'settled') return;
    if (looked.status === 'dead') throw looked.refusal;
    throw unavailable(
      'CHAIN_UNAVAILABLE',
      `${chain.network.title} does not say what became of the payment.`,
      3_000,
    );
  }

  async function verifyWithFacilitator(payment: OnChainPayment): Promise<void> {
    if (relayer !== null) return;
    const { forFacilitator } = evidenceOf(payment);
    for (const facilitator of parts.facilitators(forFacilitator.x402Version)) {
      const verdict = await facilitator.verify(forFacilitator);
      if (verdict.status === 'valid') return;
      if (verdict.status === 'unavailable') continue;
      const refusal = refusalFromFacilitator(verdict.reason);
      // What was used already the chain itself is asked about.
      if (refusal.code === 'PAYMENT_AUTHORIZATION_USED') return;
      throw refusal;
    }
    throw unavailable('FACILITATOR_UNAVAILABLE', 'No facilitator answers.', 5_000);
  }

  async function settleByRelayer(
    own: Relayer,
    payment: OnChainPayment,
    sending: Sending,
  ): Promise<ChainVerdict> {
    const { authorization, signature } = evidenceOf(payment);
    const { lostGas } = wallets;
    const { gasLimit, maxCostWei, party, runsPayersCode } = sending;
    const call = await chain.settlementCall(authorization, signature);
    if (runsPayersCode && party !== undefined) {
      // Counted before it is sent: many at once must not all find that none has failed yet.
      const refusal = await lostGas.take(party, maxCostWei ?? 0n);
      if (refusal !== null) return { status: 'refused', refusal };
    }
    const forgive = async () => {
      if (runsPayersCode && party !== undefined) await lostGas.giveBack(party, maxCostWei ?? 0n);
    };
    let mined: MinedTransaction | null;
    try {
      mined = await own.send(
        {
          id: `settle:${payment.identity}`,
          ...call,
          again: true,
          ...(gasLimit === undefined ? {} : { gasLimit }),
          ...(maxCostWei === undefined ? {} : { maxCostWei }),
        },
        SETTLE_TIMEOUT_MS,
      );
    } catch (error) {
      // Measuring its gas failed, or no key could pay for it: nothing was sent.
      const isOutOfGas = error instanceof OutOfGas;
      if (!isOutOfGas && !(error instanceof RpcRefusal)) throw error;
      await forgive();
      const looked = await chain.look(authorization);
      const why = isOutOfGas ? 'PAYMENT_SETTLER_OUT_OF_GAS' : 'PAYMENT_VERIFICATION_FAILED';
      return looked.status === 'open' ? { status: 'refused', refusal: refuse(why) } : looked;
    }
    if (mined !== null && chain.paidBy(mined, authorization)) {
      await forgive();
      return { status: 'settled', transaction: mined.hash, blockNumber: mined.blockNumber };
    }
    if (mined?.status === 'reverted' && !runsPayersCode && party !== undefined)
      await lostGas.failed(party, 0n);
    const looked = await chain.look(authorization);
    if (looked.status !== 'open') return looked;
    return mined === null
      ? { status: 'unknown' }
      : {
          status: 'refused',
          refusal: (await chain.whyNot(authorization, signature)) ?? refuse('PAYMENT_VERIFICATION_FAILED'),
        };
  }

  async function settleByFacilitators(payment: OnChainPayment): Promise<ChainVerdict> {
    const startedAtMs = performance.now();
    const { authorization, forFacilitator } = evidenceOf(payment);
    for (const facilitator of parts.facilitators(forFacilitator.x402Version)) {
      if (performance.now() - startedAtMs > FAIL_OVER_MS) break;
      const settlement = await facilitator.settle(forFacilitator);
      if (settlement.status === 'unavailable' && !settlement.reached) continue;
      // Whatever it says, the chain is asked. A second facilitator cannot settle twice: the chain takes the nonce once.
      const said =
        settlement.status === 'settled' ||
        (settlement.status === 'failed' && settlement.transaction !== null);
      const looked = await lookUntil(authorization, said ? SETTLE_TIMEOUT_MS : 0);
      if (looked.status !== 'open') return looked;
      if (said) return { status: 'unknown' };
      // It may have sent the transaction and refused all the same: its reason proves nothing, and the next one is asked.
    }
    const looked = await lookUntil(authorization, LOOK_TIMEOUT_MS);
    return looked.status === 'open' ? { status: 'unknown' } : looked;
  }

  /** Asks the chain until it has decided, or the time is over. */
  async function lookUntil(authorization: Authorization, timeoutMs: number): Promise<ChainVerdict> {
    const untilMs = performance.now() + timeoutMs;
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_LOOK_MS)) {
      const looked = await chain.look(authorization);
      if (looked.status === 'settled' || looked.status === 'dead') return looked;
      if (performance.now() + pauseMs > untilMs) return looked;
      await sleep(pauseMs);
    }
  }

  async function verify(payment: OnChainPayment): Promise<void> {
    await Promise.all([verifyOnChain(payment), verifyWithFacilitator(payment)]);
  }

  async function settle(payment: OnChainPayment): Promise<ChainVerdict> {
    const before = tried.get(payment);
    // A facilitator's refusal proves nothing, so before one is asked the chain is, however lately it was.
    const isFresh =
      relayer !== null && before !== undefined && performance.now() - before.atMs < TRIED_FRESH_MS;
    const { refusal, sending } = isFresh ? { refusal: null, sending: before.sending } : await tryOut(payment);
    tried.delete(payment);
    if (refusal !== null) {
      const looked = await chain.look(evidenceOf(payment).authorization);
      return looked.status === 'open' ? { status: 'refused', refusal } : looked;
    }
    return relayer === null ? settleByFacilitators(payment) : settleByRelayer(relayer, payment, sending);
  }

  return {
    ...reported({ verify, settle }, parts.report),
    look: (payment) => chain.look(evidenceOf(payment).authorization),
    finality: (payment, transaction) => chain.finality(transaction, evidenceOf(payment).authorization),
    canRefund: parts.refunds !== null,
    async refund({ callId, payee, amountUnits }) {
      if (parts.refunds === null) return null;
      const data = encodeFunctionData({
        abi: erc20Abi,
        functionName: 'transfer',
        args: [payee as Hex, amountUnits],
      });
      try {
        const mined = await parts.refunds.send(
          // Without a limit the node is asked first, so that a wallet that ran dry costs no gas.
          { id: `refund:${callId}`, to: chain.network.asset, data },
          SETTLE_TIMEOUT_MS,
        );
        return mined?.status === 'success' ? mined.hash : null;
      } catch {
        return null;
      }
    },
  };
}

/** The evidence of an `exact` payment, as it was stored. */
function evidenceOf(payment: OnChainPayment): {
  authorization: Authorization;
  signature: Hex;
  forFacilitator: PaymentForFacilitator;
} {
  const { authorization, signature, forFacilitator } = payment.evidence as EvmEvidence;
  return { authorization: authorizationOf(authorization), signature, forFacilitator };
}
