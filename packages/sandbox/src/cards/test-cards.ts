/**
 * The test cards that the sandbox knows, with what each does. The numbers and names are the provider's published test
 * data; a real card number is declined as one that has no business here.
 */

export interface Decline {
  code: string;
  declineCode: string;
  message: string;
  adviceCode: 'try_again_later' | 'do_not_try_again' | 'confirm_card_data' | null;
  networkDeclineCode: string | null;
  param: string | null;
}

export interface TestCard {
  /** Names a card in the saved state; its number is nowhere but in this table. */
  name: string;
  number: string;
  brand: 'visa' | 'mastercard' | 'amex';
  country: string;
  /** `pm_card_…` and `tok_…` both exist for each of these. */
  tokens: readonly string[];
  /** What charges end with; null: they succeed. */
  decline: Decline | null;
  /** Whether the decline shows only with a charge: the card can be saved before. */
  declinesOnlyCharges: boolean;
  /** Blocked by the provider before the issuer is asked. */
  blocked: boolean;
  /** When the issuer wants to see its customer. */
  asks: 'never' | 'unless-set-up' | 'always';
  afterCharge: 'nothing' | 'dispute-fraudulent' | 'dispute-not-received' | 'inquiry' | 'early-warning';
  refunds: 'succeed' | 'fail-later' | 'succeed-later';
}

function decline(
  declineCode: string,
  message: string,
  adviceCode: Decline['adviceCode'],
  networkDeclineCode: string | null,
  code = 'card_declined',
  param: string | null = null,
): Decline {
  return { code, declineCode, message, adviceCode, networkDeclineCode, param };
}

const DECLINED = 'Your card was declined.';
const GENERIC = decline('generic_decline', DECLINED, 'try_again_later', '01');
const NO_FUNDS = decline('insufficient_funds', 'Your card has insufficient funds.', 'try_again_later', '51');

/** The decline of a charge in the customer's absence, from an issuer that requires authentication. */
export const AUTHENTICATION_REQUIRED = decline(
  'authentication_required',
  'Your card was declined. This transaction requires authentication.',
  'try_again_later',
  '1A',
  'authentication_required',
);

/** The decline of a number that is no test card. */
export const NOT_A_TEST_CARD = decline(
  'test_mode_live_card',
  'Your card was declined. This is a sandbox: use a test card, never a real one.',
  null,
  null,
);

type Special = Partial<Omit<TestCard, 'name' | 'number' | 'tokens'>>;

function card(name: string, number: string, tokens: readonly string[], special: Special = {}): TestCard {
  return {
    name,
    number,
    tokens,
    brand: 'visa',
    country: 'US',
    decline: null,
    declinesOnlyCharges: false,
    blocked: false,
    asks: 'never',
    afterCharge: 'nothing',
    refunds: 'succeed',
    ...special,
  };
}

/** A decline's tokens come with and without the brand in their middle. */
function declined(name: string, suffix: string, number: string, why: Decline): TestCard {
  const token = `chargeDeclined${suffix}`;
  return card(name, number, [token, `visa_${token}`], { decline: why });
}

export const TEST_CARDS: readonly TestCard[] = [
  card('visa', '4242424242424242', ['visa', 'us']),
  card('mastercard', '5555555555554444', ['mastercard'], { brand: 'mastercard' }),
  card('amex', '378282246310005', ['amex'], { brand: 'amex' }),
  declined('declined', '', '4000000000000002', GENERIC),
  declined('insufficient-funds', 'InsufficientFunds', '4000000000009995', NO_FUNDS),
  declined('lost', 'LostCard', '4000000000009987', decline('lost_card', DECLINED, 'do_not_try_again', '41')),
  declined(
    'stolen',
    'StolenCard',
    '4000000000009979',
    decline('stolen_card', DECLINED, 'do_not_try_again', '43'),
  ),
  declined(
    'expired',
    'ExpiredCard',
    '4000000000000069',
    decline('expired_card', 'Your card has expired.', 'confirm_card_data', '54', 'expired_card', 'exp_month'),
  ),
  declined(
    'incorrect-cvc',
    'IncorrectCvc',
    '4000000000000127',
    decline(
      'incorrect_cvc',
      "Your card's security code is incorrect.",
      'confirm_card_data',
      null,
      'incorrect_cvc',
      'cvc',
    ),
  ),
  declined(
    'processing-error',
    'ProcessingError',
    '4000000000000119',
    decline(
      'processing_error',
      'An error occurred while processing your card. Try again in a little bit.',
      'try_again_later',
      null,
      'processing_error',
    ),
  ),
  card('declines-once-saved', '4000000000000341', ['chargeCustomerFail'], {
    decline: GENERIC,
    declinesOnlyCharges: true,
  }),
  card('asks-unless-set-up', '4000002500003155', ['authenticationRequiredOnSetup'], {
    asks: 'unless-set-up',
    country: 'IE',
  }),
  card('asks-always', '4000002760003184', ['authenticationRequired', 'threeDSecure2Required'], {
    asks: 'always',
    country: 'IE',
  }),
  card(
    'asks-then-insufficient-funds',
    '4000008260003178',
    ['authenticationRequiredChargeDeclinedInsufficientFunds'],
    { asks: 'always', decline: NO_FUNDS, declinesOnlyCharges: true, country: 'GB' },
  ),
  card('disputed', '4000000000000259', ['createDispute'], { afterCharge: 'dispute-fraudulent' }),
  card('disputed-not-received', '4000000000002685', ['createDisputeProductNotReceived'], {
    afterCharge: 'dispute-not-received',
  }),
  card('inquiry', '4000000000001976', ['createDisputeInquiry'], { afterCharge: 'inquiry' }),
  card('early-warning', '4000000000005423', ['createIssuerFraudRecord'], { afterCharge: 'early-warning' }),
  card('blocked', '4100000000000019', ['radarBlock'], {
    decline: decline('fraudulent', DECLINED, 'do_not_try_again', null),
    declinesOnlyCharges: true,
    blocked: true,
  }),
  card('refund-fails', '4000000000005126', ['refundFail'], { refunds: 'fail-later' }),
  card('refund-pends', '4000000000007726', ['pendingRefund'], { refunds: 'succeed-later' }),
];

/** The card of a number; null when it is none of the test cards. */
export function cardOfNumber(number: string): TestCard | null {
  return TEST_CARDS.find((one) => one.number === number) ?? null;
}

/** The card of `pm_card_visa` or `tok_visa`; null when there is none. */
export function cardOfToken(token: string): TestCard | null {
  const name = /^(?:pm_card|tok)_(\w{1,80})$/.exec(token)?.[1];
  return TEST_CARDS.find(({ tokens }) => name !== undefined && tokens.includes(name)) ?? null;
}

/** @throws Error when the saved state names a card that this table does not have */
export function cardNamed(name: string): TestCard {
  const found = TEST_CARDS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no test card is named ${name}`);
  return found;
}

/** Whether a number's check digit is right (Luhn, ISO/IEC 7812). */
export function isCardNumber(digits: string): boolean {
  if (!/^\d{12,19}$/.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (index % 2 === 1 ? 2 : 1);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}
