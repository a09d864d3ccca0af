/**
 * Payments that facilitators verify and settle. A facilitator's word proves nothing, so the chain is asked afterwards.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../../http/problem.ts';
import type { ChainVerdict, OnChainPayment } from '../../paid-call/rail.ts';
import type { Facilitator } from '../on-chain/facilitator.ts';
import { refusalFromFacilitator } from '../on-chain/facilitator-reasons.ts';
import type { EvmChain } from './chain.ts';
import type { Authorization } from './eip3009.ts';
import { evidenceOf } from './evidence.ts';
import { SETTLE_TIMEOUT_MS } from './own-settler.ts';

/** After this time no further facilitator is tried. */
const FAIL_OVER_MS = 18_000;
/** How long the chain is asked after a facilitator did not say what it did. */
const LOOK_TIMEOUT_MS = 4_000;
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 1_000;

/** The facilitators that settle a chain, in order. */
export type Facilitators = (version: 1 | 2) => readonly Facilitator[];

/** @throws Problem when the first facilitator that answers refuses the payment, or when none answers */
export async function verifyWithFacilitator(
  facilitators: Facilitators,
  payment: OnChainPayment,
): Promise<void> {
  const { forFacilitator } = evidenceOf(payment);
  for (const facilitator of facilitators(forFacilitator.x402Version)) {
    const verdict = await facilitator.verify(forFacilitator);
    if (verdict.status === 'valid') return;
    if (verdict.status === 'unavailable') continue;
    const refusal = refusalFromFacilitator(verdict.reason);
    // Whether an authorization was used already is a question for the chain itself.
    if (refusal.code === 'PAYMENT_AUTHORIZATION_USED') return;
    throw refusal;
  }
  throw unavailable('FACILITATOR_UNAVAILABLE', 'No facilitator answers.', 5_000);
}

/** Asks one facilitator after the other to settle, and asks the chain for the outcome. */
export async function settleByFacilitators(
  chain: EvmChain,
  facilitators: Facilitators,
  payment: OnChainPayment,
): Promise<ChainVerdict> {
  const startedAtMs = performance.now();
  const { authorization, forFacilitator } = evidenceOf(payment);
  for (const facilitator of facilitators(forFacilitator.x402Version)) {
    if (performance.now() - startedAtMs > FAIL_OVER_MS) break;
    const settlement = await facilitator.settle(forFacilitator);
    if (settlement.status === 'unavailable' && !settlement.reached) continue;
    // Whatever the facilitator says, the chain is asked. A second facilitator cannot settle twice, because the chain
    // accepts the nonce once.
    const said =
      settlement.status === 'settled' || (settlement.status === 'failed' && settlement.transaction !== null);
    const looked = await lookUntil(chain, authorization, said ? SETTLE_TIMEOUT_MS : 0);
    if (looked.status !== 'open') return looked;
    if (said) return { status: 'unknown' };
    // It may have sent the transaction and still refused. Its reason proves nothing, so the next facilitator is asked.
  }
  const looked = await lookUntil(chain, authorization, LOOK_TIMEOUT_MS);
  return looked.status === 'open' ? { status: 'unknown' } : looked;
}

/** Asks the chain until it has decided, or the time is over. */
async function lookUntil(
  chain: EvmChain,
  authorization: Authorization,
  timeoutMs: number,
): Promise<ChainVerdict> {
  const untilMs = performance.now() + timeoutMs;
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_LOOK_MS)) {
    const looked = await chain.look(authorization);
    if (looked.status === 'settled' || looked.status === 'dead') return looked;
    if (performance.now() + pauseMs > untilMs) return looked;
    await sleep(pauseMs);
  }
}
