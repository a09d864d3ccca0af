/** The database is restored to a point in time, and what Solana took and what was sent back there since is put right. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { generateKeyPairSigner, type KeyPairSigner } from '@solana/kit';
import { readSolanaKey } from '../../../../packages/core/src/rails/x402/solana-key.ts';
import {
  FORGOTTEN_SERVICE,
  planRecovery,
  type RecoverParts,
  recover,
  TooEarly,
  Unread,
} from '../../../../packages/core/src/recovery/recover.ts';
import { SEED } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { startSolana } from '../../../../packages/sandbox/src/solana/solana.ts';
import { proveBooks } from '../books.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { memo, signTransaction, solanaNode, transferOf, unitLimit, unitPrice } from '../solana.fixture.ts';
import { type ArchivedDatabase, startArchivedDatabase } from './archived-database.fixture.ts';
import { countingServices } from './counting-services.fixture.ts';
import { newKey, SOL } from './solana-stage.fixture.ts';
import { until } from './until.fixture.ts';

const PRICES = { nickel: 50_000n, dime: 100_000n };
type Sold = keyof typeof PRICES;
const REFUNDED_WITHIN_MS = 151_000;

const services = countingServices(
  { runs: 0, during: async () => undefined },
  { nickel: '0.05', dime: '0.10' },
  3_000,
);

let chain: Awaited<ReturnType<typeof startSolana>>;
let database: ArchivedDatabase;
let server: TestServer | null = null;
let restored: ArchivedDatabase['pools'] | null = null;
let aheadMs = 0;
const nowMs = () => Date.now() + aheadMs;
before(async () => {
  [chain, database] = await Promise.all([
    startSolana({ seed: SEED, stateDir: null }),
    startArchivedDatabase(),
  ]);
});
after(async () => {
  await server?.close();
  await database?.close();
  await chain?.stop();
});

async function setShop() {
  const way = solanaNode(chain.url);
  const [recipient, settlerKey, refundKey] = [(await generateKeyPairSigner()).address, newKey(), newKey()];
  const [settler, refunder] = [settlerKey, refundKey].map((key) => readSolanaKey(key).address) as [
    string,
    string,
  ];
  await way.give(recipient, { usdcUnits: 1 });
  await way.give(settler, { lamports: SOL });
  await way.give(refunder, { lamports: SOL, usdcUnits: 5_000_000 });
  const open = (pools: ArchivedDatabase['pools']) =>
    startTestServer({
      pools,
      services,
      nowMs,
      environment: {
        X402_NETWORKS: 'solana',
        UPSTREAM_SOLANA_BASE_URL: chain.url,
        X402_RECIPIENT_SOLANA: recipient,
        X402_RELAYER_KEY_SOLANA: settlerKey,
        X402_REFUND_KEY_SOLANA: refundKey,
        FACILITATOR_URL: '',
      },
    });
  async function wallet(): Promise<KeyPairSigner> {
    const payer = await generateKeyPairSigner();
    await way.give(payer.address, { usdcUnits: 1_000_000 });
    return payer;
  }
  /** The header of a payment. */
  async function sign(at: TestServer, payer: KeyPairSigner, path: Sold): Promise<string> {
    const unpaid = await fetch(`${at.url}/x402/${path}`, { method: 'POST' });
    const required = JSON.parse(
      Buffer.from(unpaid.headers.get('payment-required') ?? '', 'base64').toString(),
    );
    const instructions = [
      unitLimit(60_000),
      unitPrice(1n),
      await transferOf(payer.address, recipient, PRICES[path]),
      memo(randomUUID()),
    ];
    const { wire } = await signTransaction(instructions, {
      feePayer: settler,
      blockhash: await way.blockhash(),
      signers: [payer],
    });
    const { accepts, resource } = required;
    const payment = { x402Version: 2, accepted: accepts[0], payload: { transaction: wire }, resource };
    return Buffer.from(JSON.stringify(payment)).toString('base64');
  }
  async function present(at: TestServer, header: string, path: Sold = 'nickel') {
    const headers = { 'content-type': 'application/json', 'payment-signature': header };
    return fetch(`${at.url}/x402/${path}`, { method: 'POST', headers, body: '{}' });
  }
  async function buy(at: TestServer, payer: KeyPairSigner, path: Sold = 'nickel'): Promise<string> {
    const header = await sign(at, payer, path);
    const sold = await present(at, header, path);
    assert.equal(sold.status, 200, await sold.clone().text());
    return header;
  }
  /** The payer sends it on its own, and pays its fee. */
  async function sendPlain(payer: KeyPairSigner, units: bigint): Promise<void> {
    await way.give(payer.address, { lamports: SOL });
    const { wire } = await signTransaction([await transferOf(payer.address, recipient, units)], {
      feePayer: payer.address,
      blockhash: await way.blockhash(),
      signers: [payer],
    });
    await way.send(wire);
  }
  return { way, recipient, refunder, open, wallet, sign, present, buy, sendPlain };
}

/** An operator decides that what the payer's first call cost goes back. */
async function owe({ app }: TestServer, sql: ArchivedDatabase['pools']['sql'], payer: KeyPairSigner) {
  const [row] = await sql<
    { account_id: bigint; call_id: string; network: string; asset: string; pay_to: string }[]
  >`
    select account_id, call_id, network, asset, pay_to from settlements where payer = ${payer.address}
    order by created_at limit 1`;
  assert(row !== undefined);
  const { network, asset, pay_to: payTo } = row;
  const amountUnits = PRICES.nickel;
  const named = { identity: '', network, asset, payer: payer.address, payTo, amountUnits, deadAfterMs: 0 };
  const call = { accountId: row.account_id, callId: row.call_id, priceMicros: amountUnits };
  await app.sales.settlements.owe({ ...call, payment: { ...named, evidence: {} } }, 'for a test');
  return row.call_id;
}

/** Sends what is owed until so many refunds were paid in all. */
async function sendOwed(
  at: TestServer,
  pools: ArchivedDatabase['pools'],
  count: number,
  pass: () => Promise<unknown>,
) {
  await until('what is owed to be sent', async () => {
    aheadMs += 65_000;
    await at.app.jobs.find(({ name }) => name === 'resume-relayers')?.run();
    await at.app.settlementFinisher.run();
    await pass();
    return (await pools.sql`select 1 from refunds where state = 1`).length === count;
  });
}

test('what Solana took since is booked once, what was sent back is not sent again, and what is lost goes back', async () => {
  const { way, refunder, open, wallet, sign, present, buy, sendPlain } = await setShop();
  const pass = () => way.pass(40);
  const first = await open(database.pools);
  server = first;
  const [early, regretful, knownOwed, late, lost, returned, plain] = await Promise.all(
    Array.from({ length: 7 }, wallet),
  );
  assert(early && regretful && knownOwed && late && lost && returned && plain);
  const earlyHeader = await buy(first, early);
  await buy(first, regretful);
  // The newest is not the one that is refunded.
  await buy(first, regretful);
  await buy(first, knownOwed);
  const dueThen = await owe(first, database.pools.sql, knownOwed);
  await database.backUp();
  await database.markPoint();

  // The forgotten time.
  const lateHeader = await buy(first, late);
  await buy(first, lost, 'dime');
  await buy(first, returned);
  await owe(first, database.pools.sql, returned);
  const refundedThen = await owe(first, database.pools.sql, regretful);
  await sendPlain(plain, 70_000n);
  await sendOwed(first, database.pools, 3, pass);
  const headerUnsent = await sign(first, late, 'nickel');
  await first.close();
  server = null;
  const sent = await way.holds(refunder);
  assert.equal(sent, 5_000_000n - 3n * PRICES.nickel);

  const pools = await database.restore();
  restored = pools;
  const second = await open(pools);
  server = second;
  assert.equal((await present(second, headerUnsent)).status, 503, 'nothing is sold');
  const parts: RecoverParts = {
    sql: pools.sql,
    sales: second.app.sales,
    paidSince: (sinceMs) => second.app.x402.paidSince(sinceMs),
    cards: null,
    sellsWhatLasts: (micros) => micros === PRICES.dime,
    nowMs,
  };
  const plan = await planRecovery(parts);
  assert.deepEqual(
    plan?.sales.map(({ source, amountMicros, becomes }) => [source, amountMicros, becomes]),
    [
      ['solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', PRICES.nickel, 'recorded'],
      ['solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', PRICES.dime, 'owed'],
      ['solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', PRICES.nickel, 'refunded'],
      // The account was opened with it.
      ['solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', 1n, 'left'],
      ['solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', 70_000n, 'left'],
    ],
  );
  assert.deepEqual(
    plan?.sentBack.map(({ callId }) => callId).toSorted(),
    [dueThen, refundedThen].toSorted(),
    'refunds are known by the call that their memo names',
  );
  assert.deepEqual(plan?.unread, []);

  // A refund of what is owed could have been sent before, and its blockhash could still be good.
  await assert.rejects(recover(parts, 'test', { unreadCompared: false }), TooEarly);
  assert.deepEqual([...(await pools.sql`select 1 from calls where service = ${FORGOTTEN_SERVICE}`)], []);
  aheadMs += REFUNDED_WITHIN_MS;
  assert.notEqual(await recover(parts, 'test', { unreadCompared: false }), null);
  assert.equal(await recover(parts, 'test', { unreadCompared: false }), null);
  await until('the server to see that it is open', async () => {
    await second.app.jobs.find(({ name }) => name === 'watch-recovery')?.run();
    return (await fetch(`${second.url}/health/ready`)).ok;
  });

  // One that is known gets its answer again, one that was forgotten buys nothing more.
  assert.equal((await present(second, earlyHeader)).status, 200);
  const again = await present(second, lateHeader);
  assert.equal(again.status, 409, JSON.stringify(await jsonOf(again)));
  const lostBefore = await way.holds(lost.address);
  await sendOwed(second, pools, 4, pass);
  assert.equal((await way.holds(lost.address)) - lostBefore, PRICES.dime);
  assert.equal(await way.holds(refunder), sent - PRICES.dime, 'nothing was sent back twice');
  const { checks } = await proveBooks(pools.patient);
  for (const { name, finding } of checks) assert.equal(finding, null, name);
  for (const { findings } of await second.app.x402.audit()) assert.deepEqual(findings, []);
});

test('a node that has forgotten a part of the time is compared by hand', async () => {
  assert(server !== null && restored !== null);
  const { sql } = restored;
  await sql`insert into recoveries (found_at, reason, known_until) values (now(), 'restored', now())`;
  const parts: RecoverParts = {
    sql,
    sales: server.app.sales,
    paidSince: async () => [{ network: 'solana', rail: 'x402', paid: null, landsWithinMs: 0 }],
    cards: null,
    sellsWhatLasts: () => false,
    nowMs,
  };
  assert.deepEqual((await planRecovery(parts))?.unread, ['solana']);
  await assert.rejects(recover(parts, 'test', { unreadCompared: false }), Unread);
  assert.notEqual(await recover(parts, 'test', { unreadCompared: true }), null);
});
