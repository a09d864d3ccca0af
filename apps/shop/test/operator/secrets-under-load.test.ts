/**
 * Every kind of secret is exchanged while a server sells for credits and from a wallet: by SIGHUP where its part takes it at once, and by
 * another replica where it waits for a start. No call fails, none is charged twice, and whoever checks the secret sees the new one.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Challenge } from 'mppx';
import { Mppx } from 'mppx/client';
import { type Address, parseEther } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAddress } from 'viem/accounts';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { transferIdFor } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { createMailer } from '../../../../packages/core/src/mail/mailer.ts';
import { signerOf } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import {
  type LockedMailServer,
  startLockedMailServer,
} from '../../../../packages/sandbox/src/mailbox/locked-mail-server.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type ServerProcess, startServerProcess } from '../fire/server-process.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { evmCharge } from '../mpp.fixture.ts';
import { jsonOf, sourcesAt, startUpstreams } from '../server.fixture.ts';
import { type PaymentWorld, paymentHeader, signPayment, startPaymentWorld } from '../x402.fixture.ts';
import { bearerOf, type KeyedService, startKeyedService } from './keyed-service.fixture.ts';
import { assertTakenOnce, boughtOn, filesIn, giveBack, hangUp, post, startLoad } from './load.fixture.ts';
import { signIn, surfer } from './sign-in.fixture.ts';
import {
  CLIENT,
  type SignInProviderDouble,
  startSignInProvider,
  type Told,
} from './sign-in-provider.fixture.ts';

const TOKEN = 'an-operators-token-of-the-tests';
const ANN: Told = { sub: 'ann-1', email: 'ann@example.com', email_verified: true };
const PING_MICROS = 250_000n;
/** More than any machine can spend meanwhile. */
const GRANT_MICROS = 1_000_000_000_000n;
const WALLET_USD = 20_000;
const SERVICES = 'ping,token-price,agent-create-wallet';
const COINS = ['ETH', 'BTC', 'SOL', 'USDC', 'LINK', 'UNI', 'AAVE', 'DOGE'];
/** More than Base takes back. */
const FINAL_AFTER_BLOCKS = 64;
/** Nobody listens there. */
const NOWHERE = 'http://127.0.0.1:9';
const [FIRST_SECRET, OTHER_SECRET] = ['first', 'other'].map(
  (word) => `${word}-mpp-key-of-thirty-two-characters`,
);

let database: TestDatabase;
let world: PaymentWorld;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let provider: SignInProviderDouble;
let mailServer: LockedMailServer;
let issuers: Record<'facilitator' | 'collector' | 'source' | 'node', KeyedService>;
let folder: string;
let apiKey: string;
let payer: PrivateKeyAccount;
const servers: ServerProcess[] = [];
const files = filesIn(() => folder);

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'secrets-'));
  [database, world, upstreams, provider, mailServer] = await Promise.all([
    openTestDatabase(),
    startPaymentWorld({ solana: true }),
    startUpstreams(),
    startSignInProvider(),
    startLockedMailServer('desk'),
  ]);
  const [facilitator, collector, source, node] = await Promise.all([
    startKeyedService({
      secretOf: bearerOf,
      behind: ({ url }) => `${world.facilitator.url}${url}`,
    }),
    startKeyedService({ secretOf: bearerOf, behind: null }),
    startKeyedService({
      secretOf: ({ headers }) => String(headers['x-cg-demo-api-key']),
      behind: ({ url }) => `${upstreams.url}/coingecko${url}`,
    }),
    startKeyedService({
      secretOf: ({ url = '' }) => url.slice(1),
      behind: () => world.solana?.url ?? NOWHERE,
    }),
  ]);
  issuers = { facilitator, collector, source, node };
  payer = await world.wallet(WALLET_USD);
  const keys = createKeys(database.sql, Date.now);
  const parts = { sql: database.sql, keys, ledger: createLedger(database, Date.now), nowMs: Date.now };
  ({ apiKey } = await grantKey(parts, { amountMicros: GRANT_MICROS, label: 'test', note: 'test' }));
});
after(async () => {
  for (const server of servers) await server.end('SIGKILL');
  const doubles = [...Object.values(issuers ?? {}), provider, mailServer, upstreams, world];
  await Promise.all(doubles.map((each) => each?.stop()));
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(environment: Record<string, string>): Promise<ServerProcess> {
  const server = await startServerProcess({
    ...sourcesAt(upstreams.url),
    DATABASE_URL: database.url,
    SERVICES,
    ADMIN_TOKENS: `desk:${TOKEN}`,
    LOG_LEVEL: 'info',
    RECONCILE_INTERVAL_MS: '500',
    X402_NETWORKS: 'base',
    UPSTREAM_BASE_BASE_URL: world.chain.url,
    X402_RECIPIENT: world.recipient,
    X402_GAS_TOKEN_USD: 'base:1',
    ...environment,
  });
  servers.push(server);
  return server;
}

async function payFromWallet(url: string): Promise<Response> {
  const unpaid = await post(url, 'x402/ping', {});
  assert.equal(unpaid.status, 402, await unpaid.clone().text());
  const payment = await signPayment(payer, { to: world.recipient, valueUnits: PING_MICROS });
  return post(url, 'x402/ping', { 'payment-signature': await paymentHeader(unpaid, payment) });
}

/** Two callers who pay by credits, and one who pays from a wallet. */
function buyFrom(first: ServerProcess) {
  const byCredits = (url: string) => post(url, 'x402/ping', { 'x-api-key': apiKey });
  return startLoad(first, [
    ['credits', byCredits],
    ['credits', byCredits],
    ['wallet', payFromWallet],
  ]);
}

/** Exchanges at the side of whoever checks a secret: from now on both are taken, or the second alone. */
const passwords = { FACILITATOR_TOKEN: 'token', UPSTREAM_COINGECKO_API_KEY: 'source-key' };
function secretsOf(word: string): Record<string, string> {
  return {
    FACILITATOR_TOKEN: `${word}-${passwords.FACILITATOR_TOKEN}`,
    UPSTREAM_COINGECKO_API_KEY: `${word}-${passwords.UPSTREAM_COINGECKO_API_KEY}`,
    SMTP_URL: `smtp://desk:${word}-password@127.0.0.1:${mailServer.port}`,
    ADMIN_OIDC_CLIENT_SECRET: word === 'first' ? CLIENT.secret : `${word}-${CLIENT.secret}`,
    TRACES_OTLP_HEADERS: `authorization=Bearer ${word}-collector-token`,
    SOLANA_YIELD_FURTHER_NODES: `${issuers.node.url}/${word}-node-key`,
  };
}
function acceptOnly(...words: string[]): void {
  const put = (set: Set<string>, values: string[]) => {
    set.clear();
    for (const value of values) set.add(value);
  };
  const each = (rest: string) => words.map((word) => `${word}-${rest}`);
  put(issuers.facilitator.accepted, each(passwords.FACILITATOR_TOKEN));
  put(issuers.source.accepted, each(passwords.UPSTREAM_COINGECKO_API_KEY));
  put(issuers.collector.accepted, each('collector-token'));
  put(issuers.node.accepted, each('node-key'));
  put(mailServer.accepted, each('password'));
  put(
    provider.clientSecrets,
    words.map((word) => secretsOf(word).ADMIN_OIDC_CLIENT_SECRET ?? ''),
  );
}

let mails = 0;
async function writeMail(): Promise<void> {
  const from = { name: 'Farebox', address: 'desk@example.com' };
  const mailer = createMailer(database.sql, {
    smtp: { smtpUrl: () => 'smtp://127.0.0.1:9', from, timeoutMs: 1_000 },
    signature: '-- ',
    retentionDays: 30,
    nowMs: Date.now,
    report: () => {},
  });
  mails += 1;
  const mail = {
    id: transferIdFor(`mail ${mails}`),
    to: 'ann@example.com',
    subject: 'A mail',
    text: 'It is one.',
  };
  await database.sql.begin((transaction) => mailer.enqueue(transaction, mail));
}

test('what others gave us is exchanged by one SIGHUP, and each of them sees the second secret', async () => {
  acceptOnly('first');
  const server = await start({
    ...files({ ...secretsOf('first'), MPP_SECRET_KEY: FIRST_SECRET ?? '' }),
    ADMIN_TOKENS: '',
    TRUSTED_PROXIES: 'loopback',
    ADMIN_OIDC_ISSUER: provider.issuer,
    ADMIN_OIDC_CLIENT_ID: CLIENT.id,
    ADMIN_ROLES: 'email=ann@example.com:admin',
    FACILITATOR_URL: issuers.facilitator.url,
    MPP_METHODS: 'evm',
    UPSTREAM_DEFILLAMA_BASE_URL: 'none',
    UPSTREAM_DEXSCREENER_BASE_URL: 'none',
    UPSTREAM_GECKOTERMINAL_BASE_URL: 'none',
    UPSTREAM_COINGECKO_BASE_URL: issuers.source.url,
    MAIL_FROM: 'credits@farebox.test',
    TRACES_OTLP_ENDPOINT: issuers.collector.url,
    TRACES_SAMPLED: '1',
    UPSTREAM_SOLANA_BASE_URL: NOWHERE,
    SOLANA_YIELD_TREASURY: (await signerOf('treasury')).address,
    SOLANA_YIELD_SINCE_SLOT: '0',
  });
  const receivedBefore = await world.received();
  const before = await boughtOn(database);
  const load = buyFrom(server);
  let prices = 0;
  let byMpp = 0;
  const unpaidMpp = () => fetch(`${server.url}/mpp/ping`, { method: 'POST' });
  const payByMpp = async (unpaid: Response) => {
    const client = Mppx.create({ polyfill: false, methods: [evmCharge(payer)] });
    const authorization = await client.createCredential(unpaid);
    return fetch(`${server.url}/mpp/ping`, { method: 'POST', headers: { authorization } });
  };
  const madeWith = (unpaid: Response, secretKey: string) =>
    Challenge.deserializeList(unpaid.headers.get('www-authenticate') ?? '').some((challenge) =>
      Challenge.verify(challenge as never, { secretKey }),
    );
  /** Has the server come to everybody who checks a secret. @returns a browser that has signed in */
  const useAll = async (word: string) => {
    const browser = surfer(server.url);
    assert.equal((await signIn(browser, provider, ANN)).status, 303);
    assert.equal(provider.cameBy, secretsOf(word).ADMIN_OIDC_CLIENT_SECRET);
    await writeMail();
    await until('the mail', () => mailServer.mailsBy.has(`${word}-password`));
    await until('the node to be asked', async () => {
      assert.equal((await fetch(`${server.url}/api/solana-yield/stats`)).status, 200);
      return issuers.node.cameBy.has(`${word}-node-key`);
    });
    await until('the source to be asked', async () => {
      const symbol = COINS[prices % COINS.length];
      const reply = await post(server.url, 'x402/token-price', { 'x-api-key': apiKey }, { symbol });
      assert.equal(reply.status, 200, await reply.text());
      prices += 1;
      return issuers.source.cameBy.has(`${word}-${passwords.UPSTREAM_COINGECKO_API_KEY}`);
    });
    await until('spans', () => issuers.collector.cameBy.has(`${word}-collector-token`));
    await until('the facilitator', () => issuers.facilitator.cameBy.has(`${word}-token`));
    return browser;
  };
  let priceMicros: bigint;
  try {
    await load.more();
    const signedIn = await useAll('first');
    const open = await unpaidMpp();
    assert(madeWith(open, FIRST_SECRET ?? '') && !madeWith(open, OTHER_SECRET ?? ''));

    acceptOnly('first', 'other');
    files({ ...secretsOf('other'), MPP_SECRET_KEY: `${OTHER_SECRET},${FIRST_SECRET}` });
    const { renewed, waiting } = await hangUp(server);
    assert.deepEqual(
      [renewed, waiting],
      [[...Object.keys(secretsOf('other')), 'MPP_SECRET_KEY'].toSorted(), []],
    );
    await useAll('other');
    acceptOnly('other');
    const refusedBefore = Object.values(issuers).map(({ refused }) => refused);
    await load.more();
    await useAll('other');
    assert.deepEqual(
      Object.values(issuers).map(({ refused }) => refused),
      refusedBefore,
    );
    assert.equal((await signedIn.ask('caller')).status, 200, 'a session goes on');

    assert.equal((await payByMpp(open)).status, 200, 'a challenge of before is still paid');
    const fresh = await unpaidMpp();
    assert(madeWith(fresh, OTHER_SECRET ?? ''));
    const late = await payableLater();
    files({ MPP_SECRET_KEY: OTHER_SECRET ?? '' });
    assert.deepEqual((await hangUp(server)).renewed, ['MPP_SECRET_KEY']);
    assert.equal((await payByMpp(fresh)).status, 200);
    const refused = await payByMpp(late);
    assert.deepEqual([refused.status, (await jsonOf(refused)).code], [402, 'MPP_INVALID_CHALLENGE']);
    byMpp = 2;
    await load.more();
    priceMicros = BigInt(Math.round(Number((await priceOf('token-price')) ?? 0) * 1e6));
  } finally {
    await load.stop();
  }
  const { credits, wallet } = load.sold;
  const all = credits + wallet + prices + byMpp;
  const micros = BigInt(credits + wallet + byMpp) * PING_MICROS + BigInt(prices) * priceMicros;
  await assertTakenOnce(database, before, { calls: all, micros });
  assert.equal((await world.received()) - receivedBefore, BigInt(wallet + byMpp) * PING_MICROS);
  await server.end('SIGTERM');

  /** A challenge of the first secret. */
  async function payableLater(): Promise<Response> {
    files({ MPP_SECRET_KEY: `${FIRST_SECRET},${OTHER_SECRET}` });
    await hangUp(server);
    const unpaid = await unpaidMpp();
    assert(madeWith(unpaid, FIRST_SECRET ?? ''));
    return unpaid;
  }
  async function priceOf(path: string): Promise<string> {
    const unpaid = await post(server.url, `x402/${path}`, {}, { symbol: 'ETH' });
    const [accepted] = (await jsonOf(unpaid)).accepts;
    return String(Number(accepted.amount ?? accepted.maxAmountRequired) / 1e6);
  }
});

test('keys that wait for a start go on until another replica has the new ones', async () => {
  const { chain } = world;
  const keysOf = {
    settler: [generatePrivateKey(), generatePrivateKey()],
    refunds: [generatePrivateKey(), generatePrivateKey()],
  };
  for (const key of [...keysOf.settler, ...keysOf.refunds])
    await chain.client.setBalance({ address: privateKeyToAddress(key), value: parseEther('10') });
  for (const key of keysOf.refunds)
    await fund(chain.url, privateKeyToAddress(key), { usdcMicros: 5_000_000n, ethWei: 0n });
  const wrapping = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')];
  const variables = files({
    X402_RELAYER_KEYS: keysOf.settler[0] ?? '',
    X402_REFUND_KEYS: keysOf.refunds[0] ?? '',
    WALLET_ENCRYPTION_KEY: wrapping[0] ?? '',
  });
  const addressOf = (which: keyof typeof keysOf, index: 0 | 1): Address =>
    privateKeyToAddress(keysOf[which][index] ?? '0x');
  const sentBy = (index: 0 | 1) => chain.client.getTransactionCount({ address: addressOf('settler', index) });
  const refundedBy = async (index: 0 | 1) =>
    5_000_000n - (await world.balanceOf(addressOf('refunds', index)));

  const first = await start(variables);
  const before = await boughtOn(database);
  const receivedBefore = await world.received();
  const load = buyFrom(first);
  const bought = { wallets: 0, refunded: 0 };
  const newWallet = async (server: ServerProcess) => {
    const body = { agentId: `agent-${bought.wallets}` };
    const reply = await post(server.url, 'x402/agent-create-wallet', { 'x-api-key': apiKey }, body);
    const told = await jsonOf(reply);
    assert.equal(reply.status, 200, JSON.stringify(told));
    bought.wallets += 1;
    return String((told.result ?? told.data ?? told).walletId);
  };
  const opens = async (server: ServerProcess, walletId: string) => {
    const reply = await fetch(`${server.url}/api/wallets/${walletId}/export`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey },
    });
    assert.equal(reply.status, 200, await reply.text());
  };
  const refund = async (server: ServerProcess) => {
    const reply = await payFromWallet(server.url);
    assert.equal(reply.status, 200, await reply.text());
    bought.refunded += 1;
    await chain.client.mine({ blocks: FINAL_AFTER_BLOCKS });
    await giveBack(database, {
      url: server.url,
      token: TOKEN,
      callId: reply.headers.get('x-call-id'),
    });
  };
  let walletId: string;
  try {
    await load.more();
    walletId = await newWallet(first);
    await refund(first);
    await until('the refund', async () => (await refundedBy(0)) === PING_MICROS);

    files({
      X402_RELAYER_KEYS: keysOf.settler[1] ?? '',
      X402_REFUND_KEYS: keysOf.refunds[1] ?? '',
      WALLET_ENCRYPTION_KEY: wrapping.toReversed().join(),
    });
    const { renewed, waiting } = await hangUp(first, true);
    assert.deepEqual(
      [renewed, waiting],
      [
        [],
        Object.keys(variables)
          .map((name) => name.replace(/_FILE$/, ''))
          .toSorted(),
      ],
    );
    const sent = await sentBy(0);
    await load.more();
    assert((await sentBy(0)) > sent, 'the old settler goes on');
    assert.equal(await sentBy(1), 0);
    await opens(first, walletId);

    const second = await start(variables);
    await load.moveTo(second);
    assert.equal(await first.end('SIGTERM'), 0);
    await load.more();
    assert((await sentBy(1)) > 0, 'the new settler sends');
    await refund(second);
    await until('the refund of the new key', async () => (await refundedBy(1)) === PING_MICROS);
    assert.equal(await refundedBy(0), PING_MICROS);
    await opens(second, walletId);
    await newWallet(second);
    await until('all wallets to be under the new key', async () => {
      const ids = await database.sql<
        { kek_id: string }[]
      >`select distinct kek_id from managed_wallet_keys where kek_id is not null`;
      return ids.length === 1;
    });
  } finally {
    await load.stop();
  }
  const { credits, wallet } = load.sold;
  const pings = credits + wallet + bought.refunded;
  await assertTakenOnce(database, before, {
    calls: pings + bought.wallets,
    micros: BigInt(pings) * PING_MICROS + BigInt(bought.wallets) * 2_000_000n,
  });
  assert.equal((await world.received()) - receivedBefore, BigInt(wallet + bought.refunded) * PING_MICROS);

  files({ WALLET_ENCRYPTION_KEY: wrapping[1] ?? '' });
  await opens(await start(variables), walletId);
});
