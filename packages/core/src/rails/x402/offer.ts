/** What a 402 says about paying by x402: version 2 in the header, version 1 in the body. */

import { sandboxFields, sandboxMark } from '../../http/sandbox-notice.ts';
import { priceInUsd } from '../../ledger/money.ts';
import { newClaimSecret } from '../../paid-call/claim.ts';
import type { Quote, Rail } from '../../paid-call/rail.ts';
import {
  inputOutlineOf,
  inputSchemaOf,
  type JsonSchema,
  outlineOf,
  outputSchemaOf,
  withoutProse,
} from '../../service/json-schema.ts';
import type { ServiceRoute } from '../../service/route.ts';
import { ASSET_DECIMALS } from './networks.ts';
import type { Offered, OfferedNetwork } from './offered.ts';
import type { SignInChallenge } from './sign-in.ts';

/** How long a signed payment should be valid: the longest service, its settlement, a retry, and clocks that differ. */
const MAX_TIMEOUT_SECONDS = 120;
/**
 * A longer body schema is replaced by an outline. The header is sent with every 402, and the recipe has the whole
 * schema.
 */
const MAX_SCHEMA_BYTES = 250;
const ERROR = 'X-PAYMENT header is required';
/** Placeholder for the secret of each 402, of the same length. */
const CLAIM_PLACE = '?'.repeat(newClaimSecret().length);
/** Clients of version 1 refuse to pay more until their cap is raised. */
const SPENDING_CAP_MICROS = 100_000n;
/** The rule that a 402 states for an answer that holds a secret. */
const CLAIM_RULE =
  'The answer goes to whoever shows the payment and a secret beside it: accepts[].extra.claimSecret of PAYMENT-REQUIRED, which clients of version 2 send back, or, for all others, a claimSecret of 16 to 128 random characters in the body.';

/** Fields beside the terms themselves that come back with the payment. */
function extraOf({ network, feePayer, sandbox }: OfferedNetwork): Record<string, unknown> {
  return {
    ...(network.kind === 'evm' ? network.domain : { feePayer }),
    ...sandboxMark(sandbox),
  };
}

export type Requirements = Record<'network' | 'amount' | 'asset' | 'payTo', string> & Record<string, unknown>;

/** The terms of one chain, as version 2 writes them; also what a facilitator is given. */
export function requirementsV2(offered: OfferedNetwork, quote: Quote): Requirements {
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

/** As `requirementsV2`, in the form of version 1. */
export function requirementsV1(offered: OfferedNetwork, quote: Quote): Record<string, unknown> {
  const { network, payTo } = offered;
  return {
    scheme: 'exact',
    network: network.legacyName,
    maxAmountRequired: String(quote.priceMicros),
    resource: quote.resourceUrl,
    description: quote.service.summary,
    mimeType: quote.service.mediaType,
    payTo,
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    asset: network.asset,
    extra: extraOf(offered),
  };
}

/**
 * The entries of the body's `accepts`: fields that clients of both versions read, and none that either would reject.
 * The first entry repeats the price in other fields. The others are kept short, but every entry must have a
 * description.
 */
export function legacyAccepts(offered: readonly OfferedNetwork[], quote: Quote): Record<string, unknown>[] {
  return offered
    .filter(({ network }) => network.legacyName !== null)
    .map((each, index) => ({
      ...requirementsV1(each, quote),
      ...(index === 0
        ? {
            amount: String(quote.priceMicros),
            maxAmountRequiredUSD: Number(quote.priceMicros) / 10 ** ASSET_DECIMALS,
          }
        : { description: quote.service.name }),
      x402Network: each.network.id,
    }));
}

/**
 * The `PAYMENT-REQUIRED` header of a service. It is encoded once. The nonce and the times of the sign-in extension
 * stand at its end, so that only they are encoded for each 402. When the answer holds a secret, the terms have a fresh
 * claim (`claim.ts`) and each 402 is encoded as a whole.
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
        mimeType: quote.service.mediaType,
        serviceName: asciiName(quote.service.name),
      },
      accepts: offered.map((each) => claimable(requirementsV2(each, quote))),
      extensions: {
        bazaar: bazaarOf(quote, shortened(inputSchemaOf(quote.service))),
        'payment-identifier': { info: { required: false }, schema: {} },
        'sign-in-with-x': fixed,
      },
    };
    // The text without the closing braces of info, sign-in-with-x, extensions and the document.
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

function shortened(schema: JsonSchema): unknown {
  const bare = withoutProse(schema);
  return JSON.stringify(bare).length <= MAX_SCHEMA_BYTES ? bare : inputOutlineOf(schema);
}

/**
 * The discovery extension, which tells indexers how the service is called. Schemas come without descriptions, which are
 * long.
 *
 * @param body the schema of the request's body, when it is not the full one
 */
export function bazaarOf(
  { service, tool, atRoute }: Quote,
  body = withoutProse(inputSchemaOf(service)),
): Record<string, unknown> {
  if (tool !== undefined) return bazaarOfTool(service, tool);
  const { route } = service;
  if (route !== null && atRoute === true) return bazaarOfRoute(route);
  return {
    info: { input: { type: 'http', method: 'POST', bodyType: 'json', body: service.example } },
    schema: {
      properties: {
        input: { properties: { method: { enum: ['POST'] }, body }, required: ['method', 'body'] },
        output: { properties: { example: answerOutlineOf(service) } },
      },
    },
  };
}

/** The same for a service that is bought at an address of its own. */
function bazaarOfRoute({ method, shown }: ServiceRoute): Record<string, unknown> {
  const { example, query, body } = shown;
  const asked = Object.fromEntries(new URL(example.url, 'http://route').searchParams);
  const isRead = method === 'GET' || method === 'DELETE';
  const sent = isRead ? { queryParams: asked } : { bodyType: 'json', body: example.body ?? {} };
  const shape = isRead
    ? { queryParams: withoutProse(query ?? { type: 'object' }) }
    : { body: withoutProse(body ?? {}) };
  return {
    info: { input: { type: 'http', method, ...sent } },
    schema: {
      properties: {
        input: { properties: { method: { enum: [method] }, ...shape }, required: ['method'] },
      },
    },
  };
}

/**
 * The names and types of the answer's fields. A header has no room for all that is below them: openapi.json and the recipe
 * have the whole schema.
 */
function answerOutlineOf(service: Quote['service']): JsonSchema {
  const isJson = service.mediaType.startsWith('application/json');
  return isJson ? { type: 'object', ...outlineOf(outputSchemaOf(service)) } : {};
}

/** The same for a service that is bought as an MCP tool. */
function bazaarOfTool(service: Quote['service'], tool: string): Record<string, unknown> {
  const inputSchema = withoutProse(inputSchemaOf(service));
  const input = { type: 'mcp', tool, transport: 'streamable-http', inputSchema, example: service.example };
  return {
    info: { input },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: {
            type: { type: 'string', const: 'mcp' },
            tool: { type: 'string', const: tool },
            transport: { type: 'string', enum: ['streamable-http'] },
            inputSchema: { type: 'object' },
            example: { type: 'object' },
          },
          required: ['type', 'tool', 'inputSchema'],
          additionalProperties: false,
        },
      },
      required: ['input'],
    },
  };
}

/** At most 32 printable ASCII characters, as the protocol requires. */
function asciiName(name: string): string {
  return name.replace(/[^\x20-\x7e]/g, '').slice(0, 32);
}

/** The offer of this rail, and the headers of a 402 that refuses its payment. */
export function offerMaker(needs: {
  offered: Offered;
  signIn: SignInChallenge;
  /** The public address, below which credit is bought. */
  baseUrl: string;
  /** The chains that are configured, whether they can settle now or not. */
  networks: readonly string[];
  revision(): number;
}): Required<Pick<Rail, 'offer' | 'refusedHeaders'>> {
  const { offered, signIn, baseUrl, networks, revision } = needs;
  /** By quotes, which are one for each price and address, and forgotten with them. */
  const headers = new WeakMap<
    Quote,
    { revision: number; header: ReturnType<typeof paymentRequiredHeader> }
  >();

  function headerOf(quote: Quote) {
    let known = headers.get(quote);
    if (known === undefined || known.revision !== revision()) {
      known = { revision: revision(), header: paymentRequiredHeader(offered.for(quote), quote, signIn) };
      headers.set(quote, known);
    }
    return known.header;
  }

  return {
    offer(quote) {
      const offers = offered.for(quote);
      const [first] = offers;
      if (first === undefined) return { headers: {}, accepts: [], body: {} };
      const priceUsd = priceInUsd(quote.priceMicros);
      return {
        headers: {
          'x-payment-price': `$${priceUsd} USDC`,
          'x-recharge-url': `${baseUrl}/api/m2m/credits/checkout/session`,
        },
        freshHeaders: () => ({ 'payment-required': headerOf(quote).current() }),
        accepts: legacyAccepts(offers, quote),
        body: legacyBody(first, quote),
      };
    },
    refusedHeaders(refused, quote) {
      const [first] = offered.for(quote);
      const response = {
        success: false,
        errorReason: refused.code,
        transaction: '',
        network: first?.network.id ?? networks[0],
      };
      return {
        // Without a chain that can settle there are no terms. The payment was refused all the same.
        ...(first === undefined ? {} : { 'payment-required': headerOf(quote).refused(refused.code) }),
        'payment-response': Buffer.from(JSON.stringify(response)).toString('base64'),
      };
    },
  };
}

/** The fields of the body beside `accepts`. */
function legacyBody(first: OfferedNetwork, quote: Quote): Record<string, unknown> {
  return {
    x402Version: 1,
    payment_address: first.payTo,
    network: first.network.id,
    ...(quote.service.secretAnswer ? { claim: CLAIM_RULE } : {}),
    ...(quote.priceMicros > SPENDING_CAP_MICROS
      ? {
          spendingCap:
            'x402 clients refuse prices above 1 USD (first generation: 0.10) until their cap is raised.',
        }
      : {}),
  };
}
