/** The chains to pay on, one for each seller, and what each seller needs to sell the same there. */
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { SANDBOX_ACCOUNTS, SEED } from '../packages/sandbox/src/accounts.fixture.ts';
import { startEvmChain } from '../packages/sandbox/src/chain/chain.ts';
import { fund } from '../packages/sandbox/src/chain/faucet.ts';
import { connect } from '../packages/sandbox/src/chain/node.ts';
import { usdcBalanceMicros } from '../packages/sandbox/src/chain/usdc.ts';
import { makeKeys } from './farebox.ts';
import type { MiddlewareOptions } from './middleware.ts';
import type { Settling } from './relayer-queue.ts';
import type { Resources } from './resources.ts';

/** What is bought. */
export const PATH = '/x402/ping';
export const REQUEST_BODY = JSON.stringify({ message: 'hello' });
const HEADERS = { 'content-type': 'application/json' };
/** More than any run can spend. */
const WALLET_USDC_MICROS = 50_000_000_000n;

/** A chain in its own process on which these wallets have money. @returns the address of its node */
export async function startChain(resources: Resources, wallets: readonly `0x${string}`[]): Promise<string> {
  const chain = await startEvmChain({ seed: SEED, stateDir: null });
  resources.defer(() => chain.stop());
  for (const wallet of wallets) await fund(chain.url, wallet, { usdcMicros: WALLET_USDC_MICROS, ethWei: 0n });
  return chain.url;
}

/** How an opponent settles on a chain of ours. */
export function settlingOn(rpcUrl: string): Settling {
  return { rpcUrl, settlerKey: SANDBOX_ACCOUNTS.facilitator.privateKey };
}

/** Settings of our server: it sells on Base, and settles by itself. */
export function ourSettings(rpcUrl: string): Record<string, string> {
  return {
    X402_NETWORKS: 'base',
    X402_RECIPIENT: SANDBOX_ACCOUNTS.recipient.address,
    X402_RELAYER_KEYS: SANDBOX_ACCOUNTS.relayer.privateKey,
    UPSTREAM_BASE_BASE_URL: rpcUrl,
    // The node asks for some hundred times the fees of Base.
    X402_GAS_TOKEN_USD: 'base:1',
  };
}

/**
 * What an opponent must sell to be equal: the terms of our 402, and the answer of our paid call.
 *
 * @param ours our server, on this folder
 */
export async function sameTerms(
  dataDir: string,
  ours: string,
): Promise<Pick<MiddlewareOptions, 'path' | 'description' | 'answer' | 'terms'>> {
  const ask = (headers: Record<string, string>) =>
    fetch(ours + PATH, { method: 'POST', headers: { ...HEADERS, ...headers }, body: REQUEST_BODY });
  const challenge = await ask({});
  const required = decodePaymentRequiredHeader(challenge.headers.get('payment-required') ?? '');
  const [offer] = required.accepts;
  if (offer === undefined) throw new Error(`${ours} offers nothing`);
  const { asset, amount, extra, payTo, maxTimeoutSeconds } = offer;

  const [apiKey = ''] = await makeKeys(dataDir, 1);
  const answer = await ask({ 'x-api-key': apiKey });
  if (!answer.ok) throw new Error(`the paid call answered ${answer.status}: ${await answer.text()}`);
  return {
    path: PATH,
    description: required.resource?.description ?? '',
    answer: await answer.text(),
    terms: { price: { asset, amount, extra }, payTo, maxTimeoutSeconds },
  };
}

/** Proves that the calls were paid. @throws when the recipient holds another sum than was sold for */
export async function proveThatItWasPaid(rpcUrl: string, calls: bigint, priceMicros: bigint): Promise<void> {
  const held = await usdcBalanceMicros(connect(rpcUrl), SANDBOX_ACCOUNTS.recipient.address);
  if (held !== calls * priceMicros)
    throw new Error(`${calls} calls were sold for ${priceMicros} each, and the recipient holds ${held}`);
}
