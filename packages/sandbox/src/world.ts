/**
 * The sandbox world: everything outside the server that is not configured, each part a server of its own on a local
 * port, speaking the real part's protocol. The server is handed their addresses and knows nothing else of them.
 */
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../process/src/is-alive.mjs';
import { StartError } from '../../process/src/start-error.ts';
import { isWritten, replaceFile, writeFileOnce } from '../../process/src/whole-file.ts';
import { startCardProvider } from './cards/card-provider.ts';
import { accountsOf } from './chain/accounts.ts';
import { type EvmChain, startEthereum, startEvmChain } from './chain/chain.ts';
import { MARKET_SEED } from './chain/market-price.ts';
import { NodeKeeper } from './chain/node-keeper.ts';
import { dataDirOf, type Environment } from './data-dir.ts';
import { makeCertificate } from './devices/certificate.ts';
import { startFacilitator } from './facilitator/facilitator.ts';
import { keptPort, onKeptPort } from './kept-port.ts';
import { startMailbox } from './mailbox/mailbox.ts';
import { openParts, type Parts, type WorldPart } from './parts.ts';
import { HAS_SOCKETS, startSigners } from './signers.ts';
import { privateKeyOf, SOLANA_ROLES, secretKeyOf, signerOf } from './solana/accounts.ts';
import { startSolana } from './solana/solana.ts';
import { TEMPO_CHAIN_ID, USDC_E } from './tempo/addresses.ts';
import { startTempo } from './tempo/tempo.ts';
import {
  createUpstreamSandbox,
  LAW_PAGES,
  SANDBOX_KEYS,
  SANDBOX_SALES,
  UPSTREAM_NAMES,
} from './upstreams/server.ts';

export interface World {
  /** What the server must be told, beside what it was told already. */
  environment: Record<string, string>;
  parts: readonly WorldPart[];
  /** The file that holds the token for the operator's page; null when the token was configured. */
  adminTokenFile: string | null;
  /** Settles with a sentence about it when a part ends that nobody stopped. The other parts are of no use then. */
  broken: Promise<string>;
  stop(): Promise<void>;
}

/** The upstreams whose replies the sandbox gives, each below its name; the AI model has an address of its own. */
const KEYLESS = UPSTREAM_NAMES.filter((name) => name !== 'ai');
/** Chains that the sandbox has no double of: without an address they are not there. */
const ABSENT_CHAINS = ['polygon', 'arbitrum', 'optimism', 'bsc'];
/** Settings and keys for the sandbox's stand-ins. They allow more than the real upstreams do. */
const SANDBOX_SETTINGS = {
  UPSTREAM_GDELT_REQUESTS_PER_MINUTE: '1200',
  UPSTREAM_LIFI_REQUESTS_PER_MINUTE: '1200',
  ...SANDBOX_KEYS,
  ...SANDBOX_SALES,
};
/** The variable for the sandbox's mirror of official pages. */
const LAW_PAGES_ADDRESS = 'LAW_PAGES_BASE_URL';
const AI = { path: '/ai/v1', model: 'sandbox-extractive-1' };
/** Where the server takes the card provider's webhooks, and where it listens unless it is told. */
const WEBHOOK_PATH = '/api/m2m/credits/webhook';
const DEFAULT_HOST = '127.0.0.1';
const DEFAULT_PORT = '8402';
/** An address at a host name that never resolves (RFC 2606). */
const MAIL_FROM = 'farebox@sandbox.invalid';
const ADMIN_TOKEN_FILE = 'admin-token';
/** The variables that are the same for every sandbox. */
const PLAIN = {
  LOG_LEVEL: 'warn',
  // One person tries it out: each connection that PostgreSQL has served holds 8 MB of memory.
  DATABASE_MAX_CONNECTIONS: '5',
  TRIAL_BUDGET_USD_PER_DAY: 'none',
  // Every caller of a sandbox comes from inside, and every document sends newcomers to the trial.
  TRIAL_ALLOW_INTERNAL: 'true',
  // No terms bind a stand-in, and those of the real ones are about selling: nobody pays real money here.
  SOURCE_TERMS_ACCEPTED: UPSTREAM_NAMES.join(','),
};

/** What is not written down beside the rest but found again, in files of the data directory or made from them. */
const SECRETS = {
  FAREBOX_SECRET: (dataDir: string) => secretIn(dataDir, 'secret'),
  WALLET_ENCRYPTION_KEY: (dataDir: string) => secretIn(dataDir, 'wallet-key'),
  MPP_SECRET_KEY: (dataDir: string) => secretIn(dataDir, 'mpp-key'),
  CARD_PROVIDER_KEY: (dataDir: string) => `sk_test_${secretIn(dataDir, 'card-key')}`,
  CARD_WEBHOOK_SECRET: (dataDir: string) => `whsec_${secretIn(dataDir, 'card-webhook-secret')}`,
  ADMIN_TOKENS: (dataDir: string) => `operator:${secretIn(dataDir, ADMIN_TOKEN_FILE)}`,
};
/** Keys that sign transactions. They stay in the process that starts the world, where the system has sockets. */
const KEYS = {
  X402_REFUND_KEYS: (dataDir: string) => accountsIn(dataDir).refunds.privateKey,
  MPP_TEMPO_REFUND_KEY: (dataDir: string) => accountsIn(dataDir).refunds.privateKey,
  X402_REFUND_KEY_SOLANA: (dataDir: string) => privateKeyOf(seedIn(dataDir), 'refunds'),
  IDENTITY_REGISTRAR_KEY: (dataDir: string) => accountsIn(dataDir).registrar.privateKey,
  YIELD_KEEPER_KEY: (dataDir: string) => accountsIn(dataDir).keeper.privateKey,
};
/** The signer process of each. Base and Tempo have the same key for refunds. */
const SIGNER_OF = {
  X402_REFUND_KEYS: 'refunds',
  MPP_TEMPO_REFUND_KEY: 'refunds',
  X402_REFUND_KEY_SOLANA: 'refunds-solana',
  IDENTITY_REGISTRAR_KEY: 'registrar',
  YIELD_KEEPER_KEY: 'keeper',
} as const;
const ALL_SECRETS = { ...SECRETS, ...KEYS };
type SecretName = keyof typeof ALL_SECRETS;
type KeyName = keyof typeof KEYS;

/** What the server does on Base with keys of its own. */
const KEYS_ON_BASE = ['X402_REFUND_KEYS', 'IDENTITY_REGISTRAR_KEY', 'YIELD_KEEPER_KEY'] as const;

/** The variables for the stand-ins of sources, and for the mirror of official pages. */
function namesOfSources(url: string): Record<string, string> {
  return {
    ...Object.fromEntries(KEYLESS.map((name) => [addressOf(name), `${url}/${name}`])),
    ...Object.fromEntries(ABSENT_CHAINS.map((name) => [addressOf(name), 'none'])),
    ...SANDBOX_SETTINGS,
    [LAW_PAGES_ADDRESS]: `${url}/${LAW_PAGES}`,
  };
}

/** The variables for the sandbox's Base. */
function namesOnBase({ url, vault, permitDeposit }: EvmChain): Record<string, string> {
  return {
    [addressOf('base')]: url,
    YIELD_VAULT_ADDRESS: vault,
    YIELD_PERMIT_DEPOSIT_ADDRESS: permitDeposit,
  };
}

/** The variables for the sandbox's Solana. */
async function namesOnSolana(url: string, seed: string): Promise<Record<string, string>> {
  return {
    [addressOf('solana')]: url,
    X402_RECIPIENT_SOLANA: (await signerOf(seed, 'recipient')).address,
    SOLANA_YIELD_TREASURY: (await signerOf(seed, 'treasury')).address,
    SOLANA_YIELD_SINCE_SLOT: '0',
  };
}

/** What a world wrote down about itself. */
interface Note {
  pid: number;
  environment: Record<string, string>;
  /** The secrets that it gave. */
  secrets: SecretName[];
}

/** The variable that holds an upstream's address. */
function addressOf(upstream: string): string {
  return `UPSTREAM_${upstream.toUpperCase()}_BASE_URL`;
}

/**
 * Starts the parts that the environment does not name an address for.
 *
 * @param options.live leaves keyless upstreams at their real addresses; money stays the sandbox's own
 * @throws StartError when one of them does not start, and the others are stopped then; or when nothing can be kept in the
 *   data folder
 */
export async function startWorld(environment: Environment, options: { live: boolean }): Promise<World> {
  const dataDir = dataDirOf(environment);
  openFolder(dataDir);
  const other = noteIn(dataDir);
  if (other !== null && isAlive(other.pid)) {
    throw new StartError(
      `another sandbox (pid ${other.pid}) runs on ${dataDir}; set FAREBOX_DATA_DIR for a second one`,
    );
  }
  const added: Record<string, string> = { FAREBOX_DATA_DIR: dataDir };
  const give = (name: string, value: string) => {
    if (!environment[name] && !environment[`${name}_FILE`]) added[name] = value;
  };
  const secrets: SecretName[] = [];
  const giveSecret = (name: SecretName) => {
    if (!environment[name] && !environment[`${name}_FILE`]) secrets.push(name);
  };
  const keys = signingKeys(dataDir, environment, giveSecret);
  const { begin, allBegun, stop: stopParts } = openParts();
  const stop = async () => {
    await keys.stop();
    await stopParts();
    rmSync(noteFile(dataDir), { force: true });
  };

  const seed = seedIn(dataDir);
  const accounts = accountsOf(seed);
  for (const name of ['FAREBOX_SECRET', 'WALLET_ENCRYPTION_KEY', 'ADMIN_TOKENS'] as const) giveSecret(name);
  for (const [name, value] of await settingsIn(dataDir, environment)) give(name, value);

  const beginning = beginAll(begin, environment, { dataDir, seed, live: options.live });
  const parts = await allBegun();
  const { url } = await beginning.upstreams;
  if (!options.live) {
    for (const [name, value] of Object.entries(namesOfSources(url))) give(name, value);
  }
  if (!environment.AI_BASE_URL) {
    give('AI_BASE_URL', url + AI.path);
    give('AI_MODEL', AI.model);
  }
  const chain = await beginning.chain;
  if (chain !== null) {
    give('X402_RECIPIENT', accounts.recipient.address);
    for (const [name, value] of Object.entries(namesOnBase(chain))) give(name, value);
    for (const name of KEYS_ON_BASE) keys.give(name);
  }
  const ethereum = await beginning.ethereum;
  if (ethereum !== null) give(addressOf('ethereum'), ethereum.url);
  const solana = await beginning.solana;
  if (solana !== null) {
    for (const [name, value] of Object.entries(await namesOnSolana(solana.url, seed))) give(name, value);
    keys.give('X402_REFUND_KEY_SOLANA');
  }
  if (chain !== null || solana !== null) {
    const networks = [chain !== null && 'base', solana !== null && 'solana'].filter((name) => name !== false);
    give('X402_NETWORKS', networks.join(','));
  }
  const facilitator = await beginning.facilitator;
  if (facilitator !== null) give('FACILITATOR_URL', facilitator.url);
  const tempo = await beginning.tempo;
  if (tempo !== null) {
    give('MPP_TEMPO_RPC_URL', tempo.url);
    give('MPP_TEMPO_RECIPIENT', accounts.recipient.address);
    give('MPP_TEMPO_CURRENCY', USDC_E);
    keys.give('MPP_TEMPO_REFUND_KEY');
  }
  const methods = [tempo !== null && 'tempo', chain !== null && 'evm'].filter((name) => name !== false);
  if (methods.length > 0) {
    give('MPP_METHODS', methods.join(','));
    giveSecret('MPP_SECRET_KEY');
  }
  const cards = await beginning.cards;
  if (cards !== null) {
    give('CARD_PROVIDER_URL', cards.url);
    for (const name of ['CARD_PROVIDER_KEY', 'CARD_WEBHOOK_SECRET'] as const) giveSecret(name);
  }
  const mailbox = await beginning.mailbox;
  if (mailbox !== null) {
    give('SMTP_URL', mailbox.smtpUrl);
    give('MAIL_FROM', MAIL_FROM);
  }
  Object.assign(added, await keys.start(stop));
  added.FAREBOX_SANDBOX_PARTS = parts.map(({ name, url }) => `${name}=${url}`).join(',');
  added.FAREBOX_SANDBOX_WALLETS = [
    ...Object.values(accounts).map(({ address }) => address),
    ...(await Promise.all(SOLANA_ROLES.map(async (role) => (await signerOf(seed, role)).address))),
  ].join(',');

  const note: Note = { pid: process.pid, environment: added, secrets };
  replaceFile(noteFile(dataDir), JSON.stringify(note, null, 2));
  return {
    environment: { ...added, ...secretsOf(dataDir, secrets) },
    parts,
    adminTokenFile: secrets.includes('ADMIN_TOKENS') ? join(dataDir, ADMIN_TOKEN_FILE) : null,
    // The other parts live in this process and end with it.
    broken: Promise.race([
      ...(chain === null ? [] : [chain.died.then((why) => `the sandbox chain ended: ${why}`)]),
      ...(ethereum === null ? [] : [ethereum.died.then((why) => `the sandbox Ethereum chain ended: ${why}`)]),
      ...(tempo === null ? [] : [tempo.died.then((why) => `the sandbox Tempo chain ended: ${why}`)]),
    ]),
    stop,
  };
}

/**
 * Begins the parts that the environment names no address for, all at the same time; null is one that it names an address
 * for. Their order is the one in which they are told.
 */
function beginAll(
  begin: Parts['begin'],
  environment: Environment,
  { dataDir, seed, live }: { dataDir: string; seed: string; live: boolean },
) {
  const upstreams = begin(
    'upstreams',
    live ? 'the AI model; keyless upstreams are live' : 'market, prediction, satellite and AI sources',
    async () => {
      const server = createUpstreamSandbox({ host: '127.0.0.1', port: 0, seed: MARKET_SEED });
      return { ...(await server.start()), stop: () => server.stop() };
    },
  );
  const evm = evmChainsIn(dataDir, seed);
  const chain = environment[addressOf('base')]
    ? null
    : begin('chain', 'Base (chain id 8453) with USDC, Uniswap, ERC-8004 and a yield vault', evm.base);
  // It is read and not paid on: some published clients refuse everything when one offer is on it. So live it is the real one.
  const ethereum =
    live || environment[addressOf('ethereum')]
      ? null
      : begin('ethereum', 'Ethereum (chain id 1) with USDC and Uniswap, to be read', evm.ethereum);
  const solanaDir = join(dataDir, 'solana');
  const solana = environment[addressOf('solana')]
    ? null
    : begin('solana', 'Solana with USDC', () =>
        onKeptPort(solanaDir, (port) => startSolana({ stateDir: solanaDir, seed, port })),
      );
  const facilitator =
    (chain === null && solana === null) || environment.FACILITATOR_URL
      ? null
      : begin('facilitator', 'an x402 facilitator for Base and Solana', () =>
          startFacilitatorFor(seed, chain, solana),
        );
  const tempo = environment.MPP_TEMPO_RPC_URL
    ? null
    : begin('tempo', `Tempo (chain id ${TEMPO_CHAIN_ID}) with USDC.e`, evm.tempo);
  const cards =
    environment.CARD_PROVIDER_KEY || environment.CARD_PROVIDER_URL
      ? null
      : begin('cards', 'card payments; on its page you are the bank', () => startCards(environment, dataDir));
  const folder = join(dataDir, 'mailbox');
  const mailbox = environment.SMTP_URL
    ? null
    : begin('mailbox', 'where mail arrives; read it on its page', () =>
        onKeptPort(folder, (httpPort) => startMailbox({ stateDir: join(folder, 'mails'), httpPort })),
      );
  return { upstreams, chain, ethereum, solana, facilitator, tempo, cards, mailbox };
}

/** As soon as the chains that it settles on are there. */
async function startFacilitatorFor(
  seed: string,
  chain: Promise<EvmChain> | null,
  solana: Promise<{ url: string }> | null,
) {
  const [base, svm] = await Promise.all([chain, solana]);
  return startFacilitator({
    evm: base && { rpcUrl: base.url, privateKeys: [accountsOf(seed).facilitator.privateKey] },
    solana: svm && { rpcUrl: svm.url, feePayerSecretKey: secretKeyOf(seed, 'facilitator') },
  });
}

function startCards(environment: Environment, dataDir: string) {
  const stateDir = join(dataDir, 'cards');
  // The server may know several, of which any will do.
  const [configured] = (environment.CARD_WEBHOOK_SECRET ?? '').split(',');
  const secret = configured?.trim() || SECRETS.CARD_WEBHOOK_SECRET(dataDir);
  const secretKey = SECRETS.CARD_PROVIDER_KEY(dataDir);
  const webhooks = [{ url: serverAddress(environment) + WEBHOOK_PATH, secret }];
  // Checkout pages are open for a day, so their address stays if it can.
  return onKeptPort(stateDir, (port) => startCardProvider({ stateDir, port, webhooks, secretKey }));
}

/** How each EVM chain is started: in the folder that it is kept in, on the port that it had, and kept by one process. */
function evmChainsIn(dataDir: string, seed: string) {
  const keeper = new NodeKeeper();
  type Kept = { stateDir: string; seed: string; port: number; keeper: NodeKeeper };
  const kept =
    <Chain extends { url: string }>(name: string, start: (options: Kept) => Promise<Chain>) =>
    () => {
      const stateDir = join(dataDir, name);
      return onKeptPort(stateDir, (port) => start({ stateDir, seed, port, keeper }));
    };
  return {
    base: kept('chain', startEvmChain),
    ethereum: kept('ethereum', startEthereum),
    tempo: kept('tempo', startTempo),
  };
}

/** Where the card provider reaches the server, which listens later. */
function serverAddress(environment: Environment): string {
  if (environment.PUBLIC_URL) return environment.PUBLIC_URL.replace(/\/$/, '');
  const host = environment.HOST || DEFAULT_HOST;
  // Who listens on every address is reached on this machine's own.
  const reached = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host;
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${environment.PORT || DEFAULT_PORT}`;
}

/** What a command needs to look into the world that runs on this folder, or into what one left behind. */
export function environmentOfWorld(environment: Environment): Record<string, string> {
  const dataDir = dataDirOf(environment);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const note = noteIn(dataDir) ?? {
    environment: { FAREBOX_DATA_DIR: dataDir },
    secrets: ['FAREBOX_SECRET', 'WALLET_ENCRYPTION_KEY'] as const,
  };
  const given = Object.entries({ ...note.environment, ...secretsOf(dataDir, note.secrets) });
  const live = environment.FAREBOX_UPSTREAMS === 'live';
  // Nor are the keys and rates of stand-ins of use to the real ones.
  const leftLive = new Set(
    live
      ? [
          ...[...KEYLESS, 'ethereum', ...ABSENT_CHAINS].map(addressOf),
          ...Object.keys(SANDBOX_SETTINGS),
          LAW_PAGES_ADDRESS,
        ]
      : [],
  );
  return Object.fromEntries(given.filter(([name]) => !leftLive.has(name)));
}

/** The same, only while that world runs; null when none does. */
export function environmentOfRunningWorld(environment: Environment): Record<string, string> | null {
  const note = noteIn(dataDirOf(environment));
  return note !== null && isAlive(note.pid) ? environmentOfWorld(environment) : null;
}

/** @throws StartError when it cannot be made, or this user may not write in it */
function openFolder(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(
      `nothing can be kept in ${dataDir} (${why}). Set FAREBOX_DATA_DIR to a folder that this user may write in, or let it write in this one.`,
      { cause },
    );
  }
}

function noteFile(dataDir: string): string {
  return join(dataDir, 'world.json');
}

function noteIn(dataDir: string): Note | null {
  const file = noteFile(dataDir);
  if (!existsSync(file)) return null;
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    // Half of one, from an earlier version that was killed while it wrote: that world is gone.
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** The keys that sign transactions and that the environment does not name. @param giveSecret where the system has no sockets */
function signingKeys(dataDir: string, environment: Environment, giveSecret: (name: KeyName) => void) {
  const names: KeyName[] = [];
  let stop = async (): Promise<void> => undefined;
  return {
    give(name: KeyName): void {
      if (!HAS_SOCKETS) giveSecret(name);
      else if (!environment[name] && !environment[`${name}_FILE`]) names.push(name);
    },
    /** @returns the variables that name them @throws StartError when one cannot be served, after `undo` */
    async start(undo: () => Promise<void>): Promise<Record<string, string>> {
      const held = Object.fromEntries(names.map((name) => [SIGNER_OF[name], KEYS[name](dataDir)]));
      const signers = await startSigners(dataDir, held).catch(async (error: unknown) => {
        await undo();
        throw error;
      });
      stop = signers.stop;
      return Object.fromEntries(names.map((name) => [name, signers.named[SIGNER_OF[name]] ?? '']));
    },
    stop: () => stop(),
  };
}

function secretsOf(dataDir: string, names: readonly SecretName[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, ALL_SECRETS[name](dataDir)]));
}

/** What the keys of this installation's accounts follow from: payments are made out to them, and settled by them. */
function seedIn(dataDir: string): string {
  return secretIn(dataDir, 'accounts-seed');
}

function accountsIn(dataDir: string) {
  return accountsOf(seedIn(dataDir));
}

/** A secret of the folder's own, 32 bytes in hex: made once, kept in a file that only its owner reads. */
function secretIn(dataDir: string, name: string): string {
  const file = join(dataDir, name);
  writeFileOnce(file, () => randomBytes(32).toString('hex'));
  return readFileSync(file, 'utf8');
}

async function settingsIn(dataDir: string, environment: Environment) {
  return [...Object.entries(PLAIN), ...(await mqttIn(dataDir, environment))] as const;
}

/** Where the server's broker listens: at the port that it had, with a certificate of this installation's own. */
async function mqttIn(
  dataDir: string,
  { DEVICE_MQTT_PORT, HOST }: Environment,
): Promise<[name: string, value: string][]> {
  const [certFile, keyFile] = [join(dataDir, 'mqtt-cert.pem'), join(dataDir, 'mqtt-key.pem')];
  if (!isWritten(certFile) || !isWritten(keyFile)) {
    const { cert, key } = makeCertificate(new Date());
    // What is there without the other, after a kill between the two, is made anew with it.
    rmSync(certFile, { force: true });
    replaceFile(keyFile, key);
    replaceFile(certFile, cert);
  }
  const host = HOST || '127.0.0.1';
  const port = DEVICE_MQTT_PORT || (await keptPort(join(dataDir, 'mqtt'), host));
  return [
    ['DEVICE_MQTT_PORT', port],
    ['DEVICE_MQTT_CERT_FILE', certFile],
    ['DEVICE_MQTT_KEY_FILE', keyFile],
  ];
}
