import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { connectFacilitator, type Facilitator } from './facilitator.ts';

const PAYMENT = { x402Version: 2 as const, paymentPayload: { a: 1 }, paymentRequirements: { b: 2 } };
type Reply = (response: ServerResponse) => void;
const json =
  (body: unknown, status = 200): Reply =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

let reply: Reply = json({});
let heard: { method: string; url: string; authorization: string | undefined; body: string } | null = null;
const server = createServer(async (request: IncomingMessage, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  heard = {
    method: request.method ?? '',
    url: request.url ?? '',
    authorization: request.headers.authorization,
    body: Buffer.concat(chunks).toString('utf8'),
  };
  reply(response);
});
let facilitator: Facilitator;
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  facilitator = connectFacilitator(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    () => 'a-token',
  );
});
after(async () => {
  await facilitator.close();
  server.closeAllConnections();
  server.close();
});

test('its requests are as the standard says', async () => {
  reply = json({ isValid: true });
  await facilitator.verify(PAYMENT);
  assert.deepEqual(heard, {
    method: 'POST',
    url: '/verify',
    authorization: 'Bearer a-token',
    body: JSON.stringify(PAYMENT),
  });
  reply = json({ success: true, transaction: '0xaa' });
  await facilitator.settle(PAYMENT);
  assert.deepEqual([heard?.method, heard?.url, heard?.body], ['POST', '/settle', JSON.stringify(PAYMENT)]);
  const kind = { x402Version: 2, scheme: 'exact', network: 'eip155:8453', extra: { feePayer: 'x' } };
  reply = json({ kinds: [kind, { ...kind, unheardOf: true }], extensions: [], signers: {} });
  assert.deepEqual(await facilitator.supported(), [kind, kind]);
  assert.deepEqual([heard?.method, heard?.url], ['GET', '/supported']);
  reply = json({ kinds: 'all' });
  await assert.rejects(facilitator.supported());
});

for (const status of [200, 400, 402, 500]) {
  test(`a verdict counts with any status, as HTTP ${status}`, async () => {
    reply = json({ isValid: false, invalidReason: 'insufficient_funds', payer: '0x' }, status);
    assert.deepEqual(await facilitator.verify(PAYMENT), { status: 'invalid', reason: 'insufficient_funds' });
    reply = json({ success: false, errorReason: 'insufficient_funds', transaction: '', network: '' }, status);
    assert.deepEqual(await facilitator.settle(PAYMENT), {
      status: 'failed',
      reason: 'insufficient_funds',
      transaction: null,
    });
    // The facilitator failed, and names the transaction. Whoever believed the failure alone would lose the money.
    reply = json({ success: false, errorReason: 'settle_timeout', transaction: '0xaa' }, status);
    assert.deepEqual(await facilitator.settle(PAYMENT), {
      status: 'failed',
      reason: 'settle_timeout',
      transaction: '0xaa',
    });
  });
}

test('a success without a transaction does not count as one', async () => {
  for (const transaction of ['', undefined]) {
    reply = json({ success: true, transaction });
    assert.deepEqual(await facilitator.settle(PAYMENT), { status: 'failed', reason: '', transaction: null });
  }
  reply = json({ success: true, transaction: '0xaa', network: 'eip155:8453' });
  assert.deepEqual(await facilitator.settle(PAYMENT), { status: 'settled', transaction: '0xaa' });
});

const GARBAGE: Record<string, Reply> = {
  'HTML with 200': (response) => void response.end('<html></html>'),
  'HTML with 502': (response) => void response.writeHead(502).end('<html>Bad Gateway</html>'),
  'an empty 500': (response) => void response.writeHead(500).end(),
  'JSON null': json(null),
  'an error object': json({ error: 'boom' }, 500),
  'a verdict that is a word': json({ isValid: 'yes', success: 'yes' }),
  'a reply without end': (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const chunk = Buffer.alloc(100_000, 0x20);
    const write = () => {
      while (!response.destroyed && response.write(chunk)) {}
      if (!response.destroyed) response.once('drain', write);
    };
    write();
  },
  'a cut connection': (response) => void response.destroy(),
};
for (const [what, answer] of Object.entries(GARBAGE)) {
  test(`${what} says nothing about the payment, which may have settled`, async () => {
    reply = answer;
    assert.deepEqual(await facilitator.verify(PAYMENT), { status: 'unavailable', reached: true });
    assert.deepEqual(await facilitator.settle(PAYMENT), { status: 'unavailable', reached: true });
  });
}

test('a facilitator that never answers is given up; it may have settled', { timeout: 40_000 }, async () => {
  reply = () => {};
  assert.deepEqual(await Promise.all([facilitator.verify(PAYMENT), facilitator.settle(PAYMENT)]), [
    { status: 'unavailable', reached: true },
    { status: 'unavailable', reached: true },
  ]);
});

test('a facilitator that cannot be reached has read nothing', async () => {
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
  const { port } = closed.address() as AddressInfo;
  await new Promise((resolve) => closed.close(resolve));
  for (const url of [`http://127.0.0.1:${port}`, 'http://facilitator.invalid']) {
    const nobody = connectFacilitator(url, () => null);
    assert.deepEqual(await nobody.settle(PAYMENT), { status: 'unavailable', reached: false }, url);
    assert.deepEqual(await nobody.verify(PAYMENT), { status: 'unavailable', reached: false }, url);
    await assert.rejects(nobody.supported());
    await nobody.close();
  }
});

test('a reply without end is not read to its end', async () => {
  reply = json({ isValid: true, filler: 'f'.repeat(300_000) });
  assert.deepEqual(await facilitator.verify(PAYMENT), { status: 'unavailable', reached: true });
});
