/** Verifying and settling `exact` payments on one EVM chain. */
import { encodeFunctionData, erc20Abi } from 'viem';
import { unavailable } from '../../http/problem.ts';
import type { ChainVerdict, OnChainPayment } from '../../paid-call/rail.ts';
import type { Relayer } from '../../relayer/relayer.ts';
import { type NetworkPayments, type Report, reported } from '../on-chain/payments.ts';
import { type Facilitators, settleByFacilitators, verifyWithFacilitator } from './by-facilitator.ts';
import type { EvmChain } from './chain.ts';
import type { Hex } from './eip3009.ts';
import { evidenceOf } from './evidence.ts';
import { SETTLE_TIMEOUT_MS, settleOurselves } from './own-settler.ts';
import { type PayersWallets, type Sending, type TriedOut, tryAsSent, tryPlainly } from './try-out.ts';

/**
 * A payment that would have settled so shortly ago is sent without being tried again. If its payer was faster, the
 * transaction fails: that costs them a transaction too, and nobody is charged.
 */
const TRIED_FRESH_MS = 1_500;

export interface EvmPaymentParts {
  chain: EvmChain;
  /** Our own settler; null: facilitators settle. */
  relayer: Relayer | null;
  wallets: PayersWallets;
  /** Those that settle this chain. */
  facilitators: Facilitators;
  /** Sends refunds; null: none can be sent on this chain. */
  refunds: Relayer | null;
  report: Report;
}

export function evmPayments(parts: EvmPaymentParts): NetworkPayments {
  const { chain, relayer, wallets, facilitators } = parts;
  /** Payments that were tried a moment ago by this process: when, and how they may be sent. */
  const tried = new WeakMap<OnChainPayment, { atMs: number; sending: Sending }>();

  /** Tries the payment on the chain's state as it is. @returns why it would fail, and how it may be sent by ourselves */
  async function tryOut(payment: OnChainPayment): Promise<TriedOut> {
    const found =
      relayer === null ? await tryPlainly(chain, payment) : await tryAsSent(chain, relayer, wallets, payment);
    if (found.refusal === null) tried.set(payment, { atMs: performance.now(), sending: found.sending });
    return found;
  }

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

  async function verify(payment: OnChainPayment): Promise<void> {
    await Promise.all([
      verifyOnChain(payment),
      relayer === null ? verifyWithFacilitator(facilitators, payment) : null,
    ]);
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
    return relayer === null
      ? settleByFacilitators(chain, facilitators, payment)
      : settleOurselves(chain, relayer, wallets.lostGas, payment, sending);
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
