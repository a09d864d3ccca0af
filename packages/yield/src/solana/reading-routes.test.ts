import assert from 'node:assert/strict';
import { test } from 'node:test';
import pino from 'pino';
import { createHttpServer } from '../../../core/src/http/server.ts';
import { createFreeReads } from '../free-reads/budget.ts';
import { type ReadingParts, readingRoutes } from './reading-routes.ts';

/** The questions that a public node takes in ten seconds. */
const NODE_TAKES = 100;

test('a burst of free reads from one address leaves the node to another caller and to payments', async () => {
  let asked = 0;
  const ask = async () => {
    asked += 1;
    if (asked > NODE_TAKES) throw new Error('the node takes no more');
  };
  const node = {
    async transaction() {
      await ask();
      return null;
    },
    async latestBlockhash() {
      await ask();
      return { blockhash: 'a', lastValidBlockHeight: 1 };
    },
  } as unknown as ReadingParts['node'];
  let caller = '192.0.2.1';
  const verdict = { allowed: true, limit: 1, remaining: 1, resetSeconds: 1 };
  const parts: Partial<ReadingParts> = {
    node,
    limit: { take: () => verdict },
    addressOf: () => caller,
    baseUrl: 'http://farebox.test',
    nowMs: () => 0,
    freeReads: createFreeReads({
      perMinute: 240,
      nowMs: () => 1_000_000,
      count: () => {},
      wait: async () => {},
    }),
  };
  const app = createHttpServer(pino({ level: 'silent' }));
  readingRoutes(app, parts as ReadingParts);
  try {
    const burst = [];
    for (let nth = 0; nth < 300; nth += 1) {
      const signature = '1'.repeat(63) + '23456789A'[nth % 9];
      burst.push(await app.inject({ url: `/api/solana-yield/transaction/${signature}` }));
    }
    assert.equal(burst.filter(({ statusCode }) => statusCode === 200).length, 7);
    const refused = burst.filter(({ statusCode }) => statusCode === 429);
    assert.equal(refused.length, 293);
    assert(refused.every((each) => Number(each.headers['retry-after']) > 0));
    assert.equal(asked, 7, 'what was refused asked the node nothing');
    caller = '192.0.2.2';
    assert.equal((await app.inject({ url: '/api/solana-yield/blockhash' })).statusCode, 200);
    await ask();
  } finally {
    await app.close();
  }
});
