import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { privateKeyToAddress } from 'viem/accounts';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import type { Custody } from '../service/define.ts';
import { ServiceFailure } from '../words/failure.ts';
import { createKeyring, Unreadable } from './envelope.ts';
import { ownerOf } from './owner.ts';
import { isWalletSecret } from './wallet-secret.ts';
import { createWallets, type Wallets } from './wallets.ts';

const OLD = randomBytes(32);
const NEW = randomBytes(32);
const ME = { name: 'test', requestId: 'req_1' };
const ALICE = ownerOf({ by: 'account', accountId: 1_000n });
const BOB = ownerOf({ by: 'account', accountId: 1_001n });

let database: TestDatabase;
let wallets: Wallets;
let calls = 0;
before(async () => {
  database = await openTestDatabase();
  wallets = walletsUnder(OLD);
});
after(() => database.close());

function walletsUnder(...keys: Buffer[]): Wallets {
  return createWallets(database.sql, { keyring: createKeyring(keys), nowMs: Date.now });
}

function asked(
  agentId: string,
  networks: Parameters<Custody['walletFor']>[0]['networks'] = ['base'],
  callId = `call-${calls++}`,
) {
  return { callId, agentId, agentName: null, purpose: null, networks };
}

async function eventsOf(walletId: string): Promise<string[]> {
  const rows = await database.sql<{ action: string }[]>`
    select action from managed_wallet_events where wallet_id = ${walletId} order by id`;
  return rows.map(({ action }) => action);
}

describe('the same payer and agentId', () => {
  test('get the same wallet, and its secret once', async () => {
    const first = await wallets.paidBy(ALICE).walletFor(asked('same'));
    const again = await wallets.paidBy(ALICE).walletFor(asked('same'));
    assert.deepEqual(again.wallet, first.wallet);
    assert.match(first.walletSecret ?? '', /^fbx_wallet_[0-9a-f]{64}$/);
    assert.equal(again.walletSecret, null);
    assert.deepEqual([first.bought, again.bought], ['wallet', 'nothing']);
    const stored = await wallets.find(first.wallet.walletId);
    assert(stored !== null && isWalletSecret(first.walletSecret ?? '', stored.secretDigest));
  });

  test('get one wallet when they ask twenty times at once', async () => {
    const made = await Promise.all(
      Array.from({ length: 20 }, () => wallets.paidBy(ALICE).walletFor(asked('crowd', ['base', 'solana']))),
    );
    assert.equal(new Set(made.map(({ wallet }) => wallet.walletId)).size, 1);
    assert.equal(made.filter(({ walletSecret }) => walletSecret !== null).length, 1);
    assert.equal(made.filter(({ bought }) => bought === 'nothing').length, 19);
  });

  test('another payer’s wallet for that agentId is another wallet', async () => {
    const mine = await wallets.paidBy(ALICE).walletFor(asked('shared name'));
    const theirs = await wallets.paidBy(BOB).walletFor(asked('shared name'));
    assert.notEqual(mine.wallet.addresses[0]?.address, theirs.wallet.addresses[0]?.address);
    assert.notEqual(theirs.walletSecret, null);
  });

  test('get further networks under the same address, and a Solana key when they first ask for one', async () => {
    const first = await wallets.paidBy(ALICE).walletFor(asked('grows', ['base']));
    const more = await wallets.paidBy(ALICE).walletFor(asked('grows', ['solana', 'ethereum']));
    const address = first.wallet.addresses[0]?.address;
    assert.deepEqual(
      more.wallet.addresses.map(({ network }) => network),
      ['ethereum', 'base', 'solana'],
    );
    assert.equal(more.wallet.addresses[0]?.address, address);
    assert.equal(more.wallet.addresses[1]?.address, address);
    assert.match(more.wallet.addresses[2]?.address ?? '', /^[1-9A-HJ-NP-Za-km-z]{32,44}$/);
    const keys = await wallets.exportKeys(first.wallet.walletId, ME);
    assert.deepEqual(
      keys?.map(({ networks }) => networks),
      [['ethereum', 'base'], ['solana']],
    );
    assert.deepEqual(await eventsOf(first.wallet.walletId), ['created', 'extended', 'exported']);
  });

  test('a call that added networks and runs again has still bought them, and another has not', async () => {
    const mine = wallets.paidBy(ALICE);
    await mine.walletFor(asked('grown'));
    const bought = [];
    for (const callId of ['grows-1', 'grows-1', 'grows-2'])
      bought.push((await mine.walletFor(asked('grown', ['polygon'], callId))).bought);
    assert.deepEqual(bought, ['networks', 'networks', 'nothing']);
  });

  test('a call that runs again hands out a secret that works; the one that nobody got ends', async () => {
    const first = await wallets.paidBy(ALICE).walletFor(asked('retried', ['base'], 'one-call'));
    const again = await wallets.paidBy(ALICE).walletFor(asked('retried', ['base'], 'one-call'));
    assert.deepEqual(again.wallet, first.wallet);
    const stored = await wallets.find(first.wallet.walletId);
    assert(stored !== null && isWalletSecret(again.walletSecret ?? '', stored.secretDigest));
    assert(!isWalletSecret(first.walletSecret ?? '', stored.secretDigest));
  });
});

describe('an agentId that is kept for a payment', () => {
  const codeOf = (claim: Promise<unknown>) =>
    claim.then(
      (found) => (found === null ? 'kept' : 'found'),
      (error: unknown) => (error instanceof ServiceFailure ? error.code : String(error)),
    );

  test('is kept for one call of one payer, in any case, for a minute', async () => {
    const startedAtMs = Date.now();
    const at = (nowMs: number) =>
      createWallets(database.sql, { keyring: createKeyring([OLD]), nowMs: () => nowMs });
    const early = at(startedAtMs).paidBy(ALICE);
    const many = Array.from({ length: 8 }, (_, index) =>
      early.claim(asked('Kept', ['base'], `kept-${index}`)),
    );
    const codes = await Promise.all(many.map(codeOf));
    assert.equal(codes.filter((code) => code === 'kept').length, 1, codes.join());
    assert.equal(codes.filter((code) => code === 'WALLET_IN_PROGRESS').length, 7, codes.join());
    const holder = asked('kept', ['base'], `kept-${codes.indexOf('kept')}`);
    assert.equal(await codeOf(early.claim(holder)), 'kept');
    assert.equal(await codeOf(at(startedAtMs).paidBy(BOB).claim(asked('kept'))), 'kept');
    const next = asked('kept', ['base'], 'kept-next');
    assert.equal(
      await codeOf(
        at(startedAtMs + 59_999)
          .paidBy(ALICE)
          .claim(next),
      ),
      'WALLET_IN_PROGRESS',
    );
    assert.equal(
      await codeOf(
        at(startedAtMs + 60_000)
          .paidBy(ALICE)
          .claim(next),
      ),
      'kept',
    );
    await at(startedAtMs + 120_000)
      .paidBy(BOB)
      .claim(asked('another'));
    const rows = await database.sql`select agent_key from agent_id_claims`;
    assert.deepEqual(
      rows.map((row) => row.agent_key),
      ['another'],
      'claims that have ended are deleted',
    );
  });

  test('is not kept once its wallet is there, but for networks that it lacks', async () => {
    const mine = wallets.paidBy(ALICE);
    const { wallet } = await mine.walletFor(asked('there'));
    assert.deepEqual(await mine.claim(asked('THERE')), wallet);
    assert.equal(await mine.claim(asked('there', ['base', 'solana'])), null);
    await wallets.destroy(wallet.walletId, ME);
    assert.equal(await codeOf(mine.claim(asked('there'))), 'WALLET_IN_PROGRESS');
  });
});

describe('a private key', () => {
  test('leads to the address, and stands nowhere in the database', async () => {
    const { wallet, walletSecret } = await wallets.paidBy(ALICE).walletFor(asked('exported'));
    const [key] = (await wallets.exportKeys(wallet.walletId, ME)) ?? [];
    assert(key !== undefined);
    assert.equal(privateKeyToAddress(`0x${key.privateKey.slice(2)}`), wallet.addresses[0]?.address);
    for (const table of ['managed_wallets', 'managed_wallet_keys', 'managed_wallet_events']) {
      const [row] = await database.sql<{ all: string }[]>`
        select coalesce(string_agg(t::text, ' '), '') as all from ${database.sql(table)} t`;
      assert.notEqual(row?.all, '');
      assert(!row?.all.includes(key.privateKey.slice(2)), `${table} holds a private key`);
      assert(!row?.all.includes((walletSecret ?? '').slice(-64)), `${table} holds a wallet's secret`);
    }
  });

  test('does not open once its row was changed or moved to another wallet', async () => {
    const { sql } = database;
    const [mine, theirs] = await Promise.all([
      wallets.paidBy(ALICE).walletFor(asked('tampered')),
      wallets.paidBy(BOB).walletFor(asked('donor')),
    ]);
    const { walletId } = mine.wallet;
    const unreadable = () => assert.rejects(wallets.exportKeys(walletId, ME), Unreadable);
    const [row] = await sql<{ address: string; wrapped: Buffer; sealed: Buffer }[]>`
      select address, wrapped_data_key as wrapped, ciphertext as sealed from managed_wallet_keys
      where wallet_id = ${walletId}`;
    assert(row !== undefined);
    const restore = () => sql`
      update managed_wallet_keys
      set address = ${row.address}, wrapped_data_key = ${row.wrapped}, ciphertext = ${row.sealed}
      where wallet_id = ${walletId}`;

    await sql`update managed_wallet_keys set ciphertext = set_byte(ciphertext, 20, get_byte(ciphertext, 20) # 1)
              where wallet_id = ${walletId}`;
    await unreadable();
    await restore();
    // An address of the attacker's own, at which the owner would then be paid.
    await sql`update managed_wallet_keys set address = ${theirs.wallet.addresses[0]?.address ?? ''}
              where wallet_id = ${walletId}`;
    await unreadable();
    await restore();
    // Somebody else's key under one's own wallet, to export it with one's own secret.
    await sql`update managed_wallet_keys k
              set address = d.address, wrapped_data_key = d.wrapped_data_key, ciphertext = d.ciphertext
              from managed_wallet_keys d where d.wallet_id = ${theirs.wallet.walletId} and k.wallet_id = ${walletId}`;
    await unreadable();
    await restore();
    assert.equal((await wallets.exportKeys(walletId, ME))?.length, 1);
  });
});

describe('deleting', () => {
  test('destroys the key, keeps the record, and lets the agentId have a new wallet', async () => {
    const { sql } = database;
    const { wallet } = await wallets.paidBy(ALICE).walletFor(asked('deleted', ['base', 'solana']));
    await wallets.destroy(wallet.walletId, ME);
    await wallets.destroy(wallet.walletId, ME);
    const keys = await sql`
      select 1 from managed_wallet_keys
      where wallet_id = ${wallet.walletId} and (ciphertext is not null or wrapped_data_key is not null)`;
    assert.equal(keys.length, 0);
    assert.equal(await wallets.exportKeys(wallet.walletId, ME), null);
    const found = await wallets.find(wallet.walletId);
    assert.deepEqual(found?.addresses, wallet.addresses);
    assert.notEqual(found?.deletedAtMs, null);
    assert.deepEqual(await eventsOf(wallet.walletId), ['created', 'deleted']);

    const next = await wallets.paidBy(ALICE).walletFor(asked('deleted'));
    assert.notEqual(next.wallet.walletId, wallet.walletId);
    assert.notEqual(next.wallet.addresses[0]?.address, wallet.addresses[0]?.address);
    assert.notEqual(next.walletSecret, null);
  });
});

describe('rotation of the key-encryption key', () => {
  test('brings every wallet over, after which the old key is not needed', async () => {
    const { wallet } = await wallets.paidBy(ALICE).walletFor(asked('rotated', ['base', 'solana']));
    const before = await wallets.exportKeys(wallet.walletId, ME);
    const only = walletsUnder(NEW);
    assert.equal((await only.missingKeyIds()).length, 1);
    await assert.rejects(only.exportKeys(wallet.walletId, ME), Unreadable);

    const both = walletsUnder(NEW, OLD);
    assert.deepEqual(await both.missingKeyIds(), []);
    let rounds = 0;
    while ((await both.rewrap(5)) > 0) {
      rounds += 1;
      assert(rounds < 100, 'it comes to an end');
    }
    assert(rounds > 1);
    assert.deepEqual(await only.missingKeyIds(), []);
    assert.deepEqual(await only.exportKeys(wallet.walletId, ME), before);
    assert.equal(await both.rewrap(5), 0);
  });

  test('tells once of a key that was changed, which keeps no other from being brought over', async () => {
    const made = await Promise.all(
      ['changed a', 'changed b'].map((agent) =>
        wallets.paidBy(ALICE).walletFor(asked(agent, ['base', 'solana'])),
      ),
    );
    const [changed = '', good = ''] = made.map(({ wallet }) => wallet.walletId).sort();
    await database.sql`
      update managed_wallet_keys set wrapped_data_key = set_byte(wrapped_data_key, 0, 255 - get_byte(wrapped_data_key, 0))
      where wallet_id = ${changed}
        and kind = (select min(kind) from managed_wallet_keys where wallet_id = ${changed})`;
    const both = walletsUnder(NEW, OLD);
    const rounds: (number | 'unreadable')[] = [];
    do {
      const done = await both.rewrap(1).catch((error: unknown) => {
        assert(error instanceof Unreadable);
        return 'unreadable' as const;
      });
      rounds.push(done);
    } while (rounds.at(-1) !== 0 && rounds.length < 10);
    assert.deepEqual(rounds, ['unreadable', 1, 1, 1, 0]);
    const only = walletsUnder(NEW);
    assert.equal((await only.exportKeys(good, ME))?.length, 2);
    assert.equal(
      (await only.missingKeyIds()).length,
      1,
      'the old key is still needed for the one that was changed',
    );
  });
});
