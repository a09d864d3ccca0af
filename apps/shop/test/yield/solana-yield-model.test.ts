/** What the portal hands out where the lending program does something else than the model of it, as the node's simulation says. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type SolanaYieldWorld, startSolanaYieldWorld } from './solana-yield.fixture.ts';

const AMOUNT = 1_000_000_000;
/** Where a token account has its amount. */
const AMOUNT_AT = 64;

let database: TestDatabase;
let world: SolanaYieldWorld;
/** Stands before the sandbox's node, and adds so much to what simulations show of the first account. */
let wire: Server;
let added = 0n;
let simulated = 0;
let server: TestServer;

before(async () => {
  database = await openTestDatabase();
  world = await startSolanaYieldWorld(database);
  wire = createServer(async (request, response) => {
    const asked = await text(request);
    const headers = { 'content-type': 'application/json' };
    const told = await (await fetch(world.chain.url, { method: 'POST', headers, body: asked })).text();
    if (!asked.includes('"simulateTransaction"')) return void response.end(told);
    simulated += 1;
    response.end(JSON.stringify(withMore(JSON.parse(told))));
  });
  await new Promise<void>((resolve) => wire.listen(0, '127.0.0.1', resolve));
  server = await startTestServer({
    pools: database,
    environment: {
      UPSTREAM_SOLANA_BASE_URL: `http://127.0.0.1:${(wire.address() as AddressInfo).port}`,
      SOLANA_YIELD_TREASURY: world.treasury,
      SOLANA_YIELD_SINCE_SLOT: '0',
    },
  });
});
after(async () => {
  await server?.close();
  await new Promise<void>((resolve) => {
    wire.close(() => resolve());
    wire.closeAllConnections();
  });
  await world?.stop();
  await database?.close();
});

function withMore(told: { result: { value: { accounts: { data: [string, string] }[] } } }) {
  const [first] = told.result.value.accounts;
  if (first === undefined) return told;
  const bytes = Buffer.from(first.data[0], 'base64');
  // The wallet's own account, which the check before signing asks for, has no data.
  if (bytes.length < AMOUNT_AT + 8) return told;
  bytes.writeBigUInt64LE(bytes.readBigUInt64LE(AMOUNT_AT) + added, AMOUNT_AT);
  first.data[0] = bytes.toString('base64');
  return told;
}

async function post(path: string, body: object) {
  const response = await fetch(`${server.url}/api/solana-yield/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await jsonOf(response) };
}

test('a difference stops a deposit, whose key is free again, and a rounding does not', async () => {
  const wallet = await world.wallet(AMOUNT);
  const asked = {
    wallet: wallet.address,
    amount_usdc: 100,
    idempotency_key: '3f2b6c1e-8d4a-4c7b-9e51-0a6f2d3b4c5d',
  };
  added = 50n;
  simulated = 0;
  const stopped = await post('deposit-tx', asked);
  assert.deepEqual(
    [stopped.status, stopped.body.error],
    [503, 'MODEL_DIFFERS'],
    JSON.stringify(stopped.body),
  );
  assert.equal(
    BigInt(stopped.body.simulation.collateral_raw) - BigInt(stopped.body.model.collateral_raw),
    added,
  );
  assert.equal(simulated, 3, 'it is looked at again before a difference counts');
  added = 1n;
  const built = await post('deposit-tx', asked);
  assert.equal(built.status, 200, JSON.stringify(built.body));
  assert.equal(built.body.simulation.agrees_with_model, true);
});

test('a withdrawal is built from the simulation’s figures, with a warning', async () => {
  const wallet = await world.wallet(AMOUNT);
  added = 0n;
  const bundle = (await post('deposit-tx', { wallet: wallet.address, amount_usdc: 100 })).body;
  const send = world.byWeb3(wallet);
  for (const { base64 } of bundle.transactions) await send(base64);
  const honest = (await post('withdraw-tx', { wallet: wallet.address, amount: 'MAX' })).body;
  assert.deepEqual([honest.warnings, honest.simulation.agrees_with_model], [[], true]);
  added = 1_000_000n;
  const { status, body } = await post('withdraw-tx', { wallet: wallet.address, amount: 'MAX' });
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(
    body.warnings.map(({ code }: { code: string }) => code),
    ['MODEL_DIFFERS'],
  );
  assert.equal(body.simulation.agrees_with_model, false);
  const more = BigInt(body.grossRaw) - BigInt(honest.grossRaw);
  assert(more >= added && more < added + 1_000n, String(more));
  // What it says the wallet receives is what the simulation of this very transaction shows, but for a slot that passed meanwhile.
  const apart = BigInt(body.simulation.received_raw) - BigInt(body.net_raw);
  assert(apart >= 0n && apart < 10n, String(apart));
});

test('who asks for more pays more for landing soon, and nobody more than the bound', async () => {
  const wallet = await world.wallet(AMOUNT);
  added = 0n;
  const of = async (priority: unknown) =>
    (await post('deposit-tx', { wallet: wallet.address, amount_usdc: 100, priority })).body;
  const [usual, high, own] = [await of(undefined), await of('high'), await of(70_000)];
  assert.equal(usual.priority_fee.priority, 'medium');
  assert(
    BigInt(high.priority_fee.micro_lamports_per_unit) > BigInt(usual.priority_fee.micro_lamports_per_unit),
  );
  assert.equal(own.priority_fee.micro_lamports_per_unit, '70000');
  // 240,000 units in both transactions.
  assert.equal(own.priority_fee.at_most_lamports, String(2_800 + 1 + 14_000 + 1));
  for (const wrong of ['urgent', -1, 10_000_001, 1.5, [], '']) {
    const { status, body } = await post('withdraw-tx', {
      wallet: wallet.address,
      amount: 'MAX',
      priority: wrong,
    });
    assert.deepEqual([status, body.fields?.[0]?.field], [400, 'priority'], JSON.stringify(wrong));
  }
});
