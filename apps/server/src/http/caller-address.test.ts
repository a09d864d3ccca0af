import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { callerAddress, claimantOf, isInternal, parseTrustedProxies } from './caller-address.ts';

const PROXY = '10.0.0.9';

function from(remoteAddress: string, headers: Record<string, string> = {}): IncomingMessage {
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage;
}

test('a header is believed only from a trusted proxy, and only up to the first address that is none', () => {
  const trusted = parseTrustedProxies(`${PROXY}, 192.0.2.0/24`);
  const forged = { 'x-forwarded-for': '8.8.8.8' };
  assert.equal(callerAddress(from('203.0.113.7', forged), trusted), '203.0.113.7');
  assert.equal(callerAddress(from(PROXY, forged), parseTrustedProxies('')), PROXY);
  assert.equal(callerAddress(from(PROXY, forged), trusted), '8.8.8.8');
  // What the caller wrote itself stands to the left of what the proxy added.
  const chained = { 'x-forwarded-for': '1.1.1.1, 203.0.113.7, 192.0.2.5' };
  assert.equal(callerAddress(from(PROXY, chained), trusted), '203.0.113.7');
});

test('Forwarded (RFC 7239) comes before X-Forwarded-For; ports and brackets are not part of an address', () => {
  const trusted = parseTrustedProxies('loopback');
  const request = from('127.0.0.1', {
    forwarded: 'for=192.0.2.60;proto=http, for="[2001:db8:cafe::17]:4711"',
    'x-forwarded-for': '8.8.8.8',
  });
  assert.equal(callerAddress(request, trusted), '2001:db8:cafe::17');
  assert.equal(callerAddress(from('::1', { 'x-forwarded-for': '203.0.113.7:5000' }), trusted), '203.0.113.7');
  assert.equal(
    callerAddress(from('::ffff:127.0.0.1', { 'x-forwarded-for': 'unknown' }), trusted),
    '127.0.0.1',
  );
});

test('nonsense in the list of proxies is refused', () => {
  for (const list of ['everyone', '10.0.0.0/99', '10.0.0.0.0', '*'])
    assert.throws(() => parseTrustedProxies(list), list);
});

test('internal means: no address of the open internet', () => {
  const internal = [
    '127.0.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '172.31.255.1',
    '192.168.1.1',
    '169.254.1.1',
    '100.64.0.1',
  ];
  for (const address of [...internal, '0.0.0.0', '::1', 'fc00::1', 'fe80::1', '::ffff:10.0.0.1']) {
    assert.equal(isInternal(address), true, address);
  }
  // 172.32 and 192.169 only look alike.
  for (const address of ['8.8.8.8', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '::ffff:8.8.8.8']) {
    assert.equal(isInternal(address), false, address);
  }
});

test('an IPv6 household is one claimant, an IPv4 address is one', () => {
  assert.equal(claimantOf('2606:4700:1:2:aaaa::1'), claimantOf('2606:4700:1:2::ffff'));
  assert.notEqual(claimantOf('2606:4700:1:2::1'), claimantOf('2606:4700:1:3::1'));
  assert.notEqual(claimantOf('8.8.8.8'), claimantOf('8.8.8.9'));
  assert.equal(claimantOf('::ffff:8.8.8.8'), '8.8.8.8');
});
