import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { NOW_MS, runContext } from '../../../catalogue/src/services/run-context.fixture.ts';
import { createRateLimit } from '../http/rate-limit.ts';
import { defineService } from '../service/define.ts';
import { NO_SOURCES } from '../service/sources.ts';
import { answer } from '../words/answer.ts';
import { notFound, sourceUnavailable } from '../words/failure.ts';
import { createFreeCall, type FreeCallReport } from './free-call.ts';

/** A free call of a service that does what its input says, and waits when it is told to. */
function stage(runsPerMinute = 100) {
  let now = NOW_MS;
  let runs = 0;
  const gate = Promise.withResolvers<void>();
  const reports: FreeCallReport[] = [];
  const service = defineService({
    path: 'counted',
    name: 'Counted',
    tag: 'Discovery',
    priceUsd: '0.10',
    summary: 'For tests.',
    input: z.object({ question: z.string() }),
    output: z.object({ run: z.number() }),
    example: { question: 'a' },
    timeoutMs: 200,
    async run({ question }) {
      runs += 1;
      if (question.startsWith('wait')) await gate.promise;
      if (question === 'hang') await new Promise(() => {});
      if (question === 'absent') throw notFound('question', 'nobody knows');
      if (question === 'down') throw sourceUnavailable('somewhere', 'upstream_down', 'down', 9_000);
      if (question === 'bug') throw new TypeError('a secret inside');
      return answer({ run: runs }, { method: 'Counted.' });
    },
  });
  const nowMs = () => now;
  const { catalog, baseUrl, version } = runContext({});
  const freeCall = createFreeCall({
    sources: NO_SOURCES,
    catalog,
    baseUrl,
    version,
    nowMs,
    availability: () => ({ available: true, reason: null, message: null, retryAfterMs: 0, chains: [] }),
    addressLimit: createRateLimit({ perMinute: 1_000, maxNames: 10, nowMs }),
    runLimit: createRateLimit({ perMinute: runsPerMinute, maxNames: 1, nowMs }),
    report: (report) => void reports.push(report),
  });
  return {
    reports,
    open: gate.resolve,
    runs: () => runs,
    pass(ms: number) {
      now += ms;
    },
    async ask(question: string) {
      const { status, headers, body } = await freeCall.handle({
        service,
        headers: {},
        rawBody: Buffer.from(JSON.stringify({ question })),
        address: '198.51.100.7',
        requestId: 'req_1',
        gone: () => false,
        assertMayBuy() {},
      });
      return { status, headers, body: JSON.parse(String(body)) };
    },
  };
}

test('the same question reaches the sources once, and again only after a while', async () => {
  const { ask, runs, open, pass } = stage();
  const crowd = Array.from({ length: 20 }, () => ask('wait'));
  open();
  const answers = await Promise.all(crowd);
  assert.deepEqual([runs(), ...new Set(answers.map(({ body }) => body.run))], [1, 1]);
  pass(14_999);
  assert.equal((await ask('wait')).body.run, 1);
  assert.equal((await ask('b')).body.run, 2);
  pass(1);
  assert.equal((await ask('wait')).body.run, 3);
});

test('a failure is reported as it is, and is not shared with other callers', async () => {
  const { ask, runs, reports } = stage();
  const failures = [
    ['absent', 404, 'NOT_FOUND'],
    ['down', 503, 'UPSTREAM_UNAVAILABLE'],
    ['bug', 500, 'SERVICE_ERROR'],
    ['hang', 503, 'DEADLINE_EXCEEDED'],
  ] as const;
  for (const [question, status, code] of failures) {
    for (let n = 0; n < 2; n++) {
      const answered = await ask(question);
      assert.deepEqual(
        [answered.status, answered.body.success, answered.body.code, answered.body.charged],
        [status, false, code, false],
      );
      assert(!JSON.stringify(answered.body).includes('secret'));
      if (status === 503) assert(Number(answered.headers['retry-after']) >= 1);
    }
  }
  assert.equal(runs(), 8);
  assert.deepEqual(
    reports.filter(({ error }) => error instanceof TypeError).map(({ status }) => status),
    [500, 500],
  );
});

test('the number of runs at once and in a minute is bounded', async () => {
  const { ask, open, runs, pass } = stage(10);
  const waiting = Array.from({ length: 8 }, (_, n) => ask(`wait ${n}`));
  const ninth = await ask('b');
  assert.deepEqual([ninth.status, ninth.body.code, runs()], [503, 'BUSY', 8]);
  open();
  for (const each of await Promise.all(waiting)) assert.equal(each.status, 200);
  assert.deepEqual(
    [(await ask('b')).status, (await ask('c')).status, (await ask('d')).status],
    [200, 200, 503],
  );
  assert.equal((await ask('c')).status, 200, 'what was just answered costs no run');
  pass(60_000);
  assert.equal((await ask('d')).status, 200);
});
