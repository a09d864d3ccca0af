import { PaymentRefused } from '../../paid-call/rail.ts';

/** Why a payment does not pay: for machines, in words, and what to change. Nothing of a node's own text is in here. */
const REASONS = {
  PAYMENT_HASH_NOT_TAKEN_HERE: [
    'What is sold here holds a secret, or is money, and a hash proves nobody: whoever saw it first could take it. The transfer was not used.',
    'Sign the terms of this 402 with an x402 client. The hash still buys a call whose answer holds no secret.',
  ],
  PAYMENT_REQUIREMENTS_MISMATCH: [
    'The payment accepts other terms than this service offers.',
    'Take the terms from the accepts of this 402: asset, amount, payTo and network must be the same.',
  ],
  PAYMENT_AMOUNT_MISMATCH: [
    'The signed value is not the price.',
    'Sign exactly the amount of the accepts entry, no less and no more.',
  ],
  PAYMENT_RECIPIENT_MISMATCH: [
    'The payment is made out to somebody else.',
    'Sign payTo as it stands in accepts.',
  ],
  PAYMENT_EXPIRED: [
    'The payment is not valid for long enough, or not any more.',
    'Sign a new one with validBefore = now + maxTimeoutSeconds.',
  ],
  PAYMENT_VALID_TOO_LONG: [
    'The payment is valid for more than an hour.',
    'Sign validBefore at most an hour ahead.',
  ],
  PAYMENT_NOT_YET_VALID: ['validAfter lies in the future.', 'Sign validAfter = 0, and check your clock.'],
  PAYMENT_SIGNATURE_INVALID: [
    'The signature is not by `from`, or not over this payment.',
    'Sign with the EIP-712 domain of accepts[].extra (name, version), its chain and its asset.',
  ],
  PAYMENT_INSUFFICIENT_FUNDS: [
    'The payer does not hold the price.',
    'Fund the wallet; the same payment is good until it expires.',
  ],
  NOT_A_SANDBOX_WALLET: [
    'This is a sandbox, and no money of it has ever reached this wallet: it may be one that holds real money. Nothing was taken.',
    'Never sign a payment to a sandbox with a real wallet. Pay from one that `npm run sandbox:wallet` makes.',
  ],
  PAYMENT_AUTHORIZATION_USED: [
    'This authorization was used or cancelled, and did not pay us.',
    'Sign a new one with a fresh nonce.',
  ],
  PAYMENT_PAYER_BLOCKED: ['The asset refuses to move money of this payer.', 'Pay from another wallet.'],
  PAYMENT_WALLET_NOT_DEPLOYED: [
    'The wallet is not on the chain yet, and its factory is none that is called here.',
    'Put the wallet on the chain first, or pay from another one.',
  ],
  PAYMENT_GAS_ABOVE_PRICE: [
    "The check of this wallet's signature takes more gas than the price is worth.",
    'Pay from a wallet whose check costs less, or on another network of accepts.',
  ],
  PAYMENT_FAILED_TOO_OFTEN: [
    'Settlements of this wallet have passed a trial and failed on the chain too often today. Nothing was sent.',
    'Pay from another wallet, or a day later.',
  ],
  PAYMENT_SETTLER_OUT_OF_GAS: [
    'Nothing can be settled on this network now: our own key lacks the gas. Nothing was sent.',
    'Pay on another network of accepts, or present the same payment later: it is good until it expires.',
  ],
  PAYMENT_VERIFICATION_FAILED: [
    'The chain would refuse this payment.',
    'Sign a new payment from the terms of this 402.',
  ],
  PAYMENT_TRANSACTION_NOT_FOUND: [
    'No such transaction was found.',
    'Send the hash once the transaction is in a block, from the network that you paid on.',
  ],
  PAYMENT_TRANSACTION_FAILED: ['This transaction failed on the chain.', 'Make the transfer again.'],
  PAYMENT_TRANSFER_MISMATCH: [
    'This transaction moves no USDC to us, or less than the price.',
    'Transfer at least the amount of accepts to payTo.',
  ],
  PAYMENT_TRANSFER_NOT_PLAIN: [
    'This transfer was made with a signed authorization, which buys by itself.',
    'Present the authorization, not the hash.',
  ],
  PAYMENT_TRANSFER_TOO_OLD: [
    'This transfer is older than a day.',
    'Present a transfer within a day of making it.',
  ],
  PAYMENT_TRANSACTION_UNSUITABLE: [
    'The Solana transaction is not the one that was offered.',
    'Build it with an x402 client: compute budget, one TransferChecked to payTo, and a memo at most.',
  ],
  SIGN_IN_INVALID: [
    'The sign-in message is not valid here.',
    'Sign the message of extensions.sign-in-with-x of a fresh 402.',
  ],
} as const satisfies Record<string, readonly [string, string]>;

export type RefusalCode = keyof typeof REASONS;

export function refuse(code: RefusalCode, details: Record<string, unknown> = {}): PaymentRefused {
  const [message, hint] = REASONS[code];
  return new PaymentRefused(code, message, hint, details);
}
