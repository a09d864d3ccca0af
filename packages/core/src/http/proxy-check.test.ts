import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { parseTrustedProxies } from './caller-address.ts';
import { createAddressReader, proxyNotices } from './proxy-check.ts';

const trust = (list: string, header = 'x-forwarded-for') => ({ proxies: parseTrustedProxies(list), header });
const request = (remoteAddress: string, headers: Record<string, string> = {}) =>
  ({ socket: { remoteAddress }, headers }) as unknown as IncomingMessage;

test('what of the proxies cannot work is said at the start', () => {
  const warned = (list: string, host: string, publicUrl: string | null = null, header?: string) =>
    proxyNotices(trust(list, header), { host, publicUrl })
      .filter(({ level }) => level === 'warn')
      .map(({ message }) => message.split(' ')[0]);
  assert.deepEqual(warned('', '127.0.0.1'), []);
  assert.deepEqual(warned('', '0.0.0.0', 'https://fare.test'), ['PUBLIC_URL']);
  assert.deepEqual(warned('', '0.0.0.0', 'http://fare.test', 'forwarded'), ['PROXY_HEADER']);
  assert.deepEqual(warned('10.0.0.0/8', '0.0.0.0', 'https://fare.test'), []);
  assert.deepEqual(warned('loopback', '127.0.0.1'), []);
  assert.deepEqual(warned('10.0.0.0/8', '127.0.0.1'), ['HOST']);
  assert.deepEqual(warned('127.0.0.1', '::1'), ['HOST']);
  assert.deepEqual(warned('10.0.0.0/8', 'localhost'), ['HOST']);
});

test('what does not fit is said once, when a request shows it', () => {
  const told: string[] = [];
  const { addressOf } = createAddressReader(trust('10.0.0.1', 'x-real-ip'), (message) => told.push(message));
  addressOf(request('8.8.4.4', { 'x-forwarded-for': '8.8.8.8' }));
  addressOf(request('10.0.0.1', { 'x-real-ip': '8.8.8.8', 'x-forwarded-for': '9.9.9.9' }));
  addressOf(request('10.0.0.1'));
  assert.deepEqual(told, [], 'a stranger with a header, a proxy that does as it was told, a health check');
  for (let count = 0; count < 3; count += 1) {
    assert.equal(addressOf(request('10.0.0.2', { 'x-forwarded-for': '8.8.8.8' })), '10.0.0.2');
    assert.equal(addressOf(request('10.0.0.1', { 'x-forwarded-for': '8.8.8.8' })), '10.0.0.1');
  }
  assert.deepEqual(
    told.map((line) => /10\.0\.0\.\d/.exec(line)?.[0]),
    ['10.0.0.2', '10.0.0.1'],
  );
});
