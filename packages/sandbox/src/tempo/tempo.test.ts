/** The chain as its users meet it: the reference client of the Machine Payments Protocol must be able to pay on it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { Receipt } from 'mppx';
import { Mppx as MppxClient, tempo as payByTempo } from 'mppx/client';
import { Mppx, tempo } from 'mppx/server';
import { type Address, createPublicClient, type Hex, http, isHex, parseAbi, parseAbiItem } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { tempo as tempoNetwork } from 'viem/tempo/chains';
import { SANDBOX_ACCOUNTS, SEED } from '../accounts.fixture.ts';
import { fundTempo } from './faucet.ts';
import { connect } from './node.ts';
import { startTempo, type TempoChain } from './tempo.ts';

const USDC_E = '0x20C000000000000000000000b9537d11c60E8b50';
const PATH_USD = '0x20c0000000000000000000000000000000000000';
const TOKEN = parseAbi([
  'function name() view returns (string)',
  'function symbol() view returns (string)',
  'function decimals() view returns (uint8)',
  'function totalSupply() view returns (uint256)',
  'function balanceOf(address) view returns (uint256)',
]);
const TRANSFER = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)');
const PRICE_MICROS = 250_000n;
/** What a payment costs its payer beside the price, at the very most. */
const DEAREST_FEE_MICROS = 20_000n;
const { recipient, faucet, refunds } = SANDBOX_ACCOUNTS;

let folder: string;
let chain: TempoChain;
let shop: Server;
let shopUrl: string;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-tempo-'));
  chain = await startTempo({ seed: SEED, stateDir: folder });
  shop = createServer(async (request, response) => {
    const { authorization } = request.headers;
    const sale = await payments().charge({ amount: '0.25', description: 'ping', scope: 'POST /ping' })(
      new Request(shopUrl, { method: 'POST', headers: authorization === undefined ? {} : { authorization } }),
    );
    const answer = sale.status === 402 ? sale.challenge : sale.withReceipt(Response.json({ pong: true }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  await once(shop.listen(0, '127.0.0.1'), 'listening');
  const address = shop.address();
  assert(typeof address === 'object' && address !== null);
  shopUrl = `http://127.0.0.1:${address.port}/ping`;
});
after(async () => {
  shop.close();
  await chain.stop();
  rmSync(folder, { recursive: true, force: true });
});

// A client as anyone would make it for the real chain, but for the address.
const reader = () =>
  createPublicClient({
    chain: { ...tempoNetwork, rpcUrls: { default: { http: [chain.url] } } },
    transport: http(chain.url, { retryCount: 0 }),
    cacheTime: 0,
  });
const balanceOf = (token: Address, account: Address) =>
  reader().readContract({ address: token, abi: TOKEN, functionName: 'balanceOf', args: [account] });

function payments() {
  return Mppx.create({
    realm: '127.0.0.1',
    secretKey: 'only for this test'.padEnd(32, '.'),
    methods: [
      tempo.charge({
        currency: USDC_E,
        recipient: recipient.address,
        getClient: reader,
        supportedModes: ['pull'],
      }),
    ],
  });
}

async function payer(): Promise<PrivateKeyAccount> {
  const account = privateKeyToAccount(generatePrivateKey());
  assert.equal(await fundTempo(chain.url, account.address, 1_000_000n), 1_000_000n);
  return account;
}

/** Buys once and returns the hash of the payment. */
async function pay(account: PrivateKeyAccount): Promise<Hex> {
  const { fetch } = MppxClient.create({
    polyfill: false,
    methods: [payByTempo.charge({ account, getClient: reader })],
  });
  const answer = await fetch(shopUrl, { method: 'POST' });
  assert.equal(answer.status, 200, await answer.clone().text());
  const receipt = Receipt.deserialize(answer.headers.get('payment-receipt') ?? assert.fail());
  assert(isHex(receipt.reference));
  return receipt.reference;
}

test('the chain is Tempo to a wallet: its id, the token, funds, and blocks that come by themselves', async () => {
  const client = reader();
  assert.equal(await client.getChainId(), 4217);
  const read = <Name extends 'name' | 'symbol' | 'decimals' | 'totalSupply'>(functionName: Name) =>
    client.readContract({ address: USDC_E, abi: TOKEN, functionName });
  assert.deepEqual(
    [await read('name'), await read('symbol'), await read('decimals'), await read('totalSupply')],
    ['Bridged USDC (Stargate)', 'USDC.e', 6, 1_010_000_000_000n],
  );
  assert.equal(await balanceOf(USDC_E, recipient.address), 0n);
  assert.equal(await balanceOf(USDC_E, refunds.address), 10_000_000_000n);
  assert.equal(await balanceOf(USDC_E, faucet.address), 1_000_000_000_000n);

  const { number } = await client.getBlock();
  while ((await client.getBlockNumber()) === number) await sleep(50);
  const { timestamp } = await client.getBlock();
  assert(BigInt(Math.round(Date.now() / 1_000)) - timestamp <= 4n, 'recent enough for a payment');
});

test('the reference client pays, twice in a row, and the fee is taken from the token that it pays with', async () => {
  const account = await payer();
  const before = await balanceOf(USDC_E, recipient.address);
  const hashes = [await pay(account), await pay(account)];
  assert.notEqual(hashes[0], hashes[1]);
  assert.equal((await balanceOf(USDC_E, recipient.address)) - before, 2n * PRICE_MICROS);
  const paid = 1_000_000n - (await balanceOf(USDC_E, account.address));
  assert(paid > 2n * PRICE_MICROS && paid < 2n * (PRICE_MICROS + DEAREST_FEE_MICROS), `${paid}`);
  assert.equal(await balanceOf(PATH_USD, account.address), 1_000_000n);
});

test('ten payers at once', async () => {
  const payers = await Promise.all(Array.from({ length: 10 }, payer));
  const before = await balanceOf(USDC_E, recipient.address);
  const hashes = await Promise.all(payers.map(pay));
  assert.equal(new Set(hashes).size, 10);
  assert.equal((await balanceOf(USDC_E, recipient.address)) - before, 10n * PRICE_MICROS);
});

test('a restart keeps balances, receipts and logs, but not the many blocks in which nothing happened', async () => {
  const account = await payer();
  const hash = await pay(account);
  const { blockHash, blockNumber } = await reader().getTransactionReceipt({ hash });
  const state = async () => ({
    received: await balanceOf(USDC_E, recipient.address),
    held: await balanceOf(USDC_E, account.address),
    block: (await reader().getTransactionReceipt({ hash })).blockHash,
    payments: (
      await reader().getLogs({
        address: USDC_E,
        event: TRANSFER,
        args: { to: recipient.address },
        fromBlock: 0n,
      })
    ).length,
  });
  await connect(chain.url).mine({ blocks: 2_000 });
  const before = await state();
  assert.equal(before.block, blockHash);
  const newest = await reader().getBlockNumber();
  assert(newest >= blockNumber + 2_000n);
  await chain.stop();
  const saved: { blocks: unknown[] } = JSON.parse(
    gunzipSync(readFileSync(join(folder, 'state.json.gz'))).toString(),
  );
  assert(saved.blocks.length < 400, `${saved.blocks.length} blocks`);

  chain = await startTempo({ seed: SEED, stateDir: folder });
  assert((await reader().getBlockNumber()) > newest);
  assert.deepEqual(await state(), before);
  await pay(account);
  assert.equal(await balanceOf(USDC_E, recipient.address), before.received + PRICE_MICROS);
});
