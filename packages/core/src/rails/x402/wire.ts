/**
 * Parses `PAYMENT-SIGNATURE` and `X-PAYMENT` into typed values. Either header may hold either protocol version, as
 * base64 or base64url with or without padding, or as plain JSON. It may also hold just the hash of a transfer that was
 * already made.
 */
import { z } from 'zod';
import { isClaimSecret } from '../../paid-call/claim.ts';
import { type Headers, PaymentRefused } from '../../paid-call/rail.ts';
import type { Authorization, Hex } from '../evm/eip3009.ts';
import { NETWORKS, type Network } from './networks.ts';

/** Half of what all headers of a request may have. */
const MAX_HEADER_CHARS = 16_000;
/** Room for a wrapped smart-wallet signature with its factory call; a plain signature has 65 bytes. */
const MAX_SIGNATURE_BYTES = 4_096;

export type Presented = {
  /** The protocol version of the client. Answers use the same. */
  version: 1 | 2;
  network: Network;
  /** The payer's own identifier for this purchase (extension `payment-identifier`). */
  paymentId: string | null;
  /** The offer that the payer accepts, as sent; null in version 1, which sends none. */
  accepted: Record<string, unknown> | null;
  /** The claim from our terms, which version 2 sends back; null when none came. */
  claim: string | null;
  /** Whether the payer sent our discovery extension back, and so agrees to be counted by indexers. */
  echoesBazaar: boolean;
} & (
  | { scheme: 'exact-evm'; authorization: Authorization; signature: Hex }
  | { scheme: 'exact-svm'; transaction: string }
);

/** A transfer that the payer made by itself, named by its hash or signature. */
export interface PresentedTransfer {
  scheme: 'transfer';
  /** Null when the hash fits any EVM chain. */
  network: Network | null;
  transaction: string;
}

const hexOf = (bytes: number) =>
  z
    .string()
    .regex(new RegExp(`^0x[0-9a-fA-F]{${bytes * 2}}$`), `must be 0x and ${bytes * 2} hex digits`)
    .transform((value) => value.toLowerCase() as Hex);
const decimal = z
  .union([z.string().regex(/^\d{1,78}$/, 'must be a decimal integer'), z.int().min(0)])
  .transform((value) => BigInt(value));
const evmPayload = z.object({
  signature: z
    .string()
    .regex(/^0x([0-9a-fA-F]{2})+$/, 'must be 0x and hex digits')
    .max(2 + MAX_SIGNATURE_BYTES * 2)
    .transform((value) => value.toLowerCase() as Hex),
  authorization: z.object({
    from: hexOf(20),
    to: hexOf(20),
    value: decimal,
    validAfter: decimal,
    validBefore: decimal,
    nonce: hexOf(32),
  }),
});
const svmPayload = z.object({ transaction: z.base64().max(2_000) });
const EVM_HASH = /^0x[0-9a-fA-F]{64}$/;
const SOLANA_SIGNATURE = /^[1-9A-HJ-NP-Za-km-z]{86,88}$/;

/** Whether the request carries a payment for this rail. */
export function hasPayment(headers: Headers): boolean {
  return headers['payment-signature'] !== undefined || headers['x-payment'] !== undefined;
}

function malformed(message: string, details: Record<string, unknown> = {}): PaymentRefused {
  return new PaymentRefused(
    'PAYMENT_DECODE_FAILED',
    `The payment header cannot be read: ${message}.`,
    'Send the base64 of the JSON payment payload that your x402 client makes from this 402.',
    details,
  );
}

/**
 * Reads the payment header.
 *
 * @throws PaymentRefused with `PAYMENT_DECODE_FAILED`, `PAYMENT_VERSION_UNSUPPORTED`, `PAYMENT_SCHEME_UNSUPPORTED`,
 *   `PAYMENT_NETWORK_UNSUPPORTED` or `PAYMENT_INVALID_TX_HASH_FORMAT`
 */
export function readPresented(headers: Headers): Presented | PresentedTransfer {
  const found = headers['payment-signature'] ?? headers['x-payment'] ?? '';
  if (Array.isArray(found)) throw malformed('it came more than once');
  const both = headers['payment-signature'] !== undefined && headers['x-payment'] !== undefined;
  if (both && headers['payment-signature'] !== headers['x-payment'])
    throw malformed('PAYMENT-SIGNATURE and X-PAYMENT differ');
  const header = found.trim();
  if (header.length > MAX_HEADER_CHARS) throw malformed(`it has more than ${MAX_HEADER_CHARS} characters`);
  if (EVM_HASH.test(header)) return { scheme: 'transfer', network: null, transaction: header.toLowerCase() };
  if (SOLANA_SIGNATURE.test(header)) return { scheme: 'transfer', network: solana(), transaction: header };
  if (/^0x/.test(header)) {
    throw new PaymentRefused(
      'PAYMENT_INVALID_TX_HASH_FORMAT',
      'A transaction hash is 0x and 64 hex digits.',
      'Send the hash of your USDC transfer, or an x402 payment payload.',
    );
  }
  return readJson(asJson(header));
}

function asJson(header: string): Record<string, unknown> {
  let value: unknown;
  try {
    // Node decodes both alphabets with and without padding, and never throws. Only the JSON can be malformed.
    const text = header.startsWith('{') ? header : Buffer.from(header, 'base64').toString('utf8');
    value = JSON.parse(text);
  } catch {
    throw malformed('it is not the base64 of JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed('it is not a JSON object');
  return value as Record<string, unknown>;
}

function readJson(json: Record<string, unknown>): Presented | PresentedTransfer {
  const hash =
    json.txHash ?? json.transactionHash ?? (json.x402Version === undefined ? json.transaction : undefined);
  if (hash !== undefined) {
    if (typeof hash === 'string' && EVM_HASH.test(hash))
      return { scheme: 'transfer', network: namedNetwork(json.network), transaction: hash.toLowerCase() };
    if (typeof hash === 'string' && SOLANA_SIGNATURE.test(hash))
      return { scheme: 'transfer', network: solana(), transaction: hash };
    throw new PaymentRefused(
      'PAYMENT_INVALID_TX_HASH_FORMAT',
      'txHash is neither an EVM transaction hash nor a Solana signature.',
      'Send 0x and 64 hex digits, or a base58 signature of 87 or 88 characters.',
    );
  }
  if (json.x402Version !== 1 && json.x402Version !== 2) {
    throw new PaymentRefused(
      'PAYMENT_VERSION_UNSUPPORTED',
      `x402Version must be 1 or 2${json.x402Version === undefined ? '; it is missing' : ''}.`,
      'Use an x402 client of either version.',
    );
  }
  const version: 1 | 2 = json.x402Version === 1 ? 1 : 2;
  const accepted = isObject(json.accepted) ? json.accepted : null;
  if (version === 2 && accepted === null) throw malformed('accepted is missing');
  const scheme = version === 2 ? accepted?.scheme : json.scheme;
  if (scheme !== 'exact') {
    throw new PaymentRefused(
      'PAYMENT_SCHEME_UNSUPPORTED',
      'Only the scheme "exact" is accepted.',
      'Choose an entry of accepts whose scheme is exact.',
    );
  }
  const network = namedNetwork(version === 2 ? accepted?.network : json.network);
  if (network === null) throw unsupportedNetwork();
  const common = {
    version,
    network,
    paymentId: paymentIdOf(json.extensions),
    accepted,
    claim: claimIn(accepted),
    echoesBazaar: isObject(json.extensions) && isObject(json.extensions.bazaar),
  };
  if (network.kind === 'solana') {
    const payload = svmPayload.safeParse(json.payload);
    if (!payload.success) throw malformedPayload(payload.error);
    return { ...common, scheme: 'exact-svm', transaction: payload.data.transaction };
  }
  const payload = evmPayload.safeParse(json.payload);
  if (!payload.success) throw malformedPayload(payload.error);
  return { ...common, scheme: 'exact-evm', ...payload.data };
}

function claimIn(accepted: Record<string, unknown> | null): string | null {
  const { claimSecret = null } = isObject(accepted?.extra) ? accepted.extra : {};
  return isClaimSecret(claimSecret) ? claimSecret : null;
}

function malformedPayload(error: z.ZodError): PaymentRefused {
  const issue = error.issues[0];
  const field = ['payload', ...(issue?.path ?? [])].join('.');
  return malformed(`${field}: ${issue?.message ?? 'is invalid'}`, { field });
}

/**
 * `payment-identifier`: 16 to 128 characters. A malformed one is refused, because we could not keep the promise that it
 * asks for.
 */
function paymentIdOf(extensions: unknown): string | null {
  const extension = isObject(extensions) ? extensions['payment-identifier'] : undefined;
  const info = isObject(extension) ? extension.info : undefined;
  const id = isObject(info) ? info.id : undefined;
  if (id === undefined || id === null) return null;
  if (typeof id !== 'string' || !/^[a-zA-Z0-9_-]{16,128}$/.test(id)) {
    throw new PaymentRefused(
      'PAYMENT_IDENTIFIER_INVALID',
      'extensions.payment-identifier.info.id must have 16 to 128 characters of a-z, A-Z, 0-9, _ and -.',
      'Send such an id, or none.',
      { field: 'extensions.payment-identifier.info.id' },
    );
  }
  return id;
}

function namedNetwork(name: unknown): Network | null {
  if (name === undefined || name === null) return null;
  const found = NETWORKS.find((network) =>
    [network.id, network.name, network.legacyName].includes(name as never),
  );
  if (found === undefined) throw unsupportedNetwork();
  return found;
}

export function unsupportedNetwork(offered: readonly string[] = []): PaymentRefused {
  return new PaymentRefused(
    'PAYMENT_NETWORK_UNSUPPORTED',
    'Payments on this network are not taken here.',
    'Choose a network of accepts.',
    offered.length === 0 ? {} : { networks: offered },
  );
}

function solana(): Network {
  const found = NETWORKS.find(({ kind }) => kind === 'solana');
  if (found === undefined) throw new Error('there is no Solana among the networks');
  return found;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
