import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { connectFacilitator } from '../on-chain/facilitator.ts';
import { readPresented } from './wire.ts';

const PAYMENT = { x402Version: 2 as const, paymentPayload: {}, paymentRequirements: {} };

test('a facilitator may write null where a field is absent, as those in Python and Go do', async (t) => {
  let body: unknown;
  const server = createServer((_, response) => void response.end(JSON.stringify(body)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert(address !== null && typeof address === 'object');
  const facilitator = connectFacilitator(`http://127.0.0.1:${address.port}`, () => null);
  t.after(async () => {
    await facilitator.close();
    server.closeAllConnections();
    server.close();
  });
  body = { isValid: true, invalidReason: null, payer: '0x' };
  assert.deepEqual(await facilitator.verify(PAYMENT), { status: 'valid' });
  body = { isValid: false, invalidReason: null };
  assert.deepEqual(await facilitator.verify(PAYMENT), { status: 'invalid', reason: '' });
  body = { success: true, errorReason: null, transaction: '0xaa' };
  assert.deepEqual(await facilitator.settle(PAYMENT), { status: 'settled', transaction: '0xaa' });
  body = { success: false, errorReason: 'insufficient_funds', transaction: null };
  assert.deepEqual(await facilitator.settle(PAYMENT), {
    status: 'failed',
    reason: 'insufficient_funds',
    transaction: null,
  });
  const kind = { x402Version: 2, scheme: 'exact', network: 'eip155:8453', extra: null };
  body = { kinds: [kind] };
  assert.deepEqual(await facilitator.supported(), [kind]);
});

test('a transfer whose network is null is searched on every chain', () => {
  const header = JSON.stringify({ txHash: `0x${'aa'.repeat(32)}`, network: null });
  assert.equal(readPresented({ 'x-payment': header }).network, null);
});
