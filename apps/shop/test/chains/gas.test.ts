/**
 * Keys of ours that pay for transactions, on every kind of chain: while one cannot, what needs it is not offered, `/admin`
 * and the log say why, and it comes back by itself.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type Hex, parseEther } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { readSolanaKey } from '../../../../packages/core/src/rails/x402/solana-key.ts';
import { defineService, type Service } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { SEED } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { USDC_E } from '../../../../packages/sandbox/src/tempo/addresses.ts';
import { fundTempo } from '../../../../packages/sandbox/src/tempo/faucet.ts';
import { startTempo, type TempoChain } from '../../../../packages/sandbox/src/tempo/tempo.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { MPP_SECRET } from '../mpp.fixture.ts';
import { jsonOf, startTestServer } from '../server.fixture.ts';
import { solanaNode } from '../solana.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

const TOKEN = 'a-token-of-the-gas-tests';
const BASE = 'eip155:8453';
const SOLANA = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const TEMPO = 'eip155:4217';

let world: PaymentWorld;
let tempo: TempoChain;
let database: TestDatabase;
before(async () => {
  [world, tempo, database] = await Promise.all([
    startPaymentWorld({ solana: true }),
    startTempo({ seed: SEED, stateDir: null }),
    openTestDatabase(),
  ]);
});
after(() => Promise.all([world?.stop(), tempo?.stop(), database?.close()]));

/** One that only reads, and one that leaves something behind. */
const SOLD = (['reads', 'writes'] as const).map(
  (path): Service =>
    defineService({
      path,
      name: path,
      tag: 'Discovery',
      priceUsd: '0.10',
      summary: 'For tests.',
      effect: path === 'reads' ? 'read' : 'write',
      mpp: true,
      input: z.object({}),
      output: z.object({ done: z.boolean() }),
      example: {},
      run: async () => answer({ done: true }, { method: 'None.' }),
    }),
);

function newSolanaKey(): { secret: string; address: string } {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' });
  const secret = JSON.stringify([...Buffer.from(d, 'base64url'), ...Buffer.from(x, 'base64url')]);
  return { secret, address: readSolanaKey(secret).address };
}

/** Every key that a server can have, all of them dry, and what fills them. */
function keyring() {
  const evm = () => {
    const privateKey = generatePrivateKey();
    return { privateKey, address: privateKeyToAccount(privateKey).address };
  };
  const keys = { settler: evm(), refunder: evm(), registrar: evm(), tempoRefunder: evm() };
  const solana = { settler: newSolanaKey(), refunder: newSolanaKey() };
  const node = solanaNode(world.solana?.url ?? '');
  const ether = (address: Hex, wei = parseEther('10')) =>
    world.chain.client.setBalance({ address, value: wei });
  return {
    keys,
    solana,
    ether,
    environment: {
      ...world.environment,
      FACILITATOR_URL: '',
      ADMIN_TOKENS: `desk:${TOKEN}`,
      X402_RELAYER_KEYS: keys.settler.privateKey,
      X402_REFUND_KEYS: keys.refunder.privateKey,
      IDENTITY_REGISTRAR_KEY: keys.registrar.privateKey,
      X402_RELAYER_KEY_SOLANA: solana.settler.secret,
      X402_REFUND_KEY_SOLANA: solana.refunder.secret,
      MPP_METHODS: 'tempo',
      MPP_SECRET_KEY: MPP_SECRET,
      MPP_TEMPO_RPC_URL: tempo.url,
      MPP_TEMPO_RECIPIENT: world.recipient,
      MPP_TEMPO_CURRENCY: USDC_E,
      MPP_TEMPO_REFUND_KEY: keys.tempoRefunder.privateKey,
    },
    /** What each key does, and how it is filled. */
    all: [
      { does: `${BASE} settle`, address: keys.settler.address, fill: () => ether(keys.settler.address) },
      { does: `${BASE} refund`, address: keys.refunder.address, fill: () => ether(keys.refunder.address) },
      {
        does: `${SOLANA} settle`,
        address: solana.settler.address,
        fill: () => node.give(solana.settler.address, { lamports: 1_000_000_000 }),
      },
      {
        does: `${SOLANA} refund`,
        address: solana.refunder.address,
        fill: () => node.give(solana.refunder.address, { lamports: 1_000_000_000 }),
      },
      {
        does: `${TEMPO} refund`,
        address: keys.tempoRefunder.address,
        fill: () => fundTempo(tempo.url, keys.tempoRefunder.address, 1_000_000n),
      },
      {
        does: `${BASE} register`,
        address: keys.registrar.address,
        fill: () => ether(keys.registrar.address),
      },
    ],
  };
}

async function openShop(environment: Record<string, string>) {
  const registered = (await loadServices()).filter(({ path }) => path === 'verified-agent-identity');
  const server = await startTestServer({ pools: database, services: [...SOLD, ...registered], environment });
  const networks = async (path: string): Promise<string[]> => {
    const { accepts = [] } = await jsonOf(fetch(`${server.url}/x402/${path}`, { method: 'POST' }));
    return accepts
      .map(({ network }: { network: string }) => network)
      .filter((network: string) => network !== 'farebox:credits');
  };
  const methods = async (path: string) => {
    const { headers } = await fetch(`${server.url}/mpp/${path}`, { method: 'POST' });
    return (headers.get('www-authenticate') ?? '').includes('method="tempo"');
  };
  return {
    server,
    look: () => server.app.jobs.find(({ name }) => name === 'look-at-gas')?.run(),
    /** What can be bought, and how. */
    offers: async () => ({
      reads: { x402: await networks('reads'), tempo: await methods('reads') },
      writes: { x402: await networks('writes'), tempo: await methods('writes') },
      identity: (await fetch(`${server.url}/x402/verified-agent-identity`, { method: 'POST' })).status,
    }),
    // biome-ignore lint/suspicious/noExplicitAny: what the page shows is for the test to say
    async gas(): Promise<any[]> {
      const headers = { authorization: `Bearer ${TOKEN}` };
      return (await jsonOf(fetch(`${server.url}/admin/api/overview?days=1`, { headers }))).gas;
    },
    metrics: async () =>
      (await (await fetch(`${server.url}/metrics`)).text())
        .split('\n')
        .filter((line) => line.startsWith('farebox_gas_')),
    /** What the log says of our keys: its level, and whose key. */
    said: () =>
      server.log
        .map((line) => JSON.parse(line))
        .filter(({ msg }) => /a key of ours can/.test(msg))
        .map(({ level, network, duty }) => `${level} ${network} ${duty}`),
  };
}

test('on every chain, while a key is dry what needs it is not offered; filled, it is, and nobody had to do anything', async () => {
  const { environment, all } = keyring();
  const shop = await openShop(environment);
  try {
    assert.deepEqual(await shop.offers(), {
      reads: { x402: [], tempo: true },
      writes: { x402: [], tempo: false },
      identity: 503,
    });
    const refused = await jsonOf(
      fetch(`${shop.server.url}/x402/verified-agent-identity`, { method: 'POST' }),
    );
    assert.match(refused.message, /our key for registrations lacks the gas/);

    // One table for all chains, and once in the log however often they are looked at.
    await shop.look();
    await shop.look();
    const table = await shop.gas();
    const of = (rows: { network: string; duty: string }[]) =>
      rows.map(({ network, duty }) => `${network} ${duty}`);
    assert.deepEqual(of(table).toSorted(), all.map(({ does }) => does).toSorted());
    for (const row of table) {
      const known = all.find(({ does }) => does === `${row.network} ${row.duty}`);
      assert.equal(row.address.toLowerCase(), known?.address.toLowerCase());
      assert.deepEqual([row.isAble, row.balance, row.daysLeft], [false, '0', null]);
      assert.match(row.reason, /^holds 0 (ETH|SOL|USD), and needs 0\.\d+ (ETH|SOL|USD)$/);
      assert.match(row.daysUnknown, /^none of its transactions/);
      assert(Number(row.least) > 0 && row.seenAt !== null && row.unableSince !== null);
    }
    assert.deepEqual(shop.said().toSorted(), all.map(({ does }) => `50 ${does}`).toSorted());
    const metrics = await shop.metrics();
    assert.equal(metrics.filter((line) => /^farebox_gas_able\{.*\} 0$/.test(line)).length, all.length);
    assert.equal(metrics.filter((line) => /^farebox_gas_balance\{.*\} 0$/.test(line)).length, all.length);
    assert(metrics.some((line) => line.includes('token="SOL"') && line.includes('duty="settle"')));

    for (const { fill } of all) await fill();
    await shop.look();
    assert.deepEqual(await shop.offers(), {
      reads: { x402: ['base', 'solana'], tempo: true },
      writes: { x402: ['base', 'solana'], tempo: true },
      identity: 402,
    });
    assert((await shop.gas()).every(({ isAble, reason }) => isAble && reason === null));
    assert.deepEqual(
      shop.said().slice(all.length).toSorted(),
      all.map(({ does }) => `40 ${does}`).toSorted(),
    );
    const filled = await shop.metrics();
    assert.equal(filled.filter((line) => /^farebox_gas_able\{.*\} 1$/.test(line)).length, all.length);
    assert(filled.some((line) => /^farebox_gas_balance\{.*token="SOL"\} 1$/.test(line)));
  } finally {
    await shop.server.close();
  }
});
