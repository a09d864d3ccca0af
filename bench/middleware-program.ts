/** The opponents of (f) and (h): the published middleware, selling one answer for the same price on the same chain. */
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type RoutesConfig, x402ResourceServer } from '@x402/core/server';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { paymentMiddleware as expressMiddleware } from '@x402/express';
import { paymentMiddleware as honoMiddleware } from '@x402/hono';
import express from 'express';
import { Hono } from 'hono';
import type { MiddlewareOptions } from './middleware.ts';
import { openPublishedFacilitator } from './published-facilitator.ts';

const options: MiddlewareOptions = JSON.parse(process.env.BENCH_MIDDLEWARE ?? '{}');
const { path, terms } = options;
const answer: object = JSON.parse(options.answer);
const resourceServer = new x402ResourceServer(openPublishedFacilitator(options)).register(
  'eip155:*',
  new ExactEvmScheme(),
);
const routes: RoutesConfig = {
  [`POST ${path}`]: {
    accepts: { scheme: 'exact', network: 'eip155:8453', ...terms },
    description: options.description,
    mimeType: 'application/json',
  },
};

function onExpress(): RequestListener {
  const app = express();
  app.use(expressMiddleware(routes, resourceServer));
  app.use(express.json());
  app.post(path, (_request, response) => response.json(answer));
  return app;
}

function onHono(): RequestListener {
  const app = new Hono();
  app.use(honoMiddleware(routes, resourceServer));
  app.post(path, async (context) => {
    await context.req.json();
    return context.json(answer);
  });
  return (incoming, outgoing) => {
    void (async () => {
      const response = await app.fetch(await requestOf(incoming));
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      outgoing.end(Buffer.from(await response.arrayBuffer()));
    })();
  };
}

/** The `Request` that `app.fetch` takes, because the server that Hono publishes for Node is not installed here. */
async function requestOf(incoming: IncomingMessage): Promise<Request> {
  const headers = Object.entries(incoming.headers).flatMap<[string, string]>(([name, value]) =>
    typeof value === 'string' ? [[name, value]] : [],
  );
  return new Request(`http://${incoming.headers.host}${incoming.url}`, {
    method: incoming.method ?? 'GET',
    headers,
    body: new Uint8Array(await buffer(incoming)),
  });
}

const server = createServer(options.framework === 'express' ? onExpress() : onHono());
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('listens nowhere');
  process.send?.({ url: `http://127.0.0.1:${address.port}` });
});

process.once('disconnect', () => process.exit(0));
process.on('SIGINT', () => {});
