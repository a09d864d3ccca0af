import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inFormAsked } from './asked-form.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const UNPAID = {
  status: 402,
  headers: {
    'content-type': 'application/json; charset=utf-8',
    'payment-required': 'terms',
    'cache-control': 'no-store',
  },
  body: '{"error":"X-PAYMENT header is required","message":"say \\"code\\":\\"BUSY\\"","code":"PAYMENT_REQUIRED"}',
};
const server = {
  payPage: ({ service, body }: { service: string; body: string }) => ({
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': "default-src 'self'" },
    body: `<p>${service} ${JSON.parse(body).code}</p>`,
  }),
};
const formFor = (accept: string | undefined, answer: typeof UNPAID = UNPAID) =>
  inFormAsked(answer, { headers: { accept }, url: '/x402/ping?a=1', id: 'req_1', server }, 'ping');

test('a 402 is a page for a browser, under the same status and the same headers', () => {
  const { status, headers, body } = formFor(BROWSER);
  assert.equal(status, 402);
  assert.equal(body, '<p>ping PAYMENT_REQUIRED</p>');
  assert.deepEqual(headers, {
    'content-type': 'text/html; charset=utf-8',
    'payment-required': 'terms',
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'self'",
    vary: 'Accept',
  });
});

test('a 402 is what it was for a program, which may take a page too', () => {
  for (const accept of [
    undefined,
    '*/*',
    'application/json',
    'application/json, text/html',
    'text/html;q=0.1, */*',
  ]) {
    assert.equal(formFor(accept), UNPAID, accept);
  }
});

test('a browser gets JSON for what is no 402, and what is no error stays as it is', () => {
  const refused = { ...UNPAID, status: 404, body: '{"error":"NOT_FOUND","code":"NOT_FOUND"}' };
  assert.equal(formFor(BROWSER, refused), refused);
  const answered = { ...UNPAID, status: 200 };
  assert.equal(formFor(BROWSER, answered), answered);
  const empty = { ...UNPAID, body: '' };
  assert.equal(formFor(BROWSER, empty), empty);
});

test('a 402 comes as problem details where those are asked for', () => {
  const { headers, body } = formFor('application/problem+json');
  assert.match(headers['content-type'], /problem\+json/);
  assert.equal(JSON.parse(body).status, 402);
});
