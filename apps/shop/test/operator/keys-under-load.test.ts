/**
 * The keys that sign on Solana, on Tempo, for the vault and for identities, and the server's own secret, are exchanged from replica to
 * replica while a server sells for credits, from a wallet on Solana and from one on Tempo. No call fails, and none is charged twice.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { generateKeyPairSigner, type KeyPairSigner } from '@solana/kit';
import { type Address, encodeFunctionData, parseAbi, parseEther } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAddress } from 'viem/accounts';
import { connectRpc } from '../../../../packages/core/src/chain-rpc/json-rpc.ts';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { readSolanaKey } from '../../../../packages/core/src/rails/x402/solana-key.ts';
import { relayerOn } from '../../../../packages/core/src/relayer/relayer.fixture.ts';
import { readManifest } from '../../../../packages/sandbox/src/chain/lending/snapshot.ts';
import { moveStoredTimes } from '../../../../packages/sandbox/src/chain/lending/stored-times.ts';
import { connect, transact } from '../../../../packages/sandbox/src/chain/node.ts';
import { mintUsdc } from '../../../../packages/sandbox/src/chain/usdc.ts';
import { USDC_E } from '../../../../packages/sandbox/src/tempo/addresses.ts';
import { fundTempo } from '../../../../packages/sandbox/src/tempo/faucet.ts';
import { createKeeper } from '../../../../packages/yield/src/keeper/keeper.ts';
import { type Past, writePast } from '../../../../packages/yield/src/keeper/past.fixture.ts';
import { readKeeperReport } from '../../../../packages/yield/src/keeper/report.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type ServerProcess, startServerProcess } from '../fire/server-process.fixture.ts';
import { newKey } from '../fire/solana-stage.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { MPP_SECRET, type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { memo, signTransaction, solanaNode, transferOf, unitLimit, unitPrice } from '../solana.fixture.ts';
import { USDC } from '../x402.fixture.ts';
import { assertTakenOnce, boughtOn, filesIn, giveBack, hangUp, post, startLoad } from './load.fixture.ts';

const TOKEN = 'an-operators-token-of-the-tests';
const OLD = 'the-secret-of-yesterday-in-this-test';
const NEW = 'the-secret-of-tomorrow-in-this-test';
const PRICE = { ping: 250_000n, 'instant-agent-wallet': 1_000_000n, 'verified-agent-identity': 5_000_000n };
/** More than any machine can spend meanwhile. */
const GRANT_MICROS = 1_000_000_000_000n;
const WALLET_USD = 20_000;
const SOL = 1e9;
/** The money for refunds that a key has. */
const REFUND_MICROS = 5_000_000n;
/** More than Solana takes to make a block final. */
const FINAL_AFTER_SLOTS = 40;
const USD = 1_000_000n;
/** Longer than the vault's pause between two moves. */
const SEVEN_HOURS_S = 25_200;
const AAVE_POOL = '0xA238Dd80C259a72e81d7e4664a9801593F98d1c5';
const ABI = parseAbi([
  'function approve(address spender, uint256 amount) returns (bool)',
  'function deposit(uint256 assets, address receiver) returns (uint256)',
  'function repay(address asset, uint256 amount, uint256 interestRateMode, address onBehalfOf) returns (uint256)',
  'function setKeeper(address keeper)',
]);
const lending = readManifest();

let database: TestDatabase;
let world: MppWorld;
let folder: string;
let apiKey: string;
let solana: ReturnType<typeof solanaNode>;
let solanaPayer: KeyPairSigner;
let tempoPayer: PrivateKeyAccount;
const servers: ServerProcess[] = [];
const files = filesIn(() => folder);

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'keys-'));
  [database, world] = await Promise.all([openTestDatabase(), startMppWorld({ solana: true })]);
  solana = solanaNode(world.base.solana?.url ?? '');
  [solanaPayer, tempoPayer] = await Promise.all([solanaWallet(WALLET_USD), world.wallet(WALLET_USD)]);
  const keys = createKeys(database.sql, Date.now);
  const parts = { sql: database.sql, keys, ledger: createLedger(database, Date.now), nowMs: Date.now };
  ({ apiKey } = await grantKey(parts, { amountMicros: GRANT_MICROS, label: 'test', note: 'test' }));
});
after(async () => {
  for (const server of servers) await server.end('SIGKILL');
  await world?.stop();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(variables: Record<string, string>): Promise<ServerProcess> {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    FAREBOX_SECRET: '',
    SERVICES: Object.keys(PRICE).join(),
    ADMIN_TOKENS: `desk:${TOKEN}`,
    TRUSTED_PROXIES: 'loopback',
    LOG_LEVEL: 'info',
    RECONCILE_INTERVAL_MS: '500',
    UPSTREAM_BASE_BASE_URL: world.base.chain.url,
    X402_NETWORKS: 'solana',
    UPSTREAM_SOLANA_BASE_URL: world.base.solana?.url ?? '',
    X402_RECIPIENT_SOLANA: world.environment.X402_RECIPIENT_SOLANA ?? '',
    MPP_METHODS: 'tempo',
    MPP_SECRET_KEY: MPP_SECRET,
    MPP_TEMPO_RPC_URL: world.tempo.url,
    MPP_TEMPO_RECIPIENT: world.tempo.recipient,
    MPP_TEMPO_CURRENCY: USDC_E,
    YIELD_VAULT_ADDRESS: lending.vault,
    ...variables,
  });
  servers.push(server);
  return server;
}

async function solanaWallet(usd: number): Promise<KeyPairSigner> {
  const wallet = await generateKeyPairSigner();
  await solana.give(wallet.address, { usdcUnits: usd * 1e6 });
  return wallet;
}

/** The header of a payment on Solana, by the terms of a server's 402. */
async function signOnSolana(url: string, payer: KeyPairSigner): Promise<Record<string, string>> {
  const unpaid = await post(url, 'x402/ping', {});
  assert.equal(unpaid.status, 402, await unpaid.clone().text());
  const required = JSON.parse(
    Buffer.from(unpaid.headers.get('payment-required') ?? '', 'base64').toString('utf8'),
  );
  const [accepted] = required.accepts;
  const instructions = [
    unitLimit(60_000),
    unitPrice(1n),
    await transferOf(payer.address, accepted.payTo, PRICE.ping),
    memo(randomUUID()),
  ];
  const terms = {
    feePayer: accepted.extra.feePayer,
    blockhash: await solana.blockhash(),
    signers: [payer],
  };
  const { wire } = await signTransaction(instructions, terms);
  const payment = { x402Version: 2, accepted, payload: { transaction: wire }, resource: required.resource };
  return { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') };
}

const pay = {
  solana: async (url: string, payer = solanaPayer) => post(url, 'x402/ping', await signOnSolana(url, payer)),
  async tempo(url: string, payer = tempoPayer): Promise<Response> {
    const unpaid = await post(url, 'mpp/ping', {});
    assert.equal(unpaid.status, 402, await unpaid.clone().text());
    return post(url, 'mpp/ping', { authorization: await world.credential(payer, 'tempo', unpaid) });
  },
};

/** The two keys that each duty has one after the other, with gas and what they pay out. */
async function twoOfEach() {
  const evm = [generatePrivateKey(), generatePrivateKey()] as const;
  const registrar = [generatePrivateKey(), generatePrivateKey()] as const;
  const keeper = [generatePrivateKey(), generatePrivateKey()] as const;
  const [settler, refunder] = [[newKey(), newKey()] as const, [newKey(), newKey()] as const];
  for (const key of [...registrar, ...keeper])
    await world.base.chain.client.setBalance({
      address: privateKeyToAddress(key),
      value: parseEther('10'),
    });
  for (const key of evm) await fundTempo(world.tempo.url, privateKeyToAddress(key), REFUND_MICROS);
  for (const key of settler) await solana.give(readSolanaKey(key).address, { lamports: SOL });
  for (const key of refunder)
    await solana.give(readSolanaKey(key).address, { lamports: SOL, usdcUnits: Number(REFUND_MICROS) });
  const sentOnBase = (key: `0x${string}`) =>
    world.base.chain.client.getTransactionCount({ address: privateKeyToAddress(key) });
  return {
    variables: (index: 0 | 1) => ({
      X402_RELAYER_KEY_SOLANA: settler[index],
      X402_REFUND_KEY_SOLANA: refunder[index],
      MPP_TEMPO_REFUND_KEY: evm[index],
      YIELD_KEEPER_KEY: keeper[index],
      IDENTITY_REGISTRAR_KEY: registrar[index],
    }),
    keeper: (index: 0 | 1) => privateKeyToAddress(keeper[index]),
    /** The work that the keys of this index have done so far: how much was sent, or paid out. */
    async work(index: 0 | 1) {
      return {
        settledSol: SOL - (await solana.lamports(readSolanaKey(settler[index]).address)),
        refundedSolana: REFUND_MICROS - (await solana.holds(readSolanaKey(refunder[index]).address)),
        // Without the fees, which are paid in the same token.
        refundsTempo:
          (REFUND_MICROS - (await world.tempo.balanceOf(privateKeyToAddress(evm[index])))) / PRICE.ping,
        moves: await sentOnBase(keeper[index]),
        registrations: await sentOnBase(registrar[index]),
      };
    },
  };
}

/** The vault, with a million in Aave, which pays little by now. */
async function fillVault() {
  const node = connect(world.base.chain.url);
  const { owner, borrower } = lending.accounts;
  const call = (from: Address, to: Address, functionName: string, args: readonly unknown[]) =>
    transact(node, { from, to, data: encodeFunctionData({ abi: ABI, functionName, args } as never) });
  await mintUsdc(node, owner, 1_000_000n * USD);
  await call(owner, USDC, 'approve', [lending.vault, 1_000_000n * USD]);
  await call(owner, lending.vault, 'deposit', [1_000_000n * USD, owner]);
  await mintUsdc(node, borrower, 5_000_000n * USD);
  await call(borrower, AAVE_POOL, 'repay', [USDC, 5_000_000n * USD, 2n, borrower]);
  const { sql } = database;
  /** Looks only, since the vault has never heard of its key. */
  const watch = async () => {
    const rpc = connectRpc(world.base.chain.url, { timeoutMs: 10_000 });
    const network = 'eip155:8453';
    const relayer = relayerOn({ sql, rpc, network, keys: [generatePrivateKey()], nowMs: Date.now });
    const look = createKeeper({ sql, rpc, relayer, vault: lending.vault, minGainBps: 50, nowMs: Date.now });
    try {
      let report = await look();
      const hasLooked = async () => {
        report ??= await look();
        return report !== null;
      };
      await until('nobody else to look', hasLooked);
      return report ?? assert.fail();
    } finally {
      await rpc.close();
    }
  };
  return {
    /** The owner names a keeper, the pause since the last move is over, and all has been calm for a day. */
    async isKeptBy(keeper: Address, past: Past = {}): Promise<void> {
      await call(owner, lending.vault, 'setKeeper', [keeper]);
      await moveStoredTimes(node, lending.storedTimes, -SEVEN_HOURS_S);
      await writePast(sql, { vault: lending.vault, look: watch, past });
    },
    lastReport: async () => (await readKeeperReport(sql, lending.vault))?.report ?? null,
  };
}

/** Calls by credits beside the load, which are counted. */
function startCounter() {
  const sold: (keyof typeof PRICE)[] = [];
  const buy = async (server: ServerProcess, path: keyof typeof PRICE, body: object, once?: string) => {
    const headers = { 'x-api-key': apiKey, ...(once === undefined ? {} : { 'idempotency-key': once }) };
    const reply = await post(server.url, `x402/${path}`, headers, body);
    const text = await reply.text();
    assert.equal(reply.status, 200, text);
    if (reply.headers.get('idempotent-replayed') !== 'true') sold.push(path);
    return text;
  };
  return {
    sold,
    register: (server: ServerProcess, agentId: string) =>
      buy(server, 'verified-agent-identity', { agentId, agentName: agentId }),
    /** An answer that holds a secret: bought the first time, and shown again from then on. */
    secretAnswer: (server: ServerProcess, once: string) => buy(server, 'instant-agent-wallet', {}, once),
    /** Pays from a new wallet, and has it given back. */
    async refund(server: ServerProcess, rail: 'solana' | 'tempo'): Promise<void> {
      const reply =
        rail === 'solana'
          ? await pay.solana(server.url, await solanaWallet(1))
          : await pay.tempo(server.url, await world.wallet(1));
      assert.equal(reply.status, 200, await reply.text());
      sold.push('ping');
      const callId = reply.headers.get('x-call-id');
      if (rail === 'solana') await solana.pass(FINAL_AFTER_SLOTS);
      await giveBack(database, { url: server.url, token: TOKEN, callId });
      const isPaid = async () => {
        const rows = await database.sql`select 1 from refunds where call_id = ${callId} and state = 1`;
        return rows.length === 1;
      };
      await until(`the refund on ${rail}`, isPaid);
    },
  };
}

const trial = (server: ServerProcess, address: string) =>
  fetch(`${server.url}/api/m2m/credits/trial`, { headers: { 'x-forwarded-for': address } }).then(
    ({ status }) => status,
  );

test('each key that signs, and the secret, is exchanged from replica to replica', async () => {
  const keys = await twoOfEach();
  const vault = await fillVault();
  await vault.isKeptBy(keys.keeper(0));
  const first = await start(files({ ...keys.variables(0), FAREBOX_SECRET: OLD }));
  const before = await boughtOn(database);
  const beside = startCounter();
  const load = startLoad(first, [
    ['credits', (url) => post(url, 'x402/ping', { 'x-api-key': apiKey })],
    ['solana', pay.solana],
    ['tempo', pay.tempo],
  ]);
  /** Has each key do what it is for. */
  const useAll = async (server: ServerProcess, index: 0 | 1) => {
    await Promise.all([
      load.more(),
      beside.register(server, `agent-${index}`),
      beside.refund(server, 'solana'),
      beside.refund(server, 'tempo'),
    ]);
    await until('a move of the vault', async () => (await keys.work(index)).moves === 1);
    const { settledSol, ...work } = await keys.work(index);
    assert(settledSol > 0, 'it pays the fees on Solana');
    const once = { refundedSolana: PRICE.ping, refundsTempo: 1n, moves: 1, registrations: 1 };
    assert.deepEqual(work, once);
  };
  try {
    await useAll(first, 0);
    const moved = (await vault.lastReport())?.proposal ?? assert.fail();
    assert.equal(await trial(first, '8.60.0.1'), 200);
    const kept = await beside.secretAnswer(first, 'under-the-old-secret');

    const next = { ...keys.variables(1), FAREBOX_SECRET: `${OLD},${NEW}` };
    files(next);
    const { renewed, waiting } = await hangUp(first, true);
    assert.deepEqual([renewed, waiting], [[], Object.keys(next).toSorted()]);
    const done = await keys.work(0);
    await load.more();
    assert((await keys.work(0)).settledSol > done.settledSol, 'the old settler goes on');
    const idle = { settledSol: 0, refundedSolana: 0n, refundsTempo: 0n, moves: 0, registrations: 0 };
    assert.deepEqual(await keys.work(1), idle);

    // What was moved to pays next to nothing by now, so that the next keeper has something to do.
    await vault.isKeptBy(keys.keeper(1), { [moved.to]: { percent: 0.05 } });
    const early = await solanaWallet(1);
    const signedBefore = await signOnSolana(first.url, early);
    const second = await start(files(next));
    const refused = await post(second.url, 'x402/ping', signedBefore);
    assert.equal(refused.status, 402, 'its fee was to be paid by the old key: the client signs anew');
    assert.equal(await solana.holds(early.address), USD);
    await load.moveTo(second);
    assert.equal(await first.end('SIGTERM'), 0);
    const last = await keys.work(0);
    await useAll(second, 1);
    assert.deepEqual(await keys.work(0), last, 'the old keys do nothing more');
    assert.equal(await trial(second, '8.60.0.1'), 429);
    assert.equal(await beside.secretAnswer(second, 'under-the-old-secret'), kept);

    // Two replicas side by side, of which one puts the new secret first: each knows what the other makes.
    const third = await start(files({ FAREBOX_SECRET: `${NEW},${OLD}`, ...keys.variables(1) }));
    await load.moveTo(third);
    await load.more();
    assert.equal(await trial(third, '8.60.0.2'), 200);
    assert.deepEqual([await trial(second, '8.60.0.2'), await trial(third, '8.60.0.1')], [429, 429]);
    const renewedAnswer = await beside.secretAnswer(third, 'under-the-new-secret');
    assert.equal(await beside.secretAnswer(second, 'under-the-new-secret'), renewedAnswer);
    assert.equal(await beside.secretAnswer(third, 'under-the-old-secret'), kept);
    assert.equal(await second.end('SIGTERM'), 0);

    const alone = files({ FAREBOX_SECRET: NEW, ...keys.variables(1) });
    await assert.rejects(
      start(alone),
      /FAREBOX_SECRET: .*who has had a trial .*stored answers that hold secrets/,
    );
    await load.more();
    await database.sql`update trial_claims set claimed_at = now() - interval '8 days'`;
    await database.sql`update call_answers set expires_at = now() - interval '1 second'`;
    const fourth = await start(alone);
    await load.moveTo(fourth);
    assert.equal(await third.end('SIGTERM'), 0);
    await load.more();
  } finally {
    await load.stop();
  }
  const { credits, solana: bySolana, tempo: byTempo } = load.sold;
  const pings = BigInt(credits + bySolana + byTempo) * PRICE.ping;
  const micros = beside.sold.reduce((sum, path) => sum + PRICE[path], pings);
  const calls = credits + bySolana + byTempo + beside.sold.length;
  await assertTakenOnce(database, before, { calls, micros });
});
