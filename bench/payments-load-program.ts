/**
 * Buys calls with payments on a chain. The protocol's published client signs all payments first, from the server's 402.
 * Then they are presented over kept-alive connections, each connection sending its next one when the last is answered.
 */
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import autocannon from 'autocannon';
import { Challenge } from 'mppx';
import { evm, Mppx } from 'mppx/client';
import { keccak256, toHex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { answerOrders } from './answering-process.ts';
import type { LoadResult } from './load.ts';
import type { PaymentsOrder } from './payments-load.ts';
import { percentile } from './rounds.ts';

const WALLETS = 8;
const HEADERS = { 'content-type': 'application/json' };

const accounts = Array.from({ length: WALLETS }, (_, index) =>
  privateKeyToAccount(keccak256(toHex(`farebox bench wallet ${index}`))),
);
const x402Clients = accounts.map(
  (account) => new x402HTTPClient(new x402Client().register('eip155:*', new ExactEvmScheme(account))),
);
const mppClients = accounts.map((account) =>
  Mppx.create({
    polyfill: false,
    methods: [evm.charge({ account, authorization: { name: 'USD Coin', version: '2' } })],
  }),
);

/** The headers of this many payments, from the wallets in turn. */
const SIGN: Record<PaymentsOrder['protocol'], (command: PaymentsOrder) => Promise<Record<string, string>[]>> =
  { x402: signX402, mpp: signMpp };

async function signX402({ url, path, body, amount }: PaymentsOrder): Promise<Record<string, string>[]> {
  const challenge = await fetch(url + path, { method: 'POST', headers: HEADERS, body });
  await challenge.arrayBuffer();
  const payments: Record<string, string>[] = [];
  for (let count = 0; count < amount; count++) {
    const client = x402Clients[count % x402Clients.length];
    if (client === undefined) throw new Error('no wallet');
    const required = client.getPaymentRequiredResponse((name) => challenge.headers.get(name));
    payments.push(client.encodePaymentSignatureHeader(await client.createPaymentPayload(required)));
  }
  return payments;
}

/** Each credential answers its own challenge, so each needs a challenge before it is signed. */
async function signMpp({ url, path, body, amount }: PaymentsOrder): Promise<Record<string, string>[]> {
  const headers = { ...HEADERS, 'accept-payment': 'evm/charge' };
  const answered = new Set<string>();
  const payments: Record<string, string>[] = [];
  while (payments.length < amount) {
    const client = mppClients[payments.length % mppClients.length];
    if (client === undefined) throw new Error('no wallet');
    const challenge = await fetch(url + path, { method: 'POST', headers, body });
    await challenge.arrayBuffer();
    // The reference library makes the same challenge twice within one millisecond.
    const { id } = Challenge.fromResponse(challenge);
    if (answered.has(id)) continue;
    answered.add(id);
    payments.push({ authorization: await client.createCredential(challenge) });
  }
  return payments;
}

answerOrders<PaymentsOrder, LoadResult>(
  async (command) => {
    const payments = await SIGN[command.protocol](command);
    const durationsMs: number[] = [];
    let unexpected = '';
    let endedAtMs = 0;
    const startedAtMs = performance.now();
    const running = autocannon({
      url: command.url,
      connections: command.connections,
      sampleInt: 50,
      amount: command.amount,
      requests: [
        {
          method: 'POST',
          path: command.path,
          headers: HEADERS,
          body: command.body,
          setupRequest(request) {
            const payment = payments.pop();
            if (payment === undefined) throw new Error('more requests than payments');
            return { ...request, headers: { ...HEADERS, ...payment } };
          },
        },
      ],
    });
    running.on('response', (_client: unknown, status: number, _bytes: number, durationMs: number) => {
      if (status !== 200) unexpected = `status ${status}`;
      durationsMs.push(durationMs);
      endedAtMs = performance.now();
    });
    running.on('reqError', (error: Error) => {
      unexpected = error.message;
    });
    await running;
    if (unexpected !== '') throw new Error(`${command.url}${command.path} answered ${unexpected}, not 200`);
    return {
      requests: durationsMs.length,
      perSecond: durationsMs.length / ((endedAtMs - startedAtMs) / 1_000),
      p50Ms: percentile(durationsMs, 0.5),
      p99Ms: percentile(durationsMs, 0.99),
    };
  },
  { wallets: accounts.map(({ address }) => address) },
);
