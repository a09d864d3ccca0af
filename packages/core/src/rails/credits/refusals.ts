/** Why a key does not pay, and what its owner can do about it. */
import { NEW_CUSTOMER_CAP } from '../../keys/credit-tiers.ts';
import { microsToUsd } from '../../ledger/money.ts';
import { type Payment, PaymentRefused, type Quote, type ReservationRefused } from '../../paid-call/rail.ts';

export interface RefusalNeeds {
  /** Whether a wallet can buy credit for a key now. */
  walletsPay(): boolean;
  /** Whether a card can buy credit for a key, also without a person on a page. */
  chargesCards: boolean;
  /** Why an account's keys are frozen, as far as the owner may know. */
  debts: { standing(accountId: bigint): Promise<{ owedMicros: bigint; frozenFor: readonly string[] }> };
}

interface RefusalParts extends RefusalNeeds {
  baseUrl: string;
}

/** The refusal for a key whose account could not reserve the price. */
export async function refusalOf(
  parts: RefusalParts,
  { status, availableMicros = 0n }: ReservationRefused,
  { priceMicros }: Quote,
  { accountId }: Pick<Payment, 'accountId'>,
): Promise<PaymentRefused> {
  const requiredUsd = microsToUsd(priceMicros, 4);
  switch (status) {
    case 'insufficient': {
      const balanceUsd = microsToUsd(availableMicros, 4);
      return new PaymentRefused(
        'INSUFFICIENT_CREDITS',
        `This key has ${balanceUsd} USD available; the call costs ${requiredUsd} USD.`,
        `${addCredit(parts)} Or wait for running calls to release theirs.`,
        { balanceUsd, requiredUsd, ...creditOffer(parts) },
      );
    }
    case 'key_expired':
      return new PaymentRefused(
        'API_KEY_EXPIRED',
        'This API key has expired.',
        `Buy credits, or take a trial key: GET ${parts.baseUrl}/api/m2m/credits/trial.`,
      );
    case 'key_revoked':
      return new PaymentRefused(
        'API_KEY_REVOKED',
        'This API key was revoked or rotated.',
        'Use the key that replaced it.',
      );
    case 'key_frozen':
      return frozen(parts, accountId);
    case 'above_call_cap':
      return new PaymentRefused(
        'SPEND_CAP_PER_CALL',
        `The call costs ${requiredUsd} USD, more than this key's cap per call.`,
        'Raise perCallUsd with PATCH /api/keys/me.',
        { requiredUsd },
      );
    case 'above_day_cap':
      return new PaymentRefused(
        'SPEND_CAP_PER_DAY',
        "The call would go above this key's cap for today (UTC).",
        'Wait for tomorrow, or raise perDayUsd with PATCH /api/keys/me. The cap of a new card customer cannot be raised before caps.fixedUntil of GET /api/keys/me.',
        { requiredUsd },
      );
  }
}

async function frozen(parts: RefusalParts, accountId: bigint): Promise<PaymentRefused> {
  const { owedMicros, frozenFor } = await parts.debts.standing(accountId);
  if (owedMicros === 0n && frozenFor.includes('reversal') && !frozenFor.includes('operator'))
    return new PaymentRefused(
      'API_KEY_FROZEN',
      'The card payment that the credit of this key came from went back, and nothing else is on the key.',
      `${addCredit(parts)} The key works again with it.`,
      creditOffer(parts),
    );
  if (owedMicros === 0n)
    return new PaymentRefused('API_KEY_FROZEN', 'This API key is frozen.', 'Ask the operator why.');
  const owedUsd = microsToUsd(owedMicros, 4);
  return new PaymentRefused(
    'ACCOUNT_OWES',
    `A payment for this key went back after its credit was spent: it owes ${owedUsd} USD.`,
    `${addCredit(parts)} It pays what is owed first, and the key works again.`,
    { owedUsd, ...creditOffer(parts) },
  );
}

/** The addresses at which a key can buy credit now, best first; empty when there is none. */
function addCreditAt({ baseUrl, walletsPay, chargesCards }: RefusalParts): string[] {
  const byWallet = walletsPay() ? ['topup'] : [];
  const byCard = chargesCards ? ['purchase', 'checkout/session'] : [];
  return [...byWallet, ...byCard].map((way) => `${baseUrl}/api/m2m/credits/${way}`);
}

/** Where to buy credit, and how much of it can be spent in a day if a card buys it. */
function creditOffer(parts: RefusalParts) {
  const newCardCustomers = parts.chargesCards ? { newCardCustomers: NEW_CUSTOMER_CAP } : {};
  return { addCreditAt: addCreditAt(parts), ...newCardCustomers };
}

function addCredit(parts: RefusalParts): string {
  const urls = addCreditAt(parts);
  if (urls.length === 0) return 'Ask the operator for credit.';
  return `Add credit with this key in X-API-KEY: POST ${urls.join(', or ')}.`;
}
