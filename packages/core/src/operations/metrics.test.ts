import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { showQueues } from './metrics.ts';

test('each queue is shown by its name, a queue that cannot be asked is left out, and one that is gone is shown no more', async () => {
  const registry = new Registry();
  let queues = [
    { name: 'mails', depth: async () => 3, oldestSeconds: async () => 12.5 },
    {
      name: 'silent',
      depth: () => Promise.reject(new Error('the database is silent')),
      oldestSeconds: () => Promise.reject(new Error('the database is silent')),
    },
    { name: 'empty', depth: async () => 0, oldestSeconds: async () => 0 },
  ];
  showQueues(registry, () => queues);
  const figures = async () => (await registry.metrics()).split('\n').filter((line) => /^farebox/.test(line));
  assert.deepEqual(await figures(), [
    'farebox_queue_depth{queue="mails"} 3',
    'farebox_queue_depth{queue="empty"} 0',
    'farebox_queue_oldest_seconds{queue="mails"} 12.5',
    'farebox_queue_oldest_seconds{queue="empty"} 0',
  ]);
  queues = queues.slice(2);
  assert.deepEqual(await figures(), [
    'farebox_queue_depth{queue="empty"} 0',
    'farebox_queue_oldest_seconds{queue="empty"} 0',
  ]);
});
