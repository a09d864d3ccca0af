import { RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import { isKept } from '../../paid-call/kept-payment.ts';
import type { ChainVerdict, OnChainPayment } from '../../paid-call/rail.ts';
import type { MinedTransaction } from '../../relayer/node-reply.ts';
import type { Relayer } from '../../relayer/relayer.ts';
import { NotWanted, OutOfGas } from '../../relayer/to-send.ts';
import { refuse } from '../on-chain/refusals.ts';
import type { EvmChain } from './chain.ts';
import { evidenceOf } from './evidence.ts';
import type { LostGas } from './lost-gas.ts';
import type { Sending } from './try-out.ts';

/** How long the server waits for a settlement. One that takes longer is looked up later. */
export const SETTLE_TIMEOUT_MS = 15_000;

/** Settles a payment with our own transaction, which is sent once however often it is asked for. */
export async function settleOurselves(
  chain: EvmChain,
  own: Relayer,
  lostGas: LostGas,
  payment: OnChainPayment,
  sending: Sending,
): Promise<ChainVerdict> {
  const { authorization, signature } = evidenceOf(payment);
  const { gasLimit, maxCostWei, party, runsPayersCode } = sending;
  const call = await chain.settlementCall(authorization, signature);
  if (runsPayersCode && party !== undefined) {
    // Counted before it is sent, so that many at once do not all find that none has failed yet.
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
        onlyIf: (sql) => isKept(sql, payment.identity),
        ...(gasLimit === undefined ? {} : { gasLimit }),
        ...(maxCostWei === undefined ? {} : { maxCostWei }),
      },
      SETTLE_TIMEOUT_MS,
    );
  } catch (error) {
    if (error instanceof NotWanted) await forgive();
    // Estimating the gas failed, or no key can pay for it. Nothing was sent.
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
  if (mined?.status === 'reverted' && !runsPayersCode && party !== undefined) await lostGas.failed(party, 0n);
  const looked = await chain.look(authorization);
  if (looked.status !== 'open') return looked;
  return mined === null
    ? { status: 'unknown' }
    : {
        status: 'refused',
        refusal: (await chain.whyNot(authorization, signature)) ?? refuse('PAYMENT_VERIFICATION_FAILED'),
      };
}
