import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Hex } from 'viem';

const FOLDER = import.meta.dirname;
const MODULES = join(FOLDER, 'node_modules');
/** Which lock file the installation was made from, so that half of one or an old one does not count. */
const STAMP = join(MODULES, '.installed-from');
const INSTALL_TIMEOUT_MS = 240_000;
/** What npm says when it cannot speak with the registry at all. */
const UNREACHABLE =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT)\b/;

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
  const lock = createHash('sha256')
    .update(readFileSync(join(FOLDER, 'package-lock.json')))
    .digest('hex');
  if (!existsSync(STAMP) || readFileSync(STAMP, 'utf8') !== lock) {
    if (!install()) return null;
    writeFileSync(STAMP, lock);
  }
  const load = (path: string) => import(pathToFileURL(join(MODULES, path)).href);
  const { createSigner, wrapFetchWithPayment, decodeXPaymentResponse } = await load(
    'x402-fetch/dist/esm/index.mjs',
  );
  const { PaymentRequirementsSchema } = await load('x402/dist/esm/types/index.mjs');
  return { createSigner, wrapFetchWithPayment, decodeXPaymentResponse, PaymentRequirementsSchema };
}

/** @returns whether the registry could be reached */
function install(): boolean {
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  const run = spawnSync(npm, [...args, '--fetch-retries=1', '--fetch-timeout=30000'], {
    cwd: FOLDER,
    encoding: 'utf8',
    timeout: INSTALL_TIMEOUT_MS,
    shell: process.platform === 'win32',
  });
  if (run.status === 0) return true;
  if (UNREACHABLE.test(run.stderr)) return false;
  throw new Error(`x402-fetch cannot be installed: ${run.error?.message ?? run.stderr}`);
}
