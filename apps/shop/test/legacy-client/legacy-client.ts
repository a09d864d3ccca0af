import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Hex } from 'viem';
import { installApart } from '../kept-apart.fixture.ts';

/** A wallet as the client makes it. */
type Wallet = object;

/** The client of x402's first generation, as far as it is used here. */
export interface LegacyClient {
  /** For `base` a hex key, for `solana` a base58 one. */
  createSigner(network: 'base' | 'solana', secretKey: string): Promise<Wallet>;
  /** Pays up to `maxValue`, in the asset's base units; 0.10 USDC unless given. */
  wrapFetchWithPayment(
    fetch: typeof globalThis.fetch,
    wallet: Wallet,
    maxValue?: bigint,
    selector?: undefined,
    config?: { svmConfig: { rpcUrl: string } },
  ): (url: string, init: RequestInit) => Promise<Response>;
  decodeXPaymentResponse(header: string): {
    success: boolean;
    transaction: Hex;
    network: string;
    payer: string;
  };
  /** How it reads an entry of `accepts`. @throws ZodError */
  PaymentRequirementsSchema: { parse(value: unknown): Record<string, unknown> };
}

/**
 * The published client, installed beside this file the first time it is asked for (66 packages, 122 MB, half a minute).
 *
 * @returns null when the registry cannot be reached
 * @throws when the installation fails for any other reason
 */
export async function openLegacyClient(): Promise<LegacyClient | null> {
  const modules = installApart(import.meta.dirname, 'x402-fetch');
  if (modules === null) return null;
  const load = (path: string) => import(pathToFileURL(join(modules, path)).href);
  const { createSigner, wrapFetchWithPayment, decodeXPaymentResponse } = await load(
    'x402-fetch/dist/esm/index.mjs',
  );
  const { PaymentRequirementsSchema } = await load('x402/dist/esm/types/index.mjs');
  return { createSigner, wrapFetchWithPayment, decodeXPaymentResponse, PaymentRequirementsSchema };
}
