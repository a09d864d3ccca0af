import type { FastifyInstance, FastifyRequest } from 'fastify';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import { readWallet } from './asked.ts';
import type { Fees } from './fees.ts';
import { feeRefundsView } from './refunds.ts';

export const AT = '/api/solana-yield';
/** A wallet that stands for any in examples. */
export const EXAMPLE_WALLET = 'DYw8jCTfwHNRJhhmFcbXvVDTqWMEVFBX6ZKUmG5CNSKK';
const MAX_FEES_SHOWN = 100;

export interface PortalRouteParts {
  fees: Fees;
  baseUrl: string;
  /** Whom a wallet's owner can write to; null: nobody is named. */
  contactEmail: string | null;
  limit: RateLimit;
  addressOf(request: FastifyRequest): string;
}

type OfWallet = FastifyRequest<{ Params: { wallet: string } }>;

/** The transactions of whoever comes and leaves, and what became of them. None of it costs anything. */
export function portalRoutes(http: FastifyInstance, parts: PortalRouteParts): void {
  const { fees, baseUrl, limit, addressOf, contactEmail } = parts;

  http.get(`${AT}/fee-refunds/:wallet`, async (request: OfWallet, reply) => {
    admit(limit, addressOf(request), reply);
    const wallet = readWallet(request.params.wallet, `${baseUrl}${AT}/fee-refunds/${EXAMPLE_WALLET}`);
    return feeRefundsView(wallet, await fees.ofWallet(wallet, MAX_FEES_SHOWN), contactEmail);
  });
}
