import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { connectRpc, type Rpc, RpcRefusal, RpcUnreachable } from './json-rpc.ts';

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
let rpc: Rpc;
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

const NO_ANSWERS: Record<string, Reply> = {
  'HTML of a gateway': text(502, '<html>Bad Gateway</html>'),
  'an empty body': text(200, ''),
  'half of a JSON text': text(200, '{"jsonrpc":"2.0","id":1,"resu'),
  'a list': text(200, '[]'),
  'neither result nor error': text(200, '{"jsonrpc":"2.0","id":1}'),
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
