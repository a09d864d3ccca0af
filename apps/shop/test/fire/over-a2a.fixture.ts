/** Messages of A2A behind the face of HTTP: what is presented to the address of a service goes to its skill instead. */
import assert from 'node:assert/strict';
import { type Json, seen } from '../agents/a2a-agents.fixture.ts';
import type { FaultStage } from './fault-table.fixture.ts';

const METHODS = { '0.3': 'message/send', '1.0': 'SendMessage' } as const;
type Version = keyof typeof METHODS;

const inBase64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');

/** A stage whose payments are presented in messages of this version. */
export function overA2a<Payer, Stage extends FaultStage<Payer>>(stage: Stage, version: Version): Stage {
  const send = sendAsMessage(version);
  return Object.create(stage, {
    present: { value: (payment: string, asking = {}) => stage.present(payment, { ...asking, send }) },
  });
}

/** Has the signature of `fetch`, and answers as the address of the service would. */
function sendAsMessage(version: Version): typeof fetch {
  return async (input, init = {}) => {
    const url = new URL(String(input));
    const sent = new Headers(init.headers);
    const payment = sent.get('payment-signature');
    const apiKey = sent.get('x-api-key');
    const data = { skill: url.pathname.split('/').at(-1), input: JSON.parse(String(init.body)) };
    const part = version === '0.3' ? { kind: 'data', data } : { data };
    const message = {
      role: version === '0.3' ? 'user' : 'ROLE_USER',
      messageId: sent.get('idempotency-key') ?? 'the one message',
      parts: [part],
      metadata:
        payment === null
          ? {}
          : {
              'x402.payment.status': 'payment-submitted',
              'x402.payment.payload': JSON.parse(Buffer.from(payment, 'base64').toString('utf8')),
            },
    };
    const response = await fetch(new URL('/a2a', url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(apiKey === null ? {} : { 'x-api-key': apiKey }) },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: METHODS[version], params: { message } }),
      ...(init.signal === undefined ? {} : { signal: init.signal }),
    });
    const { result, error } = (await response.json()) as { result?: Json; error?: Json };
    if (error !== undefined) return new Response(JSON.stringify(error.data), { status: response.status });
    return asHttp(seen(version === '0.3' ? (result ?? {}) : result?.task));
  };
}

function asHttp({ state, data, metadata, answer }: ReturnType<typeof seen>): Response {
  const { status, callId, creditsUsedUsd, replayed, retryAfterSeconds, transaction } =
    metadata['farebox/call'];
  assert.equal(state === 'completed', status === 200, `${state}: ${status}`);
  const [receipt] = metadata['x402.payment.receipts'] ?? [];
  const told = {
    'x-call-id': callId,
    'x-credits-used': creditsUsedUsd,
    'idempotent-replayed': replayed,
    'retry-after': retryAfterSeconds,
    'x-payment-transaction': transaction,
    'payment-response': receipt?.success === true ? inBase64(receipt) : undefined,
    // What A2A answers is kept by nobody on the way.
    'cache-control': 'private',
  };
  const headers = Object.entries(told).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const body = answer ?? metadata['x402.payment.required'] ?? data;
  return new Response(JSON.stringify(body), { status, headers });
}
