/** The benchmark says something only while its opponents sell: each that settles on a chain takes payments here. */
import { test } from 'node:test';
import { USDC } from '../apps/shop/test/x402.fixture.ts';
import { SANDBOX_ACCOUNTS } from '../packages/sandbox/src/accounts.fixture.ts';
import { startMiddleware } from './middleware.ts';
import { startMppxServer } from './mppx-server.ts';
import { startPaymentsLoad } from './payments-load.ts';
import { createResources } from './resources.ts';
import { PATH, proveThatItWasPaid, REQUEST_BODY, settlingOn, startChain } from './x402-world.ts';

const AMOUNT = '250000';
const CALLS = 2;
const SOLD = { description: 'Echoes', answer: JSON.stringify({ echo: 'hello' }) };

test('the published middleware and the reference library settle what the load generator signs', async () => {
  const resources = createResources();
  try {
    const load = await startPaymentsLoad(resources);
    const rpcUrl = await startChain(resources, load.wallets);
    const payTo = SANDBOX_ACCOUNTS.recipient.address;
    const order = { path: PATH, body: REQUEST_BODY, connections: 1, amount: CALLS };
    const express = await startMiddleware(resources, {
      framework: 'express',
      path: PATH,
      ...settlingOn(rpcUrl),
      ...SOLD,
      terms: {
        price: { asset: USDC, amount: AMOUNT, extra: { name: 'USD Coin', version: '2' } },
        payTo,
        maxTimeoutSeconds: 300,
      },
    });
    await load.buy({ protocol: 'x402', url: express, ...order });
    await proveThatItWasPaid(rpcUrl, BigInt(CALLS), BigInt(AMOUNT));

    const mppx = await startMppxServer(resources, {
      path: PATH,
      ...settlingOn(rpcUrl),
      ...SOLD,
      terms: { amount: AMOUNT, currency: USDC, recipient: payTo, chainId: 8453, decimals: 6 },
    });
    await load.buy({ protocol: 'mpp', url: mppx, ...order });
    await proveThatItWasPaid(rpcUrl, BigInt(2 * CALLS), BigInt(AMOUNT));
  } finally {
    await resources.release();
  }
});
