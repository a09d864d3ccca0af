/** Notes of how keys are used, against a real database: what one of them does to the others. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { createKeys } from '../keys/keys.ts';
import { grantKey } from '../keys/trial.ts';
import { createLedger } from '../ledger/ledger.ts';
import { createAnswerSeal } from '../paid-call/sealed-answer.ts';
import { secretsOf } from '../secrets/secrets.ts';
import { createKeyUses } from './key-use.ts';
import { createWebhooks } from './webhooks.ts';

const SECRETS = secretsOf(['a-secret-of-the-tests-and-of-nothing-else']);
const nowMs = () => Date.UTC(2026, 2, 4);

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

async function watchedAccount(): Promise<{ accountId: bigint; keyId: bigint }> {
  const { sql } = database;
  const keys = createKeys(sql, nowMs);
  const parts = { sql, keys, ledger: createLedger(database, nowMs), nowMs };
  const { apiKey } = await grantKey(parts, { amountMicros: 1_000_000n, label: 'test', note: 'test' });
  const { accountId, id } = (await keys.find(apiKey)) ?? assert.fail();
  const seal = createAnswerSeal(SECRETS);
  await createWebhooks(sql, { seal, currentId: SECRETS.current.id, nowMs }).create(accountId, {
    url: 'https://example.com/',
    events: ['answer.ready', 'key.new_address'],
    lowBelowMicros: null,
    email: null,
  });
  return { accountId, keyId: id };
}

test('a note that fails keeps no other from being told, and a database that is away loses none', async () => {
  const [first, second] = [await watchedAccount(), await watchedAccount()];
  const told: [bigint, string, object][] = [];
  const log = {
    async add(_on: unknown, accountId: bigint, type: string, data: object) {
      if (accountId === first.accountId) throw new Error('refused');
      told.push([accountId, type, data]);
    },
  };
  let away = false;
  const sql = new Proxy(database.sql, {
    apply: (real, self, args) =>
      away ? Promise.reject(new Error('away')) : Reflect.apply(real as never, self, args),
  });
  const uses = createKeyUses(sql, { secrets: SECRETS, log, retentionDays: 90, nowMs });
  const answered = { callId: 'call', service: 'slow', durationMs: 6_000 };
  const note = (address: string) => {
    for (const account of [first, second]) uses.note({ ...account, address, answered });
  };
  note('203.0.113.1');
  away = true;
  await assert.rejects(uses.flush(), AggregateError);
  away = false;
  await assert.rejects(uses.flush(), AggregateError);
  assert.deepEqual(told, [[second.accountId, 'answer.ready', answered]]);
  note('203.0.113.2');
  await assert.rejects(uses.flush(), AggregateError);
  assert.deepEqual(
    told.map(([, type]) => type),
    ['answer.ready', 'key.new_address', 'answer.ready'],
  );
  await uses.flush();
});
