/** With what a call is paid: an API key, or the terms of x402 signed by a wallet. Terms come from a server that is not trusted. */
import { createHash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { microsOf } from './money.ts';
import { NETWORKS, type Settings } from './settings.ts';
import { USDC } from './usdc.ts';

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
const terms = z.looseObject({
  x402Version: z.literal(2),
  price_usd: z.number().nonnegative(),
  accepts: z.array(z.unknown()).max(50),
});
export type Terms = z.infer<typeof terms>;

/** What a result asks to be paid; null for any other result. */
export function termsOf(result: Record<string, unknown>): Terms | null {
  const read = terms.safeParse(result.structuredContent);
  return result.isError === true && read.success ? read.data : null;
}

export interface Payment {
  id: string;
  /** `_meta` of the paid call. */
  meta: Record<string, unknown>;
  micros: bigint;
}

/** What these terms cost, and how that would be paid. */
export interface Quote {
  micros: bigint;
  /** Makes the payment; moves nothing. @throws Error when it cannot be signed */
  pay(): Promise<Payment>;
}

export interface Payer {
  /** Whose money it is: no secret. */
  name: string;
  /** Sent with paid calls and with free tools. */
  apiKey: string | null;
  /**
   * @param named a name that the caller gave to the purchase
   * @returns a word on why these terms cannot be paid, instead of a quote
   */
  quote(terms: Terms, named: string | null): Quote | string;
  /**
   * Until when a payment that the server says it has not taken is good.
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
    quote({ price_usd }, named) {
      const micros = microsOf(String(price_usd));
      if (micros === null) return 'the server names no price in USD';
      const id = randomUUID();
      return { micros, pay: async () => ({ id, micros, meta: { 'farebox/idempotencyKey': named ?? id } }) };
    },
    endsAtMs: () => null,
  };
}

/** The libraries of wallets are large: they are read when there is one. */
async function walletPayer({ evmKey, solanaKey, solanaRpcUrl, networks }: Settings): Promise<Payer> {
  const { x402Client } = await import('@x402/core/client');
  const client = new x402Client();
  const addresses: string[] = [];
  const payable: string[] = [];
  if (evmKey !== null) {
    const { privateKeyToAccount } = await import('viem/accounts');
    const { ExactEvmScheme } = await import('@x402/evm');
    const account = privateKeyToAccount(evmKey as `0x${string}`);
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

  return {
    name: `wallet ${addresses.join(' ')}`,
    apiKey: null,
    quote(asked) {
      const offers = asked.accepts.flatMap((each) => offer.safeParse(each).data ?? []);
      const chosen = wanted
        .map((network) => offers.find((each) => each.network === network && isPlain(each)))
        .find((each) => each !== undefined);
      if (chosen === undefined)
        return `it is sold for USDC on none of the networks that this wallet may pay on (${wanted.join(', ')})`;
      const micros = BigInt(chosen.amount);
      return {
        micros,
        async pay() {
          const payload = await client.createPaymentPayload({ ...asked, accepts: [chosen] } as never);
          return { id: randomUUID(), micros, meta: { 'x402/payment': payload } };
        },
      };
    },
    endsAtMs(meta, nowMs) {
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

/** One transfer of USDC and nothing else: no allowance that would outlive it, no token that is only called so. */
function isPlain({ scheme, network, asset, maxTimeoutSeconds, extra }: Offer): boolean {
  const method = extra?.assetTransferMethod ?? 'eip3009';
  return (
    scheme === 'exact' &&
    method === 'eip3009' &&
    maxTimeoutSeconds >= MIN_VALID_SECONDS &&
    maxTimeoutSeconds <= MAX_VALID_SECONDS &&
    isUsdc(network, asset)
  );
}

/** An address of an EVM chain is the same in any case, and none of Solana is. */
function isUsdc(network: string, asset: string): boolean {
  const usdc = USDC[network];
  return network.startsWith('eip155:') ? usdc?.toLowerCase() === asset.toLowerCase() : usdc === asset;
}
