/**
 * What runs without a request: a round costs what is open and not what has been, does all that is due, and passes by what
 * somebody else holds. Cost is counted in pages that the database looked at, which is the same on every machine.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createDeviceRegistry } from '../../../../packages/catalogue/src/devices/registry.ts';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { movedOf, salesOf } from '../../../../packages/core/src/operator/sales-figures.ts';
import { createSettlementStore } from '../../../../packages/core/src/paid-call/inside/settlement-store.ts';
import { noteReason } from '../../../../packages/yield/src/keeper/report.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

const FEW = 1_000;
const MANY = 15_000;
/** In one statement. */
const CHUNK = 5_000;
/** A level more of each index, and the pages that past rows share with what is due. */
const SLACK_PAGES = 60;
/** These ask somebody outside. */
const ASKING = ['ask-facilitators', 'read-card-events', 'resume-relayers'];
/** It reads the calls of a day, at most 4,000 of each hour. */
const BOUNDED = 'measure-services';
const PAYER = `0x${'ab'.repeat(20)}`;
/** A device, and a move of the keeper: what is noted of either forgets what was noted of it long ago. */
const DEVICE = 1n;
const VAULT = `0x${'cd'.repeat(20)}`;
const MOVE = {
  vault: VAULT,
  allowedAt: 1n,
  proposal: {
    from: 'aave' as const,
    to: 'compound' as const,
    amountMicros: '0',
    partial: null,
    gainMicrosPerYear: '1',
    costMicros: '1',
    yearlyPercentAfter: 1,
  },
};
const RATES = { aave: 1, compound: 2, morpho: 3 };

let database: TestDatabase;
let pools: Pools;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  // One connection, which can be told to hand over its counts.
  pools = connectPools(database.url, 2);
  server = await startTestServer({
    pools,
    services: [],
    environment: {
      CARD_PROVIDER_URL: 'http://127.0.0.1:9',
      CARD_PROVIDER_KEY: 'sk_test_of_the_card_tests',
      CARD_WEBHOOK_SECRET: 'whsec_of_the_card_tests',
    },
  });
  for (const { name } of await tables())
    await database.sql`
      alter table ${database.sql(name)} set (autovacuum_enabled = off, toast.autovacuum_enabled = off)`;
});
after(async () => {
  await server?.close();
  await Promise.all([pools?.sql.end({ timeout: 1 }), pools?.commits.end({ timeout: 1 })]);
  await database?.close();
});

const tables = () => database.sql<{ name: string }[]>`
  select relname as name from pg_class
  where relkind = 'r' and relnamespace = current_schema()::regnamespace`;

/**
 * So many of everything that a shop leaves behind, numbered from a number on. Nothing of it is due. A connection of its own
 * writes it: one that stays open tells what it has looked at when it likes, and that would be counted as a job's.
 */
async function leavePast(from: number, to: number): Promise<void> {
  const own = connectPools(database.url, 1);
  for (let first = from; first < to; first += CHUNK) {
    const numbers = `generate_series(${first}, ${Math.min(first + CHUNK, to) - 1}) n`;
    for (const insert of pastRows(numbers)) await own.patient.unsafe(insert);
  }
  for (const { name } of await tables()) await own.patient`analyze ${own.patient(name)}`;
  await endPools(own, 1);
}

function pastRows(numbers: string): string[] {
  const id = (of: string) => `md5('${of}' || n)::uuid`;
  const at = `now() - interval '80 days' + n * interval '1 second'`;
  return [
    `insert into ledger_accounts (id, house) select 2000000 + n, false from ${numbers}`,
    `insert into calls (account_id, id, state, rail, service, price_micros, created_at, begun_at, expires_at, finished_at,
          outcome, fingerprint)
        select 5, ${id('call')}, 1, 'x402', 'ping', 1000, ${at}, ${at}, ${at}, ${at}, 'answered', '\\x00' from ${numbers}`,
    `insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
        select 5, ${id('call')}, phase, 5, 6, 1000, 'call', ${at} from ${numbers}, (values (2), (3)) as phases (phase)`,
    `insert into settlements (account_id, call_id, rail, network, asset, payer, pay_to, amount_units, evidence, answered,
          state, dead_after, lease_until, next_at, transaction, created_at, settled_at, final_at)
        select 5, ${id('call')}, 'x402', 'eip155:8453', 'usdc', '${PAYER}', 'us', 1000, '{}', n % 2 = 0, 1, ${at}, ${at},
          ${at}, 'tx' || n, ${at}, ${at}, ${at} from ${numbers}`,
    `insert into refunds (account_id, call_id, network, asset, payee, amount_micros, reason, state, transaction, created_at,
          next_at, paid_at)
        select 5, ${id('call')}, 'eip155:8453', 'usdc', '${PAYER}', 1000, 'late', 1, 'tx', ${at}, ${at}, ${at} from ${numbers}`,
    `insert into call_answers (account_id, id, status, headers, body, expires_at)
        select 5, ${id('call')}, 200, '{}', '{}', now() + interval '1 day' from ${numbers}`,
    `insert into topups (call_id, account_id, amount_micros, created_at, granted_at, closed_at)
        select ${id('call')}, 2000000 + n, 1000, ${at}, ${at}, ${at} from ${numbers}`,
    `insert into api_keys (account_id, lookup, digest, prefix, kind, created_at, expires_at, trial_closed)
        select 2000000 + n, n, sha256(n::text::bytea), 'fbx_', 'trial', ${at}, ${at}, true from ${numbers}`,
    `insert into account_debts (account_id, owed_micros, since) select 2000000 + n, 0, ${at} from ${numbers}`,
    `insert into auto_recharges (account_id, state, threshold_micros, top_up_micros, customer_id, payment_method_id,
          card_label, created_at, changed_at)
        select 2000000 + n, 0, 1, 1, 'c', 'p', 'visa', ${at}, ${at} from ${numbers}`,
    `insert into card_orders (id, kind, state, amount_micros, credit_micros, account_id, payment_intent_id, created_at,
          expires_at, paid_at)
        select ${id('order')}, 'checkout', 1, 1000, 1000, 2000000 + n, 'pi' || n, ${at}, ${at}, ${at} from ${numbers}`,
    `insert into key_links (id, order_id, token_digest, created_at, expires_at)
        select ${id('link')}, ${id('order')}, sha256(n::text::bytea), now(), now() from ${numbers}`,
    `insert into card_events (id, type, created_at, received_at) select 'evt' || n, 'x', now(), now() from ${numbers}`,
    `insert into mails (id, recipient, subject, body, created_at, sent_at)
        select ${id('mail')}, 'a@example.com', 's', 'b', now(), now() from ${numbers}`,
    `insert into sign_in_nonces (nonce, address, expires_at)
        select 'n' || n, 'a', now() + interval '1 day' from ${numbers}`,
    `insert into trial_claims (claimant, claimed_at, account_id)
        select sha256(n::text::bytea), now(), 2000000 + n from ${numbers}`,
    `insert into lost_gas (network, payer, failures, wei, since)
        select 'eip155:8453', 'p' || n, 1, 1, now() from ${numbers}`,
    `insert into webhooks (id, account_id, url, events, sealed_secret, created_at)
        values (md5('webhook')::uuid, 2000000, 'https://a.example', '{key.new_address}', 'of nobody', now())
        on conflict do nothing`,
    `insert into webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, delivered_at)
        select ${id('delivery')}, md5('webhook')::uuid, 'key.new_address', '{}', now(), now(), now() from ${numbers}`,
    `insert into key_addresses (key_id, digest, seen_at) select n, sha256(n::text::bytea), now() from ${numbers}`,
    `insert into a2a_tasks (id, context_id, state, call_account_id, call_id, updated_at, expires_at)
        select 't' || n, 'c', 'completed', 5, ${id('call')}, ${at}, now() + interval '1 day' from ${numbers}`,
    `insert into devices (no, id, owner, public, simulated, sensors, public_key, created_at) overriding system value
        values (${DEVICE}, 'd', 2000000, false, false, '{}', '', now()) on conflict do nothing`,
    `insert into device_offers (digest, device, expires_at)
        select sha256(n::text::bytea), ${DEVICE}, now() + interval '1 day' from ${numbers}`,
    `insert into device_exports (id, media_type, file_name, content, expires_at)
        select 'e' || n, 'text/csv', 'a.csv', '', now() + interval '1 day' from ${numbers}`,
    `insert into yield_keeper_reasons (vault, allowed_at, noted_at, from_protocol, to_protocol, assets, reason)
        select '${VAULT}', 1, now(), 'aave', 'compound', n, '{}' from ${numbers}`,
  ];
}

/**
 * How many pages of our tables something looks at. Nobody else looks at any meanwhile: no vacuum does, and the sign of
 * life that each process gives every second has a table of its own.
 */
async function pagesOf(work: () => Promise<unknown>): Promise<number> {
  const looked = async () => {
    await pools.sql`select pg_stat_force_next_flush()`;
    const [row] = await database.sql<{ pages: number }[]>`
      select sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0)
        + coalesce(idx_blks_hit, 0) + coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0))::float8 as pages
      from pg_statio_user_tables where relname <> 'replicas'`;
    return row?.pages ?? Number.NaN;
  };
  const before = await looked();
  await work();
  return (await looked()) - before;
}

test('a round with nothing due costs as much after fifteen thousand past rows as after a thousand', async () => {
  const settlements = createSettlementStore(pools.sql, Date.now, { answersLastMs: 86_400_000 });
  const devices = createDeviceRegistry(pools.sql, { nowMs: Date.now, perAccount: 1 });
  const deviceOf = async (id: string) => (await devices.find(id)) ?? assert.fail(id);
  const questions: [string, () => Promise<unknown>][] = [
    ...server.app.jobs
      .filter(({ name }) => !ASKING.includes(name) && name !== BOUNDED)
      .map(({ name, run }): [string, () => Promise<unknown>] => [name, run]),
    ['the gauge of reserved money', () => server.app.calls.reservedMicros()],
    [
      'what was sold in ninety days',
      async () => {
        const notes: string[] = [];
        const sold = await pools.sql.begin(async (on) => {
          const since = new Date(Date.now() - 90 * 86_400_000);
          await movedOf(on, since, { notes });
          return salesOf(on, since, { creditServices: [], notes });
        });
        assert.deepEqual([notes, Number(sold.calls) >= FEW], [[], true]);
      },
    ],
    ['what a payer bought', () => settlements.boughtBy(5n, PAYER, 'ping', Buffer.from([0]))],
    ['an offer of a device, which forgets old ones', async () => devices.offer(await deviceOf('d'))],
    ['a reason of the keeper, which forgets old ones', () => noteReason(pools.sql, MOVE, RATES, Date.now())],
  ];
  const costs = async () => {
    const all = new Map<string, number>();
    for (const [name, ask] of questions) {
      // The first rounds plan, move on what they look at, and mark in the indexes what is gone: then all cost the same.
      const rounds = [await pagesOf(ask), await pagesOf(ask)];
      while (rounds.at(-1) !== rounds.at(-2)) {
        assert(rounds.length < 12, `${name}: ${rounds}`);
        rounds.push(await pagesOf(ask));
      }
      all.set(name, rounds.at(-1) ?? Number.NaN);
    }
    return all;
  };
  await leavePast(0, FEW);
  const few = await costs();
  await leavePast(FEW, MANY);
  const many = await costs();
  const grown = [...many].filter(([name, pages]) => !(pages <= (few.get(name) ?? Number.NaN) + SLACK_PAGES));
  assert.deepEqual(grown, [], JSON.stringify({ few: [...few], many: [...many] }));
});

/** Three rows that are due, of which somebody else holds the first. */
const HELD: { job: string; insert: string; hold: string; left: string }[] = [
  {
    job: 'drop-expired-answers',
    insert: `insert into call_answers (account_id, id, status, headers, body, expires_at)
      select 9999, md5('held' || n)::uuid, 200, '{}', '{}', now() - n * interval '1 minute' from generate_series(1, 3) n`,
    hold: `select 1 from call_answers where account_id = 9999 order by expires_at limit 1 for update`,
    left: `select 1 from call_answers where account_id = 9999`,
  },
  {
    job: 'drop-sign-ins',
    insert: `insert into sign_in_nonces select 'held' || n, 'b', now() - n * interval '1 minute' from generate_series(1, 3) n`,
    hold: `select 1 from sign_in_nonces where address = 'b' order by expires_at limit 1 for update`,
    left: `select 1 from sign_in_nonces where address = 'b'`,
  },
  {
    job: 'release-caps',
    insert: `insert into ledger_accounts (id, house) values (9001, false);
      insert into api_keys (account_id, lookup, digest, prefix, kind, created_at, cap_fixed_until)
      select 9001, -n, sha256(n::text::bytea), 'fbx_', 'paid', now(), now() - n * interval '1 minute'
      from generate_series(1, 3) n`,
    hold: `select 1 from api_keys where account_id = 9001 order by cap_fixed_until limit 1 for update`,
    left: `select 1 from api_keys where account_id = 9001 and cap_fixed_until is not null`,
  },
  {
    job: 'forget-mails',
    insert: `insert into mails (id, recipient, subject, body, created_at, sent_at)
      select md5('held' || n)::uuid, 'held@example.com', 's', 'b', now() - interval '31 days', now()
      from generate_series(1, 3) n`,
    hold: `select 1 from mails where recipient = 'held@example.com' limit 1 for update`,
    left: `select 1 from mails where recipient = 'held@example.com'`,
  },
  {
    job: 'forget-key-links',
    insert: `insert into card_orders (id, kind, state, amount_micros, credit_micros, created_at, expires_at)
      select md5('linked')::uuid, 'checkout', 2, 1, 1, now(), now();
      insert into key_links (id, order_id, token_digest, created_at, expires_at)
      select md5('held' || n)::uuid, md5('linked')::uuid, sha256(n::text::bytea || 'held'), now() - n * interval '25 hours', now()
      from generate_series(1, 3) n`,
    hold: `select 1 from key_links where order_id = md5('linked')::uuid order by created_at limit 1 for update`,
    left: `select 1 from key_links where order_id = md5('linked')::uuid`,
  },
  {
    job: 'forget-key-addresses',
    insert: `insert into key_addresses (key_id, digest, seen_at)
      select 990000 + n, sha256(n::text::bytea), now() - interval '91 days' - n * interval '1 minute'
      from generate_series(1, 3) n`,
    hold: `select 1 from key_addresses where key_id > 990000 order by seen_at limit 1 for update`,
    left: `select 1 from key_addresses where key_id > 990000`,
  },
  {
    job: 'forget-card-events',
    insert: `insert into card_events (id, type, created_at, received_at)
      select 'held' || n, 'held', now(), now() - interval '36 days' from generate_series(1, 3) n`,
    hold: `select 1 from card_events where type = 'held' limit 1 for update`,
    left: `select 1 from card_events where type = 'held'`,
  },
  {
    job: 'forget-unpaid-orders',
    insert: `insert into card_orders (id, kind, state, amount_micros, credit_micros, created_at, expires_at, email)
      select md5('held' || n)::uuid, 'checkout', 2, 1, 1, now() - interval '91 days', now(), 'held@example.com'
      from generate_series(1, 3) n`,
    hold: `select 1 from card_orders where email = 'held@example.com' limit 1 for update`,
    left: `select 1 from card_orders where email = 'held@example.com'`,
  },
  {
    job: 'collect-debts',
    insert: `insert into ledger_accounts (id, house, credits_posted) select 9100 + n, false, 1000 from generate_series(1, 3) n;
      insert into account_debts (account_id, owed_micros, since) select 9100 + n, 10, now() from generate_series(1, 3) n`,
    hold: `select 1 from ledger_accounts where id = 9101 for no key update`,
    left: `select 1 from account_debts where account_id between 9101 and 9103 and owed_micros > 0`,
  },
  {
    job: 'finish-topups',
    insert: `insert into calls (account_id, id, state, rail, service, price_micros, created_at, expires_at)
      select 5, md5('topup' || n)::uuid, 2, 'x402', 'held', 10, now(), now() from generate_series(1, 3) n;
      insert into topups (call_id, key_lookup, key_digest, key_prefix, amount_micros, created_at)
      select md5('topup' || n)::uuid, n, sha256(n::text::bytea), 'fbx_', 10, now() from generate_series(1, 3) n`,
    hold: `select 1 from topups where granted_at is null limit 1 for update`,
    left: `select 1 from topups where granted_at is null`,
  },
];

for (const { job, insert, hold, left } of HELD) {
  test(`${job}: what somebody else holds waits, and keeps nothing else waiting`, async () => {
    const run = server.app.jobs.find(({ name }) => name === job)?.run;
    assert(run !== undefined);
    await database.sql.unsafe(insert);
    const rows = async () => (await database.sql.unsafe(left)).length;
    assert.equal(await rows(), 3);
    await database.sql.begin(async (sql) => {
      await sql.unsafe(hold);
      await run();
      assert.equal(await rows(), 1);
    });
    await run();
    assert.equal(await rows(), 0);
  });
}

test('what is due is done in one round, however many batches it is', async () => {
  await database.sql`
    insert into call_answers (account_id, id, status, headers, body, expires_at)
    select 9999, md5('many' || n)::uuid, 200, '{}', '{}', now() - interval '1 minute' from generate_series(1, 3500) n`;
  await server.app.jobs.find(({ name }) => name === 'drop-expired-answers')?.run();
  assert.equal((await database.sql`select 1 from call_answers where account_id = 9999`).length, 0);
});
