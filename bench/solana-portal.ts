/** (o) building and confirming deposits of the Solana portal, against the most that its node can answer. */
import {
  generateKeyPairSigner,
  getBase58Decoder,
  getBase64EncodedWireTransaction,
  getBase64Encoder,
  getTransactionDecoder,
  type KeyPairSigner,
  partiallySignTransaction,
} from '@solana/kit';
import { SEED, signerOf } from '../packages/sandbox/src/accounts.fixture.ts';
import { startSolana } from '../packages/sandbox/src/solana/solana.ts';
import { startFarebox } from './farebox.ts';
import type { Load } from './load.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const CONNECTIONS = 16;
const ASKED = { amount_usdc: 5 };
const UNSIGNED = { encoding: 'base64', sigVerify: false, replaceRecentBlockhash: true };
const USD = 1_000_000;
const WALLET_USD = 100_000;
const WALLET_LAMPORTS = 10_000_000_000;
const HEADERS = { 'content-type': 'application/json' };

const rpcBody = (method: string, ...params: unknown[]) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });

async function post(url: string, body: string) {
  const response = await fetch(url, { method: 'POST', headers: HEADERS, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 300)}`);
  return JSON.parse(text);
}

/**
 * A bundle needs a simulation, among others, and a confirmation needs the transaction, so neither can be faster than
 * the node is at that. The node runs in this process for both sides.
 */
export async function measureSolanaPortal(
  resources: Resources,
  load: Load,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const chain = await startSolana({ stateDir: null, seed: SEED });
  resources.defer(() => chain.stop());
  const url = await startFarebox(resources, resources.folder(), {
    UPSTREAM_SOLANA_BASE_URL: chain.url,
    SOLANA_YIELD_TREASURY: (await signerOf('treasury')).address,
    SOLANA_YIELD_SINCE_SLOT: '0',
  });
  const signer = await generateKeyPairSigner();
  await post(
    chain.url,
    rpcBody('sandbox_fund', signer.address, { usdcUnits: WALLET_USD * USD, lamports: WALLET_LAMPORTS }),
  );
  const order = { apiKeys: [], connections: CONNECTIONS, expectStatus: 200 };
  const body = JSON.stringify({ wallet: signer.address, ...ASKED });
  const path = '/api/solana-yield/deposit-tx';
  const { transactions } = await post(url + path, body);
  const simulated = rpcBody('simulateTransaction', transactions[0].base64, UNSIGNED);
  const bundles = (durationMs: number) => load.send({ url, path, body, ...order, until: { durationMs } });
  const simulations = (durationMs: number) =>
    load.send({ url: chain.url, path: '/', body: simulated, ...order, until: { durationMs } });
  await bundles(plan.warmUpMs);
  await simulations(plan.warmUpMs);
  const built = await alternate(
    plan.rounds,
    () => bundles(plan.roundMs),
    () => simulations(plan.roundMs),
  );
  const count = plan.paidCalls;
  const confirmed = await alternate(
    plan.rounds,
    async () => {
      const landed = await deposits(url, chain.url, signer, count);
      return paced(landed, (txSignature) =>
        post(`${url}/api/solana-yield/confirm`, JSON.stringify({ wallet: signer.address, txSignature })),
      );
    },
    async () => {
      const landed = await deposits(url, chain.url, signer, count);
      const how = { commitment: 'confirmed', maxSupportedTransactionVersion: 0 };
      return paced(landed, (signature) => post(chain.url, rpcBody('getTransaction', signature, how)));
    },
  );
  const line = (
    measured: string,
    found: { ours: { perSecond: number }[]; opponent: { perSecond: number }[] },
  ) => ({
    part: 'o' as const,
    measured,
    unit: 'requests/s' as const,
    ...compare(
      found.ours.map(({ perSecond }) => perSecond),
      found.opponent.map(({ perSecond }) => perSecond),
    ),
    goal: null,
  });
  return {
    lines: [
      line('bundles, against simulations by the node', built),
      line('confirmations, against reads of a transaction by the node', confirmed),
    ],
    notes: [],
  };
}

/** Deposits that were executed and that nobody has confirmed. @returns their signatures */
async function deposits(
  url: string,
  nodeUrl: string,
  signer: KeyPairSigner,
  count: number,
): Promise<string[]> {
  const signatures: string[] = [];
  for (let n = 0; n < count; n += 1) {
    // Each has another amount, because two equal transactions with the same blockhash would be one.
    const asked = JSON.stringify({ wallet: signer.address, amount_raw: String(5 * USD + signatures.length) });
    const { transactions } = await post(`${url}/api/solana-yield/deposit-tx`, asked);
    const unsigned = getTransactionDecoder().decode(getBase64Encoder().encode(transactions[1].base64));
    const signed = await partiallySignTransaction([signer.keyPair], unsigned);
    const sent = rpcBody('sendTransaction', getBase64EncodedWireTransaction(signed), { encoding: 'base64' });
    const { error } = await post(nodeUrl, sent);
    if (error !== undefined) throw new Error(`a deposit was refused: ${JSON.stringify(error)}`);
    signatures.push(getBase58Decoder().decode(signed.signatures[signer.address] ?? new Uint8Array()));
  }
  return signatures;
}

/** How fast all of them are done, with this many at once. */
async function paced(
  all: readonly string[],
  work: (each: string) => Promise<unknown>,
): Promise<{ perSecond: number }> {
  const left = [...all];
  const startedAtMs = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (let each = left.pop(); each !== undefined; each = left.pop()) await work(each);
    }),
  );
  return { perSecond: all.length / ((performance.now() - startedAtMs) / 1_000) };
}
