// Lends USDC on Base through this server's vault, and takes it out again:
//
//   WALLET_KEY=0x… BASE_RPC_URL=… npm run example -- earn-on-base deposit 100
//   WALLET_KEY=0x… BASE_RPC_URL=… npm run example -- earn-on-base position
//   WALLET_KEY=0x… BASE_RPC_URL=… npm run example -- earn-on-base redeem
//
// `npm run sandbox:wallet` prints a key and a node that work here, and `npm start` has installed what is imported below.
// With a server elsewhere set FAREBOX_URL. The server builds; the key stays here, and signs here.
import { createFarebox } from 'farebox';
import { createPublicClient, createWalletClient, formatUnits, http, parseAbi } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';

const USDC_DECIMALS = 6;
const BALANCE = parseAbi(['function balanceOf(address account) view returns (uint256)']);

const { WALLET_KEY, BASE_RPC_URL } = process.env;
// The server that FAREBOX_URL names, or else the one of this machine at PORT.
const { url } = createFarebox();
const [act = 'position', amount] = process.argv.slice(2);
if (!/^0x[0-9a-f]{64}$/i.test(WALLET_KEY ?? ''))
  fail('set WALLET_KEY to a private key: 0x and 64 hex digits.');
if (!BASE_RPC_URL) fail('set BASE_RPC_URL to a node of Base.');

const account = privateKeyToAccount(WALLET_KEY);
const transport = http(BASE_RPC_URL);
const chain = createPublicClient({ chain: base, transport });
const wallet = createWalletClient({ account, chain: base, transport });

if (act === 'deposit') await deposit(amount);
else if (act === 'redeem') await redeem();
else if (act !== 'position') fail('say deposit <USDC>, position, or redeem.');
await showPosition();

async function deposit(usdc) {
  // An approval and a deposit come back, unsigned and tried out.
  const asked = new URLSearchParams({ recipient: account.address, amount: usdc ?? '' });
  const { steps, warnings, fees } = await ask(`deposit-tx?${asked}`);
  heed(warnings);
  for (const step of steps) console.log(`${step.action}: ${await signAndSend(step)}`);
  console.log(`deposited ${fees.netDeposited} USDC, after an entry fee of ${fees.entryFee}`);
}

async function redeem() {
  const { steps, warnings } = await ask(`redeem-tx?wallet=${account.address}`);
  heed(warnings);
  const before = await heldUsdc();
  for (const step of steps) console.log(`${step.action}: ${await signAndSend(step)}`);
  console.log(`redeemed ${formatUnits((await heldUsdc()) - before, USDC_DECIMALS)} USDC`);
}

/** Stops at whatever may cost money: what the wallet lacks, a deposit that would earn nothing, a part that would be given up. */
function heed(warnings) {
  for (const { message } of warnings) console.log(`warning: ${message}`);
  if (warnings.some(({ costs }) => costs)) fail('nothing was sent.');
}

async function showPosition() {
  const { position } = await ask(`position/${account.address}`);
  const { sharesHeld, currentValueUsdc, gainUsdc } = position;
  const walletUsdc = formatUnits(await heldUsdc(), USDC_DECIMALS);
  console.log({ sharesHeld, currentValueUsdc, gainUsdc, walletUsdc });
}

async function heldUsdc() {
  const { vault } = await ask('contract');
  return chain.readContract({
    address: vault.assetAddress,
    abi: BALANCE,
    functionName: 'balanceOf',
    args: [account.address],
  });
}

/** @returns the hash of the transaction, once a block has it */
async function signAndSend({ to, data, value, gas }) {
  const hash = await wallet.sendTransaction({ to, data, value: BigInt(value), gas: BigInt(gas) });
  const { status } = await chain.waitForTransactionReceipt({ hash });
  return status === 'success' ? hash : fail(`${hash} failed.`);
}

async function ask(path) {
  const response = await fetch(`${url}/api/yield/${path}`).catch(() => fail(`nobody answers at ${url}.`));
  const answer = await response.json();
  if (response.ok) return answer;
  const others = (answer.instead ?? []).map((other) => `\n  instead: ${other.url}`);
  return fail(`${path}: ${response.status} ${answer.message}${others.join('')}`);
}

function fail(message) {
  console.error(`earn-on-base: ${message}`);
  process.exit(1);
}
