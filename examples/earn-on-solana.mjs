// Lends USDC on Solana through this server, and takes it out again:
//
//   SOLANA_KEY=… SOLANA_RPC_URL=… npm run example -- earn-on-solana deposit 50
//   SOLANA_KEY=… SOLANA_RPC_URL=… npm run example -- earn-on-solana position
//   SOLANA_KEY=… SOLANA_RPC_URL=… npm run example -- earn-on-solana withdraw MAX
//
// `npm run sandbox:wallet -- --solana` prints a key and a node that work here, and `npm start` has installed what is
// imported below. With a server elsewhere set FAREBOX_URL. The server builds; the key stays here, and signs here.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createKeyPairSignerFromBytes,
  createSolanaRpc,
  getBase58Encoder,
  getBase64EncodedWireTransaction,
  getBase64Encoder,
  getTransactionDecoder,
  signTransaction,
} from '@solana/kit';
import { createFarebox } from 'farebox';

const MOST_LOOKS = 120;
const LOOK_MS = 1_000;

const { SOLANA_KEY, SOLANA_RPC_URL } = process.env;
// The server that FAREBOX_URL names, or else the one of this machine at PORT.
const { url } = createFarebox();
const [act = 'position', amount] = process.argv.slice(2);
if (!SOLANA_KEY || !SOLANA_RPC_URL)
  fail('set SOLANA_KEY to a private key in base58, and SOLANA_RPC_URL to a node.');

const signer = await createKeyPairSignerFromBytes(getBase58Encoder().encode(SOLANA_KEY)).catch(() =>
  fail('SOLANA_KEY is no private key: 64 bytes in base58.'),
);
const rpc = createSolanaRpc(SOLANA_RPC_URL);
const wallet = signer.address;

if (act === 'deposit') await deposit(Number(amount));
else if (act === 'withdraw') await withdraw(amount === 'MAX' ? { amount } : { amount_usdc: Number(amount) });
else if (act !== 'position') fail('say deposit <USDC>, position, or withdraw <USDC or MAX>.');
await showPosition();

async function deposit(usdc) {
  // 1. Ask. The answer has a fee transaction and the deposit, unsigned. Its warnings say what the wallet lacks.
  const bundle = await ask('deposit-tx', { wallet, amount_usdc: usdc, idempotency_key: crypto.randomUUID() });
  for (const { message } of bundle.warnings) console.log(`warning: ${message}`);

  // 2. Sign and send them in order, each once the one before is confirmed.
  let last;
  for (const { base64 } of bundle.transactions) last = await signAndSend(base64);

  // 3. Have the deposit confirmed. The server asks the chain, whatever the caller says.
  const confirmed = await ask('confirm', { wallet, txSignature: last });
  console.log(`deposited: ${confirmed.verificationStatus}, in transaction ${last}`);
}

async function withdraw(asked) {
  const { transactions, net_usdc } = await ask('withdraw-tx', { wallet, ...asked });
  for (const { base64 } of transactions)
    console.log(`withdrawn: ${net_usdc} USDC at least, in ${await signAndSend(base64)}`);
}

async function showPosition() {
  const { position } = await ask(`position/${wallet}`);
  const { status, depositedUsdc, currentValueUsdc, estimatedYieldUsdc, leavingNow } = position;
  console.log({
    status,
    depositedUsdc,
    currentValueUsdc,
    estimatedYieldUsdc,
    wouldReceive: leavingNow.receivesUsdc,
  });
}

/** @returns the signature of the transaction, once the chain has it */
async function signAndSend(base64) {
  const transaction = getTransactionDecoder().decode(getBase64Encoder().encode(base64));
  const signed = await signTransaction([signer.keyPair], transaction);
  const signature = await rpc
    .sendTransaction(getBase64EncodedWireTransaction(signed), {
      encoding: 'base64',
      preflightCommitment: 'confirmed',
    })
    .send();
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const { status, error } = await ask(`transaction/${signature}`);
    if (status === 'confirmed') return signature;
    if (status === 'failed') fail(`${signature} failed: ${error}`);
    await sleep(LOOK_MS);
  }
  return fail(`${signature} is not confirmed; look for it before you send anything again.`);
}

/** The server's answer. @param body the body of a POST; without it the address is read with GET */
async function ask(path, body) {
  const response = await fetch(`${url}/api/solana-yield/${path}`, {
    ...(body === undefined
      ? {}
      : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  }).catch(() => fail(`nobody answers at ${url}.`));
  const answer = await response.json();
  return response.ok ? answer : fail(`${path}: ${response.status} ${answer.message}`);
}

function fail(message) {
  console.error(`earn-on-solana: ${message}`);
  process.exit(1);
}
