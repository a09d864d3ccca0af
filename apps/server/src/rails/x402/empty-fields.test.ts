import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { connectFacilitator } from '../../rails/x402/facilitator.ts';
import { readPresented } from '../../rails/x402/wire.ts';

test('BUG12: null where a field is absent, as Python and Go facilitators write it', async () => {
  let body: unknown;
  const server = createServer((_, response) => void response.end(JSON.stringify(body)));
  await new Promise<void>((r) => server.listen(0, '127.0.0.1', r));
  const f = connectFacilitator(`http://127.0.0.1:${(server.address() as any).port}`, null);
  const p = { x402Version: 2 as const, paymentPayload: {}, paymentRequirements: {} };
  const out = [];
  body = { isValid: true, invalidReason: null, payer: '0x' };
  out.push(await f.verify(p));
  body = { success: true, errorReason: null, transaction: '0xaa' };
  out.push(await f.settle(p));
  body = { success: false, errorReason: 'insufficient_funds', transaction: null };
  out.push(await f.settle(p));
  body = { kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:8453', extra: null }] };
  out.push(await f.supported().catch((_e) => 'threw'));
  await f.close();
  server.closeAllConnections();
  server.close();
  console.log(JSON.stringify(out));
  assert.deepEqual(out[0], { status: 'valid' });
});
test('BUG13: network null is ethereum', () => {
  const r = readPresented({ 'x-payment': JSON.stringify({ txHash: `0x${'aa'.repeat(32)}`, network: null }) });
  assert.equal(r.network, null);
});
