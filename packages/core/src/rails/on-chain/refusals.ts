import { PaymentRefused } from '../../paid-call/rail.ts';

/**
 * Each reason why a payment does not pay: its code, its message, and what to change. No text of a node is passed on
 * here.
 */
const REASONS = {
  PAYMENT_HASH_NOT_TAKEN_HERE: [
    'This answer holds a secret or is money, and the hash of a transfer does not prove who sent it: anybody who saw it could take the answer. The transfer was not used.',
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
    'The payment names another recipient.',
    'Sign exactly the payTo of the accepts entry.',
  ],
  PAYMENT_EXPIRED: [
    'The payment has expired, or expires too soon.',
    'Sign a new one: on EVM chains with validBefore = now + maxTimeoutSeconds, on Solana with a recent blockhash.',
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
    'Fund the wallet and present the same payment again: it is valid until it expires.',
  ],
  NOT_A_SANDBOX_WALLET: [
    'This is a sandbox, and this wallet never received money of the sandbox, so it may hold real money. Nothing was taken.',
    'Never sign a payment to a sandbox with a real wallet. Pay from a wallet that `npm run sandbox:wallet` makes.',
  ],
  PAYMENT_AUTHORIZATION_USED: [
    'This authorization was used or cancelled, and did not pay us.',
    'Sign a new one with a fresh nonce.',
  ],
  PAYMENT_PAYER_BLOCKED: ['The asset refuses to move money of this payer.', 'Pay from another wallet.'],
  PAYMENT_WALLET_NOT_DEPLOYED: [
    'The wallet is not deployed yet, and this server does not call its factory.',
    'Deploy the wallet first, or pay from another one.',
  ],
  PAYMENT_GAS_ABOVE_PRICE: [
    "Checking this wallet's signature on the chain costs more gas than the price is worth.",
    'Pay from a wallet whose signature is cheaper to check, or on another network of accepts.',
  ],
  PAYMENT_FAILED_TOO_OFTEN: [
    'Settlements of this wallet passed the simulation and failed on the chain too often today. Nothing was sent.',
    'Pay from another wallet, or try again in a day.',
  ],
  PAYMENT_SETTLER_OUT_OF_GAS: [
    'Nothing can be settled on this network now: our own key lacks the gas. Nothing was sent.',
    'Pay on another network of accepts, or present the same payment later: it is valid until it expires.',
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
    'This transfer was made with a signed authorization, and it is the authorization that buys.',
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
