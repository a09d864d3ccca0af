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
 * A payment that passed a simulation this recently is sent without another one. If its payer spends the money first,
 * the transaction fails. That costs the payer a transaction too, and nobody is charged.
 */
const TRIED_FRESH_MS = 1_500;

export interface EvmPaymentParts {
  chain: EvmChain;
  /** Our own settler; null when facilitators settle. */
  relayer: Relayer | null;
  wallets: PayersWallets;
  /** The facilitators that settle this chain. */
  facilitators: Facilitators;
  /** The sender of refunds; null when none can be sent on this chain. */
  refunds: Relayer | null;
  report: Report;
}

export function evmPayments(parts: EvmPaymentParts): NetworkPayments {
  const { chain, relayer, wallets, facilitators } = parts;
  /** Payments that this process simulated a moment ago: when, and how they may be sent. */
  const tried = new WeakMap<OnChainPayment, { atMs: number; sending: Sending }>();

  /** Simulates the payment on the chain as it is now. @returns why it would fail, and how we may send it ourselves */
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
    // An earlier settlement whose outcome nobody saw may have paid us already. Then the payment buys what it paid for.
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
    // A facilitator's refusal proves nothing, so the chain is asked before each facilitator, however lately it was.
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
          // Without a gas limit the node estimates first, so a wallet without funds is found out before it costs gas.
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
