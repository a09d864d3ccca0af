/** What can be seen of spreading a database without a cluster: who is refused, and that nothing of it shows on one PostgreSQL. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { StartError } from '@farebox/process/start-error';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { SURROUNDINGS } from '../../../../apps/shop/test/surroundings.fixture.ts';
import { connectPools, endPools } from './connection.ts';
import { distribute } from './distribute.ts';
import { isDistributed, learnDistribution, onSpread } from './distribution.ts';
import { SQL_TEXTS } from './functions.ts';
import { openDatabase } from './open.ts';

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

test('one PostgreSQL is refused in a sentence, and nothing of it is changed', async () => {
  const steps: string[] = [];
  await assert.rejects(
    distribute(database.patient, { shards: 4, report: (step) => steps.push(step) }),
    (error) => error instanceof StartError && /this database has no Citus/.test(error.message),
  );
  assert.deepEqual(steps, []);
  const keys = await database.sql<{ columns: string }[]>`
    select pg_get_constraintdef(oid) as columns from pg_constraint where conname in ('calls_pkey', 'api_keys_lookup_key') order by 1`;
  assert.deepEqual(
    keys.map(({ columns }) => columns),
    ['PRIMARY KEY (account_id, id)', 'UNIQUE (lookup)'],
  );
});

test('nobody spreads a database without saying that it is a preview', () => {
  const command = join(import.meta.dirname, '../../../../apps/shop/src/commands/distribute.ts');
  const { status, stderr } = spawnSync(process.execPath, [command], {
    env: { ...SURROUNDINGS, DATABASE_URL: database.url, FAREBOX_SECRET: 'a secret of the tests' },
    encoding: 'utf8',
  });
  assert.equal(status, 2);
  assert.match(stderr, /a preview.* Say --preview/);
});

test('one PostgreSQL is known as one, and its batches keep their plans', async () => {
  assert.equal(await isDistributed(database.sql), false);
  await learnDistribution(database);
  assert.equal(database.distribution.isDistributed, false);
  const [row] = await database.commits<{ mode: string }[]>`select current_setting('plan_cache_mode') as mode`;
  assert.equal(row?.mode, 'force_generic_plan');
});

test('servers of a spread database are refused where the database is one PostgreSQL, but by the command that is about to spread it', async () => {
  const config = {
    databaseUrl: database.url,
    databaseMaxConnections: 4,
    dataDir: '',
    databaseHotHosts: '127.0.0.1',
  };
  await assert.rejects(
    openDatabase(config, { exclusive: true }),
    (error) => error instanceof StartError && /DATABASE_HOT_HOSTS .* this one is not/.test(error.message),
  );
  const opened = await openDatabase(config, { exclusive: false });
  await opened.close();
});

test('a commit on another server does not say that the coordinator takes writes', async () => {
  const [, hosts = ''] = /^[^/]*\/\/(?:[^@/?]*@)?([^/?]*)/.exec(database.url) ?? [];
  const pools = connectPools(database.url, 4, { hotHosts: hosts });
  try {
    await assert.rejects(
      pools.sql.begin('read only', (transaction) => transaction`delete from replicas`),
      { code: '25006' },
    );
    const [row] = await (pools.hot ?? assert.fail('no pool'))`select current_database() as name`;
    assert.match(String(row?.name), /^farebox_test_/);
    assert.equal(pools.writing.isRefused, true);
    await pools.commits`select 1`;
    assert.equal(pools.writing.isRefused, false);
  } finally {
    await endPools(pools, 1);
  }
});

test('on a spread database no trigger writes a table of the coordinator from within a commit on a worker', () => {
  const taken = SQL_TEXTS.triggers.flatMap(({ text }) => onSpread(text).taken);
  assert.deepEqual(taken.map(({ trigger, table }) => `${table} ${trigger}`).sort(), [
    'card_orders card_order_restores_shares',
    'ledger_accounts ledger_account_is_low',
    'ledger_transfers ledger_refund_is_told',
    'ledger_transfers ledger_transfer_gives_back',
    'ledger_transfers ledger_transfer_gives_back_a_key',
    'ledger_transfers ledger_transfer_reverses_shares',
    'ledger_transfers ledger_transfer_takes_share',
  ]);
  const triggersIn = (text: string) =>
    [...text.matchAll(/TRIGGER\s+(\w+)[^;]*?\sON\s+(\w+)/g)].map(
      ([, trigger, table]) => `${table} ${trigger}`,
    );
  // Others stand in for these: they lie in texts of their own.
  const stoodInFor = [
    'card_orders card_order_restores_shares',
    'ledger_transfers ledger_transfer_reverses_shares',
  ];
  for (const { name, text } of SQL_TEXTS.triggers) {
    const { text: changed } = onSpread(text);
    const hang = triggersIn(text)
      .filter((placed) => !placed.startsWith('ledger_accounts ') && !stoodInFor.includes(placed))
      .map((placed) => placed.replace('ledger_transfers ', 'ledger_transfers_heard '));
    assert.deepEqual(triggersIn(changed), hang);
    if (onSpread(text).taken.length === 0) assert.equal(changed, text);
    assert.match(changed, new RegExp(`FUNCTION ${name}\\(\\)`));
    assert.doesNotMatch(changed, /TRIGGER[^;]*\sON\s+(ledger_transfers|ledger_accounts)\b/, name);
  }
});

test('a worker notes the transfers for which one PostgreSQL has triggers, and one PostgreSQL notes none', async () => {
  const codesOf = (text: string) =>
    [...text.matchAll(/NEW\.code (?:IN \(([^)]*)\)|= ('\w+'))/g)].flatMap(([, many, one]) =>
      [...(many ?? one ?? '').matchAll(/'(\w+)'/g)].map(([, code]) => code),
    );
  const conditions = (text: string) =>
    [...text.matchAll(/\bWHEN \(.*\)$/gm)].map(([condition]) => condition).join(' ');
  const wanted = SQL_TEXTS.triggers
    .filter(({ text }) => /TRIGGER[^;]*\sON ledger_transfers\b/.test(text))
    .flatMap(({ text }) => codesOf(conditions(text)));
  const noted = SQL_TEXTS.spreadTriggers.flatMap(({ text }) => codesOf(conditions(text)));
  assert.deepEqual([...new Set(noted)].sort(), [...new Set(wanted)].sort());
  const here = await database.sql`
    select 1 from pg_proc where proname in ${database.sql(SQL_TEXTS.spreadTriggers.map(({ name }) => name))}`;
  assert.equal(here.length, 0);
});
