/** What the tests of the card provider share: one that runs, the official library, and somebody who gets webhooks. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Stripe from 'stripe';
import { type CardProvider, startCardProvider } from './card-provider.ts';

export const SECRET_KEY = 'sk_test_conformance';
export const WEBHOOK_SECRET = 'whsec_conformance';
const PATIENCE_MS = 15_000;

/** The official library, unmodified, told only where the provider is. */
export function libraryFor(
  url: string,
  options: { maxNetworkRetries?: number; timeout?: number } = {},
): Stripe {
  const { hostname, port } = new URL(url);
  return new Stripe(SECRET_KEY, {
    host: hostname,
    port,
    protocol: 'http',
    telemetry: false,
    maxNetworkRetries: 2,
    timeout: 10_000,
    ...options,
  });
}

export interface Receiver {
  url: string;
  /** Every delivery that came, as it came. */
  deliveries: { body: Buffer; signature: string; event: Stripe.Event }[];
  /** What the next deliveries are answered with, before 200 is again. */
  answers: number[];
  /** Of the endpoint that sends here. */
  secret: string;
  stop(): Promise<void>;
}

/** A merchant: gets webhooks and checks each with the official library over its raw body, and has a page for people. */
export async function startReceiver(): Promise<Receiver> {
  const library = new Stripe(SECRET_KEY);
  const receiver: Receiver = {
    deliveries: [],
    answers: [],
    secret: WEBHOOK_SECRET,
    url: '',
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const server: Server = createServer((request, response) => {
    if (request.method === 'GET') {
      response.setHeader('content-type', 'text/html');
      response.end('<!doctype html><link rel="icon" href="data:,"><title>merchant</title>');
      return;
    }
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts);
      const signature = String(request.headers['stripe-signature']);
      const event = library.webhooks.constructEvent(body, signature, receiver.secret);
      receiver.deliveries.push({ body, signature, event });
      response.statusCode = receiver.answers.shift() ?? 200;
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  receiver.url = `http://127.0.0.1:${port}/hooks`;
  return receiver;
}

/** A provider that forgets all, with its receiver. */
export async function startBoth(): Promise<{ provider: CardProvider; receiver: Receiver }> {
  const receiver = await startReceiver();
  const provider = await startCardProvider({
    stateDir: null,
    webhooks: [{ url: receiver.url, secret: WEBHOOK_SECRET }],
    secretKey: SECRET_KEY,
  });
  return { provider, receiver };
}

/** Speaks to the control surface; anything but success is a failure of the test. */
export async function control(
  url: string,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body: object = {},
): Promise<Record<string, unknown>> {
  const reply = await fetch(`${url}/__control${path}`, {
    method,
    ...(method === 'POST' && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  const text = await reply.text();
  assert(reply.ok, `${path}: ${reply.status} ${text}`);
  return JSON.parse(text);
}

/** Waits until `look` finds something. */
export async function eventually<T>(what: string, look: () => T | null | undefined | false): Promise<T> {
  const endMs = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = look();
    if (found) return found;
    assert(Date.now() < endMs, `still waiting for ${what}`);
    await sleep(10);
  }
}

/** The error that a call ends with. */
export async function failureOf(
  call: Promise<unknown>,
): Promise<InstanceType<typeof Stripe.errors.StripeError>> {
  try {
    await call;
  } catch (error) {
    assert(error instanceof Stripe.errors.StripeError, String(error));
    return error;
  }
  assert.fail('the call succeeded');
}
