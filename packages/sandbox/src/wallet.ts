/**
 * `npm run sandbox:wallet`: makes a new wallet on the chains of the running sandbox and fills it, ready to buy calls and to be
 * looked at by those that read balances.
 * The keys are printed and kept nowhere. `-- --solana` makes one on Solana alone, `-- --tempo` one on
 * Tempo instead, `-- --json` prints for machines.
 */
import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { createKeyPairSignerFromPrivateKeyBytes, getBase58Decoder, getBase58Encoder } from '@solana/kit';
import { formatEther, formatUnits, type Hex, parseEther, parseUnits } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { runCommand, UsageError } from '../../process/src/run-command.ts';
import { StartError } from '../../process/src/start-error.ts';
import { BASE, ETHEREUM, type Places } from './chain/addresses.ts';
import { fund } from './chain/faucet.ts';
import { dataDirOf } from './data-dir.ts';
import { askSolana } from './solana/ask.ts';
import { usdcAccountOf } from './solana/genesis.ts';
import { TEMPO_CHAIN_ID } from './tempo/addresses.ts';
import { fundTempo } from './tempo/faucet.ts';
import { environmentOfRunningWorld } from './world.ts';

interface Wallet {
  rpcUrl: string;
  privateKey: string;
  address: string;
  /** Decimal amounts. */
  holds: { usdc: string; native: string };
}

/** Fees on Tempo are taken from the token that is paid with: there is no coin beside it. */
type TempoWallet = Omit<Wallet, 'holds'> & { holds: { usdc: string } };

interface Wallets {
  base: Wallet | null;
  /** The same key on Ethereum, which is read and not paid on. */
  ethereum: Wallet | null;
  solana: Wallet | null;
}

const USDC_DECIMALS = 6;
const SOL_DECIMALS = 9;
const GIFT_USDC = parseUnits('100', USDC_DECIMALS);
const GIFT_WEI = parseEther('0.1');
const GIFT_LAMPORTS = parseUnits('0.1', SOL_DECIMALS);

await runCommand('npm run sandbox:wallet [-- --solana | --tempo] [--json]', async () => {
  const { values: asked } = parseArgs({
    options: {
      json: { type: 'boolean', default: false },
      solana: { type: 'boolean', default: false },
      tempo: { type: 'boolean', default: false },
    },
  });
  if (asked.solana && asked.tempo) throw new UsageError('name one of --solana and --tempo');
  const environment = environmentOfRunningWorld(process.env);
  if (environment === null)
    throw new StartError(`no sandbox runs on ${dataDirOf(process.env)}; start one with npm start`);
  const wallets = asked.tempo
    ? { tempo: await tempoWallet(environment.MPP_TEMPO_RPC_URL) }
    : await makeWallets(environment, asked.solana);
  process.stdout.write(asked.json ? `${JSON.stringify(wallets, null, 2)}\n` : text(wallets));
  return 0;
});

async function makeWallets(environment: Record<string, string>, onlySolana: boolean): Promise<Wallets> {
  const {
    UPSTREAM_BASE_BASE_URL: base,
    UPSTREAM_ETHEREUM_BASE_URL: ethereum,
    UPSTREAM_SOLANA_BASE_URL: solana,
  } = environment;
  if ((base === undefined || onlySolana) && solana === undefined)
    throw new StartError('the running sandbox has no chain of its own: their addresses were configured');
  const key = generatePrivateKey();
  return {
    base: base === undefined || onlySolana ? null : await evmWallet(base, key, BASE),
    ethereum: ethereum === undefined || onlySolana ? null : await evmWallet(ethereum, key, ETHEREUM),
    solana: solana === undefined ? null : await solanaWallet(solana),
  };
}

async function tempoWallet(rpcUrl: string | undefined): Promise<TempoWallet> {
  if (rpcUrl === undefined)
    throw new StartError('the running sandbox has no Tempo of its own: its address was configured');
  const privateKey = generatePrivateKey();
  const address = privateKeyToAddress(privateKey);
  const usdcMicros = await fundTempo(rpcUrl, address, GIFT_USDC);
  return { rpcUrl, privateKey, address, holds: { usdc: formatUnits(usdcMicros, USDC_DECIMALS) } };
}

async function evmWallet(rpcUrl: string, privateKey: Hex, places: Places): Promise<Wallet> {
  const address = privateKeyToAddress(privateKey);
  const gift = { usdcMicros: GIFT_USDC, ethWei: GIFT_WEI };
  const { usdcMicros, ethWei } = await fund(rpcUrl, address, gift, places);
  const holds = { usdc: formatUnits(usdcMicros, USDC_DECIMALS), native: formatEther(ethWei) };
  return { rpcUrl, privateKey, address, holds };
}

async function solanaWallet(rpcUrl: string): Promise<Wallet> {
  const seed = randomBytes(32);
  const { address } = await createKeyPairSignerFromPrivateKeyBytes(seed);
  const gift = { lamports: Number(GIFT_LAMPORTS), usdcUnits: Number(GIFT_USDC) };
  await askSolana(rpcUrl, 'sandbox_fund', address, gift);
  const sol = await askSolana<{ value: number }>(rpcUrl, 'getBalance', address);
  const account = await usdcAccountOf(address);
  const usdc = await askSolana<{ value: { uiAmountString: string } }>(
    rpcUrl,
    'getTokenAccountBalance',
    account,
  );
  return {
    rpcUrl,
    // As Solana's wallets and tools take it: the seed and then the public key.
    privateKey: getBase58Decoder().decode(new Uint8Array([...seed, ...getBase58Encoder().encode(address)])),
    address,
    holds: { usdc: usdc.value.uiAmountString, native: formatUnits(BigInt(sol.value), SOL_DECIMALS) },
  };
}

function text(wallets: Wallets | { tempo: TempoWallet }): string {
  const lines = ['A sandbox wallet. Its keys are shown this once, and its money is worth nothing elsewhere.'];
  const show = (chain: string, holds: string, { rpcUrl, privateKey, address }: Omit<Wallet, 'holds'>) => {
    lines.push(
      '',
      `  ${chain}, RPC ${rpcUrl}`,
      `    key      ${privateKey}`,
      `    address  ${address}`,
      `    holds    ${holds}`,
    );
  };
  if ('tempo' in wallets) {
    const { tempo } = wallets;
    show(`Tempo (chain id ${TEMPO_CHAIN_ID})`, `${tempo.holds.usdc} USDC.e, which pays fees too`, tempo);
    return `${lines.join('\n')}\n`;
  }
  const { base, ethereum, solana } = wallets;
  const ethers = ({ holds }: Wallet) => `${holds.usdc} USDC, ${holds.native} ETH`;
  if (base !== null) show('Base (chain id 8453)', ethers(base), base);
  if (ethereum !== null)
    show('Ethereum (chain id 1), with the same key; calls are not paid here', ethers(ethereum), ethereum);
  if (solana !== null) show('Solana', `${solana.holds.usdc} USDC, ${solana.holds.native} SOL`, solana);
  return `${lines.join('\n')}\n`;
}
