import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import fc from 'fast-check';
import { claimantOf, deriveAddress, isInternal, parseTrustedProxies, siteOf } from './caller-address.ts';

const PROXY = '10.0.0.9';

function from(remoteAddress: string, headers: Record<string, string> = {}): IncomingMessage {
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage;
}
const trust = (list: string, header = 'x-forwarded-for') => ({ proxies: parseTrustedProxies(list), header });
const addressOf = (...parts: Parameters<typeof deriveAddress>) => deriveAddress(...parts).address;

test('a header is believed only from a trusted proxy, and only up to the first address that is none', () => {
  const trusted = trust(`${PROXY}, 192.0.2.0/24`);
  const forged = { 'x-forwarded-for': '8.8.8.8' };
  assert.equal(addressOf(from('203.0.113.7', forged), trusted), '203.0.113.7');
  assert.equal(addressOf(from(PROXY, forged), trust('')), PROXY);
  assert.equal(addressOf(from(PROXY, forged), trusted), '8.8.8.8');
  // What the caller wrote itself stands to the left of what the proxy added.
  const chained = { 'x-forwarded-for': '1.1.1.1, 203.0.113.7, 192.0.2.5' };
  assert.equal(addressOf(from(PROXY, chained), trusted), '203.0.113.7');
});

test('however many hops a caller forges, those next to this server are the ones that count', () => {
  const forged = Array.from({ length: 40 }, (_, nth) => `192.0.2.${nth}`).join(', ');
  const said = { 'x-forwarded-for': `${forged}, 203.0.113.7, 192.0.2.250` };
  assert.equal(addressOf(from(PROXY, said), trust(`${PROXY}, 192.0.2.0/24`)), '203.0.113.7');
  // A chain of trusted proxies is followed for sixteen hops.
  const proxies = (count: number) => Array.from({ length: count }, () => '192.0.2.5').join(', ');
  const behind = (count: number) =>
    addressOf(
      from(PROXY, { 'x-forwarded-for': `203.0.113.7, ${proxies(count)}` }),
      trust(`${PROXY}, 192.0.2.0/24`),
    );
  assert.deepEqual([behind(15), behind(16)], ['203.0.113.7', '192.0.2.5']);
});

test('one address trusts itself alone, and what stands behind a hop that is none is not looked at', () => {
  const forged = { 'x-forwarded-for': '8.8.8.8' };
  assert.equal(addressOf(from('10.0.0.8', forged), trust(PROXY)), '10.0.0.8');
  const junk = { 'x-forwarded-for': '8.8.8.8, unknown, 10.0.0.8' };
  assert.equal(addressOf(from(PROXY, junk), trust('10.0.0.0/8')), '10.0.0.8');
});

test('whatever else a caller writes into its headers, the address is what the proxy says in its own', () => {
  const others = [
    'forwarded',
    'x-forwarded-for',
    'x-real-ip',
    'cf-connecting-ip',
    'true-client-ip',
    'x-client-ip',
  ];
  const forgery = fc.record({
    own: fc.constantFrom(...others),
    left: fc.array(
      fc.oneof(fc.ipV4(), fc.ipV6(), fc.string(), fc.constantFrom('for="', '",', ';', '\\"', ',')),
      {
        maxLength: 6,
      },
    ),
    headers: fc.dictionary(
      fc.constantFrom(...others),
      fc.oneof(fc.ipV4(), fc.constant('for=6.6.6.6'), fc.string()),
    ),
  });
  fc.assert(
    fc.property(forgery, ({ own, left, headers }) => {
      // The proxy appends the true address to what the caller sent, as nearly all do.
      const sent = own === 'forwarded' ? left.join('') : left.join(', ');
      const said =
        own === 'forwarded' ? 'for=203.0.113.7;proto=https;host="a, for=6.6.6.6;\\"b"' : '203.0.113.7';
      const request = from(PROXY, { ...headers, [own]: sent === '' ? said : `${sent}, ${said}` });
      assert.equal(addressOf(request, trust(PROXY, own)), '203.0.113.7');
    }),
    { numRuns: 2_000 },
  );
});

test('Forwarded is read by RFC 7239; ports and brackets are not part of an address', () => {
  const forwarded = (value: string) =>
    addressOf(from('127.0.0.1', { forwarded: value }), trust('loopback', 'forwarded'));
  assert.equal(forwarded('for=192.0.2.60;proto=http, For="[2001:db8:cafe::17]:4711"'), '2001:db8:cafe::17');
  assert.equal(forwarded('proto=https ; for = "203.0.113.5:99"'), '203.0.113.5');
  assert.equal(forwarded('for=8.8.8.8, for=203.0.113.5, for=127.0.0.1'), '203.0.113.5');
  for (const nothing of [
    'for=unknown',
    'for=_hidden',
    'by=203.0.113.5',
    'for=8.8.8.8;for=9.9.9.9',
    'for="8.8.8.8',
    '',
  ])
    assert.equal(forwarded(nothing), '127.0.0.1', nothing);
});

test('what only looks like an address is none', () => {
  const said = (value: string) =>
    addressOf(from('127.0.0.1', { 'x-real-ip': value }), trust('loopback', 'x-real-ip'));
  assert.equal(said('203.0.113.7'), '203.0.113.7');
  assert.equal(said('::ffff:203.0.113.7'), '203.0.113.7');
  assert.equal(said('203.0.113.7:5000'), '203.0.113.7');
  for (const odd of [
    '167772161',
    '010.0.0.1',
    '0x7f.1',
    '1.2.3',
    '1.2.3.4.5',
    'fe80::1%eth0',
    'localhost',
    '1.2.3.4 x',
  ])
    assert.equal(said(odd), '127.0.0.1', odd);
});

test('how an address came about can be told', () => {
  const headers = { 'x-forwarded-for': 'junk, 203.0.113.7, 10.0.0.8', 'x-real-ip': '6.6.6.6' };
  assert.deepEqual(deriveAddress(from(PROXY, headers), trust('10.0.0.0/8')), {
    address: '203.0.113.7',
    peer: PROXY,
    by: 'header',
    header: 'x-forwarded-for',
    hops: [
      { written: '10.0.0.8', trusted: true },
      { written: '203.0.113.7', trusted: false },
    ],
    ignored: ['x-real-ip'],
  });
  const { by, hops, ignored } = deriveAddress(from('203.0.113.9', headers), trust('10.0.0.0/8'));
  assert.deepEqual([by, hops, ignored], ['socket', [], ['x-forwarded-for', 'x-real-ip']]);
  const silent = deriveAddress(from(PROXY, { forwarded: 'for=8.8.8.8' }), trust('10.0.0.0/8'));
  assert.deepEqual([silent.by, silent.address, silent.ignored], ['peer', PROXY, ['forwarded']]);
});

test('nonsense in the list of proxies is refused, and so is whoever would trust everybody', () => {
  for (const list of [
    'everyone',
    '10.0.0.0/99',
    '10.0.0.0.0',
    '*',
    '0.0.0.0/0',
    '::/0',
    '2000::/3',
    '8.0.0.0/6',
  ])
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

test('an IPv6 household is one claimant and its provider one site; an IPv4 address is one, and of none', () => {
  assert.equal(claimantOf('2606:4700:1:2:aaaa::1'), claimantOf('2606:4700:1:2::ffff'));
  assert.notEqual(claimantOf('2606:4700:1:2::1'), claimantOf('2606:4700:1:3::1'));
  assert.notEqual(claimantOf('8.8.8.8'), claimantOf('8.8.8.9'));
  assert.equal(claimantOf('::ffff:8.8.8.8'), '8.8.8.8');
  assert.equal(siteOf('2606:4700:1:2::1'), siteOf('2606:4700:1:ffff::1'));
  assert.notEqual(siteOf('2606:4700:1:2::1'), siteOf('2606:4700:2:2::1'));
  assert.deepEqual([siteOf('8.8.8.8'), siteOf('::ffff:8.8.8.8')], [null, null]);
  assert.equal(claimantOf('2606:4700:1:2:aaaa::1'), '2606:4700:1:2::/64');
});
