/**
 * The room that a call takes in the database: its row, its two transfers and their indexes, as a batch leaves them, and once its
 * week was made compact.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { weekOf } from '../../db/weeks.ts';
import { compactWeeks } from '../../history/compact-weeks.ts';
import { createLedger } from '../../ledger/ledger.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import type { CallToBegin } from './call-steps.ts';
import { createCallStore } from './calls.ts';

/** So many that whole pages and pages of indexes are filled. */
const CALLS = 6_000;
const AT_ONCE = 300;
const PRICE = 250_000n;
/** Above what was measured, 666 to 718: how full pages are depends on how calls come to lie in batches. */
const MOST_BYTES = 760;
/** Once its week is compact: 519 were measured. */
const MOST_COMPACT_BYTES = 560;
const COMPACT_AFTER_MS = 45 * 86_400_000;

let database: TestDatabase;
/** No call is of another week. */
let weekStart: number;
before(async () => {
  const now = Date.now();
  weekStart = weekOf(now).name === weekOf(now + 60_000).name ? now : now + 60_000;
  database = await openTestDatabase();
});
after(() => database?.close());

test(`a call without an Idempotency-Key takes ${MOST_BYTES} bytes at most, and ${MOST_COMPACT_BYTES} in a compact week`, async (context) => {
  // Ids are in the order of time, as those of calls are that come one after the other.
  let nowMs = weekStart;
  const ledger = createLedger(database, () => nowMs);
  const calls = createCallStore(database, { nowMs: () => nowMs, answerTtlMs: 86_400_000 });
  const accountId = await database.sql.begin((transaction) => ledger.openAccount(transaction));
  await ledger.transfer({
    id: newTransferId(nowMs),
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'operator_grants',
    amountMicros: PRICE * BigInt(CALLS),
    code: 'operator_grant',
  });
  for (let sold = 0; sold < CALLS; sold += AT_ONCE)
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        nowMs += 1;
        const call: CallToBegin = {
          id: newTransferId(nowMs),
          accountId,
          bucket: 0,
          keyId: null,
          rail: 'credits',
          service: 'ping',
          ttlMs: 40_000,
          priceMicros: PRICE,
          revenue: 'revenue_credits',
          identity: null,
          onChainIdentity: null,
          fingerprint: null,
        };
        assert.equal((await calls.begin(call)).status, 'authorized');
        const ended = await calls.finish({ ...call, capture: true, outcome: 'answered', answer: null });
        assert.equal(ended.status, 'done');
      }),
    );
  const { name } = weekOf(nowMs);
  const before = await bytesOfACall(name);
  context.diagnostic(before.text);
  assert.ok(before.all <= MOST_BYTES, before.text);
  const compacted = await compactWeeks(
    { patient: database.patient, nowMs: () => nowMs + COMPACT_AFTER_MS },
    () => true,
  );
  assert.ok(compacted.includes(name));
  const compact = await bytesOfACall(name);
  context.diagnostic(compact.text);
  assert.ok(compact.all <= MOST_COMPACT_BYTES, compact.text);
});

async function bytesOfACall(name: string): Promise<{ all: number; text: string }> {
  const sizes = await database.sql<{ name: string; bytes: bigint }[]>`
    select i.name, pg_relation_size(i.oid)::bigint as bytes from (
      select c.oid, c.relname as name from pg_class c where c.relname in (${`calls_${name}`}, ${`ledger_transfers_${name}`})
      union all
      select x.indexrelid, x.indexrelid::regclass::text from pg_index x join pg_class c on c.oid = x.indrelid
      where c.relname in (${`calls_${name}`}, ${`ledger_transfers_${name}`})
    ) i order by 2 desc`;
  const each = sizes.map(({ name: of, bytes }) => ({ of, bytes: Math.round(Number(bytes) / CALLS) }));
  const all = each.reduce((sum, { bytes }) => sum + bytes, 0);
  return {
    all,
    text: `${all} bytes a call: ${each.map(({ of, bytes }) => `${of} ${bytes}`).join(', ')}`,
  };
}
