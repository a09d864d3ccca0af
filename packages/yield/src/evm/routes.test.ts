import assert from 'node:assert/strict';
import { test } from 'node:test';
import pino from 'pino';
import { createHttpServer } from '../../../core/src/http/server.ts';
import { type YieldRouteParts, yieldRoutes } from './routes.ts';

test('who asks is answered in time, however late each of the node’s answers comes', async () => {
  const app = createHttpServer(pino({ level: 'silent' }));
  const verdict = { allowed: true, limit: 1, remaining: 1, resetSeconds: 1 };
  const never = () => new Promise<never>(() => {});
  const parts: Partial<YieldRouteParts> = {
    fixed: never,
    snapshot: never,
    lastLook: never,
    nowMs: Date.now,
    baseUrl: 'http://farebox.test',
    limit: { take: () => verdict } as unknown as YieldRouteParts['limit'],
    addressOf: () => '127.0.0.1',
    freeReads: { read: (_, work) => work() },
    patienceMs: 20,
  };
  yieldRoutes(app, parts as YieldRouteParts);
  try {
    for (const path of ['rates', 'stats', 'position/0x1', 'deposit-tx', 'redeem-tx']) {
      const answer = await app.inject({ url: `/api/yield/${path}` });
      assert.deepEqual([answer.statusCode, answer.json().code], [503, 'CHAIN_UNAVAILABLE'], path);
      assert(Number(answer.headers['retry-after']) > 0, path);
    }
  } finally {
    await app.close();
  }
});
