import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../../http/json-body.ts';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import type { FreeReads } from '../free-reads/budget.ts';
import { readDeposit, readIdempotencyKey, readWallet, readWithdrawal } from './asked.ts';
import { type ConfirmParts, confirmDeposit, readClaimed, readSignature } from './confirm.ts';
import { type DepositParts, depositBundle } from './deposit.ts';
import { feeRefundsView } from './refunds.ts';
import { type WithdrawParts, withdrawalTransaction } from './withdraw.ts';

export const AT = '/api/solana-yield';
/** A wallet that stands for any in examples. */
export const EXAMPLE_WALLET = 'DYw8jCTfwHNRJhhmFcbXvVDTqWMEVFBX6ZKUmG5CNSKK';
const MAX_FEES_SHOWN = 100;
const EXAMPLES = {
  deposit: { wallet: EXAMPLE_WALLET, amount_usdc: 100 },
  withdraw: { wallet: EXAMPLE_WALLET, amount: 'MAX' },
  confirm: { wallet: EXAMPLE_WALLET, txSignature: '<signature of the last transaction>' },
};

export interface PortalRouteParts extends ConfirmParts, DepositParts, WithdrawParts {
  baseUrl: string;
  /** Whom a wallet's owner can write to; null: nobody is named. */
  contactEmail: string | null;
  limit: RateLimit;
  /** Of what is read for one caller alone. */
  freeReads: FreeReads;
  addressOf(request: FastifyRequest): string;
}

type OfWallet = FastifyRequest<{ Params: { wallet: string } }>;
const anything = z.record(z.string(), z.unknown());

/** The transactions of whoever comes and leaves, and what became of them. None of it costs anything. */
export function portalRoutes(http: FastifyInstance, parts: PortalRouteParts): void {
  const { fees, baseUrl, limit, freeReads, addressOf, contactEmail } = parts;
  const post = (path: string, answer: (body: Record<string, unknown>, address: string) => Promise<unknown>) =>
    http.post(`${AT}/${path}`, async (request, reply) => {
      const address = addressOf(request);
      admit(limit, address, reply);
      return answer(readJsonBody(request, anything), address);
    });

  post('deposit-tx', async (body, address) => {
    const wallet = readWallet(body.wallet, EXAMPLES.deposit);
    const amount = readDeposit(body, EXAMPLES.deposit);
    const idempotencyKey = readIdempotencyKey(body.idempotency_key, EXAMPLES.deposit);
    return freeReads.read(address, () => depositBundle(parts, { wallet, amount, idempotencyKey }));
  });

  post('withdraw-tx', async (body, address) => {
    const wallet = readWallet(body.wallet, EXAMPLES.withdraw);
    const amount = readWithdrawal(body, EXAMPLES.withdraw);
    return freeReads.read(address, () => withdrawalTransaction(parts, { wallet, amount }));
  });

  post('confirm', async (body, address) => {
    const signature = readSignature(body.txSignature, EXAMPLES.confirm);
    const wallet = readWallet(body.wallet, EXAMPLES.confirm);
    const claimed = readClaimed(body.amountUsdcRaw, EXAMPLES.confirm);
    return freeReads.read(address, () => confirmDeposit(parts, { wallet, signature, address, claimed }));
  });

  http.get(`${AT}/fee-refunds/:wallet`, async (request: OfWallet, reply) => {
    admit(limit, addressOf(request), reply);
    const wallet = readWallet(request.params.wallet, `${baseUrl}${AT}/fee-refunds/${EXAMPLE_WALLET}`);
    return feeRefundsView(wallet, await fees.ofWallet(wallet, MAX_FEES_SHOWN), contactEmail);
  });
}
