/**
 * Sends requests over kept-alive connections and times every one. Each connection sends its next request when the last
 * is answered.
 */
import autocannon from 'autocannon';
import { answerOrders } from './answering-process.ts';
import type { LoadOrder, LoadResult } from './load.ts';
import { percentile } from './rounds.ts';

answerOrders<LoadOrder, LoadResult>(async (command) => {
  const headers = {
    'content-type': 'application/json',
    ...(command.accept === undefined ? {} : { accept: command.accept }),
  };
  const request = { method: 'POST', path: command.path, headers, body: command.body };
  const requests =
    command.apiKeys.length === 0
      ? [request]
      : command.apiKeys.map((key) => ({ ...request, headers: { ...headers, 'x-api-key': key } }));
  const durationsMs: number[] = [];
  let unexpected = '';
  let endedAtMs = 0;
  const startedAtMs = performance.now();
  const running = autocannon({
    url: command.url,
    connections: command.connections,
    sampleInt: 50,
    requests,
    ...('amount' in command.until
      ? { amount: command.until.amount }
      : { duration: command.until.durationMs / 1_000 }),
  });
  running.on('response', (_client: unknown, status: number, _bytes: number, durationMs: number) => {
    if (status !== command.expectStatus) unexpected = `status ${status}`;
    durationsMs.push(durationMs);
    endedAtMs = performance.now();
  });
  running.on('reqError', (error: Error) => {
    unexpected = error.message;
  });
  await running;
  if (unexpected !== '')
    throw new Error(`${command.url}${command.path} answered ${unexpected}, not ${command.expectStatus}`);
  return {
    requests: durationsMs.length,
    perSecond: durationsMs.length / ((endedAtMs - startedAtMs) / 1_000),
    p50Ms: percentile(durationsMs, 0.5),
    p99Ms: percentile(durationsMs, 0.99),
  };
});
