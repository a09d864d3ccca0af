/** How a wallet pays for a call by x402: the texts, figures and code that all documents use. */
import { usdToMicros } from '../ledger/money.ts';
import type { Service } from '../service/define.ts';
import { cheapestForSale, type DiscoveryContext, serves, type X402Network } from './context.ts';
import { exampleCallOf, fetchOptionsOf, quoted } from './example-call.ts';
import { readAnswerOf } from './read-answer.ts';

/** The price above which x402 clients refuse to pay until their cap is raised, in micro-USD. */
const DEFAULT_CAP_MICROS = 1_000_000n;

/**
 * The networks whose USDC buys this service: one that is charged before it runs needs a network that supports refunds.
 */
export function networksFor(service: Service, context: DiscoveryContext): readonly X402Network[] {
  const networks = service.metered === null ? (context.rails.x402?.networks ?? []) : [];
  return service.effect === 'read' ? networks : networks.filter(({ canRefund }) => canRefund);
}

/** The price in base units of USDC, as a 402 states it. */
export function amountUnitsOf(service: Service): string {
  return String(usdToMicros(service.priceUsd));
}

/** The service that a wallet should try first: cheap and reliable. Null when a wallet can buy nothing now. */
export function firstServiceByWallet(context: DiscoveryContext): Service | null {
  return cheapestForSale(context, (service) => networksFor(service, context).length > 0);
}

/** What clients do by default above their cap, and how to change it. */
export const SPENDING_CAP_RULE =
  "x402 clients refuse prices above 1 USD until their cap is raised (`client.setSpendControls({ maxAmountPerPayment: '$10' })`); clients of the first generation refuse above 0.10 USD (third argument of their wrapper, in base units).";

/** What not to do while the outcome of a payment is unknown. This one rule keeps a wallet from paying twice. */
export const SAME_HEADER_RULE =
  'After a 503, a time-out or a lost connection send the same request with the same payment header again, and sign no new payment: one payment buys one answer, and is settled at most once.';

/** What a wallet must show with its payment when the answer holds a secret. */
const CLAIM_RULE =
  'Where the answer holds a secret (its 402 says so in `claim`) it goes to whoever shows the payment and its claim. Clients of version 2 send the claim back with the terms; with any other put a `claimSecret` of your own, 16 to 128 random characters, into the body, and keep it.';

/** What a wallet must show with its payment for this service; null when the payment is enough. */
export function claimRuleOf(service: Service): string | null {
  return service.secretAnswer ? CLAIM_RULE : null;
}

/** The rules of paying by wallet, each a sentence or two, by topic. */
export function walletRules(context: DiscoveryContext): Record<string, string> {
  return {
    flow: 'Send the request. The server answers 402 with the terms in the header PAYMENT-REQUIRED. Sign them, and send the same request with the payment in PAYMENT-SIGNATURE (or X-PAYMENT). The answer comes when the payment has settled.',
    spendingCap: SPENDING_CAP_RULE,
    uncertain: SAME_HEADER_RULE,
    repeat:
      'The same payment with the same body returns the stored answer again, for at least a day. With another body it is refused with 409. A settled payment can be read from the chain: put a `claimSecret` into the body, and only who knows it gets the answer.',
    claim: CLAIM_RULE,
    refused:
      'After a refused payment the 402 says in `last_error_reason` what was wrong and what to change. No money was moved.',
    ownName:
      'Extension `payment-identifier`: an id of your own (16 to 128 characters of a-z, A-Z, 0-9, _ and -) makes two signatures under it one purchase.',
    signIn:
      'Extension `sign-in-with-x`: sign its message, send it in SIGN-IN-WITH-X with the body that was paid for, and get the stored answer without paying.',
    paidFirst:
      'Services with a lasting effect, such as a new wallet, are charged before they run, and so are answers that leave as a stream of bytes at an address of their own. If one fails, the same payment may try again; if it cannot deliver, the price is refunded on the chain.',
    transfer:
      'The hash of a USDC transfer to payTo pays too: once, for at least the price, within a day. Anybody who sees the hash may present it first, so sign instead where you can. It buys no answer that holds a secret.',
    ...(serves(context, 'GET', '/x402/receipts/{id}')
      ? {
          receipt: `The state of a payment: GET ${context.baseUrl}/x402/receipts/{id}, with the X-Call-Id of the answer.`,
        }
      : {}),
  };
}

/** A sentence about this price and the clients' cap; null when the price is below every cap. */
export function spendingCapOf(service: Service): string | null {
  return usdToMicros(service.priceUsd) > DEFAULT_CAP_MICROS ? SPENDING_CAP_RULE : null;
}

/**
 * A program that buys this service with a wallet, as an ES module for Node 18 or newer; null when no EVM chain is
 * offered for it. The key is read from the environment, so that the text holds no secret.
 */
export function walletProgramOf(service: Service, context: DiscoveryContext): string | null {
  if (!networksFor(service, context).some(({ network }) => network.startsWith('eip155:'))) return null;
  const call = exampleCallOf(service, context);
  const cap =
    spendingCapOf(service) === null
      ? ''
      : `\nclient.setSpendControls({ maxAmountPerPayment: '$${Number(service.priceUsd)}' });`;
  return `// npm install @x402/fetch @x402/evm viem
import { setTimeout as sleep } from 'node:timers/promises';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

// A 503 is repeated with the same payment. It never makes the program sign a new one.
async function patientFetch(request) {
  for (let tries = 1; ; tries++) {
    const response = await fetch(request.clone());
    if (response.status !== 503 || tries === 5) return response;
    await sleep(1_000 * Number(response.headers.get('retry-after') ?? 2));
  }
}

const account = privateKeyToAccount(process.env.WALLET_KEY);
const client = new x402Client().register('eip155:*', new ExactEvmScheme(account));${cap}
const pay = wrapFetchWithPayment(patientFetch, client);

const response = await pay(${quoted(call.url)}, {
${fetchOptionsOf(call)}
});
${readAnswerOf(service)}
console.log(answer, 'paid by', response.headers.get('x-payment-transaction'));`;
}
