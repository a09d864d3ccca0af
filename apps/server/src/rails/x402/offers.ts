/** What a 402 says about paying by x402: version 2 in the header, version 1 in the body. */
import { sandboxFields, sandboxMark } from '../../http/sandbox-notice.ts';
import { newClaimSecret } from '../../paid-call/claim.ts';
import type { Quote } from '../../paid-call/rail.ts';
import { inputSchemaOf, withoutProse } from '../../services/json-schema.ts';
import { ASSET_DECIMALS, type Network } from './networks.ts';
import type { SignInChallenge } from './sign-in.ts';

/** How long a signed payment should be good for: the longest service, its settlement, a retry, and clocks that differ. */
const MAX_TIMEOUT_SECONDS = 120;
const JSON_SCHEMA = 'https://json-schema.org/draft/2020-12/schema';
const ERROR = 'X-PAYMENT header is required';
/** Stands where each 402 has a secret of its own, and is as long. */
const CLAIM_PLACE = '?'.repeat(newClaimSecret().length);
/** What a 402 says of an answer that holds a secret. */
export const CLAIM_RULE =
  'The answer goes to whoever shows the payment and a secret beside it: accepts[].extra.claimSecret of PAYMENT-REQUIRED, which clients of version 2 send back, or, for all others, a claimSecret of 16 to 128 random characters in the body.';

/** A chain that is ready to take payments, and to whom they go. */
export interface OfferedNetwork {
  network: Network;
  payTo: string;
  /** Solana: who pays the fee and sends the transaction. */
  feePayer: string | null;
  /** Whether the money there is that of a sandbox. */
  sandbox: boolean;
}

/** What is beside the terms themselves, and comes back with the payment. */
function extraOf({ network, feePayer, sandbox }: OfferedNetwork): Record<string, unknown> {
  return {
    ...(network.kind === 'evm' ? network.domain : { feePayer }),
    ...sandboxMark(sandbox),
  };
}

/** The terms of one chain, as version 2 writes them; also what a facilitator is given. */
export function requirementsV2(offered: OfferedNetwork, quote: Quote): Record<string, unknown> {
  const { network, payTo } = offered;
  return {
    scheme: 'exact',
    network: network.id,
    amount: String(quote.priceMicros),
    asset: network.asset,
    payTo,
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    extra: extraOf(offered),
  };
}

/** As `requirementsV2`, as version 1 writes them. */
export function requirementsV1(offered: OfferedNetwork, quote: Quote): Record<string, unknown> {
  const { network, payTo } = offered;
  return {
    scheme: 'exact',
    network: network.legacyName,
    maxAmountRequired: String(quote.priceMicros),
    resource: quote.resourceUrl,
    description: quote.service.summary,
    mimeType: 'application/json',
    payTo,
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    asset: network.asset,
    extra: extraOf(offered),
  };
}

/** The entries of the body's `accepts`: what both generations of clients read, and nothing that either would choke on. */
export function legacyAccepts(offered: readonly OfferedNetwork[], quote: Quote): Record<string, unknown>[] {
  return offered
    .filter(({ network }) => network.legacyName !== null)
    .map((each) => ({
      ...requirementsV1(each, quote),
      amount: String(quote.priceMicros),
      maxAmountRequiredUSD: Number(quote.priceMicros) / 10 ** ASSET_DECIMALS,
      x402Network: each.network.id,
    }));
}

/**
 * The `PAYMENT-REQUIRED` header of a service. All of it is encoded once; the nonce and the times of the sign-in
 * extension stand at the end, so that only they are encoded again. Where the answer holds a secret the terms have a fresh
 * claim (`claim.ts`), and each 402 is encoded anew.
 */
export function paymentRequiredHeader(
  offered: readonly OfferedNetwork[],
  quote: Quote,
  signIn: SignInChallenge,
): { current(): string; refused(reason: string): string } {
  const fixed = signIn.fixed(quote.resourceUrl);
  const { secretAnswer } = quote.service;
  const claimable = (terms: Record<string, unknown>) =>
    secretAnswer ? { ...terms, extra: { ...Object(terms.extra), claimSecret: CLAIM_PLACE } } : terms;
  const start = (error: string) => {
    const document = {
      x402Version: 2,
      ...sandboxFields(offered.some(({ sandbox }) => sandbox)),
      error,
      resource: {
        url: quote.resourceUrl,
        description: quote.service.summary,
        mimeType: 'application/json',
        serviceName: asciiName(quote.service.name),
      },
      accepts: offered.map((each) => claimable(requirementsV2(each, quote))),
      extensions: {
        bazaar: bazaarOf(quote),
        'payment-identifier': { info: { required: false }, schema: PAYMENT_IDENTIFIER_SCHEMA },
        'sign-in-with-x': fixed,
      },
    };
    // Ends in the open braces of info, sign-in-with-x, extensions and the document.
    const text = JSON.stringify(document).slice(0, -4);
    const bytes = Buffer.byteLength(text) + 1;
    const padded = `${text},${' '.repeat((3 - (bytes % 3)) % 3)}`;
    if (secretAnswer) {
      const pieces = padded.split(CLAIM_PLACE);
      return () => Buffer.from(pieces.join(newClaimSecret())).toString('base64');
    }
    const encoded = Buffer.from(padded).toString('base64');
    return () => encoded;
  };
  const end = ({ nonce, issuedAt, expirationTime }: ReturnType<SignInChallenge['fresh']>) =>
    Buffer.from(
      `"nonce":"${nonce}","issuedAt":"${issuedAt}","expirationTime":"${expirationTime}"}}}}`,
    ).toString('base64');
  const usual = start(ERROR);
  return {
    current: () => usual() + end(signIn.fresh()),
    refused: (reason) => start(reason)() + end(signIn.fresh()),
  };
}

const PAYMENT_IDENTIFIER_SCHEMA = {
  $schema: JSON_SCHEMA,
  type: 'object',
  properties: {
    required: { type: 'boolean' },
    id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
  },
  required: ['required'],
};

/** The discovery extension: how the service is called, for indexers. Schemas come without their prose, which is long. */
export function bazaarOf({ service }: Quote): Record<string, unknown> {
  return {
    info: { input: { type: 'http', method: 'POST', bodyType: 'json', body: service.example } },
    schema: {
      $schema: JSON_SCHEMA,
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: {
            type: { type: 'string', const: 'http' },
            method: { type: 'string', enum: ['POST'] },
            bodyType: { type: 'string', enum: ['json'] },
            body: withoutProse(inputSchemaOf(service)),
          },
          required: ['type', 'method', 'bodyType', 'body'],
          additionalProperties: false,
        },
      },
      required: ['input'],
    },
  };
}

/** At most 32 printable ASCII characters, as the protocol wants it. */
function asciiName(name: string): string {
  return name.replace(/[^\x20-\x7e]/g, '').slice(0, 32);
}
