import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { Calls } from './calls.ts';
import { Farebox } from './farebox.ts';
import { HEADERS, isSignedBy, signatureOf } from './signature.ts';

const SECRET = 'a-secret-of-the-tests-and-of-nothing-else';
const RUN = {
  do: 'run',
  call: 'c',
  callId: 'i',
  caller: 'x',
  price: '0.02',
  idempotencyKey: 'k',
  passes: ['range'],
};
const REQUEST = { method: 'POST', url: '/x', rawHeaders: [], body: Buffer.alloc(0), address: null };

let server: Server;
let url: string;
/** The parts of a signature that the server puts in place of the right ones; null: it signs nothing. */
let wrong: { secret?: string; nonce?: string; kind?: 'message' | 'answer'; body?: Buffer } | null = {};
let failures = 0;
let says: Record<string, unknown> = RUN;
const heard: { url: string; message: Record<string, unknown> }[] = [];

before(async () => {
  server = createServer(async (request: IncomingMessage, response) => {
    heard.push({ url: request.url ?? '', message: JSON.parse((await buffer(request)).toString()) });
    if (failures > 0) {
      failures -= 1;
      response.statusCode = 503;
      return response.end('{}');
    }
    const body = Buffer.from(JSON.stringify(says));
    const { secret = SECRET, ...others } = wrong ?? {};
    const parts = {
      kind: 'answer' as const,
      to: `POST ${request.url}`,
      guest: 'shop-a',
      timestamp: String(request.headers[HEADERS.timestamp]),
      nonce: String(request.headers[HEADERS.nonce]),
      body,
    };
    if (wrong !== null)
      response.setHeader(HEADERS.signature, signatureOf(secret, Object.assign(parts, others)));
    response.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => server.close());

const calls = () => new Calls({ farebox: url, name: 'shop-a', secret: SECRET });

test('a signature is the one that openssl makes of the same parts', () => {
  const parts = {
    kind: 'message',
    to: 'POST /gate/finish',
    guest: 'shop-a',
    timestamp: '1795887673',
    nonce: 'a-nonce-of-the-tests',
    body: Buffer.from('{"call":"1"}'),
  } as const;
  assert.equal(signatureOf(SECRET, parts), 'v1,wU56qNavLsZt0whElarSCxixaoT5+UkmIrVoE+68ZdQ=');
  assert.equal(isSignedBy(SECRET, parts, signatureOf(SECRET, parts)), true);
  for (const other of ['', 'v1,', signatureOf('another', parts)])
    assert.equal(isSignedBy(SECRET, parts, other), false);
});

test('nothing runs unless Farebox itself has answered this very message', async () => {
  const answers = [
    null,
    { secret: 'another' },
    { nonce: 'of-another-message' },
    { kind: 'message' },
  ] as const;
  for (const each of [...answers, { body: Buffer.from('{}') }]) {
    wrong = each;
    const begun = await calls().begin('POST /x', REQUEST);
    assert.equal(begun.do, 'answer', JSON.stringify(each));
    const { status, body } = begun.do === 'answer' ? begun.answer : assert.fail();
    const told = JSON.parse(String(body));
    assert.deepEqual([status, told.code, told.charged], [503, 'FAREBOX_UNAVAILABLE', false]);
  }
  wrong = {};
  assert.equal((await calls().begin('POST /x', REQUEST)).do, 'run');
});

test('a begin is said once; a finish until it is answered, signed anew each time', async () => {
  const asked = heard.length;
  failures = 1;
  assert.equal((await calls().begin('POST /x', REQUEST)).do, 'answer');
  assert.equal(heard.length, asked + 1, 'a second begin would be a second call');
  const begun = await calls().begin('POST /x', REQUEST);
  assert.equal(begun.do, 'run');
  says = { do: 'answer', status: 200, headers: { 'x-credits-used': '0.0200' }, body: null };
  failures = 2;
  const made = { status: 200, rawHeaders: [], body: Buffer.from('{}'), callerLeft: false };
  const answer = begun.do === 'run' ? await begun.call.finish(made) : assert.fail();
  says = RUN;
  assert.deepEqual([answer.status, answer.body, answer.headers], [200, null, { 'x-credits-used': '0.0200' }]);
  assert.equal(heard.filter(({ url: path }) => path === '/gate/finish').length, 3);
});

test('cookies are not told to Farebox, and no credential reaches a handler', async () => {
  const rawHeaders = ['Cookie', 'session=1', 'X-API-KEY', 'k', 'Accept', '*/*'];
  const begun = await calls().begin('POST /x', { ...REQUEST, rawHeaders });
  assert.deepEqual(heard.at(-1)?.message.headers, ['X-API-KEY', 'k', 'Accept', '*/*']);
  const { mayPass } = begun.do === 'run' ? begun.call : assert.fail();
  const names = [
    'authorization',
    'x-api-key',
    'payment-signature',
    'x-payment',
    'idempotency-key',
    'accept-payment',
  ];
  for (const name of [...names, 'if-none-match', 'accept-encoding', 'farebox-gate'])
    assert.equal(mayPass(name), false, name);
  for (const name of ['accept', 'cookie', 'range']) assert.equal(mayPass(name), true, name);
});

test('a secret that could be guessed is refused at the start', () => {
  assert.throws(() => new Farebox({ farebox: url, name: 'shop-a', secret: 'short' }), /at least 32/);
  assert.throws(() => new Farebox({ farebox: 'nowhere', name: 'shop-a', secret: SECRET }), /address/);
});
