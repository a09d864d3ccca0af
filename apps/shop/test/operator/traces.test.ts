/** A collector of OpenTelemetry gets the spans of paid calls, as many as are sampled, and nothing that a caller sent. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, startUpstreams } from '../server.fixture.ts';

interface SeenSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  attributes: { key: string; value: { stringValue?: string; intValue?: number } }[];
}

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let collector: Server;
let endpoint: string;
const asked: { path: string; authorization: string | undefined; text: string }[] = [];

before(async () => {
  [database, upstreams] = await Promise.all([openTestDatabase(), startUpstreams()]);
  collector = createServer(async (request, reply) => {
    let text = '';
    for await (const bytes of request) text += bytes;
    asked.push({ path: request.url ?? '', authorization: request.headers.authorization, text });
    reply.setHeader('content-type', 'application/json');
    reply.end('{}');
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
});
after(async () => {
  collector?.closeAllConnections();
  collector?.close();
  await Promise.all([database?.close(), upstreams?.stop()]);
});

/** Buys calls from a server of its own. @returns the spans that had come when it had ended, and the key */
async function spansOf(
  environment: Record<string, string>,
  calls: readonly { path: string; body: object }[],
): Promise<{ spans: SeenSpan[]; apiKey: string }> {
  asked.length = 0;
  const server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url, environment });
  const nowMs = Date.now;
  const parts = {
    sql: database.sql,
    keys: createKeys(database.sql, nowMs),
    ledger: createLedger(database, nowMs),
    nowMs,
  };
  const { apiKey } = await grantKey(parts, { amountMicros: 5_000_000n, label: 'test', note: 'test' });
  try {
    for (const { path, body } of calls) {
      const headers = {
        'x-api-key': apiKey,
        'content-type': 'application/json',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      };
      const reply = await fetch(`${server.url}/x402/${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      assert.equal(reply.status, 200, await reply.text());
    }
  } finally {
    await server.close();
  }
  const spans = asked.flatMap(({ text }): SeenSpan[] =>
    JSON.parse(text).resourceSpans.flatMap(({ scopeSpans }: { scopeSpans: { spans: SeenSpan[] }[] }) =>
      scopeSpans.flatMap((each) => each.spans),
    ),
  );
  return { spans, apiKey };
}

const factOf = ({ attributes }: SeenSpan, name: string) =>
  attributes.find(({ key }) => key === `farebox.${name}`)?.value.stringValue;

test('a paid call is one trace of its steps and upstreams, and tells nothing that the caller sent', async () => {
  const { spans, apiKey } = await spansOf(
    {
      TRACES_OTLP_ENDPOINT: endpoint,
      TRACES_SAMPLED: '1',
      TRACES_OTLP_HEADERS: 'authorization=Bearer collector-token',
    },
    [{ path: 'token-price', body: { symbol: 'ETH' } }],
  );
  const root = spans.find(({ name }) => name === 'paid call');
  assert(root !== undefined);
  assert.equal(root.parentSpanId ?? '', '', 'what a caller says of its trace decides nothing');
  assert.notEqual(root.traceId, '0af7651916cd43dd8448eb211c80319c');
  assert(spans.every(({ traceId }) => traceId === root.traceId));
  assert.deepEqual(
    [factOf(root, 'service'), factOf(root, 'rail'), factOf(root, 'outcome')],
    ['token-price', 'credits', 'captured'],
  );
  const below = (parent: SeenSpan) =>
    spans.filter(({ parentSpanId }) => parentSpanId === parent.spanId).map(({ name }) => name);
  assert.deepEqual(below(root), ['reserve', 'run', 'capture']);
  const run = spans.find(({ name }) => name === 'run');
  assert(run !== undefined && below(run).length > 0);
  assert(below(run).every((name) => name === 'upstream'));
  const text = asked.map((each) => each.text).join();
  for (const secret of [apiKey, apiKey.slice(0, 16), 'collector-token', 'ETH', '127.0.0.1'])
    assert(!text.includes(secret), secret);
  assert(asked.every(({ path }) => path === '/v1/traces'));
  assert(asked.every(({ authorization }) => authorization === 'Bearer collector-token'));
});

test('nothing is sent of what is not sampled, nor without a collector', async () => {
  const calls = [{ path: 'ping', body: {} }];
  assert.deepEqual((await spansOf({ TRACES_OTLP_ENDPOINT: endpoint, TRACES_SAMPLED: '0' }, calls)).spans, []);
  assert.deepEqual((await spansOf({}, calls)).spans, []);
});

test('a collector that is away costs no call anything', async () => {
  const { spans } = await spansOf({ TRACES_OTLP_ENDPOINT: 'http://127.0.0.1:9', TRACES_SAMPLED: '1' }, [
    { path: 'ping', body: {} },
  ]);
  assert.deepEqual(spans, []);
});
