import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isForPerson, type ShownReceipt } from '../../http/asked-form.ts';
import { Problem } from '../../http/problem.ts';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import { microsToUsd } from '../../ledger/money.ts';
import { PaymentRefused } from '../../paid-call/rail.ts';
import type { Receipt, SettlementStore } from '../../paid-call/settlements.ts';
import { RECEIPTS_AT } from '../on-chain/receipts.ts';
import type { SignInChallenge } from './sign-in.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A transaction's hash on an EVM chain, or a signature on Solana. */
const TRANSACTION = /^(?:0x[0-9a-f]{64}|[1-9A-HJ-NP-Za-km-z]{80,90})$/i;

/**
 * `GET /x402/receipts/{id}`: what became of a payment. The id is the call's, from the `X-Call-Id` header: only whoever made the
 * call has it. It may also be the payment's transaction, which everybody can read on the chain: then the payer signs in, since
 * the receipt tells what was bought.
 */
export function receiptRoutes(
  app: FastifyInstance,
  parts: {
    settlements: Pick<SettlementStore, 'receipt' | 'receiptBy'>;
    signIn: Pick<SignInChallenge, 'fixed' | 'fresh' | 'check'>;
    baseUrl: string;
    accountLimit: RateLimit;
    addressOf(request: FastifyRequest): string;
  },
): void {
  app.get<{ Params: { id: string } }>(`${RECEIPTS_AT}:id`, async (request, reply) => {
    admit(parts.accountLimit, parts.addressOf(request), reply);
    const { id } = request.params;
    const receipt = await found(id, request.headers['sign-in-with-x']);
    if (receipt === null) {
      throw new Problem(404, 'RECEIPT_NOT_FOUND', 'There is no payment with this id.', {
        details: {
          hint: 'The id is the X-Call-Id of the answer, stands in the error that named a receipt, or is the transaction of a payment by the wallet that signs in.',
        },
      });
    }
    const told = shown(receipt);
    const page = isForPerson(request.headers.accept) ? (app.receiptPage?.(told) ?? null) : null;
    reply.header('vary', 'Accept');
    return page === null ? told : reply.headers(page.headers).send(page.body);
  });

  async function found(id: string, header: string | string[] | undefined): Promise<Receipt | null> {
    if (UUID.test(id)) return parts.settlements.receipt(id);
    if (!TRANSACTION.test(id)) return null;
    const resourceUrl = `${parts.baseUrl}${RECEIPTS_AT}${id}`;
    if (typeof header !== 'string') throw signInRequired(parts.signIn, resourceUrl);
    const payer = await checked(header, resourceUrl);
    return parts.settlements.receiptBy({ transaction: id.startsWith('0x') ? id.toLowerCase() : id, payer });
  }

  async function checked(header: string, resourceUrl: string): Promise<string> {
    try {
      return await parts.signIn.check(header, resourceUrl);
    } catch (error) {
      if (error instanceof PaymentRefused) throw new Problem(401, error.code, error.message);
      throw error;
    }
  }
}

/** What a wallet signs to prove that it paid: the same extension as in a 402. */
function signInRequired(signIn: Pick<SignInChallenge, 'fixed' | 'fresh'>, resourceUrl: string): Problem {
  const { info, ...fixed } = signIn.fixed(resourceUrl);
  return new Problem(
    401,
    'SIGN_IN_REQUIRED',
    'A receipt by its transaction is for the wallet that paid. Sign in with it in SIGN-IN-WITH-X, or name the X-Call-Id of the answer.',
    { details: { extensions: { 'sign-in-with-x': { ...fixed, info: { ...info, ...signIn.fresh() } } } } },
  );
}

function shown(receipt: Receipt): ShownReceipt & Record<string, unknown> {
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
}

function statusOf({ callState, settlementState, priceMicros, refund }: Receipt): ShownReceipt['status'] {
  // The excess of an overpayment is refunded for an answer that was delivered.
  if (refund !== null && refund.amountMicros === priceMicros)
    return refund.state === 'paid' ? 'refunded' : 'refund_owed';
  if (settlementState === 'lost') return 'lost';
  if (callState === 'captured') return 'delivered';
  if (callState === 'released') return 'not_charged';
  return settlementState === 'settled' ? 'paid_not_delivered' : 'settling';
}
