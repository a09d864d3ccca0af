import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { type BatchingRpc, connectRpc, RpcRefusal, RpcUnreachable } from './json-rpc.ts';

type Reply = (response: ServerResponse, asked: { id: number; method: string; params: unknown }) => void;
const result =
  (value: unknown): Reply =>
  (response, { id }) =>
    void response.end(JSON.stringify({ jsonrpc: '2.0', id, result: value }));
const text =
  (status: number, body: string): Reply =>
  (response) =>
    void response.writeHead(status).end(body);

let reply: Reply = result(null);
const server = createServer(async (request: IncomingMessage, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  reply(response, JSON.parse(Buffer.concat(chunks).toString('utf8')));
});
let rpc: BatchingRpc;
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  rpc = connectRpc(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { timeoutMs: 10_000 });
});
after(async () => {
  await rpc.close();
  server.closeAllConnections();
  server.close();
});

test('a result comes back as it is, null among them', async () => {
  let heard: unknown;
  for (const value of ['0x1', null, false, { a: [1] }]) {
    reply = (response, asked) => {
      heard = asked;
      result(value)(response, asked);
    };
    assert.deepEqual(await rpc.call('eth_test', ['0x2', { b: 3 }]), value);
  }
  const { method, params } = heard as { method: string; params: unknown };
  assert.deepEqual([method, params], ['eth_test', ['0x2', { b: 3 }]]);
});

for (const status of [200, 400, 429, 500]) {
  test(`an error object is a refusal, also with HTTP ${status}`, async () => {
    reply = text(status, JSON.stringify({ id: 1, error: { code: 3, message: 'no', data: '0x08c379a0' } }));
    await assert.rejects(rpc.call('eth_test', []), (error) => {
      assert.ok(error instanceof RpcRefusal);
      assert.deepEqual([error.code, error.data], [3, '0x08c379a0']);
      return true;
    });
  });
}

for (const [code, message] of [
  ['-32000', 'no'],
  [-32000, { toString: '' }],
  [-32000, ['no']],
  [-32000, undefined],
] as const) {
  test(`an error says no by its code, here ${JSON.stringify({ code, message })}`, async () => {
    reply = text(200, JSON.stringify({ id: 1, error: { code, message } }));
    await assert.rejects(rpc.call('eth_test', []), (error) => {
      assert.ok(error instanceof RpcRefusal, String(error));
      assert.equal(error.code, -32_000);
      return true;
    });
  });
}

const NO_ANSWERS: Record<string, Reply> = {
  'HTML of a gateway': text(502, '<html>Bad Gateway</html>'),
  'an empty body': text(200, ''),
  'half of a JSON text': text(200, '{"jsonrpc":"2.0","id":1,"resu'),
  'a list': text(200, '[]'),
  'neither result nor error': text(200, '{"jsonrpc":"2.0","id":1}'),
  'an error whose code is an object': text(200, '{"error":{"code":{"valueOf":""},"message":"no"}}'),
  'an error whose code is a list': text(200, '{"error":{"code":[3],"message":"no"}}'),
  'an error without a code': text(200, '{"error":{"message":"no"}}'),
  'a bare string': text(200, '"0x1"'),
  'a cut connection': (response) => void response.destroy(),
  'a reply without end': (response) => {
    response.writeHead(200);
    const chunk = Buffer.alloc(1_000_000, 0x20);
    const write = () => {
      while (!response.destroyed && response.write(chunk)) {}
      if (!response.destroyed) response.once('drain', write);
    };
    write();
  },
};
for (const [what, answer] of Object.entries(NO_ANSWERS)) {
  test(`${what} is no answer: nobody knows what was done`, async () => {
    reply = answer;
    await assert.rejects(rpc.call('eth_test', []), RpcUnreachable);
  });
}

test('a node that is silent is waited for as long as the call allows, and one that is not there not at all', async () => {
  reply = () => {};
  await assert.rejects(rpc.call('eth_test', [], { timeoutMs: 30 }), RpcUnreachable);
  const nobody = connectRpc('http://127.0.0.1:1', { timeoutMs: 10_000 });
  await assert.rejects(nobody.call('eth_test', []), RpcUnreachable);
  await nobody.close();
});

test("a node's long message is cut", async () => {
  reply = text(200, JSON.stringify({ id: 1, error: { code: -32000, message: 'x'.repeat(100_000) } }));
  await assert.rejects(rpc.call('eth_test', []), (error: Error) => error.message.length < 600);
});

type Call = { id: number; params: unknown[] };
const each =
  (answer: (call: Call) => unknown): Reply =>
  (response, asked) =>
    void response.end(JSON.stringify((asked as unknown as Call[]).map(answer)));

test('a batch is one request, and its answers may come in any order', async () => {
  let requests = 0;
  reply = (response, asked) => {
    requests += 1;
    const calls = (asked as unknown as Call[]).toReversed();
    response.end(JSON.stringify(calls.map(({ id, params }) => ({ id, result: params[0] }))));
  };
  assert.deepEqual(await rpc.batch('eth_test', [[1], [2], [null]]), [1, 2, null]);
  assert.equal(requests, 1);
  assert.deepEqual(await rpc.batch('eth_test', []), []);
  assert.equal(requests, 1);
});

test('a batch of which one is refused, or that is refused as a whole, is a refusal', async () => {
  reply = each(({ id, params }) =>
    params[0] === 2 ? { id, error: { code: 3, message: 'no' } } : { id, result: 1 },
  );
  await assert.rejects(rpc.batch('eth_test', [[1], [2]]), RpcRefusal);
  reply = text(400, JSON.stringify({ id: null, error: { code: -32600, message: 'no batches' } }));
  await assert.rejects(rpc.batch('eth_test', [[1], [2]]), RpcRefusal);
});

test('a batch of which one has no answer has none', async () => {
  reply = (response, asked) =>
    void response.end(
      JSON.stringify((asked as unknown as Call[]).slice(1).map(({ id }) => ({ id, result: 1 }))),
    );
  await assert.rejects(rpc.batch('eth_test', [[1], [2]]), RpcUnreachable);
  reply = result(null);
  await assert.rejects(rpc.batch('eth_test', [[1], [2]]), RpcUnreachable);
});
