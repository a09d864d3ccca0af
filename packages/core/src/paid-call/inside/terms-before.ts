/** The terms that a payment is read for: those in force, or those that its payer was told before they changed. */

import { usdToMicros } from '../../ledger/money.ts';
import type { Service } from '../../service/define.ts';
import type { ReadCall } from '../../service/route.ts';
import { type BesideCredential, type Payment, PaymentRefused, type Quote, type Rail } from '../rail.ts';
import type { PaidRequest } from '../sale.ts';
import { readByRoute } from './quotes.ts';

/** A payment, and the terms that it pays. */
export interface PaidTerms {
  quote: Quote;
  payment: Payment;
}

/**
 * The terms that the very same call had when challenges were made that can still be paid, the newest first; none that cost the same
 * as those in force. What a metered answer costs is measured by the rule in force: the price that is named for it is but a ceiling.
 *
 * @param honoured the service as it was sold then
 */
export function termsBefore(
  quote: Quote,
  request: PaidRequest,
  honoured: readonly Service[],
): readonly Quote[] {
  if (quote.service.metered !== null) return [];
  const prices = new Set([quote.priceMicros]);
  return honoured.flatMap((service) => {
    const priceMicros = priceThen(service, request);
    if (priceMicros === null || prices.has(priceMicros)) return [];
    prices.add(priceMicros);
    return [{ ...quote, priceMicros }];
  });
}

/** @returns null for a call that could not be read then: nobody was told a price for it */
function priceThen(service: Service, request: PaidRequest): bigint | null {
  if (service.route === null) return usdToMicros(service.priceUsd);
  const { called }: { called: ReadCall | null } = readByRoute({ ...request, service });
  return called?.priceMicros ?? null;
}

/**
 * The least that a key may have been told that a call of a route costs: now, or while challenges were made that can still be paid. A key
 * may have a price of its own.
 *
 * @param priceMicros what it costs this key now
 */
export function leastForKey(
  priceMicros: bigint,
  accountId: bigint,
  request: PaidRequest,
  honoured: readonly Service[],
): bigint {
  if (request.service.metered !== null) return priceMicros;
  return honoured.reduce((least, service) => {
    const then = priceForKeyThen(service, accountId, request);
    return then !== null && then < least ? then : least;
  }, priceMicros);
}

function priceForKeyThen(service: Service, accountId: bigint, request: PaidRequest): bigint | null {
  const { called } = readByRoute({ ...request, service });
  try {
    return called?.keyTerms?.(accountId).priceMicros ?? called?.priceMicros ?? null;
  } catch {
    return null;
  }
}

/**
 * Reads a payment. A chain moves what was signed, so the terms are those that were signed for. A key signs no price, and pays the
 * least of those that its owner may have been told.
 *
 * @throws PaymentRefused when it pays none of these terms
 */
export async function readForTerms(
  rail: Rail,
  { headers }: PaidRequest,
  { quote, before, beside }: { quote: Quote; before: readonly Quote[]; beside: BesideCredential },
): Promise<PaidTerms> {
  if (rail.chains === undefined) {
    const least = [quote, ...before].reduce((a, b) => (b.priceMicros < a.priceMicros ? b : a));
    return { quote: least, payment: await rail.read(headers, least, beside) };
  }
  try {
    return { quote, payment: await rail.read(headers, quote, beside) };
  } catch (error) {
    if (!(error instanceof PaymentRefused)) throw error;
    for (const each of before) {
      const payment = await rail.read(headers, each, beside).catch((other: unknown) => {
        if (other instanceof PaymentRefused) return null;
        throw other;
      });
      if (payment !== null) return { quote: each, payment };
    }
    throw error;
  }
}
