/**
 * Every reader of what a call costs, found in the sources. A call whose price is measured has two amounts: what is reserved while it runs,
 * and what is taken in the end. `calls.price_micros` is the first while a call is open, and the second once it is captured; the first
 * then stands in `reserved_micros`. Each reader stands in `readers-of-price.txt`, a line each, behind the amount that it means:
 *
 * - taken: of a captured call. Of an open or a released one it is what is, or was, reserved, and the reader says which it is.
 * - reserved: of a call that has not ended, or that took nothing; and of a quote, which is what will be reserved.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../../../..');
/** Migrations have run, and a test reads what it put there. */
const READ = /^(packages\/[\w-]+|apps\/shop)\/src\/.*\.(ts|sql)$/;
const NOT_READ = /\.(test|fixture)\.ts$|\/migrations\//;
const COMMENT = /^(\/\/|\*|\/\*|--)/;
/** In a type, or handed on by its name. */
const HANDED_ON = /^(price_micros|priceMicros)(: bigint[;,]|,)$/;
/** Here a call is sold and ended: its price is followed in TypeScript too. */
const OF_CALLS = /^packages\/core\/src\/(paid-call|rails\/credits)\//;

const FILES = ['packages', 'apps/shop/src'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
    .filter((file) => !file.includes('/node_modules/') && READ.test(file) && !NOT_READ.test(file)),
);

/** All lines of code with a word, each behind the name of its file. */
function linesWith(word: (file: string) => RegExp): string[] {
  return FILES.flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => word(file).test(line) && !COMMENT.test(line) && !HANDED_ON.test(line))
      .map((line) => `${file}: ${line}`),
  ).sort();
}

interface Reader {
  means: string;
  /** Its file, and the line. */
  where: string;
}

const KNOWN: Reader[] = readFileSync(join(import.meta.dirname, 'readers-of-price.txt'), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => {
    const [means = '', ...where] = line.split(' ');
    return { means, where: where.join(' ') };
  });

test('each reader of what a call costs means what was taken, or what is reserved', () => {
  const found = linesWith((file) => (OF_CALLS.test(file) ? /price_micros|priceMicros/ : /price_micros/));
  assert.deepEqual(found, KNOWN.map(({ where }) => where).sort());
  for (const { means, where } of KNOWN) assert.match(means, /^(taken|reserved)$/, where);
});

test('money goes back, and shares are taken back, by what was taken alone', () => {
  for (const file of [
    'operator/acts.ts',
    'operator/proposals.ts',
    'paid-call/functions/call_share_taken_back.v3.sql',
    'paid-call/functions/call_shares_reversed.v2.sql',
    'paid-call/inside/bought-records.ts',
    'paid-call/inside/payment-refunds.ts',
    'sold-keys/sold-keys.ts',
  ]) {
    const readers = KNOWN.filter(({ where }) => where.startsWith(`packages/core/src/${file}: `));
    assert.deepEqual([...new Set(readers.map(({ means }) => means))], ['taken'], file);
  }
});

test('what was reserved is read of an ended call by whoever shows both amounts or proves them', () => {
  const files = linesWith(() => /reserved_micros/).map((line) => line.split(': ', 1)[0]);
  assert.deepEqual(
    [...new Set(files)],
    [
      'packages/core/src/history/prove-archives.ts',
      'packages/core/src/history/week-rows.ts',
      'packages/core/src/ledger/functions/ledger_carry.sql',
      'packages/core/src/ledger/functions/ledger_day_moved.sql',
      'packages/core/src/ledger/functions/ledger_day_transfers.sql',
      'packages/core/src/ledger/functions/ledger_day_transfers_apart.sql',
      'packages/core/src/ledger/ledger-rules.ts',
      'packages/core/src/operator/account-record.ts',
      'packages/core/src/operator/call-story.ts',
      'packages/core/src/paid-call/functions/call_share_set_aside.v3.sql',
      'packages/core/src/paid-call/functions/calls_finish.sql',
      'packages/core/src/paid-call/functions/calls_finish_apart.sql',
      'packages/core/src/paid-call/inside/books-rules.ts',
    ],
  );
});
