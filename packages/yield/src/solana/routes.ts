import { readJsonBody } from '@farebox/core/http/json-body';
import { admit, type RateLimit } from '@farebox/core/http/rate-limit';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { FreeReads } from '../free-reads/budget.ts';
import {
  badRequest,
  readDeposit,
  readIdempotencyKey,
  readPriority,
  readWallet,
  readWithdrawal,
} from './asked.ts';
import { type CheckTransaction, withChecks } from './before-signing.ts';
import { type ConfirmParts, confirmDeposit, readClaimed, readSignature } from './confirm.ts';
import { type DepositParts, depositBundle } from './deposit.ts';
import type { Fees } from './fees.ts';
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
  fees: Fees;
  baseUrl: string;
  /** The mail address that a wallet's owner can write to; null: nobody is named. */
  contactEmail: string | null;
  limit: RateLimit;
  /** The bounds on what is read for one caller alone. */
  freeReads: FreeReads;
  /** The check of what is handed out; null: there is none. */
  check: CheckTransaction | null;
  addressOf(request: FastifyRequest): string;
}

type OfWallet = FastifyRequest<{ Params: { wallet: string }; Querystring: { after?: unknown } }>;
const anything = z.record(z.string(), z.unknown());

/** The transactions of whoever comes and leaves, and what became of them. None of it costs anything. */
export function portalRoutes(http: FastifyInstance, parts: PortalRouteParts): void {
  const { fees, baseUrl, limit, freeReads, addressOf, contactEmail, check } = parts;
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
    const priority = readPriority(body.priority, EXAMPLES.deposit);
    return freeReads.read(address, async () =>
      withChecks(await depositBundle(parts, { wallet, amount, idempotencyKey, priority }), wallet, check),
    );
  });

  post('withdraw-tx', async (body, address) => {
    const wallet = readWallet(body.wallet, EXAMPLES.withdraw);
    const amount = readWithdrawal(body, EXAMPLES.withdraw);
    const priority = readPriority(body.priority, EXAMPLES.withdraw);
    return freeReads.read(address, async () =>
      withChecks(await withdrawalTransaction(parts, { wallet, amount, priority }), wallet, check),
    );
  });

  post('confirm', async (body, address) => {
    const signature = readSignature(body.txSignature, EXAMPLES.confirm);
    const wallet = readWallet(body.wallet, EXAMPLES.confirm);
    const claimed = readClaimed(body.amountUsdcRaw, EXAMPLES.confirm);
    return freeReads.read(address, () => confirmDeposit(parts, { wallet, signature, address, claimed }));
  });

  http.get(`${AT}/fee-refunds/:wallet`, async (request: OfWallet, reply) => {
    admit(limit, addressOf(request), reply);
    const at = `${baseUrl}${AT}/fee-refunds`;
    const wallet = readWallet(request.params.wallet, `${at}/${EXAMPLE_WALLET}`);
    const after = readAfter(request.query.after, `${at}/${EXAMPLE_WALLET}`);
    const found = await fees.ofWallet(wallet, { after, most: MAX_FEES_SHOWN + 1 });
    const shown = found.slice(0, MAX_FEES_SHOWN);
    const last = found.length > shown.length ? (shown.at(-1)?.signature ?? null) : null;
    return feeRefundsView(wallet, {
      fees: shown,
      due: await fees.dueTo(wallet),
      next: last === null ? null : `${at}/${wallet}?after=${last}`,
      contactEmail,
    });
  });
}

/** The fee that a page begins below; null: the first page. @throws Problem 400 */
function readAfter(value: unknown, example: string): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && /^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(value)) return value;
  const message = 'must be the feeTxSignature that the page before ended with, as its `next` has it';
  throw badRequest(`after ${message}.`, [{ field: 'after', message }], example);
}
