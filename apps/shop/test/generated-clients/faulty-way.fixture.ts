/**
 * Serves tests of clients in other languages: a way to the server on which requests and answers that pay get lost, and a desk below
 * `/__desk/` at which the client's tests plan that, have typed data signed, and learn what was paid.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';

/**
 * `answer lost`: the server has done what was asked, and the connection is cut. `request lost`: cut before the server heard of it.
 * `twice`: the server gets it twice at once. `held`: the server has done it, and the answer never leaves.
 */
const fate = z.enum(['arrives', 'answer lost', 'request lost', 'twice', 'held']);
type Fate = z.infer<typeof fate>;
const plan = z.object({ fates: z.array(fate).max(10) });
const typedData = z.looseObject({
  domain: z.looseObject({}),
  types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))),
  primaryType: z.string(),
  message: z.record(z.string(), z.unknown()),
});
export type TypedData = z.infer<typeof typedData>;

export interface Desk {
  sign(data: TypedData): Promise<string>;
  /** Tells how much the seller has got so far on the chain, in micro-USD. */
  received(): Promise<bigint>;
}

export async function openFaultyWay(desk: Desk) {
  let targetUrl = '';
  let fates: Fate[] = [];
  let signed = 0;
  const payments: string[] = [];
  let hold = Promise.withResolvers<void>();

  const actions: Record<string, (body: string) => Promise<unknown>> = {
    async plan(body) {
      fates = plan.parse(JSON.parse(body)).fates;
      hold = Promise.withResolvers();
      return {};
    },
    async sign(body) {
      signed += 1;
      return { signature: await desk.sign(typedData.parse(JSON.parse(body))) };
    },
    /** Answers once an answer is held. */
    async held() {
      await hold.promise;
      return {};
    },
    async state() {
      return { signed, payments, receivedMicros: String(await desk.received()) };
    },
  };

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { url = '/', method = 'GET' } = incoming;
    const body = await text(incoming);
    const action = actions[url.replace('/__desk/', '')];
    if (action !== undefined) {
      outgoing.setHeader('content-type', 'application/json').end(JSON.stringify(await action(body)));
      return;
    }
    const headers = new Headers(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    );
    for (const name of ['host', 'connection', 'content-length', 'accept-encoding']) headers.delete(name);
    const payment =
      headers.get('payment-signature') ?? headers.get('authorization') ?? headers.get('idempotency-key');
    const met = payment === null ? 'arrives' : (fates.shift() ?? 'arrives');
    if (payment !== null) payments.push(payment);
    if (met === 'request lost') {
      outgoing.destroy();
      return;
    }
    const ask = () => fetch(new URL(url, targetUrl), { method, headers, ...(body === '' ? {} : { body }) });
    const [reply] = await Promise.all(met === 'twice' ? [ask(), ask()] : [ask()]);
    assert.ok(reply);
    const answer = Buffer.from(await reply.arrayBuffer());
    if (met === 'answer lost') outgoing.destroy();
    else if (met === 'held') hold.resolve();
    else {
      // It has been unpacked here.
      const packing = /^(content|transfer)-(encoding|length)$/;
      const told = Object.fromEntries([...reply.headers].filter(([name]) => !packing.test(name)));
      outgoing.writeHead(reply.status, told).end(answer);
    }
  }

  const front = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch((error: Error) => outgoing.destroy(error));
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const address = front.address();
  assert.ok(address !== null && typeof address !== 'string');
  return {
    url: `http://127.0.0.1:${address.port}`,
    leadTo(url: string): void {
      targetUrl = url;
    },
    close(): void {
      front.closeAllConnections();
      front.close();
    },
  };
}
