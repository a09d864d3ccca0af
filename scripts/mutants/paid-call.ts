/** Bugs in the paid call: what becomes of the money, and of the answer. */
import type { MutantsOfFile } from '../mutant.ts';

export const PAID_CALL_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/paid-call/followed-calls.ts',
    tests: ['packages/core/src/paid-call/followed-calls.test.ts'],
    bugs: [
      ['if (isOwed && lost === null) await', 'if (isOwed && lost !== null) await'],
      ['order by c.finished_at limit 1 for update of f skip locked', 'order by c.finished_at limit 1'],
      ['this.#at(LATE_CANCELLATION_MS)}::timestamptz', 'this.#at(0)}::timestamptz'],
      ['if (hasArrived) await', 'if (!hasArrived) await'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/call_terms_take.sql',
    tests: ['apps/shop/test/own-api/key-terms.test.ts'],
    bugs: [
      ['  IF NOT pg_try_advisory_xact_lock(', '  IF false AND NOT pg_try_advisory_xact_lock('],
      ['THEN own ELSE root END', 'THEN own ELSE own END'],
      ['WHEN EXISTS (SELECT 1 FROM lifted_bounds', 'WHEN false AND EXISTS (SELECT 1 FROM lifted_bounds'],
      ['AND f.day = today LIMIT', 'LIMIT'],
      ['END AND t.bought_at IS NULL)', 'END AND false)'],
      ['t.account_id = p_account AND t.bought_at IS NOT NULL', 'false'],
      ['IF q.minute >= this_minute THEN', 'IF q.minute = this_minute THEN'],
      ['IF q.day >= today THEN', 'IF q.day = today THEN'],
      ['IF NOT is_free AND NOT p_may_pay THEN RETURN 0; END IF;', 'IF NOT p_may_pay THEN RETURN 0; END IF;'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_begin.sql',
    tests: ['apps/shop/test/own-api/key-terms.test.ts'],
    bugs: [
      ['IF s IN (0, 13) AND r.t_phase', 'IF s = 0 AND r.t_phase'],
      ['IF s IN (0, 13) AND r.t_phase', 'IF s IN (0, 12, 13) AND r.t_phase'],
      ['CASE status[x.ord] WHEN 4 THEN 0 ELSE x.price END', 'x.price'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_finish.sql',
    tests: ['apps/shop/test/own-api/key-terms.test.ts'],
    bugs: [
      ['IF r.phase = 4 AND r.price = 0 THEN', 'IF false THEN'],
      ['IF r.phase = 4 AND r.price = 0 THEN', 'IF r.price = 0 THEN'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_begin.sql',
    tests: ['packages/core/src/paid-call/inside/weeks-of-calls.test.ts'],
    bugs: [
      [
        'FROM calls c WHERE c.bucket = p_bucket AND c.account_id = cur AND c.id = r.e_id;',
        'FROM calls__week c WHERE c.bucket = p_bucket AND c.account_id = cur AND c.id = r.e_id;',
      ],
      [
        '        DELETE FROM call_identities\n        WHERE bucket = p_bucket AND account_id = cur AND kind = 0 AND identity = r.identity;\n',
        '',
      ],
      ['WHERE status[x.ord] IN (0, 4) AND c.identity = x.identity', 'WHERE false'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_finish.sql',
    tests: ['packages/core/src/paid-call/inside/call-batch.test.ts'],
    bugs: [[' AND c.tableoid = x.place', '']],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_finish_apart.sql',
    tests: ['packages/core/src/paid-call/inside/call-batch.test.ts'],
    bugs: [
      [' AND c.id = x.id AND c.state = 0', ' AND c.id = x.id'],
      ['WHERE p_phase[e.ord] = 3 GROUP BY', 'GROUP BY'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_apply.sql',
    tests: ['packages/core/src/paid-call/inside/call-batch.test.ts'],
    bugs: [
      [
        '        SELECT c.state, c.fingerprint, c.identity, c.payment_key INTO other\n        FROM calls c',
        '        SELECT c.state, c.fingerprint, c.identity, c.payment_key INTO other\n        FROM calls_rest c',
      ],
      [
        'SELECT p_bucket, account_id, 0, identity, id FROM made WHERE identity IS NOT NULL',
        'SELECT p_bucket, account_id, 0, identity, id FROM made WHERE false',
      ],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_begin.sql',
    tests: ['packages/core/src/paid-call/inside/buckets.test.ts'],
    bugs: [
      [
        'FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = ANY (p_account)',
        'FROM ledger_accounts a WHERE a.id = ANY (p_account)',
      ],
      [
        'FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = cur)',
        'FROM ledger_accounts a WHERE a.id = cur)',
      ],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_begin.sql',
    tests: ['scripts/bucket-lint.test.ts'],
    bugs: [['WHERE d.bucket = p_bucket AND d.account_id', 'WHERE d.account_id']],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_finish.sql',
    tests: ['packages/core/src/paid-call/inside/buckets.test.ts'],
    bugs: [
      [
        'FROM ledger_accounts a WHERE a.bucket = p_bucket AND a.id = ANY (p_account)',
        'FROM ledger_accounts a WHERE a.id = ANY (p_account)',
        'A call is looked for in the bucket too, and is not there.',
      ],
      ['SELECT p_bucket, account_id, today', 'SELECT 0, account_id, today'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/call_share_set_aside.v3.sql',
    tests: ['packages/core/src/paid-call/inside/buckets.test.ts'],
    bugs: [['SELECT NEW.bucket, 13,', 'SELECT 0, 13,']],
  },
  {
    file: 'packages/core/src/paid-call/functions/call_share_taken_back.v3.sql',
    tests: ['packages/core/src/paid-call/inside/buckets.test.ts'],
    bugs: [['SELECT NEW.bucket, 13,', 'SELECT 0, 13,']],
  },
  {
    file: 'packages/core/src/paid-call/inside/call-batch.ts',
    tests: ['packages/core/src/paid-call/inside/buckets.test.ts'],
    bugs: [
      [
        "  if (batch.some(({ call }) => call.bucket !== bucket)) throw new Error('a batch has calls of two buckets');\n",
        '',
      ],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/calls.ts',
    tests: ['packages/core/src/paid-call/inside/buckets.test.ts'],
    bugs: [
      ['work.call.bucket * 2 + Number(mayBeLost(work))', 'Number(mayBeLost(work))'],
      ['    bucket: row.bucket,\n', '    bucket: 0,\n'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/books-rules.ts',
    tests: ['packages/core/src/paid-call/inside/buckets.test.ts'],
    bugs: [
      ['or not a.house and c.bucket <> a.bucket', 'or false'],
      ['or not a.house and t.bucket <> a.bucket', 'or false'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/fate.ts',
    tests: ['packages/core/src/paid-call/fate.test.ts'],
    bugs: [
      ["status === 429 || status >= 500 ? 'open' : 'free'", "status >= 500 ? 'open' : 'free'"],
      ["status === 429 || status >= 500 ? 'open' : 'free'", "status === 429 ? 'open' : 'free'"],
      ['{ ...problem.details, charged }', '{ charged, ...problem.details }'],
      ['  taken: {\n    charged: true,', '  taken: {\n    charged: null,'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/sealed-answer.ts',
    tests: ['packages/core/src/paid-call/sealed-answer.test.ts'],
    bugs: [
      ['      .setAAD(Buffer.from(callId))\n      .setAuthTag', '      .setAuthTag'],
      [
        'if (!body.startsWith(NAMELESS)) return body;',
        'if (!body.startsWith(NAMELESS)) return decrypt(keyOf(current.id), callId, body);',
      ],
      ['keyOf(current.id), nonce', "keyOf(all.at(-1)?.id ?? ''), nonce"],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/workers.ts',
    tests: ['packages/core/src/paid-call/inside/workers.test.ts'],
    bugs: [
      ['stopping?.aborted !== true && ', ''],
      ['if (failures.length > 0) throw failures[0];', ''],
      ['        failures.push(error);\n', '        throw error;\n'],
      ['await Promise.allSettled(', 'await Promise.all('],
    ],
  },
  {
    file: 'packages/core/src/paid-call/content.ts',
    tests: ['packages/core/src/paid-call/content.test.ts'],
    bugs: [
      ['Buffer.from(buffer, byteOffset, byteLength)', 'Buffer.from(buffer)'],
      ['if (header.length <= MAX_PROVENANCE_BYTES) return header;', 'return header;'],
      ['/[^\\x20-\\x7e]/g', '/[^\\x20-\\xff]/g'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/null-as-absent.ts',
    tests: ['packages/core/src/paid-call/inside/null-as-absent.test.ts'],
    bugs: [
      ['if (depth > MAX_DEPTH || ', 'if ('],
      ['(fields.length > 0 ? !mustStay(name, naming) : isOpen)', '(fields.length > 0 || isOpen)'],
      ['(Array.isArray(required) && required.includes(name)) || ', ''],
      ["[type].flat().includes('null') || ", ''],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/reservations.ts',
    tests: ['packages/core/src/paid-call/inside/reservations.test.ts'],
    bugs: [
      [
        "money.fate = payment.identity === null ? 'given back' : 'open';",
        "money.fate = payment.identity === null ? 'open' : 'given back';",
      ],
      ['retrievable: payment.identity !== null });', 'retrievable: payment.identity === null });'],
      ["money.fate = settled === undefined ? 'free' : 'open';", "money.fate = 'free';"],
      ["money.fate = settled === undefined ? 'free' : 'open';", "money.fate = 'open';"],
      [
        "    if (finished.status === 'not_open') {",
        "    if (finished.status !== 'done' && settled === undefined) {",
      ],
      [
        '      if (settled !== undefined) {\n        throw',
        '      if (settled === undefined) {\n        throw',
      ],
      [
        'if (!(await request.follow.stillWanted())) throw new CallerGone();',
        'await request.follow.stillWanted();',
      ],
      ["      money.fate = 'free';\n      await this.release", '      await this.release'],
      ["        void this.release(call, 'BEGIN_UNKNOWN');\n", ''],
      ['if (error instanceof QueueFull || error instanceof NotBegun) throw error;', ''],
      ['if (nowMs() >= untilMs) return begun;', ''],
      ["error instanceof CallerGone ? 'TAKEN_BACK' : 'FAILED'", "'TAKEN_BACK'"],
      ['capture: false, outcome, answer: null', 'capture: true, outcome, answer: null'],
      ['if (call.takenMicros === 0n) return this.#takeNothing(call);', ''],
      ["capture: false, outcome: 'MEASURED_NOTHING'", "capture: true, outcome: 'MEASURED_NOTHING'"],
      [
        "ended?.status === 'done' ? ended.availableMicros : null",
        '(ended as { availableMicros: bigint }).availableMicros',
      ],
      ['if (mustBeRefundable(quote) || streamOf(sale) !== null', 'if (streamOf(sale) !== null'],
      ['mustBeRefundable(quote) || streamOf(sale) !== null', 'mustBeRefundable(quote)'],
      [' || service.metered !== null) return false;', ') return false;'],
      ['return payment.onChain === null || !service.costsMoney;', 'return true;'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/call-batch.ts',
    tests: ['packages/core/src/paid-call/inside/lost-begins.test.ts'],
    bugs: [
      ['mayBeLost: batch.every(mayBeLost)', 'mayBeLost: batch.some(mayBeLost)'],
      ["work.kind !== 'finish' && work.call.mayBeLost === true", "work.kind !== 'finish'"],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_begin.sql',
    tests: ['packages/core/src/paid-call/inside/lost-begins.test.ts'],
    bugs: [["IF p_may_be_lost THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;", '']],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_apply.sql',
    tests: ['packages/core/src/paid-call/inside/lost-begins.test.ts'],
    bugs: [
      ["    PERFORM set_config('synchronous_commit', 'off', true);\n", ''],
      [
        "    IF nf > 0 THEN RAISE EXCEPTION 'what ends may not be lost'; END IF;\n",
        '',
        'The batch is asked first whether all of it may be lost.',
      ],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/catalog-lines.ts',
    tests: ['packages/core/src/paid-call/inside/catalog-lines.test.ts'],
    bugs: [
      ['if (before !== sold) return false;', ''],
      ['if (isUp(health(name)) !== was) return false;', ''],
      ['if (isUsable(standing(name)) !== was) return false;', ''],
      ['configured && unable === null', 'configured'],
      ['up.set(name, isUp(found));', ''],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/measured-cost.ts',
    tests: ['packages/core/src/paid-call/inside/measured-cost.test.ts'],
    bugs: [
      ['if (service.metered === null || priceMicros === 0n) return undefined;', ''],
      [' || priceMicros === 0n', ''],
      ['costMicros === undefined || ', ''],
      [' || costMicros > priceMicros', ''],
      ['costMicros < 0n || ', ''],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/call-batch.ts',
    tests: ['packages/core/src/paid-call/inside/measured-calls.test.ts'],
    bugs: [
      ['anyMeasured ? column((c) => c.takenMicros ?? null) : null', 'null'],
      ['c.takenMicros ?? null', 'c.takenMicros ?? c.priceMicros'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/books-rules.ts',
    tests: ['packages/core/src/paid-call/inside/measured-calls.test.ts'],
    bugs: [
      ['or e.amount_micros <> c.price_micros or', 'or'],
      ['             or e.reserved_micros is distinct from c.reserved_micros\n', ''],
    ],
  },
  {
    file: 'packages/core/src/ledger/ledger-rules.ts',
    tests: ['packages/core/src/paid-call/inside/measured-calls.test.ts'],
    bugs: [
      ['<> coalesce(e.reserved_micros, e.amount_micros)', '< coalesce(e.reserved_micros, e.amount_micros)'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/reconcile-calls.ts',
    tests: ['apps/shop/test/own-api/metered.test.ts'],
    bugs: [['refundOf(call, takenMicros)', 'refundOf(call, call.priceMicros)']],
  },
  {
    file: 'packages/core/src/paid-call/inside/streams.ts',
    tests: ['apps/shop/test/own-api/metered.test.ts'],
    bugs: [['return takenMicros === undefined ? call : { ...call, takenMicros };', 'return call;']],
  },
  {
    file: 'packages/core/src/paid-call/paid-call.ts',
    tests: ['apps/shop/test/own-api/metered.test.ts'],
    bugs: [
      ['if (service.metered !== null && rail.chains !== undefined) throw paidByKeyAlone();', ''],
      ['costMicros === undefined ? call : { ...call, takenMicros: costMicros }', 'call'],
    ],
  },
  {
    file: 'packages/core/src/rails/x402/offered.ts',
    tests: ['apps/shop/test/own-api/metered.test.ts'],
    bugs: [['quote.service.metered === null &&', '']],
  },
  {
    file: 'packages/core/src/discovery/pay-by-wallet.ts',
    tests: ['apps/shop/test/own-api/metered.test.ts'],
    bugs: [
      [
        'service.metered === null ? (context.rails.x402?.networks ?? []) : []',
        'context.rails.x402?.networks ?? []',
      ],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/on-chain.ts',
    tests: ['packages/core/src/paid-call/inside/on-chain.test.ts'],
    bugs: [
      ['if (!(await answers.isKept(call, stored))) return answers.replay(sale, payment, call.id);', ''],
      ['mayBeLost: made !== null && chains.asksIfKept?.(onChain) === true', 'mayBeLost: made !== null'],
      [
        'mayBeLost: made !== null && chains.asksIfKept?.(onChain) === true',
        'mayBeLost: chains.asksIfKept?.(onChain) === true',
      ],
      [
        "settlement.state === 'settled' && settlement.transaction !== null",
        'settlement.transaction === null && false',
      ],
      ['        if (mayBeInFlight(settlement)) break;\n', ''],
      [
        "await settlements.markRefused(settlement, verdict.refusal.code).catch(() => {});\n        sale.money.fate = 'free';",
        'await settlements.markRefused(settlement, verdict.refusal.code).catch(() => {});',
      ],
      [
        '{ capture: false, outcome: verdict.refusal.code, answer: null, settled: null }',
        '{ capture: true, outcome: verdict.refusal.code, answer: null, settled: null }',
      ],
      ['        await calls.finish({ ...callOf(settlement), ...ended }).catch(() => {});\n', ''],
      ['    await settlements.later(settlement, LOOK_AGAIN_MS).catch(() => {});\n', ''],
      ['await settlements.markSettled(settlement, at, longestMs(sale) + RECONCILE_GRACE_MS);', ''],
      [
        '      await settlements.later(settlement, 0).catch(() => {});\n      throw this.#paidButFailed',
        '      throw this.#paidButFailed',
      ],
      ['settlement.createdAtMs + this.#parts.refundAfterMs', 'settlement.createdAtMs'],
      ["    money.fate = 'taken';\n    if (settlement.answered)", '    if (settlement.answered)'],
      [
        "const captured = await traced('capture', () => reservations.capture(sale, call, stored, at));",
        'const captured = { availableMicros: 0n };',
      ],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/outcome.ts',
    tests: ['packages/core/src/paid-call/inside/outcome.test.ts'],
    bugs: [
      ["return error.why === 'locked'", "return error.why !== 'locked'"],
      ['  if (lost !== null) {', '  if (lost === undefined) {'],
      ["'SERVICE_ERROR', 'The service failed.')", "'SERVICE_ERROR', String(error))"],
    ],
  },
  {
    file: 'packages/core/src/http/problem.ts',
    tests: ['packages/core/src/paid-call/inside/outcome.test.ts'],
    bugs: [['...failure.details, ...fields, charged: false }', '...failure.details, ...fields }']],
  },
  {
    file: 'packages/core/src/paid-call/inside/answers.ts',
    tests: ['packages/core/src/paid-call/inside/on-chain.test.ts'],
    bugs: [
      ['return kept === null || bytesOf(kept).equals(bytesOf(answer));', 'return true;'],
      ['return kept === null || bytesOf(kept)', 'return kept !== null && bytesOf(kept)'],
      ["const told = { 'idempotent-replayed': 'true', ", 'const told = { '],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_finish.sql',
    tests: [
      'packages/core/src/paid-call/inside/measured-calls.test.ts',
      'packages/core/src/paid-call/inside/call-batch.test.ts',
    ],
    bugs: [
      [' AND c.id = x.id AND c.state = 0 OFFSET 0', ' AND c.id = x.id OFFSET 0'],
      ['price_micros = coalesce(x.taken, c.price_micros)', 'price_micros = c.price_micros'],
      ['reserved_micros = CASE WHEN x.taken IS NOT NULL THEN c.price_micros END', 'reserved_micros = NULL'],
      ['CASE WHEN x.phase = 3 THEN p_taken[x.ord] END AS taken', 'p_taken[x.ord] AS taken'],
      ['AND t.amount_micros = c.price_micros AND t.debit_account', 'AND t.debit_account'],
      ['      WHERE phase = 3 GROUP BY account_id, service', '      GROUP BY account_id, service'],
      ['spent_micros = s.spent_micros + excluded.spent_micros', 'spent_micros = excluded.spent_micros'],
      ['less := less + r.reserved;', 'less := less + r.price;'],
      ['taken := taken + r.price; left_micros', 'taken := taken + r.reserved; left_micros'],
      ['left_micros := left_micros - r.price;', 'left_micros := left_micros - r.reserved;'],
      ['      cur := r.account_id; less := 0; taken := 0;', '      cur := r.account_id; less := 0;'],
      ['status[x.ord] = 0 AND x.phase = 3 AND x.answer', 'status[x.ord] = 0 AND x.answer'],
      ['p_now + p_answer_ttl', 'p_now'],
      ['WHEN r.state = r.phase - 2 THEN 0 ELSE 1 END', 'WHEN r.state IS NOT NULL THEN 0 ELSE 1 END'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_finish.sql',
    tests: ['packages/core/src/paid-call/inside/call-batch.test.ts'],
    bugs: [
      ['ORDER BY a.id FOR NO KEY UPDATE SKIP LOCKED', 'ORDER BY a.id FOR NO KEY UPDATE'],
      ['WHERE all_held OR x.account = ANY (held)', 'WHERE true'],
      ['status[x.ord] = 2 AND (x.account = ANY (held) OR a.left_micros IS NULL)', 'status[x.ord] = 2'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_apply.sql',
    tests: ['packages/core/src/paid-call/inside/call-batch.test.ts'],
    bugs: [
      ['IF r.state IS DISTINCT FROM r.phase - 2 THEN f_status', 'IF r.state IS NULL THEN f_status'],
      ['ELSIF r.call_cap < b_price[i] THEN', 'ELSIF r.call_cap <= b_price[i] THEN'],
      ['ELSIF r.day_cap IS NOT NULL THEN ceiling[nf + i] := r.day_cap;', ''],
      ['IF other.fingerprint <> r.fingerprint THEN b_status', 'IF false THEN b_status'],
      ['IF other.state = 2 THEN', 'IF false THEN'],
      ['b_status[i] := l_status[nf + i]; skip[nf + i] := true;', 'b_status[i] := l_status[nf + i];'],
      [
        'WHERE NOT skip[x.ord] AND f_phase[x.ord] = 3 AND x.status IS NOT NULL',
        'WHERE NOT skip[x.ord] AND x.status IS NOT NULL',
      ],
      [
        'WHERE NOT skip[x.ord] AND f_phase[x.ord] = 3 AND x.account >= 1000',
        'WHERE f_phase[x.ord] = 3 AND x.account >= 1000',
      ],
      ['ELSIF r.id <> b_id[r.ord] THEN b_status[r.ord] := 21;', 'ELSE b_status[r.ord] := 21;'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_apply.sql',
    tests: [
      'packages/core/src/paid-call/settlements.test.ts',
      'packages/core/src/paid-call/inside/payments-in-flight.test.ts',
      'packages/core/src/paid-call/inside/finish-settlements.test.ts',
    ],
    bugs: [
      [
        'c.account_id = x.account AND c.id = x.id AND c.state = 0;',
        'c.account_id = x.account AND c.id = x.id;',
      ],
      ['k_status[x.ord] = 0 AND c.state IS DISTINCT FROM 3', 'k_status[x.ord] = 0 AND c.state IS NULL'],
      ['           x.status IS NOT NULL, x.dead_after,', '           true, x.dead_after,'],
      ['c.state IS DISTINCT FROM CASE WHEN x.kept THEN 3 ELSE 0 END', '(c.state IN (0, 3)) IS NOT TRUE'],
      ['SET state = CASE WHEN x.phase = 3 THEN 1 ELSE 2 END,', 'SET state = 1,'],
      ['AND x.kept AND x.phase = 4\n', 'AND false\n'],
      ['AND x.kept AND x.phase = 4\n', 'AND x.kept\n'],
      ['transaction = coalesce(x.transaction, s.transaction)', 'transaction = s.transaction'],
      ['WHERE NOT skip[x.ord] AND x.phase = 4 AND x.account < 1000', 'WHERE false'],
      ['AND f_phase[x.ord] = 3 AND x.account >= 1000', 'AND f_phase[x.ord] = 3'],
      ['OR r.moved_at >= b_since[i])', 'OR r.moved_at IS NOT NULL)'],
      ['OR r.moved_at >= b_since[i])', 'OR false)'],
      [
        "p_now - interval '90 days'\n            AND s.state = 1 AND c.state = 1 AND c.outcome = 'answered')",
        "p_now - interval '90 days'\n            AND s.state = 1 AND c.state = 1)",
      ],
      ['IF b_only_one[i] AND costs AND NOT b_known[i] THEN', 'IF b_only_one[i] AND costs THEN'],
      ['costs := costs OR (r.costs_money AND is_open);', 'costs := costs OR r.costs_money;'],
      ['ELSIF units + b_amount[i] > b_holds[i] THEN', 'ELSIF units > b_holds[i] THEN'],
      [
        "          AND NOT pg_try_advisory_xact_lock(hashtextextended('payment ' ||",
        "          AND NOT pg_try_advisory_xact_lock_shared(hashtextextended('payment ' ||",
        'The key of the identities decides who has a payment. The lock only spares whoever comes second the wait for the first.',
      ],
      [
        "NOT pg_try_advisory_xact_lock(hashtextextended('payer ' ||",
        "NOT pg_try_advisory_xact_lock_shared(hashtextextended('payer ' ||",
      ],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_apply.sql',
    tests: [
      'packages/core/src/paid-call/inside/calls.test.ts',
      'packages/core/src/paid-call/inside/call-batch.test.ts',
    ],
    bugs: [
      ['    ORDER BY a.id FOR NO KEY UPDATE SKIP LOCKED);', '    ORDER BY a.id FOR NO KEY UPDATE);'],
      [
        'ORDER BY c.id FOR NO KEY UPDATE OF c SKIP LOCKED);',
        'ORDER BY c.id FOR NO KEY UPDATE OF c);',
        'The database gives the wait up after half a second, and what is left of the batch is sent again: only time tells the two apart.',
      ],
      [
        'ORDER BY c.id FOR NO KEY UPDATE OF c SKIP LOCKED);',
        'ORDER BY c.id);',
        'A transfer ends once: whoever comes second is refused by the ledger, and told so when it is asked again.',
      ],
      [
        'f_account[i] <> ALL (held) THEN f_status[i] := 2; skip[i] := true;',
        'f_account[i] <> ALL (held) THEN f_status[i] := 2;',
      ],
      [
        'b_account[i] <> ALL (held) THEN b_status[i] := 30; skip[nf + i] := true;',
        'false THEN b_status[i] := 30; skip[nf + i] := true;',
      ],
      [
        "          AND NOT pg_try_advisory_xact_lock(hashtextextended('identity ' ||",
        "          AND NOT pg_try_advisory_xact_lock_shared(hashtextextended('identity ' ||",
        'The key of the identities decides who has a payment. The lock only spares whoever comes second the wait for the first.',
      ],
    ],
  },
];
