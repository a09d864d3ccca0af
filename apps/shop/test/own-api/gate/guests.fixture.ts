/** Servers of each framework that sell routes of their own: they do the same, each in its framework's way. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import Fastify from 'fastify';
import { Hono } from 'hono';
import { openGate as openExpress } from '../../../../../packages/gate/src/express.ts';
import { openGate as openFastify } from '../../../../../packages/gate/src/fastify.ts';
import { openGate as openHono } from '../../../../../packages/gate/src/hono.ts';

/** A request as a handler saw it. */
export interface Seen {
  url: string;
  headers: Record<string, string>;
  body: unknown;
  fare: { callId: string; caller: string; priceUsd: string; idempotencyKey: string } | null;
}

export interface Guest {
  url: string;
  seen: Seen[];
  /** Requests wait for it before they are answered. */
  hold: Promise<void>;
  stop(): Promise<void>;
}

/** Express has no types of its own. */
interface Express extends RequestListener {
  (...args: Parameters<RequestListener>): void;
  use(...handlers: unknown[]): void;
  get(path: string, ...handlers: unknown[]): void;
  post(path: string, ...handlers: unknown[]): void;
}
type MakeExpress = (() => Express) & { json(): unknown };

const require = createRequire(import.meta.url);
const EXPRESS_4: MakeExpress = require('express-4');
const EXPRESS_5: MakeExpress = require('express');

export const secretOf = (name: string) => `a-secret-of-the-guest-${name}-and-of-this-shop`;
export const GUESTS = ['fastify', 'hono', 'express-4', 'express-5'] as const;
export type GuestName = (typeof GUESTS)[number];

/** The environment in which the shop finds the guests' secrets. */
export const SECRETS = Object.fromEntries(GUESTS.map((name) => [variableOf(name), secretOf(name)]));

function variableOf(name: GuestName): string {
  return `SECRET_OF_${name.replace('-', '_').toUpperCase()}`;
}

/** The configuration of a shop with all guests, each with the same routes below its name. */
export function configOf({ timeoutMs = 20_000 }: { timeoutMs?: number } = {}): string {
  const gate = (name: GuestName) =>
    `  ${name}: { url: "https://${name}.example", secret: "\${${variableOf(name)}}" }`;
  const routes = (name: GuestName) => `
  "POST /${name}/v1/forecast":
    gate: ${name}
    price: "0.02"
    timeoutMs: ${timeoutMs}
    answerHeaders: [x-model]
    requestHeaders: [x-unit]
    maxAnswerBytes: 5000
  "GET /${name}/v1/stations/:id": { gate: ${name}, price: "0.01", timeoutMs: ${timeoutMs} }
  "POST /${name}/v1/sized":
    gate: ${name}
    priceBy: { field: size, prices: { small: "0.01", large: "0.10" } }`;
  return `gates:\n${GUESTS.map(gate).join('\n')}\nroutes:${GUESTS.map(routes).join('')}\n`;
}

/** @param farebox the address of the shop, asked at the start */
export async function startGuest(name: GuestName, farebox: string): Promise<Guest> {
  const guest: Omit<Guest, 'url' | 'stop'> = { seen: [], hold: Promise.resolve() };
  const options = { farebox, name, secret: secretOf(name) };
  const start = {
    fastify: startFastify,
    hono: startHono,
    'express-4': startExpress,
    'express-5': startExpress,
  };
  const server = await start[name](name, options, guest);
  const { port } = server.address() as AddressInfo;
  return Object.assign(guest, {
    url: `http://127.0.0.1:${port}/${name}`,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}

type Options = { farebox: string; name: string; secret: string };
type Noted = Omit<Guest, 'url' | 'stop'>;

/** Answers as the caller asks for it. */
async function answer(guest: Noted, seen: Seen): Promise<{ status: number; type: string; body: string }> {
  guest.seen.push(seen);
  await guest.hold;
  const { place = 'here' } = (seen.body ?? {}) as { place?: string };
  if (place === 'broken') throw new Error('the forecast is broken');
  if (place === 'missing') return { status: 404, type: 'application/json', body: '{"lost":"place"}' };
  const characters = { far: 6_000, 'far away': 1_390_000, nowhere: 2_000_000 }[place];
  if (characters !== undefined) return { status: 200, type: 'text/plain', body: 'x'.repeat(characters) };
  return { status: 201, type: 'application/json', body: JSON.stringify({ place, celsius: 12.5 }) };
}

async function startFastify(name: string, options: Options, guest: Noted): Promise<Server> {
  const app = Fastify();
  const fare = openFastify(options);
  app.setErrorHandler((_error, _request, reply) => reply.code(500).send({ broken: true }));
  for (const [method, path] of [
    ['POST', '/v1/forecast'],
    ['GET', '/v1/stations/:id'],
    ['POST', '/v1/sized'],
  ] as const)
    app.route({
      method,
      url: `/${name}${path}`,
      ...fare(`${method} /${name}${path}`),
      async handler(request, reply) {
        const headers = request.headers as Record<string, string>;
        const made = await answer(guest, {
          url: request.url,
          headers,
          body: request.body ?? null,
          fare: fare.of(request),
        });
        return reply
          .code(made.status)
          .headers({ 'content-type': made.type, 'x-model': 'm1', 'x-own': 'kept' })
          .send(made.body);
      },
    });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return app.server;
}

async function startHono(name: string, options: Options, guest: Noted): Promise<Server> {
  const app = new Hono();
  const fare = openHono(options);
  app.onError((_error, context) => context.json({ broken: true }, 500));
  for (const [method, path] of [
    ['POST', '/v1/forecast'],
    ['GET', '/v1/stations/:id'],
    ['POST', '/v1/sized'],
  ] as const)
    app.on(method, `/${name}${path}`, fare(`${method} /${name}${path}`), async (context) => {
      const { pathname, search } = new URL(context.req.url);
      const text = await context.req.text();
      const made = await answer(guest, {
        url: pathname + search,
        headers: context.req.header(),
        body: text === '' ? null : JSON.parse(text),
        fare: fare.of(context),
      });
      context.header('x-model', 'm1');
      context.header('x-own', 'kept');
      context.header('content-type', made.type);
      return context.body(made.body, made.status as 201);
    });
  const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }) as Server;
  if (!server.listening) await once(server, 'listening');
  return server;
}

async function startExpress(name: string, options: Options, guest: Noted): Promise<Server> {
  const make = name === 'express-4' ? EXPRESS_4 : EXPRESS_5;
  const app = make();
  const fare = openExpress(options);
  for (const [method, path] of [
    ['post', '/v1/forecast'],
    ['get', '/v1/stations/:id'],
    ['post', '/v1/sized'],
  ] as const)
    app[method](
      `/${name}${path}`,
      fare(`${method.toUpperCase()} /${name}${path}`),
      make.json(),
      async (request: never, response: never, next: (error: unknown) => void) => {
        const { originalUrl, headers, body } = request as {
          originalUrl: string;
          headers: Record<string, string>;
          body: unknown;
        };
        const made = await answer(guest, {
          url: originalUrl,
          headers,
          body: headers['content-length'] === undefined ? null : body,
          fare: fare.of(request),
        }).catch(next);
        if (made === undefined) return;
        const reply = response as {
          status(code: number): { set(headers: object): { send(body: Buffer): void } };
        };
        reply
          .status(made.status)
          .set({ 'content-type': made.type, 'x-model': 'm1', 'x-own': 'kept' })
          .send(Buffer.from(made.body));
      },
    );
  app.use((_error: unknown, _request: never, response: never, _next: unknown) =>
    (response as { status(code: number): { json(body: object): void } }).status(500).json({ broken: true }),
  );
  const server = createServer(app);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
