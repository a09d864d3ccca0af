/** A shop of one price for tests, that loses requests and answers as it is told. Time passes only when a client waits. */
import { toBase64 } from './json.ts';
import { USDC } from './usdc.ts';

/** One time that a call came with a payment, and what becomes of it. */
export type Fate =
  /** Sold, and answered. */
  | 'sold'
  /** Sold, and the answer is lost. */
  | 'answer lost'
  /** Lost before it arrived. */
  | 'request lost'
  | { status: number; body?: unknown; headers?: Record<string, string> };

export const OFFER = {
  scheme: 'exact',
  network: 'eip155:8453',
  asset: USDC['eip155:8453'] ?? '',
  amount: '250000',
  payTo: '0x000000000000000000000000000000000000dEaD',
  maxTimeoutSeconds: 120,
  extra: { name: 'USD Coin', version: '2' },
};

export interface FakeShop {
  fetch: typeof fetch;
  /** The payments that arrived or were lost, as the client sent them, oldest first. */
  sent: string[];
  /** How often something was sold: a payment that comes again is sold once. */
  sales(): number;
  /** How often the price was asked. */
  asked: number;
  /** The fates of the payments to come; `sold` when there is none left. */
  fates: Fate[];
  sandbox: boolean;
  accepts: object[];
}

const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } });

export function openFakeShop(): FakeShop {
  /** The names of calls by their payments. */
  const sold = new Map<string, string>();
  const shop: FakeShop = {
    sent: [],
    sales: () => sold.size,
    asked: 0,
    fates: [],
    sandbox: false,
    accepts: [OFFER],
    fetch: async (_url, { headers = {}, body } = {}) => {
      const given = new Headers(headers as Record<string, string>);
      const payment =
        given.get('idempotency-key') ?? given.get('payment-signature') ?? given.get('authorization');
      if (payment === null) {
        shop.asked += 1;
        return unpaid(shop);
      }
      shop.sent.push(payment);
      const fate = shop.fates.shift() ?? 'sold';
      if (typeof fate === 'object') return json(fate.status, fate.body ?? {}, fate.headers);
      if (fate === 'request lost') throw new TypeError('cut');
      const again = sold.has(payment);
      if (!again) sold.set(payment, `call-${sold.size + 1}`);
      if (fate === 'answer lost') throw new TypeError('cut');
      const receipt = toBase64(
        JSON.stringify({ success: true, transaction: '0xaa', network: 'eip155:8453', amount: '250000' }),
      );
      return json(
        200,
        { success: true, echo: JSON.parse(String(body)).message ?? null },
        {
          'x-credits-used': again ? '0.0000' : '0.2500',
          'x-call-id': sold.get(payment) ?? '',
          'payment-response': receipt,
          ...(again ? { 'idempotent-replayed': 'true' } : {}),
        },
      );
    },
  };
  return shop;
}

function unpaid({ sandbox, accepts }: FakeShop): Response {
  const terms = { x402Version: 2, accepts, ...(sandbox ? { sandbox } : {}) };
  return json(
    402,
    { x402Version: 1, code: 'PAYMENT_REQUIRED', price_usd: 0.25, ...(sandbox ? { sandbox } : {}) },
    { 'payment-required': toBase64(JSON.stringify(terms)) },
  );
}
