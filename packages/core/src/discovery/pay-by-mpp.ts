/** How to pay for a call below `/mpp/`: the texts, figures and code that all documents use. */
import type { Service } from '../service/define.ts';
import { cheapestForSale, type DiscoveryContext, type MppMethod } from './context.ts';
import { exampleCallOf, quoted } from './example-call.ts';
import { amountUnitsOf } from './pay-by-wallet.ts';
import { readAnswerOf } from './read-answer.ts';

export const MPP_SPECIFICATION = 'https://paymentauth.org';
export const MPP_CHALLENGE_SCHEME = 'WWW-Authenticate: Payment';
export const MPP_CREDENTIAL_SCHEME = 'Authorization: Payment <credential>';

/** The `type` of each method's credential. */
const CREDENTIAL_TYPES = { tempo: 'transaction', evm: 'authorization' } as const;
/** The names that wallets have for these tokens. Other tokens are named by their address alone. */
const SYMBOLS: Readonly<Record<string, string>> = {
  '0x20c000000000000000000000b9537d11c60e8b50': 'USDC.e',
  '0x20c0000000000000000000000000000000000000': 'pathUSD',
  '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913': 'USDC',
};

/** The services that MPP buys now, in catalog order; none while it is off. */
export function soldByMpp(context: DiscoveryContext): readonly Service[] {
  return context.rails.mpp === null ? [] : context.services.filter(({ mpp }) => mpp);
}

/** The address at which MPP buys this service; null when it does not. */
export function mppEndpointOf(service: Service, context: DiscoveryContext): string | null {
  return service.mpp && context.rails.mpp !== null ? `${context.baseUrl}/mpp/${service.path}` : null;
}

/** The service that an MPP wallet should try first: cheap and reliable. Null when it can buy nothing now. */
export function firstServiceByMpp(context: DiscoveryContext): Service | null {
  return cheapestForSale(context, ({ mpp }) => mpp && context.rails.mpp !== null);
}

/** The methods of every challenge, in order of preference. */
export function mppMethodsOf(context: DiscoveryContext) {
  return (context.rails.mpp?.methods ?? []).map(({ method, chainId, currency, recipient }) => ({
    method,
    intent: 'charge',
    network: `eip155:${chainId}`,
    chainId,
    currency,
    symbol: SYMBOLS[currency.toLowerCase()] ?? null,
    decimals: 6,
    recipient,
    credentialType: CREDENTIAL_TYPES[method],
  }));
}

/**
 * The methods that can buy this service: one that is charged before it runs is sold only where money can be refunded.
 */
export function methodsFor(service: Service, context: DiscoveryContext): readonly MppMethod[] {
  if (!service.mpp) return [];
  const methods = context.rails.mpp?.methods ?? [];
  return service.effect === 'read' ? methods : methods.filter(({ canRefund }) => canRefund);
}

/** The terms of each challenge for this service, in the words of the standard's discovery. */
export function mppOffersOf(service: Service, context: DiscoveryContext) {
  return methodsFor(service, context).map(({ method, currency }) => ({
    intent: 'charge',
    method,
    amount: amountUnitsOf(service),
    currency,
  }));
}

/** What not to do while the outcome of a payment is unknown. */
export const SAME_CREDENTIAL_RULE =
  'After a 503, a time-out or a lost connection send the same request with the same credential again, and answer no new challenge: one credential buys one answer, and is settled at most once.';

/** The rules of paying by MPP, each a sentence or two, by topic. */
export function mppRules(context: DiscoveryContext): Record<string, string> {
  const methods = context.rails.mpp?.methods.map(({ method }) => method) ?? [];
  return {
    flow: 'Send the request to /mpp/. The server answers 402 with a challenge for each method in WWW-Authenticate. Answer one of them, and send the same request with the credential in Authorization: Payment. The answer comes when the payment has settled; Payment-Receipt names the transaction.',
    bound:
      'A challenge holds for five minutes, for its service, its price and the body that it was asked with. One that was asked for without a body holds for any.',
    uncertain: SAME_CREDENTIAL_RULE,
    repeat:
      'The same credential with the same body brings the stored answer and its receipt again, for a day at least. With another body it is refused.',
    refused:
      'A 402 after a credential is a problem (RFC 9457): its `type` and `last_error_reason` say what was wrong. No money was moved, and the 402 carries a fresh challenge.',
    choosing: '`Accept-Payment: evm/charge` asks for the challenges of the named methods only.',
    ...(methods.includes('tempo')
      ? {
          tempo:
            'A Tempo transaction is valid for about 25 s: send it as soon as it is signed. The server sends it to the chain (pull mode); a transaction that was already sent is refused.',
        }
      : {}),
    otherWays:
      context.rails.x402 === null
        ? 'An API key in X-API-KEY pays at /mpp/ too.'
        : 'The same 402 carries x402 terms in PAYMENT-REQUIRED, and an x402 payment or an API key in X-API-KEY pays at /mpp/ too.',
  };
}

/**
 * The call as a shell command of the reference client. The key is read from MPPX_PRIVATE_KEY, so that the text holds no
 * secret. The client chooses the first method unless a token is named.
 */
export function mppCommandOf(service: Service, context: DiscoveryContext, method?: MppMethod): string | null {
  const endpoint = mppEndpointOf(service, context);
  if (endpoint === null) return null;
  const body = JSON.stringify(service.example).replaceAll("'", `'\\''`);
  return `npx mppx ${endpoint} -J '${body}'${method === undefined ? '' : ` --currency ${method.currency}`}`;
}

/**
 * A program that buys this service by MPP, as an ES module for Node 18 or newer; null when MPP does not buy it. It pays
 * on an EVM chain if it can, because that needs no node.
 */
export function mppProgramOf(service: Service, context: DiscoveryContext): string | null {
  const methods = context.rails.mpp?.methods ?? [];
  const { method } = methods.find((each) => each.method === 'evm') ?? methods[0] ?? {};
  if (mppEndpointOf(service, context) === null || method === undefined) return null;
  const { method: httpMethod, url, headers, body } = exampleCallOf(service, context, 'mpp');
  const named = Object.entries(headers).map(([name, value]) => `${quoted(name)}: ${quoted(value)}`);
  // The name and version under which USDC on Base is signed (EIP-712); a challenge does not state them.
  const options = method === 'evm' ? "account, authorization: { name: 'USD Coin', version: '2' }" : 'account';
  return `// npm install mppx viem@2.54.6
import { setTimeout as sleep } from 'node:timers/promises';
import { ${method === 'evm' ? 'evm, Mppx' : 'Mppx, tempo'} } from 'mppx/client';
import { privateKeyToAccount } from 'viem/accounts';

const account = privateKeyToAccount(process.env.WALLET_KEY);
const wallet = Mppx.create({ polyfill: false, methods: [${method}.charge({ ${options} })] });
${body === undefined ? '' : `const body = JSON.stringify(${JSON.stringify(body)});\n`}const send = (headers) =>
  fetch(${quoted(url)}, { method: ${quoted(httpMethod)}, headers: { ${[...named, '...headers'].join(', ')} }${body === undefined ? '' : ', body'} });

const authorization = await wallet.createCredential(await send({ 'Accept-Payment': '${method}/charge' }));
let response = await send({ authorization });
// A 503 is repeated with the same credential. It never makes the program answer a new challenge.
for (let tries = 1; response.status === 503 && tries < 5; tries++) {
  await sleep(1_000 * Number(response.headers.get('retry-after') ?? 2));
  response = await send({ authorization });
}
${readAnswerOf(service)}
console.log(answer, 'paid by', response.headers.get('x-payment-transaction'));`;
}
