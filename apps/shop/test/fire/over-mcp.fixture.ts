/** Tool calls of MCP behind the face of HTTP: what is presented to the address of a service goes to its tool instead. */
import assert from 'node:assert/strict';
import { Challenge, Credential, Receipt } from 'mppx';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { FaultStage, Told } from './fault-table.fixture.ts';
import { assertProperOverAnyDoor, type Stage as MppStage } from './mpp-stage.fixture.ts';

interface Result {
  isError?: boolean;
  content: readonly { text?: string }[];
  _meta?: Record<string, Record<string, unknown>>;
}

const inBase64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');

/** A stage whose payments are presented in tool calls. */
export function overMcp<Payer, Stage extends FaultStage<Payer>>(stage: Stage): Stage {
  return Object.create(stage, {
    present: {
      value: (payment: string, asking = {}) => stage.present(payment, { ...asking, send: sendAsToolCall }),
    },
  });
}

/** The same for MPP, whose challenges come from tool calls too: one that HTTP issued is not what a tool asks for. */
export function mppOverMcp(stage: MppStage): MppStage {
  return Object.create(overMcp<PrivateKeyAccount, MppStage>(stage), {
    pay: {
      async value(payer: PrivateKeyAccount): Promise<string> {
        const unpaid = await sendAsToolCall(`${stage.here.url}/mcp/nickel`);
        return stage.answer(payer, unpaid);
      },
    },
    assertProper: { value: (told: Told) => assertProperOverAnyDoor(told) },
  });
}

/** Has the signature of `fetch`, and answers as the address of the service would. */
export const sendAsToolCall: typeof fetch = async (input, init = {}) => {
  const url = new URL(String(input));
  const sent = new Headers(init.headers);
  const meta: Record<string, unknown> = {};
  const payment = sent.get('payment-signature');
  if (payment !== null) meta['x402/payment'] = JSON.parse(Buffer.from(payment, 'base64').toString('utf8'));
  const authorization = sent.get('authorization');
  if (authorization !== null) meta['org.paymentauth/credential'] = Credential.deserialize(authorization);
  const key = sent.get('idempotency-key');
  if (key !== null) meta['farebox/idempotencyKey'] = key;
  const apiKey = sent.get('x-api-key');
  const name = url.pathname.split('/').at(-1)?.replaceAll('-', '_');
  const response = await fetch(new URL('/mcp', url), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(apiKey === null ? {} : { 'x-api-key': apiKey }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name,
        _meta: meta,
        ...(init.body === undefined ? {} : { arguments: JSON.parse(String(init.body)) }),
      },
    }),
    ...(init.signal === undefined ? {} : { signal: init.signal }),
  });
  const text = await response.text();
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return asItCame(response, text);
  return asHttp(resultIn(text));
};

const asItCame = (response: Response, text: string) =>
  new Response(text, { status: response.status, headers: response.headers });

function resultIn(stream: string): Result {
  const messages = stream
    .split('\n')
    .flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []));
  const { result } = messages.at(-1) ?? assert.fail(stream);
  return result ?? assert.fail(stream);
}

function asHttp({ isError, content, _meta = {} }: Result): Response {
  const {
    status = 402,
    callId,
    creditsUsedUsd,
    replayed,
    retryAfterSeconds,
    transaction,
  } = _meta['farebox/call'] ?? {};
  assert.equal(isError === true, Number(status) >= 300);
  const receipt = _meta['x402/payment-response'];
  const byMpp = _meta['org.paymentauth/receipt'] as Parameters<typeof Receipt.serialize>[0] | undefined;
  const asked = _meta['org.paymentauth/payment-required']?.challenges as Challenge.Challenge[] | undefined;
  const told = {
    'x-call-id': callId,
    'x-credits-used': creditsUsedUsd,
    'idempotent-replayed': replayed,
    'retry-after': retryAfterSeconds,
    'x-payment-transaction': transaction,
    'payment-response': receipt === undefined ? undefined : inBase64(receipt),
    'payment-receipt': byMpp === undefined ? undefined : Receipt.serialize(byMpp),
    'www-authenticate': asked?.map((challenge) => Challenge.serialize(challenge)).join(', '),
    // What MCP answers is kept by nobody on the way.
    'cache-control': 'private',
  };
  const headers = Object.entries(told).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return new Response(content[0]?.text ?? '', { status: Number(status), headers });
}
