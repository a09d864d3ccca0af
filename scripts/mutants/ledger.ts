/** Bugs in money, its ids, and the batches that move it. */
import type { MutantsOfFile } from '../mutant.ts';

export const LEDGER_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/ledger/functions/ledger_day_transfers.sql',
    tests: ['packages/core/src/ledger/closed-days.test.ts'],
    bugs: [['SET enable_seqscan = off\n', '']],
  },
  {
    file: 'packages/core/src/ledger/functions/ledger_day_moved.sql',
    tests: ['packages/core/src/ledger/closed-days.test.ts'],
    bugs: [['SET enable_seqscan = off\n', '']],
  },
  {
    file: 'packages/core/src/ledger/functions/ledger_apply_planned.sql',
    tests: ['packages/core/src/ledger/ledger.test.ts'],
    bugs: [
      ['dp + d + r.amount > c THEN s := 1;', 'd + r.amount > c THEN s := 1;'],
      [' OR r.t_credit <> r.credit', ''],
      [' OR r.t_amount <> r.amount', ''],
      ['OR (r.phase <= 2 AND r.t_phase <> r.phase)', 'OR false'],
      ['ELSIF r.t_phase IS NULL OR r.t_phase <> 2 THEN', 'ELSIF r.t_phase IS NULL THEN'],
      ['ELSIF s IS NOT NULL THEN s := 5;', 'ELSIF s IS NOT NULL THEN s := 0;'],
      ['IF s = r.phase THEN s := 0;', 'IF false THEN s := 0;'],
      ['IF is_debit THEN dp := dp - r.amount;', 'IF is_debit THEN dp := dp;'],
      [
        'IF NOT house THEN available[r.ord] := c - d - dp; END IF;',
        'IF NOT house THEN available[r.ord] := c - d; END IF;',
      ],
      ['      ORDER BY a.id FOR NO KEY UPDATE\n', '      ORDER BY a.id\n'],
    ],
  },
  {
    file: 'packages/core/src/ledger/functions/ledger_apply_planned.sql',
    tests: ['packages/core/src/paid-call/inside/call-batch.test.ts'],
    bugs: [['dp + d + r.amount > r.ceiling THEN s := 2;', 'false THEN s := 2;']],
  },
  {
    file: 'packages/core/src/ledger/money.ts',
    tests: ['packages/core/src/ledger/money.test.ts'],
    bugs: [
      ["fraction.padEnd(6, '0')", "fraction.padStart(6, '0')"],
      ['(\\d{1,6}))?$/', '(\\d{1,7}))?$/'],
      ["return sign === '-' ? -micros : micros;", 'return micros;'],
      ["padStart(6, '0').slice(0, places)", 'slice(0, places)'],
      ['const absolute = micros < 0n ? -micros : micros;', 'const absolute = micros;'],
      ['(?<=\\.\\d{2}\\d*?)0+$/', '(?<=\\.\\d*?)0+$/'],
    ],
  },
  {
    file: 'packages/core/src/ledger/transfer-id.ts',
    tests: ['packages/core/src/ledger/transfer-id.test.ts'],
    bugs: [
      ['  poolAt += 16;\n', ''],
      ['bytes.writeUIntBE(nowMs, 0, 6);', ''],
      ['.update(cause)', '.update(cause.slice(0, 8))'],
      ['if (poolAt === POOL_BYTES) {', 'if (poolAt > POOL_BYTES) {'],
      ['& 0xf000) | bucket', '& 0xf000)'],
      ['(bytes.readUInt16BE(8) & 0xf000) | bucket', 'bucket'],
    ],
  },
  {
    file: 'packages/core/src/ledger/group-commit.ts',
    tests: ['packages/core/src/ledger/group-commit.test.ts'],
    bugs: [
      ['if (this.depth >= maxWaiting) return Promise.reject(new QueueFull());', ''],
      ['if (results.length !== batch.length)', 'if (results.length > batch.length)'],
      ['!isRefusal || batch.length === 1', '!isRefusal || batch.length >= 1'],
      ['if (item.unanswered >= maxAttempts) end', 'if (item.unanswered > maxAttempts) end'],
      ['      item.unanswered += 1;\n', ''],
      ['own.some((key) => keys.has(key) || this.#busyKeys.has(key))', 'own.some((key) => keys.has(key))'],
      [
        'own.some((key) => keys.has(key) || this.#busyKeys.has(key))',
        'own.some((key) => this.#busyKeys.has(key))',
      ],
      ['for (const key of keys) this.#busyKeys.delete(key);', ''],
      ['hold.untilMs > nowMs || asking.has(lock)', 'hold.untilMs > nowMs'],
      ['if (item.giveUpAtMs - nowMs < deadlineMs * LAST_PART) {', 'if (item.giveUpAtMs - nowMs < 0) {'],
      ['item.unanswered === 0 ? new NotBegun(why)', 'item.unanswered >= 0 ? new NotBegun(why)'],
      ['    if (heldUpMs > 5 * SWEEP_MS) return;\n', ''],
      ['if (nowMs >= item.giveUpAtMs) end(item, () => item.reject(new NoAnswerInTime(item.lastError)));', ''],
      [
        "if (why === 'nobody is there') this.#pausedUntilMs",
        "if (why !== 'nobody is there') this.#pausedUntilMs",
      ],
      [
        '  if (item.isOver) return;\n',
        '',
        'A promise keeps its first end: to be ended again changes nothing that a caller could see.',
      ],
      ['lane.flights >= this.#options.maxFlights', 'lane.flights > this.#options.maxFlights'],
      ['this.#laneOf(laneOf?.(work) ?? 0)', 'this.#laneOf(0)'],
      [
        'if (waiting.length === 0 && flights === 0 && !isScheduled) this.#lanes',
        'if (flights === 0 && !isScheduled) this.#lanes',
      ],
      [
        '    // Work of another lane may have waited for these keys.\n    this.#scheduleAll();\n',
        '    this.#schedule(lane);\n',
      ],
      ['taken.length < maxBatch ?', 'taken.length <= maxBatch ?'],
      ['if (this.#options.isLocked(result)) this.#putAside(item, lock);\n      else {', '{'],
      [
        '.filter(({ isOver }) => !isOver).concat(first.lane.waiting)',
        '.concat(first.lane.waiting)',
        'Work that is over is passed over again when the next batch is taken.',
      ],
    ],
  },
  {
    file: 'packages/core/src/ledger/ledger.ts',
    tests: ['packages/core/src/paid-call/inside/buckets.test.ts'],
    bugs: [
      [
        '    laneOf: ({ bucket }) => bucket,\n',
        '',
        'A transfer in a batch of another bucket is not found there, and goes to its own with the next one.',
      ],
      [
        'known.get(transfer.accountId) ?? HOUSE_BUCKET',
        'HOUSE_BUCKET',
        'It is not found there, and goes to its own bucket with the next batch.',
      ],
      ['bucket ?? randomInt(accountBuckets)', 'randomInt(accountBuckets)'],
      ['bucket ?? randomInt(accountBuckets)', 'bucket ?? HOUSE_BUCKET'],
    ],
  },
  {
    file: 'packages/core/src/ledger/ledger.ts',
    tests: ['packages/core/src/ledger/ledger.test.ts'],
    bugs: [
      ["if (transfer.amountMicros <= 0n) throw new RangeError('a transfer moves more than nothing');", ''],
      ['if ((transfer.note?.length ?? 0) > 500)', 'if ((transfer.note?.length ?? 0) > 5_000)'],
      ["t.side === 'debit' ? t.accountId : house(t)", "t.side === 'debit' ? house(t) : t.accountId"],
      ['availableMicros: row.c - row.d - row.dp,', 'availableMicros: row.c - row.d,'],
      [
        'select id, credits_posted - debits_posted - debits_pending as available',
        'select id, credits_posted - debits_posted as available',
      ],
      ['order by id for no key update', 'order by id'],
      ['void: 4 };', 'void: 3 };'],
    ],
  },
  {
    file: 'packages/core/src/ledger/one-commit.ts',
    tests: ['packages/core/src/ledger/one-commit.test.ts'],
    bugs: [['if (!isDistributed || MADE_ONE', 'if (MADE_ONE']],
  },
  {
    file: 'packages/core/src/ledger/ledger.ts',
    tests: ['packages/core/src/ledger/one-commit.test.ts'],
    bugs: [
      ['  await commitAsOne(transaction, distribution);\n  const [row]', '  const [row]'],
      ['  await commitAsOne(transaction, distribution);\n  const places', '  const places'],
      [
        '  await commitAsOne(transaction, distribution);\n  const { bucket: remembered }',
        '  const { bucket: remembered }',
      ],
    ],
  },
  {
    file: 'packages/core/src/ledger/buckets.ts',
    tests: ['packages/core/src/ledger/account-moves.test.ts'],
    bugs: [
      [' for key share`;', '`;'],
      ["if (result.status !== 'elsewhere') return", 'return'],
    ],
  },
  {
    file: 'packages/core/src/ledger/account-moves.ts',
    tests: ['packages/core/src/ledger/account-moves.test.ts'],
    bugs: [
      ['        await assertServersLookAgain(transaction);\n', ''],
      ['if (isLockTimeout(error) || isDeadlock(error)) return', 'if (isDeadlock(error)) return'],
      ['if (open.length === 0 || round >= times) return', 'return'],
      ['if (calls.length > 0 || undelivered.length > 0)', 'if (undelivered.length > 0)'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_finish.sql',
    tests: ['packages/core/src/ledger/account-moves.test.ts'],
    bugs: [['WHEN r.left_micros IS NULL THEN 3 WHEN', 'WHEN']],
  },
  {
    file: 'packages/core/src/ledger/heard-transfers.ts',
    tests: ['packages/core/src/ledger/one-commit.test.ts'],
    bugs: [['    await commitAsOne(transaction, { isDistributed: true });\n', '']],
  },
  {
    file: 'packages/core/src/keys/keys.ts',
    tests: ['packages/core/src/ledger/one-commit.test.ts'],
    bugs: [['  await commitAsOne(transaction, { isDistributed: true });\n', '']],
  },
  {
    file: 'packages/core/src/ledger/heard-transfers.ts',
    tests: ['packages/core/src/ledger/bucket-turns.test.ts'],
    bugs: [
      ['      on conflict do nothing`;', '      `;'],
      ['if (held.length === 0) return false;', ''],
      ['if (noted !== undefined) continue;', ''],
      ['lasts.set(bucket, each);', ''],
      ['failures.push(error);', 'throw error;'],
    ],
  },
  {
    file: 'packages/core/src/ledger/bucket-turns.ts',
    tests: ['packages/core/src/ledger/bucket-turns.test.ts'],
    bugs: [
      ['if (done >= batchSize) full.push(bucket);', ''],
      ['failures.push(error);', 'throw error;'],
      ['distribution.isDistributed ? await buckets() : [null]', 'await buckets()'],
    ],
  },
];
