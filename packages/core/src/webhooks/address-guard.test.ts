/** Where webhooks may lead, and that the guard holds at the moment of connecting. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { type Receiver, startReceiver } from '../../../../apps/shop/test/webhooks.fixture.ts';
import { byNameServers, isPublic, type LookUpAll, refusedAddress } from './address-guard.ts';
import { newSecret } from './secret.ts';
import { createSender, type Message } from './send.ts';

let receiver: Receiver;
before(async () => {
  receiver = await startReceiver();
});
after(() => receiver.stop());

test('an address of a webhook is https on the open internet, and holds no credentials', () => {
  const good = [
    'https://example.com/hook?token=1',
    'https://example.com:8443/',
    'https://93.184.216.34/',
    'https://[2606:2800:220:1:248:1893:25c8:1946]/',
    'https://xn--mnchen-3ya.de/',
  ];
  for (const url of good) assert.equal(refusedAddress(url, false), null, url);
  const bad = [
    ...['', 'example.com', 'http://example.com/', 'ftp://example.com/', 'file:///etc/passwd', 'javascript:1'],
    ...['https://user:pass@example.com/', 'https://user@example.com/', 'https://example.com/#part'],
    ...['https://example.com:22/', 'https://example.com:80/', 'https://example.com:0/', 'https://'],
    ...['https://localhost/', 'https://a.localhost./', 'https://printer.local/', 'https://db.internal/'],
    ...[
      'https://127.0.0.1/',
      'https://127.1/',
      'https://0x7f000001/',
      'https://2130706433/',
      'https://0177.0.0.1/',
    ],
    ...['https://0.0.0.0/', 'https://10.0.0.1/', 'https://172.16.0.1/', 'https://192.168.1.1/'],
    ...['https://169.254.169.254/latest/meta-data', 'https://100.64.0.1/', 'https://192.0.0.192/'],
    ...['https://198.18.0.1/', 'https://224.0.0.1/', 'https://240.0.0.1/', 'https://255.255.255.255/'],
    ...['https://[::1]/', 'https://[::]/', 'https://[::ffff:127.0.0.1]/', 'https://[::ffff:7f00:1]/'],
    ...['https://[::127.0.0.1]/', 'https://[fe80::1]/', 'https://[fc00::1]/', 'https://[fd00:ec2::254]/'],
    ...['https://[64:ff9b::7f00:1]/', 'https://[64:ff9b:1::a00:1]/', 'https://[2002:7f00:1::]/'],
    ...['https://[2001::1]/', 'https://[2001:db8::1]/', 'https://[ff02::1]/', 'https://[fec0::1]/'],
    ...['https://①②⑦.0.0.1/', `https://example.com/${'a'.repeat(500)}`],
    // 120 characters as they are written, 620 as they are asked for.
    `https://example.com/${'é'.repeat(100)}`,
  ];
  for (const url of bad) assert.notEqual(refusedAddress(url, false), null, url);
  for (const url of ['http://127.0.0.1:9/', 'http://localhost/', 'https://10.0.0.1:22/'])
    assert.equal(refusedAddress(url, true), null, url);
  for (const url of ['http://user:pass@127.0.0.1/', 'file:///etc/passwd', 'not an address'])
    assert.notEqual(refusedAddress(url, true), null, url);
  assert.equal(isPublic('no address'), false);
});

const message = (url: string): Message => ({ id: 'msg_1', body: '{}', url, secrets: [newSecret()] });

test('a name is judged by the addresses that the connection goes to', async () => {
  const lookups: string[] = [];
  const standsFor =
    (...addresses: string[]): LookUpAll =>
    (hostname, done) => {
      lookups.push(hostname);
      done(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
    };
  const before = receiver.arrived.length;
  for (const addresses of [
    ['127.0.0.1'],
    ['::1'],
    ['::ffff:127.0.0.1'],
    ['10.1.2.3', '93.184.216.34'],
    ['93.184.216.34', '169.254.169.254'],
  ]) {
    const sender = createSender({ allowPrivate: false, userAgent: 'test', lookUp: standsFor(...addresses) });
    const sent = await sender.send(message(`https://receiver.example:${receiver.port}/`), Date.now());
    assert.deepEqual(sent, { outcome: 'failed', result: 'private address' }, addresses.join());
    await sender.close();
  }
  assert.equal(lookups.length, 5);

  // The second look finds another address: each message is judged by its own.
  let looks = 0;
  const rebinding: LookUpAll = (_, done) => {
    looks += 1;
    done(null, [{ address: looks === 1 ? '127.0.0.1' : '10.0.0.1', family: 4 }]);
  };
  const sender = createSender({ allowPrivate: false, userAgent: 'test', lookUp: rebinding });
  for (let nth = 1; nth <= 2; nth += 1)
    assert.equal(
      (await sender.send(message(`https://a.example:${receiver.port}/`), 0)).result,
      'private address',
    );
  assert.equal((await sender.send(message('https://127.0.0.1/'), 0)).result, 'address refused');
  assert.equal((await sender.send(message(`${receiver.url}/`), 0)).result, 'address refused');
  await sender.close();
  assert.equal(receiver.arrived.length, before, 'nobody was knocked at');
});

test('a redirect is not followed, an answer without an end is not read to it, and silence ends', async () => {
  const sender = createSender({ allowPrivate: true, userAgent: 'test', timeoutMs: 1_500 });
  receiver.answers.set('/moved', { redirectTo: `${receiver.url}/elsewhere` });
  receiver.answers.set('/endless', 'endless');
  receiver.answers.set('/silent', 'silent');
  receiver.answers.set('/gone', 410);
  receiver.answers.set('/broken', 500);
  const outcomes = [];
  for (const path of ['/moved', '/endless', '/silent', '/gone', '/broken', '/fine'])
    outcomes.push(await sender.send(message(receiver.url + path), Date.now()));
  assert.deepEqual(outcomes, [
    { outcome: 'failed', result: '302' },
    { outcome: 'taken', result: '200' },
    { outcome: 'failed', result: 'timeout' },
    { outcome: 'gone', result: '410' },
    { outcome: 'failed', result: '500' },
    { outcome: 'taken', result: '204' },
  ]);
  assert.equal(receiver.at('/elsewhere').length, 0);
  assert.deepEqual(await sender.send(message('http://127.0.0.1:1/'), Date.now()), {
    outcome: 'failed',
    result: 'connection failed',
  });
  await sender.close();
});

/** A name server: silent, or of one IPv4 address for each name and of no other. Each answer repeats its question. */
async function startNameServer(address: string | null) {
  let questions = 0;
  const socket = createSocket('udp4', (question, from) => {
    questions += 1;
    if (address === null) return;
    const end = question.indexOf(0, 12) + 5;
    const isIpv4 = question.readUInt16BE(end - 4) === 1;
    const header = Buffer.from(question.subarray(0, 12));
    header.writeUInt16BE(0x8180, 2);
    for (const [at, count] of [1, isIpv4 ? 1 : 0, 0, 0].entries()) header.writeUInt16BE(count, 4 + 2 * at);
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split('.').map(Number)]);
    const parts = [header, question.subarray(12, end), ...(isIpv4 ? [record] : [])];
    socket.send(Buffer.concat(parts), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    server: `127.0.0.1:${socket.address().port}`,
    questions: () => questions,
    stop: () => new Promise<void>((done) => void socket.close(() => done())),
  };
}

test('names are looked up at the name servers; ones that say nothing are given up, and hold up nobody else', async () => {
  const named = await startNameServer('10.1.2.3');
  const found = Promise.withResolvers<unknown>();
  byNameServers([named.server])('receiver.example', (error, addresses) =>
    found.resolve({ error, addresses }),
  );
  assert.deepEqual(await found.promise, { error: null, addresses: [{ address: '10.1.2.3', family: 4 }] });
  await named.stop();

  const silent = await startNameServer(null);
  const lookUp = byNameServers([silent.server]);
  const sender = createSender({ allowPrivate: false, userAgent: 'test', lookUp });
  const results = Promise.all(
    Array.from({ length: 8 }, () => sender.send(message('https://silent.example/'), Date.now())),
  );
  let ended = false;
  void results.then(() => {
    ended = true;
  });
  // More of them than the process has threads for the system's look-ups.
  assert.equal((await lookup('localhost', { family: 4 })).address, '127.0.0.1');
  assert.equal(ended, false);
  for (const sent of await results) assert.deepEqual(sent, { outcome: 'failed', result: 'timeout' });
  assert(silent.questions() >= 8);
  await sender.close();
  await silent.stop();
});
