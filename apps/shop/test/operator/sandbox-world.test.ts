/**
 * Nobody's real money can be lost to a sandbox: it says what it is before anybody pays, wherever a caller, an indexer or
 * a person can look; and a wallet that none of its money has ever reached is told so, and charged nothing.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { METHODS, type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';

/** Those of the protocol, to which nothing may be added: clients and facilitators compare offers by all of them. */
const CORE_KEYS_V2 = ['amount', 'asset', 'extra', 'maxTimeoutSeconds', 'network', 'payTo', 'scheme'];
const NOTICE = /sandbox.*not real.*Never pay here with a wallet or a card that holds real money/s;

let world: MppWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let sandbox: TestServer;
let real: TestServer;
before(async () => {
  [world, database, upstreams] = await Promise.all([startMppWorld(), openTestDatabase(), startUpstreams()]);
  const start = (environment: Record<string, string>) =>
    startTestServer({ pools: database, upstreamsUrl: upstreams.url, environment });
  sandbox = await start({ ...world.environment, ...world.made });
  real = await start(world.environment);
});
after(async () => {
  await Promise.all([sandbox?.close(), real?.close()]);
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
});

const ask = (server: TestServer, path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
  fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
const headerOf = (answer: Response) =>
  JSON.parse(Buffer.from(answer.headers.get('payment-required') ?? '', 'base64').toString());

test('every 402 says so: at the top of the body, in each offer, in PAYMENT-REQUIRED and in the challenge', async () => {
  const paths = [
    '/x402/ping',
    '/api/x402/ping',
    '/mpp/ping',
    '/api/gpt/trade-signals',
    '/api/m2m/credits/topup',
  ];
  for (const path of paths) {
    const answer = await ask(sandbox, path);
    assert.equal(answer.status, 402, path);
    const body = await jsonOf(answer);
    assert.equal(body.sandbox, true, path);
    assert.match(body.sandboxNotice, NOTICE, path);
    assert.deepEqual(Object.keys(body).slice(0, 2), ['sandbox', 'sandboxNotice'], 'before anything else');
    for (const offer of body.accepts.filter(({ scheme }: { scheme: string }) => scheme === 'exact'))
      assert.equal(offer.extra.sandbox, true, path);
    if (path.startsWith('/api/gpt')) continue;
    const required = headerOf(answer);
    assert.equal(required.sandbox, true, path);
    assert.match(required.sandboxNotice, NOTICE);
    for (const offer of required.accepts) {
      assert.equal(offer.extra.sandbox, true, path);
      assert.deepEqual(Object.keys(offer).sort(), CORE_KEYS_V2, path);
    }
  }
  const challenges = (await ask(sandbox, '/mpp/ping')).headers.get('www-authenticate') ?? '';
  assert.equal(challenges.match(/\(sandbox: no real money\)/g)?.length, METHODS.length);

  // Where the money is real nothing of it is said.
  for (const path of paths) {
    const answer = await ask(real, path);
    assert(!/sandbox/i.test(await answer.clone().text()), path);
    assert(!/sandbox/i.test(JSON.stringify([...answer.headers])), path);
    if (answer.headers.has('payment-required'))
      assert(!/sandbox/i.test(JSON.stringify(headerOf(answer))), path);
  }
});

test('every document says so, and so does each of its entries', async () => {
  const json = (path: string, server = sandbox) => jsonOf(fetch(server.url + path));
  const documents = [
    ...['/', '/x402/catalog', '/x402/payment-manifest.json', '/x402/recipes/ping', '/mpp/catalog'],
    ...['/api/auth/capabilities', '/.well-known/x402', '/.well-known/x402.json', '/.well-known/mpp.json'],
    ...['/.well-known/agent-instructions.json'],
  ];
  for (const path of documents) {
    const document = await json(path);
    assert.equal(document.sandbox, true, path);
    assert.match(document.sandboxNotice, NOTICE, path);
    const entries = path === '/x402/recipes/ping' ? [] : (document.services ?? document.resources ?? []);
    for (const entry of Array.isArray(entries) ? entries : [])
      if (typeof entry === 'object') assert.equal(entry.sandbox, true, `${path} ${entry.id ?? entry.path}`);
    assert(!('sandbox' in (await json(path, real))), path);
  }
  const { info } = await json('/openapi.json');
  assert.equal(info['x-sandbox'], true);
  assert.match(info.description, NOTICE);
  assert.match(
    await (await fetch(`${sandbox.url}/llms.txt`)).text(),
    /^> \*\*Sandbox\.\*\* .*Never pay here/m,
  );
  assert(!/sandbox/i.test(await (await fetch(`${real.url}/llms.txt`)).text()));

  for (const path of ['/', '/docs', '/docs/ping', '/keys', '/credits/return', '/credits/cancel']) {
    const page = async (server: TestServer) =>
      (await fetch(server.url + path, { headers: { accept: 'text/html' } })).text();
    assert.match(await page(sandbox), /<body[^>]*>\s*<section class="ribbon"[^>]*>.*Never pay here/s, path);
    assert(!(await page(real)).includes('ribbon'), path);
  }
});

test('a wallet that none of its money has ever reached is told so on every rail, and nothing moves', async () => {
  const stranger = privateKeyToAccount(generatePrivateKey());
  const before = await world.base.received();
  const client = new x402Client().register('eip155:8453', new ExactEvmScheme(stranger));
  const byX402 = await wrapFetchWithPayment(fetch, client)(`${sandbox.url}/x402/ping`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  const answers = [byX402];
  for (const method of METHODS) {
    const challenge = await ask(sandbox, '/mpp/ping');
    const authorization = await world.credential(stranger, method, challenge);
    answers.push(await ask(sandbox, '/mpp/ping', {}, { authorization }));
  }
  for (const answer of answers) {
    const { last_error_reason: reason, sandbox: said } = await jsonOf(answer);
    assert.equal(answer.status, 402);
    assert.deepEqual([reason.code, said], ['NOT_A_SANDBOX_WALLET', true]);
    assert.match(reason.message, /may hold real money\. Nothing was taken/);
  }
  assert.equal(await world.base.received(), before);

  // Who was funded, and has spent it all, is poor and no stranger.
  const spent = await world.wallet(0.1);
  for (const method of METHODS) {
    const challenge = await ask(sandbox, '/mpp/ping');
    const authorization = await world.credential(spent, method, challenge);
    const answer = await ask(sandbox, '/mpp/ping', {}, { authorization });
    assert.equal((await jsonOf(answer)).last_error_reason.code, 'PAYMENT_INSUFFICIENT_FUNDS', method);
  }
});
