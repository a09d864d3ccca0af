/**
 * The proof of the books on a database that Citus spreads: it balances while money moves, and names what is wrong, wherever it lies. Rows
 * that name an account are held to it by rules, because Citus keeps no foreign keys between these tables.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { connectDatabase, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { booksOf } from '../../../../packages/core/src/declared.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { DECLARED } from '../../src/app.ts';
import { proveBooks } from '../books.fixture.ts';
import { keysOnBothWorkers, openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { giveBackPrice, PRICE, sellCall, sellShared } from './citus-money.fixture.ts';
import { accountOf, assertBooksClosed } from './money.fixture.ts';
import { startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const BUCKETS = 16;
const GRANT = usdToMicros('10');
const OPERATOR = 'the-token-of-an-operator-of-these-tests';

let database: SpreadDatabase;
let pools: Pools;
/** On both workers, one on each. */
let accounts: { id: bigint; bucket: number }[];
before(async () => {
  if (withoutCitus !== false) return;
  database = await openSpreadDatabase();
  pools = await database.spread(4);
  const keys = await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT });
  const ids = await Promise.all(keys.map((key) => accountOf(pools.sql, key)));
  accounts = [
    ...(await pools.sql<typeof accounts>`
      select id, bucket from ledger_accounts where id in ${pools.sql(ids.map(String))} order by id`),
  ];
});
after(async () => {
  await database?.close();
});

test('the server proves the books of what was sold on both workers', { skip: withoutCitus }, async () => {
  for (const account of accounts) await sellCall(pools, account, async () => {});
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    ACCOUNT_BUCKETS: String(BUCKETS),
    SERVICES: 'ping',
    ADMIN_TOKENS: `desk:${OPERATOR}`,
  });
  try {
    const authorization = { authorization: `Bearer ${OPERATOR}` };
    const asked = await fetch(`${server.url}/admin/api/books`, { method: 'POST', headers: authorization });
    assert([200, 202, 409].includes(asked.status), await asked.text());
    await until('the server to have proved them', async () => {
      const [verdict] = await database.sql<
        { balanced: boolean; books: { calls: { captured: { int: string } } } }[]
      >`
        select balanced, books from books_verdicts order by id desc limit 1`;
      if (verdict === undefined) return false;
      assert.deepEqual(
        [verdict.balanced, verdict.books.calls.captured.int],
        [true, '2'],
        JSON.stringify(verdict),
      );
      return true;
    });
  } finally {
    await server.end('SIGTERM');
  }
  const { house, customersMicros, transfers } = await proveBooks(database.sql);
  const [opened] = await database.sql<{ grants: bigint }[]>`
    select count(*) as grants from ledger_accounts where not house`;
  const grants = opened?.grants ?? 0n;
  assert.equal(customersMicros, grants * GRANT - 2n * PRICE);
  assert.deepEqual(house, [
    { account: 'revenue_credits', netMicros: 2n * PRICE },
    { account: 'operator_grants', netMicros: -grants * GRANT },
  ]);
  assert.equal(transfers, grants + 4n, 'a reservation and its end for each call');
});

test('a share whose price went back is no fault until the coordinator has heard of it, and one after that', {
  skip: withoutCitus,
}, async () => {
  const [customer, other] = accounts;
  assert(customer !== undefined && other !== undefined);
  const callId = await sellShared(pools, customer, { beneficiary: other.id, micros: PRICE / 5n });
  const ledger = createLedger(pools, Date.now, { accountBuckets: BUCKETS });
  await giveBackPrice(ledger, customer.id, callId);
  await assertBooksClosed(database.sql);
  const [note] = await database.sql<{ bucket: number; account_id: bigint; id: string; phase: number }[]>`
    delete from ledger_outbox returning *`;
  assert.equal(note?.account_id, customer.id);
  assert.deepEqual(
    (await proveBooks(database.sql)).checks.flatMap(({ finding }) => finding ?? []),
    [`the share of call ${callId} is in state 1; back went null, and the price by call_refund`],
  );
  await database.sql`
    insert into ledger_outbox (bucket, account_id, id, phase)
    values (${note.bucket}, ${String(note.account_id)}, ${note.id}, ${note.phase})`;
});

test('a commit that one server has and another has not yet is waited for', {
  skip: withoutCitus,
}, async () => {
  const [account] = accounts;
  assert(account !== undefined);
  const order = randomUUID();
  const amount = String(PRICE);
  const [place] = await database.sql<{ port: number; accounts: bigint; transfers: bigint }[]>`
    select n.nodeport as port, p.shardid as accounts,
           get_shard_id_for_distribution_column('ledger_transfers', ${account.bucket}::smallint) as transfers
    from pg_dist_placement p join pg_dist_node n using (groupid)
    where p.shardid = get_shard_id_for_distribution_column('ledger_accounts', ${account.bucket}::smallint)`;
  const at = new URL(database.url);
  at.port = String(place?.port);
  const other = connectDatabase(String(at), 1);
  try {
    // The worker has prepared its part, and the coordinator has committed: so it is when a worker is away for a moment.
    await other.unsafe(`
      begin;
      insert into ledger_transfers_${place?.transfers} (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at)
      values (${account.bucket}, ${account.id}, '${randomUUID()}', 1, 9, ${account.id}, ${amount}, 'card_payment', 'order ${order}', now());
      update ledger_accounts_${place?.accounts} set credits_posted = credits_posted + ${amount} where bucket = ${account.bucket} and id = ${account.id};
      prepare transaction 'farebox_test_half'`);
    await database.sql`
      insert into card_orders (id, kind, account_id, amount_micros, credit_micros, state, created_at, expires_at)
      values (${order}, 'checkout', ${String(account.id)}, ${amount}, ${amount}, 1, now(), now())`;
    let isProved = false;
    const proving = assertBooksClosed(database.sql).finally(() => {
      isProved = true;
    });
    await until('the proof to have found it and to wait', async () => {
      assert.equal(isProved, false, 'it did not wait');
      const asking = await database.sql`
        select 1 from pg_stat_activity where query like '%pg_prepared_xacts%' and query like '%run_command_on_all_nodes%'
          and pid <> pg_backend_pid()`;
      return asking.length > 0;
    });
    await other`commit prepared 'farebox_test_half'`;
    await proving;
  } finally {
    await other.end({ timeout: 1 });
  }
});

/** Accounts that are not there begin here. */
const NOBODY = 900_000;
const sha256 = `sha256('')`;

/** Of each column that names an account, a row that names one that is not there. */
const NAMING: Record<string, (account: number) => string> = {
  'call_shares.account_id': (a) =>
    `insert into call_shares (bucket, account_id, call_id, beneficiary, amount_micros) values (5, ${a}, gen_random_uuid(), 1000, 1)`,
  'call_shares.beneficiary': (a) =>
    `insert into call_shares (bucket, account_id, call_id, beneficiary, amount_micros) values (5, 1000, gen_random_uuid(), ${a}, 1)`,
  'share_payouts.beneficiary': (a) =>
    `insert into share_payouts (beneficiary, nth, transfer_id, amount_micros, paid_at) values (${a}, 1, gen_random_uuid(), 1, now())`,
  'refunds.account_id': (a) =>
    `insert into refunds (account_id, call_id, network, asset, payee, amount_micros, reason, created_at, next_at)
     values (${a}, gen_random_uuid(), 'eip155:8453', '', '', 1, '', now(), now())`,
  'free_calls.account_id': (a) =>
    `insert into free_calls (account_id, call_id, root_buyer, service, day) values (${a}, gen_random_uuid(), '', 'ping', now())`,
  'root_buyers.account_id': (a) => `insert into root_buyers (account_id, root_buyer) values (${a}, '')`,
  'card_orders.account_id': (a) =>
    `insert into card_orders (id, kind, account_id, amount_micros, credit_micros, created_at, expires_at)
     values (gen_random_uuid(), 'checkout', ${a}, 1, 1, now(), now())`,
  'account_debts.account_id': (a) =>
    `insert into account_debts (account_id, owed_micros, since) values (${a}, 0, now())`,
  'account_freezes.account_id': (a) =>
    `insert into account_freezes (account_id, cause, created_at) values (${a}, 'operator', now())`,
  'auto_recharges.account_id': (a) =>
    `insert into auto_recharges (account_id, state, threshold_micros, top_up_micros, customer_id, card_label, off_reason, created_at, changed_at)
     values (${a}, 3, 1, 1, '', '', 'declined', now(), now())`,
  'trial_claims.account_id': (a) =>
    `insert into trial_claims (claimant, claimed_at, account_id) values (${sha256}, now(), ${a})`,
  'trial_credits.account_id': (a) =>
    `insert into trial_credits (account_id, granted_micros, granted_at, expires_at) values (${a}, 1, now(), now())`,
  'trial_credits.moved_from': (a) =>
    `insert into trial_credits (account_id, granted_micros, granted_at, expires_at, moved_from) values (1000, 1, now(), now(), ${a})`,
  'operator_acts.account_id': (a) =>
    `insert into operator_acts (id, at, actor, act, account_id, reason, idempotency_digest, request_digest)
     values (gen_random_uuid(), now(), 'desk', 'freeze', ${a}, 'a test', ${sha256}, ${sha256})`,
  'topups.account_id': (a) =>
    `insert into topups (call_id, account_id, amount_micros, created_at) values (gen_random_uuid(), ${a}, 1, now())`,
  'sold_keys.payer_account': (a) =>
    `insert into sold_keys (call_id, payer_account, refund_id, amount_micros, key_lookup, key_digest, key_prefix, sealed_key, created_at)
     values (gen_random_uuid(), ${a}, gen_random_uuid(), 1, 1, ${sha256}, '', '', now())`,
  'sold_keys.account_id': (a) =>
    `insert into sold_keys (call_id, payer_account, account_id, granted_at, refund_id, amount_micros, key_lookup, key_digest, key_prefix, created_at)
     values (gen_random_uuid(), 1000, ${a}, now(), gen_random_uuid(), 1, 2, ${sha256}, '', now())`,
};

test('every row that names an account that is not there is named by the proof, and what else is wrong on a worker', {
  skip: withoutCitus,
}, async () => {
  await assertBooksClosed(database.sql);
  const columns = booksOf(DECLARED)
    .flatMap(({ namesAccounts = [] }) => namesAccounts)
    .map(({ table, column }) => `${table}.${column}`);
  assert.deepEqual(Object.keys(NAMING).sort(), columns.toSorted());
  const wanted: RegExp[] = [];
  for (const [index, [column, plant]] of Object.entries(NAMING).entries()) {
    await database.sql.unsafe(plant(NOBODY + index));
    wanted.push(new RegExp(`^${column.split('.')[0]} names account ${NOBODY + index}, which is not there$`));
  }
  const [first, second] = accounts;
  assert(first !== undefined && second !== undefined);
  const call = (account: bigint, bucket: number) => `
    insert into calls (bucket, account_id, id, state, rail, service, price_micros, created_at, begun_at, expires_at, finished_at, fingerprint, outcome)
    values (${bucket}, ${account}, gen_random_uuid(), 2, 'credits', 'ping', 0, now(), now(), now(), now(), '', 'failed')`;
  await database.sql.unsafe(call(first.id, second.bucket));
  wanted.push(
    new RegExp(
      `^call \\S+ of account ${first.id} lies in bucket ${second.bucket}, where its account is not$`,
    ),
  );
  const transfer = (account: bigint, bucket: number, debit: bigint) => `
    insert into ledger_transfers (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
    values (${bucket}, ${account}, gen_random_uuid(), 1, ${debit}, ${account}, 7, 'operator_grant', now())`;
  await database.sql.unsafe(transfer(999_999n, second.bucket, 4n));
  wanted.push(/^transfer \S+ names an account that does not exist \(account 999999\)$/);
  wanted.push(/^transfer \S+ of account 999999 lies in bucket \d+, where its account is not$/);
  await database.sql.unsafe(
    `update ledger_accounts set debits_posted = debits_posted + 3 where id = ${second.id}`,
  );
  wanted.push(new RegExp(`^account ${second.id} holds debits`));
  wanted.push(/^customers hold \d+ micro-USD, the house's accounts net/);
  await database.sql.unsafe(`
    insert into api_keys (bucket, lookup, digest, prefix, account_id, kind, created_at)
    values (${first.bucket}, 999, ${sha256}, '', 999998, 'paid', now())`);
  wanted.push(/^key \d+ has no proper account \(999998\)$/);
  const found = (await proveBooks(database.sql)).checks.flatMap(({ finding }) => finding ?? []);
  for (const one of wanted)
    assert(
      found.some((finding) => one.test(finding)),
      `${one} is not among\n${found.join('\n')}`,
    );
});
