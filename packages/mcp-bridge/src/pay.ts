/** With what a call is paid: an API key, or what a wallet signs by x402 or MPP. Terms come from a server that is not trusted. */
import { createHash, randomUUID } from 'node:crypto';
import type { x402Client } from '@x402/core/client';
import type { PrivateKeyAccount } from 'viem/accounts';
import { z } from 'zod';
import { microsOf } from './money.ts';
import { challengesOf, isOfMpp, mppEndsAtMs, quoteMpp } from './mpp.ts';
import { inPlainWords } from './plain-words.ts';
import type { Quote } from './quote.ts';
import { NETWORKS, type Settings } from './settings.ts';
import { isUsdc } from './usdc.ts';

/** A payment that stays good for longer than this is not signed. */
const MAX_VALID_SECONDS = 3_600;
/** One that ends sooner cannot be sent again after a lost answer. */
const MIN_VALID_SECONDS = 10;
/** A transaction of Solana ends with its block hash, some 90 seconds after it was made. */
const SOLANA_VALID_MS = 180_000;

const offer = z.looseObject({
  scheme: z.string(),
  network: z.string(),
  asset: z.string(),
  amount: z.string().regex(/^\d{1,15}$/),
  payTo: z.string(),
  maxTimeoutSeconds: z.number().positive(),
  extra: z.looseObject({ assetTransferMethod: z.string().optional() }).optional(),
});
type Offer = z.infer<typeof offer>;
const x402Terms = z.looseObject({
  x402Version: z.literal(2),
  price_usd: z.number().nonnegative(),
  accepts: z.array(z.unknown()).max(50),
});

/** The payment terms of a result, in the words of each way; at least one of them. */
export interface Terms {
  x402: z.infer<typeof x402Terms> | null;
  /** Challenges of MPP. */
  challenges: readonly unknown[];
}

/** Reads the payment terms of a result; null for any other result. */
export function termsOf(result: Record<string, unknown>): Terms | null {
  if (result.isError !== true) return null;
  const x402 = x402Terms.safeParse(result.structuredContent).data ?? null;
  const challenges = challengesOf(result);
  return x402 === null && challenges.length === 0 ? null : { x402, challenges };
}

export interface Payer {
  /** The name of the payer, which is no secret. */
  name: string;
  /** Sent with paid calls and with free tools. */
  apiKey: string | null;
  /**
   * @param named a name that the caller gave to the purchase
   * @returns a word on why these terms cannot be paid, instead of a quote
   */
  quote(terms: Terms, named: string | null): Quote | string;
  /**
   * The time until which a payment is good that the server says it has not taken.
   *
   * @param meta of the call that it was sent with
   * @returns null when the server's word that it has not is the end of it
   */
  endsAtMs(meta: Record<string, unknown>, nowMs: number): number | null;
}

/** @returns null when nothing was given to pay with */
export async function createPayer(settings: Settings): Promise<Payer | null> {
  if (settings.apiKey !== null) return keyPayer(settings.apiKey);
  if (settings.evmKey === null && settings.solanaKey === null) return null;
  return walletPayer(settings);
}

function keyPayer(apiKey: string): Payer {
  return {
    name: `key ${createHash('sha256').update(apiKey).digest('hex').slice(0, 16)}`,
    apiKey,
    quote({ x402 }, named) {
      const micros = x402 === null ? null : microsOf(String(x402.price_usd));
      if (micros === null) return 'the server names no price in USD';
      const id = randomUUID();
      return { micros, pay: async () => ({ id, micros, meta: { 'farebox/idempotencyKey': named ?? id } }) };
    },
    endsAtMs: () => null,
  };
}

/** The libraries of wallets are large: they are read when there is one. */
async function walletPayer(settings: Settings): Promise<Payer> {
  const { evmKey, solanaKey, solanaRpcUrl, networks, payBy, tempoRpcUrl } = settings;
  const { x402Client: Client } = await import('@x402/core/client');
  const client = new Client();
  const addresses: string[] = [];
  const payable: string[] = [];
  let evmAccount: PrivateKeyAccount | null = null;
  if (evmKey !== null) {
    const { privateKeyToAccount } = await import('viem/accounts');
    const { ExactEvmScheme } = await import('@x402/evm');
    const account = privateKeyToAccount(evmKey as `0x${string}`);
    evmAccount = account;
    client.register('eip155:*', new ExactEvmScheme(account));
    addresses.push(account.address);
    payable.push('eip155:');
  }
  if (solanaKey !== null) {
    const { createKeyPairSignerFromBytes, getBase58Encoder } = await import('@solana/kit');
    const { ExactSvmScheme } = await import('@x402/svm');
    const signer = await createKeyPairSignerFromBytes(getBase58Encoder().encode(solanaKey));
    client.register(
      'solana:*',
      new ExactSvmScheme(signer, solanaRpcUrl === null ? undefined : { rpcUrl: solanaRpcUrl }),
    );
    addresses.push(signer.address);
    payable.push('solana:');
  }
  // What a call may cost is decided before it is signed, by rules of ours.
  client.setSpendControls({ maxAmountPerPayment: false });
  const wanted = networks
    .map((name) => NETWORKS[name])
    .filter((network) => payable.some((family) => network.startsWith(family)));
  const secrets = [evmKey, solanaKey, solanaRpcUrl, tempoRpcUrl].filter((each) => each !== null);

  return {
    name: `wallet ${addresses.join(' ')}`,
    apiKey: null,
    quote(asked) {
      for (const way of payBy) {
        const quote =
          way === 'x402'
            ? quoteX402(client, wanted, asked)
            : evmAccount === null
              ? null
              : quoteMpp({ account: evmAccount, networks, tempoRpcUrl }, asked.challenges, Date.now());
        if (quote !== null) return toldPlainly(quote, secrets);
      }
      return `it is sold for USDC by ${payBy.join(' or ')} on none of the networks that this wallet may pay on (${wanted.join(', ')})`;
    },
    endsAtMs(meta, nowMs) {
      if (isOfMpp(meta)) return mppEndsAtMs(meta);
      const { accepted, payload } = meta['x402/payment'] as {
        accepted: Offer;
        payload?: { authorization?: { validBefore?: string } };
      };
      if (accepted.network === NETWORKS.solana) return nowMs + SOLANA_VALID_MS;
      const validBefore = Number(payload?.authorization?.validBefore);
      return Number.isFinite(validBefore) ? validBefore * 1_000 : nowMs + MAX_VALID_SECONDS * 1_000;
    },
  };
}

/** Reports a failure of signing to an agent in words that hold no key and no address of a node. */
function toldPlainly(quote: Quote, secrets: readonly string[]): Quote {
  return {
    ...quote,
    pay: () =>
      quote.pay().catch((error: unknown) => {
        throw inPlainWords(error, secrets);
      }),
  };
}

/** @param wanted networks, in the order in which they are tried. @returns null when the terms can be paid on none of them */
function quoteX402(client: x402Client, wanted: readonly string[], { x402 }: Terms): Quote | null {
  if (x402 === null) return null;
  const offers = x402.accepts.flatMap((each) => offer.safeParse(each).data ?? []);
  const chosen = wanted
    .map((network) => offers.find((each) => each.network === network && isPlain(each)))
    .find((each) => each !== undefined);
  if (chosen === undefined) return null;
  const micros = BigInt(chosen.amount);
  return {
    micros,
    async pay() {
      const payload = await client.createPaymentPayload({ ...x402, accepts: [chosen] } as never);
      return { id: randomUUID(), micros, meta: { 'x402/payment': payload } };
    },
  };
}

/** One transfer of USDC and nothing else: no allowance that would outlive it, no token that is only called so. */
function isPlain({ scheme, network, asset, maxTimeoutSeconds, extra }: Offer): boolean {
  const method = extra?.assetTransferMethod ?? 'eip3009';
  return (
    scheme === 'exact' &&
    network !== NETWORKS.tempo &&
    method === 'eip3009' &&
    maxTimeoutSeconds >= MIN_VALID_SECONDS &&
    maxTimeoutSeconds <= MAX_VALID_SECONDS &&
    isUsdc(network, asset)
  );
}
