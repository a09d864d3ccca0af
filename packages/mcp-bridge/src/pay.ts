/** With what a call is paid: an API key, or what the client's wallets sign by x402 or MPP. Terms come in results of MCP. */
import { keyPayer, microsOf, type Payer, type Terms, walletPayer } from 'farebox/buying';
import { z } from 'zod';
import type { Settings } from './settings.ts';

const x402Terms = z.looseObject({
  x402Version: z.literal(2),
  price_usd: z.number().nonnegative(),
  sandbox: z.boolean().optional(),
  accepts: z.array(z.unknown()).max(50),
});
const challenges = z.looseObject({
  'org.paymentauth/payment-required': z.looseObject({ challenges: z.array(z.unknown()).min(1).max(50) }),
});
const marked = z.looseObject({ extra: z.looseObject({ sandbox: z.literal(true) }) });

/** Reads the payment terms of a result; null for any other result. */
export function termsOf(result: Record<string, unknown>): Terms | null {
  if (result.isError !== true) return null;
  const x402 = x402Terms.safeParse(result.structuredContent).data ?? null;
  const asked = challenges.safeParse(result._meta).data?.['org.paymentauth/payment-required'];
  if (x402 === null && asked === undefined) return null;
  const said = z.looseObject({ sandbox: z.literal(true) }).safeParse(result.structuredContent).success;
  return {
    priceMicros: x402 === null ? null : microsOf(String(x402.price_usd)),
    sandbox: said || (x402?.accepts.some((each) => marked.safeParse(each).success) ?? false),
    x402,
    challenges: asked?.challenges ?? [],
  };
}

/** @returns null when nothing was given to pay with */
export async function createPayer(settings: Settings): Promise<Payer | null> {
  const { apiKey, evmKey, solanaKey, networks, payBy, sandbox } = settings;
  if (apiKey !== null) return keyPayer(apiKey);
  if (evmKey === null && solanaKey === null) return null;
  const evm = evmKey as `0x${string}` | null;
  const wallets = await Promise.all(
    payBy.map(async (way) => {
      if (way === 'mpp') {
        if (evm === null) return [];
        const { mppWallet } = await import('farebox/mpp');
        return [await mppWallet({ evm, networks, sandbox, tempoRpcUrl: settings.tempoRpcUrl })];
      }
      const { x402Wallet } = await import('farebox/x402');
      const solana = solanaKey === null ? {} : { solana: solanaKey };
      const node = settings.solanaRpcUrl === null ? {} : { solanaRpcUrl: settings.solanaRpcUrl };
      return [await x402Wallet({ ...(evm === null ? {} : { evm }), ...solana, ...node, networks, sandbox })];
    }),
  );
  return walletPayer(wallets.flat());
}
