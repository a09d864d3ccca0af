import { presentedApiKey } from '../../keys/api-key.ts';
import type { Keys } from '../../keys/keys.ts';
import { microsToUsd } from '../../ledger/money.ts';
import { PaymentRefused, type Rail } from '../../paid-call/rail.ts';
import { type RefusalNeeds, refusalOf } from './refusals.ts';

/** For a shop where nothing is bought by card: no account ever owes what a bank took back. */
export const NO_DEBTS: RefusalNeeds['debts'] = {
  standing: async () => ({ owedMicros: 0n, frozenFor: [] }),
};

/**
 * Prepaid credit behind an API key, in `X-API-KEY` or `Authorization: Bearer`.
 *
 * @example
 * ```ts
 * import { creditsRail, NO_DEBTS } from '@farebox/core/rails/credits/rail';
 *
 * const { keys } = keyed;
 * const rail = creditsRail(house, { keys, debts: NO_DEBTS, walletsPay: () => false, chargesCards: false });
 * rail.recognizes({ 'x-api-key': 'any' }); // true
 * ```
 */
export function creditsRail(
  { baseUrl }: { baseUrl: string },
  { keys, ...needs }: { keys: Keys } & RefusalNeeds,
): Rail {
  const parts = { ...needs, baseUrl };
  return {
    name: 'credits',

    // The message of every 402 already says what there is to say about keys.
    offer: () => ({ headers: {}, accepts: [], body: {} }),

    recognizes: (headers) => presentedApiKey(headers) !== null,

    // Whether the balance covers the price is decided by the reservation.
    async read(headers, _quote, { idempotencyKey }) {
      const presented = presentedApiKey(headers) ?? '';
      const key = await keys.find(presented);
      if (key === null) {
        throw new PaymentRefused(
          'API_KEY_INVALID',
          'This API key is not known here.',
          `Send a key as issued (fbx_live_ and 64 hex digits), or take a trial key: GET ${baseUrl}/api/m2m/credits/trial.`,
        );
      }
      return {
        rail: 'credits',
        accountId: key.accountId,
        bucket: key.bucket,
        keyId: key.id,
        revenue: 'revenue_credits',
        onChain: null,
        claim: null,
        identity: idempotencyKey === null ? null : `key:${idempotencyKey}`,
        payer: key.prefix,
        buyer: key.buyer,
        proof: { by: 'account', accountId: key.accountId },
        limitBy: `key:${key.id}`,
        network: null,
        // What was measured may be less than the last of four places.
        receipt: ({ priceMicros, availableMicros, reserved, reservedMicros }) => ({
          'x-payment-method': 'api-key',
          ...(reservedMicros === undefined ? {} : { 'x-credits-reserved': microsToUsd(reservedMicros, 6) }),
          [reserved ? 'x-credits-reserved' : 'x-credits-used']: microsToUsd(
            priceMicros,
            reservedMicros === undefined ? 4 : 6,
          ),
          ...(availableMicros === null ? {} : { 'x-credits-remaining': microsToUsd(availableMicros, 4) }),
        }),
      };
    },

    notReserved: (refused, quote, payment) => refusalOf(parts, refused, quote, payment),

    refusedHeaders({ details: { balanceUsd } }) {
      return typeof balanceUsd === 'string' ? { 'x-credits-remaining': balanceUsd } : {};
    },
  };
}
