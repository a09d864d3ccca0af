/** With what a call is paid: an API key, or what wallets sign. Terms come from a server that is not trusted. */
import { digestOf } from './digest.ts';
import { isRecord } from './json.ts';
import { inUsd } from './money.ts';

/** No payment that is signed here stays good for longer. */
export const MOST_VALID_MS = 3_600_000;
/** One that ends sooner cannot be sent again after a lost answer. */
export const LEAST_VALID_MS = 10_000;

export type Awaitable<T> = T | Promise<T>;

/** A payment as MCP's `_meta` has it, and as it is stored until its call is answered: one of these, in JSON. */
export interface Signed {
  'farebox/idempotencyKey'?: string;
  'x402/payment'?: Record<string, unknown>;
  'org.paymentauth/credential'?: Record<string, unknown>;
}

export interface Payment {
  id: string;
  signed: Signed;
  micros: bigint;
}

/** The price of some terms, and how it would be paid. */
export interface Quote {
  micros: bigint;
  /** Makes the payment; moves nothing. @throws Error when it cannot be signed */
  pay(): Promise<Payment>;
}

/** The payment terms of an answer, in the words of each way. */
export interface Terms {
  /** The price as the server says it in USD; null when it does not. */
  priceMicros: bigint | null;
  /** Whether the server says that its money is that of a sandbox. */
  sandbox: boolean;
  /** Terms of x402 in version 2; null without any. */
  x402: { x402Version: 2; accepts: readonly unknown[]; [field: string]: unknown } | null;
  /** Challenges of MPP. */
  challenges: readonly unknown[];
}

/** Signs payments by one protocol. */
export interface Wallet {
  way: 'x402' | 'mpp';
  /** Its addresses, which are no secret. */
  name: string;
  /** Whether it was made for a sandbox: no other wallet pays one, and this one pays nothing else. */
  sandbox: boolean;
  /** The networks that it may pay on, in its order. */
  networks: readonly string[];
  /** @returns a quote for each offer that it could pay, in the order of its networks */
  quote(terms: Terms, nowMs: number): readonly Quote[];
  /** The time until which a payment of its own is good; null when it is none of its own. */
  endsAtMs(signed: Signed, nowMs: number): number | null;
}

/** Why some terms are not paid. */
export interface CannotPay {
  code: 'CANNOT_PAY' | 'NOT_A_SANDBOX' | 'SANDBOX_REFUSED';
  why: string;
}

export interface Payer {
  /** The name of the payer, which is no secret. */
  name: string;
  /** Sent with paid calls. */
  apiKey: string | null;
  /** @param named a name that the caller gave to the purchase */
  quote(terms: Terms, named: string | null, nowMs: number): Quote | CannotPay;
  /**
   * Pays without having asked the price; null where the price must be known.
   *
   * @param named a name that the caller gave to the purchase
   */
  unasked(named: string | null): Quote | null;
  /**
   * The time until which a payment is good that the server says it has not taken.
   *
   * @returns null when the server's word that it has not is the end of it
   */
  endsAtMs(signed: Signed, nowMs: number): number | null;
}

/** A payer with an API key: its payments are names of purchases, which the server charges once each. */
export async function keyPayer(apiKey: string): Promise<Payer> {
  const quoteOf = (micros: bigint, named: string | null): Quote => {
    const id = crypto.randomUUID();
    return { micros, pay: async () => ({ id, micros, signed: { 'farebox/idempotencyKey': named ?? id } }) };
  };
  return {
    name: `key ${(await digestOf(apiKey)).slice(0, 16)}`,
    apiKey,
    quote: ({ priceMicros }, named) =>
      priceMicros === null
        ? { code: 'CANNOT_PAY', why: 'the server names no price in USD' }
        : quoteOf(priceMicros, named),
    unasked: (named) => quoteOf(0n, named),
    endsAtMs: () => null,
  };
}

const NONE_FOR_A_SANDBOX: CannotPay = {
  code: 'SANDBOX_REFUSED',
  why: 'the server says that it is a sandbox, and no wallet here was made for one',
};
const ALL_FOR_A_SANDBOX: CannotPay = {
  code: 'NOT_A_SANDBOX',
  why: 'the server does not say that it is a sandbox, and each wallet here was made for one',
};

/** A payer with wallets: it takes the cheapest offer that one of them can pay, and of equal ones the first. */
export function walletPayer(wallets: readonly Wallet[]): Payer {
  return {
    name: `wallet ${[...new Set(wallets.map(({ name }) => name))].join(' ')}`,
    apiKey: null,
    quote(terms, _named, nowMs) {
      const fit = wallets.filter(({ sandbox }) => sandbox === terms.sandbox);
      const [first, ...others] = fit.flatMap((wallet) => wallet.quote(terms, nowMs));
      if (first !== undefined)
        return others.reduce((best, each) => (each.micros < best.micros ? each : best), first);
      if (fit.length === 0) return terms.sandbox ? NONE_FOR_A_SANDBOX : ALL_FOR_A_SANDBOX;
      const ways = [...new Set(fit.map(({ way }) => way))].join(' or ');
      const networks = [...new Set(fit.flatMap((wallet) => wallet.networks))].join(', ');
      return {
        code: 'CANNOT_PAY',
        why: `it is sold for USDC by ${ways} on none of the networks that this wallet may pay on (${networks})`,
      };
    },
    unasked: () => null,
    endsAtMs(signed, nowMs) {
      for (const wallet of wallets) {
        const endsAtMs = wallet.endsAtMs(signed, nowMs);
        if (endsAtMs !== null) return endsAtMs;
      }
      // Signed by a wallet that is not here any more.
      return nowMs + MOST_VALID_MS;
    },
  };
}

/** Reads a stored payment. @throws Error when it is none */
export function signedIn(payment: string): Signed {
  const signed: unknown = JSON.parse(payment);
  if (!isRecord(signed)) throw new Error('what is stored is no payment');
  return signed;
}

/** A price in words. */
export const costs = (what: string, micros: bigint): string => `${what} costs ${inUsd(micros)} USD`;
