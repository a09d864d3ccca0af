import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '../../http/problem.ts';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import { microsToUsd } from '../../ledger/money.ts';
import type { SettlementStore } from '../../paid-call/settlements.ts';
import { RECEIPTS_AT } from '../on-chain/receipts.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * `GET /x402/receipts/{id}`: what became of a payment. The id is the call's, from the `X-Call-Id` header. Whoever has
 * it made the call, and what the receipt tells is public on the chain.
 */
export function receiptRoutes(
  app: FastifyInstance,
  parts: {
    settlements: SettlementStore;
    accountLimit: RateLimit;
    addressOf(request: FastifyRequest): string;
  },
): void {
  app.get<{ Params: { id: string } }>(`${RECEIPTS_AT}:id`, async (request, reply) => {
    admit(parts.accountLimit, parts.addressOf(request), reply);
    const { id } = request.params;
    const receipt = UUID.test(id) ? await parts.settlements.receipt(id) : null;
    if (receipt === null) {
      throw new Problem(404, 'RECEIPT_NOT_FOUND', 'There is no payment with this id.', {
        details: {
          hint: 'The id is the X-Call-Id of the answer, or stands in the error that named a receipt.',
        },
      });
    }
    const { payment, refund } = receipt;
    return {
      id: receipt.callId,
      protocol: receipt.rail,
      service: receipt.service,
      priceUsd: microsToUsd(receipt.priceMicros),
      status: statusOf(receipt),
      reason: receipt.reason,
      network: payment.network,
      asset: payment.asset,
      payer: payment.payer,
      payTo: payment.payTo,
      amountUnits: String(payment.amountUnits),
      transaction: receipt.transaction,
      blockNumber: receipt.blockNumber === null ? null : Number(receipt.blockNumber),
      final: receipt.final,
      createdAt: new Date(receipt.createdAtMs).toISOString(),
      settledAt: receipt.settledAtMs === null ? null : new Date(receipt.settledAtMs).toISOString(),
      refund:
        refund === null
          ? null
          : {
              state: refund.state,
              amountUsd: microsToUsd(refund.amountMicros),
              transaction: refund.transaction,
              reason: refund.reason,
            },
    };
  });
}

function statusOf({
  callState,
  settlementState,
  priceMicros,
  refund,
}: NonNullable<Awaited<ReturnType<SettlementStore['receipt']>>>): string {
  // The excess of an overpayment is refunded for an answer that was delivered.
  if (refund !== null && refund.amountMicros === priceMicros)
    return refund.state === 'paid' ? 'refunded' : 'refund_owed';
  if (settlementState === 'lost') return 'lost';
  if (callState === 'captured') return 'delivered';
  if (callState === 'released') return 'not_charged';
  return settlementState === 'settled' ? 'paid_not_delivered' : 'settling';
}
