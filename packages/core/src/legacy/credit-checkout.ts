import { asCheckoutProblem } from '../cards/closed.ts';
import type { Checkout } from '../cards/ways/checkout.ts';
import type { CreditPackage } from './credits.ts';

/**
 * The checkout that the legacy family needs from whoever sells credit by card: the hosted checkout of `/api/m2m/credits/checkout`,
 * with one order, one fulfilment and one delivery of the key, whichever address asks.
 */
export interface CreditCheckout {
  /**
   * Opens a checkout for a person to pay. The payment buys a new key with `creditMicros` on it.
   *
   * @throws Problem 503 when the card provider cannot be reached, 429 when too many sessions were opened
   */
  open(order: {
    package: CreditPackage;
    /** The address for the receipt; null: no receipt is sent. */
    email: string | null;
    /** The caller's address, for limits. */
    address: string;
  }): Promise<{
    sessionId: string;
    /** The secret that unlocks the delivery of the key. It is part of no address that the person's browser sees. */
    retrievalToken: string;
    checkoutUrl: string;
    expiresAtMs: number;
  }>;

  /** The state of a checkout. A wrong token and an unknown session get the same answer. */
  status(session: { sessionId: string; retrievalToken: string }): Promise<CheckoutStatus>;
}

export type CheckoutStatus =
  | { status: 'unknown' }
  /** The checkout is not paid yet. */
  | { status: 'unpaid'; checkoutUrl: string; expiresAtMs: number }
  /** The key, which is delivered once. */
  | { status: 'ready'; apiKey: string; keyPrefix: string; creditMicros: bigint }
  | { status: 'delivered' }
  | { status: 'expired' };

/** The checkout of credit tiers, used to sell packages. */
export function legacyCheckoutOf(checkout: Checkout): CreditCheckout {
  return {
    async open({ package: { priceMicros, creditMicros }, email, address }) {
      const order = {
        amountMicros: priceMicros,
        creditMicros,
        email,
        keyName: null,
        recharge: null,
        accountId: null,
        address,
      };
      try {
        return await checkout.open(order);
      } catch (error) {
        throw asCheckoutProblem(error);
      }
    },
    async status(session) {
      const status = await checkout.status(session);
      // A checkout that buys no key is not one of this family's.
      return status.status === 'credited' ? { status: 'unknown' } : status;
    },
  };
}
