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
import { startNodeTime } from './node-time.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const CONNECTIONS = 16;
const PATH = '/api/solana-yield/deposit-tx';
const ASKED = { amount_usdc: 5 };
const UNSIGNED = { encoding: 'base64', sigVerify: false, replaceRecentBlockhash: true };
const USD = 1_000_000;
const WALLET_USD = 100_000;
const WALLET_LAMPORTS = 10_000_000_000;
/** The goal for what the portal reaches of the node's limit, divided by the requests that it needs of the node. */
const GOAL = 0.8;
/** What a bundle and a confirmation ask of a node. */
const ASKED_OF_NODE = new Set([
  'getAccountInfo',
  'getEpochInfo',
  'getLatestBlockhash',
  'getMultipleAccounts',
  'getRecentPrioritizationFees',
  'getSignatureStatuses',
  'getTransaction',
  'simulateTransaction',
]);
const HEADERS = { 'content-type': 'application/json' };

const settingsOf = (nodeUrl: string, treasury: string) => ({
  UPSTREAM_SOLANA_BASE_URL: nodeUrl,
  SOLANA_YIELD_TREASURY: treasury,
  SOLANA_YIELD_SINCE_SLOT: '0',
});
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
  const treasury = (await signerOf('treasury')).address;
  const url = await startFarebox(resources, resources.folder(), settingsOf(chain.url, treasury));
  const signer = await generateKeyPairSigner();
  await post(
    chain.url,
    rpcBody('sandbox_fund', signer.address, { usdcUnits: WALLET_USD * USD, lamports: WALLET_LAMPORTS }),
  );
  const order = { apiKeys: [], connections: CONNECTIONS, expectStatus: 200 };
  const body = JSON.stringify({ wallet: signer.address, ...ASKED });
  const { transactions } = await post(url + PATH, body);
  const simulated = rpcBody('simulateTransaction', transactions[0].base64, UNSIGNED);
  const bundles = (durationMs: number) =>
    load.send({ url, path: PATH, body, ...order, until: { durationMs } });
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
  const lines = [
    line('bundles, against simulations by the node', built),
    line('confirmations, against reads of a transaction by the node', confirmed),
  ] as const;
  const needs = await countRequests(resources, { chainUrl: chain.url, treasury, load, signer, plan });
  return {
    lines: [...lines],
    notes: [noteOf('bundle', lines[0], needs.bundle), noteOf('confirmation', lines[1], needs.confirmation)],
  };
}

function noteOf(what: string, { ratio }: ComparedLine, requests: number): string {
  const reached = ratio * requests;
  const met = reached >= GOAL ? 'met' : 'not met';
  return `(o) a ${what} asks the node ${requests.toFixed(1)} times: it reaches ${reached.toFixed(2)} of the node's limit divided by that (goal ≥ ${GOAL}, ${met})`;
}

/**
 * How many requests to its node one bundle and one confirmation take, under load. Another server counts them, on a way through this
 * process that nothing else is measured on.
 */
async function countRequests(
  resources: Resources,
  about: { chainUrl: string; treasury: string; load: Load; signer: KeyPairSigner; plan: Plan },
): Promise<{ bundle: number; confirmation: number }> {
  const { chainUrl, treasury, load, signer, plan } = about;
  const way = await startNodeTime(resources, chainUrl, ASKED_OF_NODE);
  const url = await startFarebox(resources, resources.folder(), settingsOf(way.url, treasury));
  const each = async (count: number, work: () => Promise<unknown>) => {
    const before = way.noted().requests;
    await work();
    return (way.noted().requests - before) / count;
  };
  const body = JSON.stringify({ wallet: signer.address, ...ASKED });
  const order = { apiKeys: [], connections: CONNECTIONS, expectStatus: 200 };
  const bundles = (amount: number) => load.send({ url, path: PATH, body, ...order, until: { amount } });
  await bundles(plan.paidCalls);
  const bundle = await each(plan.paidCalls, () => bundles(plan.paidCalls));
  const landed = await deposits(url, chainUrl, signer, plan.paidCalls);
  const confirmation = await each(landed.length, () =>
    paced(landed, (txSignature) =>
      post(`${url}/api/solana-yield/confirm`, JSON.stringify({ wallet: signer.address, txSignature })),
    ),
  );
  return { bundle, confirmation };
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
