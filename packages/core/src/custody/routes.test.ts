import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import pino from 'pino';
import { privateKeyToAddress } from 'viem/accounts';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { createRateLimit } from '../http/rate-limit.ts';
import { createHttpServer } from '../http/server.ts';
import { createKeys, type Keys } from '../keys/keys.ts';
import { grantKey } from '../keys/trial.ts';
import { createLedger } from '../ledger/ledger.ts';
import { createKeyring } from './envelope.ts';
import { ownerOf } from './owner.ts';
import { custodyRoutes, RECORDED_REFUSALS_PER_MINUTE } from './routes.ts';
import { createWallets, type Wallets } from './wallets.ts';

const PER_MINUTE = 40;

let database: TestDatabase;
let keys: Keys;
let wallets: Wallets;
let http: FastifyInstance;
const log: string[] = [];
let calls = 0;
before(async () => {
  database = await openTestDatabase();
  keys = createKeys(database.sql, Date.now);
  wallets = createWallets(database.sql, { keyring: createKeyring([randomBytes(32)]), nowMs: Date.now });
  http = createHttpServer(pino({ level: 'trace' }, { write: (text: string) => void log.push(text) }));
  const limit = (perMinute: number) => createRateLimit({ perMinute, maxNames: 100, nowMs: () => 0 });
  custodyRoutes(http, {
    wallets,
    keys,
    walletLimit: limit(PER_MINUTE),
    refusalLimit: limit(RECORDED_REFUSALS_PER_MINUTE),
    // Each test calls from an address of its own.
    addressOf: (request) => String(request.headers['x-test'] ?? 'elsewhere'),
  });
});
after(async () => {
  await http.close();
  await database.close();
});

async function newKey(): Promise<{ apiKey: string; id: bigint; accountId: bigint }> {
  const ledger = createLedger(database, Date.now);
  const grant = { amountMicros: 1_000_000n, label: 'test', note: 'test' };
  const { apiKey } = await grantKey({ sql: database.sql, keys, ledger, nowMs: Date.now }, grant);
  const known = await keys.find(apiKey);
  assert(known !== null);
  return { apiKey, id: known.id, accountId: known.accountId };
}

/** A wallet that credits paid for. */
async function newWallet() {
  const key = await newKey();
  const owner = ownerOf({ by: 'account', accountId: key.accountId });
  const { wallet, walletSecret } = await wallets.paidBy(owner).walletFor({
    callId: `call-${calls++}`,
    agentId: 'agent',
    agentName: 'A name of its own',
    purpose: null,
    networks: ['base'],
  });
  return { ...wallet, walletSecret: walletSecret ?? '', key, address: wallet.addresses[0]?.address };
}

async function ask(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Record<string, unknown>; text: string }> {
  const { statusCode, body } = await http.inject({ method, url: `/api/wallets/${path}`, headers });
  return { status: statusCode, body: JSON.parse(body), text: body };
}

function exportedKey(body: Record<string, unknown>): string {
  const [key] = body.keys as { privateKey: string }[];
  return key?.privateKey ?? '';
}

async function refusals(walletId: string): Promise<number> {
  const [row] = await database.sql<{ n: bigint }[]>`
    select count(*) as n from managed_wallet_events where wallet_id = ${walletId} and action = 'refused'`;
  return Number(row?.n);
}

describe('a wallet’s facts', () => {
  test('are public, and are no more than addresses, state and time', async () => {
    const wallet = await newWallet();
    const { status, body } = await ask('GET', wallet.walletId);
    assert.equal(status, 200);
    assert.deepEqual(body, {
      success: true,
      walletId: wallet.walletId,
      addresses: [{ network: 'base', address: wallet.address }],
      status: 'active',
      custodyType: 'managed',
      createdAt: new Date(wallet.createdAtMs).toISOString(),
      deletedAt: null,
    });
  });

  test('of what is no wallet are a 404, however it is written', async () => {
    for (const id of ['00000000-0000-4000-8000-000000000000', 'x', "'%3B drop table managed_wallets"]) {
      const { status, body } = await ask('GET', id);
      assert.deepEqual([status, body.code], [404, 'WALLET_NOT_FOUND'], id);
    }
  });
});

describe('an export', () => {
  test('goes to the wallet’s secret and to a key of the account that paid, also a later one', async () => {
    const wallet = await newWallet();
    const rotated = await keys.rotate(wallet.key.id);
    for (const headers of [
      { 'x-wallet-secret': wallet.walletSecret },
      { 'x-api-key': rotated?.apiKey ?? '' },
      { authorization: `Bearer ${rotated?.apiKey}` },
    ]) {
      const { status, body } = await ask('POST', `${wallet.walletId}/export`, headers);
      assert.equal(status, 200, JSON.stringify(body));
      const privateKey = exportedKey(body);
      assert.equal(privateKeyToAddress(`0x${privateKey.slice(2)}`), wallet.address);
      assert(!log.join('').includes(privateKey.slice(2)), 'the log holds a private key');
    }
    const events = await database.sql<{ action: string; actor: string; request_id: string | null }[]>`
      select action, actor, request_id from managed_wallet_events where wallet_id = ${wallet.walletId} order by id`;
    const exported = events.filter(({ action }) => action === 'exported');
    const [bySecret, byKey] = exported.map(({ actor }) => actor);
    assert.equal(exported.length, 3);
    assert.equal(bySecret, 'wallet-secret');
    assert.match(byKey ?? '', /^key:\d+$/);
    assert(exported.every(({ request_id }) => request_id?.startsWith('req_')));
  });

  test('goes to nobody else, and each attempt is on record', async () => {
    const wallet = await newWallet();
    const other = await newWallet();
    const revoked = wallet.key.apiKey;
    await keys.revoke(wallet.key.id);
    const attempts: [Record<string, string>, number, string][] = [
      [{}, 401, 'WALLET_CREDENTIAL_MISSING'],
      [{ 'x-wallet-secret': other.walletSecret }, 403, 'WALLET_SECRET_INVALID'],
      [{ 'x-wallet-secret': '' }, 403, 'WALLET_SECRET_INVALID'],
      [{ 'x-wallet-secret': other.walletSecret, 'x-api-key': revoked }, 403, 'WALLET_SECRET_INVALID'],
      [{ 'x-api-key': other.key.apiKey }, 403, 'WALLET_NOT_YOURS'],
      [{ 'x-api-key': `fbx_live_${'0'.repeat(64)}` }, 403, 'API_KEY_INVALID'],
      [{ 'x-api-key': revoked }, 403, 'API_KEY_NOT_ACTIVE'],
    ];
    for (const [headers, status, code] of attempts) {
      for (const [method, path] of [
        ['POST', `${wallet.walletId}/export`],
        ['DELETE', wallet.walletId],
      ] as const) {
        const answer = await ask(method, path, { ...headers, 'x-test': 'thief' });
        assert.deepEqual([answer.status, answer.body.code], [status, code]);
        assert(!answer.text.includes('privateKey'));
      }
    }
    // Twelve were turned away; no more than so many fill the database.
    assert.equal(await refusals(wallet.walletId), RECORDED_REFUSALS_PER_MINUTE);
    assert.equal((await wallets.find(wallet.walletId))?.deletedAtMs, null);
    // The owner is not locked out by somebody else's attempts.
    const own = await ask('POST', `${wallet.walletId}/export`, { 'x-wallet-secret': wallet.walletSecret });
    assert.equal(own.status, 200);
  });

  test('of a wallet that a signature paid for goes to no API key', async () => {
    const owner = ownerOf({ by: 'signature', network: 'eip155:8453', address: '0xAb' });
    const request = {
      callId: 'x402',
      agentId: 'a',
      agentName: null,
      purpose: null,
      networks: ['base'] as const,
    };
    const { wallet, walletSecret } = await wallets.paidBy(owner).walletFor(request);
    const { apiKey } = await newKey();
    const path = `${wallet.walletId}/export`;
    assert.equal((await ask('POST', path, { 'x-api-key': apiKey })).status, 403);
    assert.equal((await ask('POST', path, { 'x-wallet-secret': walletSecret ?? '' })).status, 200);
  });
});

test('a deleted wallet is gone for good, for its owner too', async () => {
  const wallet = await newWallet();
  const own = { 'x-wallet-secret': wallet.walletSecret };
  const deleted = await ask('DELETE', wallet.walletId, own);
  assert.deepEqual([deleted.status, deleted.body.status], [200, 'deleted']);
  const again = await ask('DELETE', wallet.walletId, own);
  assert.deepEqual([again.status, again.body.deletedAt], [200, deleted.body.deletedAt]);
  const exported = await ask('POST', `${wallet.walletId}/export`, own);
  assert.deepEqual([exported.status, exported.body.code], [410, 'WALLET_DELETED']);
  assert.equal((await ask('GET', wallet.walletId)).body.status, 'deleted');
});

test('one address may not ask without end', async () => {
  const wallet = await newWallet();
  const headers = { 'x-test': 'flood' };
  const answers = await Promise.all(
    Array.from({ length: PER_MINUTE + 1 }, () => ask('POST', `${wallet.walletId}/export`, headers)),
  );
  const statuses = answers.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [...Array(PER_MINUTE).fill(401), 429]);
});
