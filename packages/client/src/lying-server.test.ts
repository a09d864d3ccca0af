/** A server that lies, hangs or leads elsewhere gets no key, no second payment and no more than was agreed. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createRawServer, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { createFarebox, type FareboxOptions } from './client.ts';
import { FareboxError } from './errors.ts';
import { type FakeShop, OFFER, openFakeShop } from './fake-shop.fixture.ts';
import { clock, errorOf, hurried } from './hurried.fixture.ts';
import { toBase64 } from './json.ts';
import { mppWallet } from './mpp.ts';
import { memoryStore } from './store.ts';
import { USDC } from './usdc.ts';
import { x402Wallet } from './x402.ts';

const KEY = `fbx_live_${'a'.repeat(64)}`;
const EVM = `0x${'1'.repeat(64)}` as const;
const wallet = await x402Wallet({ evm: EVM });
const PAYER = wallet.name;
const YEAR_S = 31_536_000;

const closes: (() => void)[] = [];
after(() => {
  for (const close of closes) close();
});

/** A server of this machine that answers each request as it is told. */
async function openServer(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closes.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const clientOf = (options: FareboxOptions) =>
  createFarebox({
    url: 'https://farebox.example',
    nowMs: () => clock.ms,
    ...(options.wallets === undefined ? { apiKey: KEY } : {}),
    ...options,
  });
const ofShop = (shop: FakeShop, options: FareboxOptions = {}) => clientOf({ fetch: shop.fetch, ...options });
const isPaid = ({ headers }: IncomingMessage) =>
  ['x-api-key', 'payment-signature', 'authorization'].some((name) => headers[name] !== undefined);
const terms = {
  'payment-required': toBase64(JSON.stringify({ x402Version: 2, accepts: [OFFER] })),
  'content-type': 'application/json',
};
const PRICE = JSON.stringify({ x402Version: 1, code: 'PAYMENT_REQUIRED', price_usd: 0.25 });

test('a redirect takes neither the key nor a payment to another address', async () => {
  const elsewhere = await openServer((_request, response) => response.end('{}'));
  for (const status of [301, 302, 303, 307, 308])
    for (const when of ['price', 'payment'])
      for (const pays of [{ apiKey: KEY, limits: {} }, { wallets: [wallet] }]) {
        const { url, seen } = await openServer((request, response) => {
          if (when === 'price' || isPaid(request))
            response.writeHead(status, { location: `${elsewhere.url}${request.url}` }).end();
          else response.writeHead(402, terms).end(PRICE);
        });
        const farebox = clientOf({ url, ...pays });
        const { result: error } = await hurried(() => errorOf(farebox.call('ping')));
        assert.deepEqual(
          [error.code, error.charged],
          when === 'price' ? ['SERVER_AWAY', false] : ['ANSWER_LOST', 'unknown'],
        );
        assert.ok(seen.length > 0);
        await errorOf(farebox.read('/api/keys/me') as Promise<unknown>).catch(() => undefined);
      }
  assert.equal(elsewhere.seen.length, 0);
});

test('nothing that a caller passes on as a name or a path leads to another address', async () => {
  const asked: string[] = [];
  const fetches: typeof fetch = async (url) => {
    asked.push(String(url));
    return Response.json({ price_usd: 1 }, { status: 402 });
  };
  const farebox = clientOf({ fetch: fetches });
  for (const path of [
    '@evil.example/x',
    '.evil.example/x',
    ':99/x',
    'x',
    '',
    '\\evil.example',
    '/a\r\nx-api-key: b',
  ]) {
    await assert.rejects(farebox.request({ path }), TypeError, path);
    await assert.rejects(farebox.read(path), TypeError, path);
  }
  await assert.rejects(farebox.request({ method: 'GET\r\nx', path: '/x' }), TypeError);
  for (const name of ['..', '.', '../keys', 'a/b', '', 'a?b', '__proto__', 'x'.repeat(101), 'a\r\nb'])
    for (const work of [farebox.call, farebox.buy, farebox.price] as ((name: string) => Promise<unknown>)[])
      await assert.rejects(work(name), TypeError, name);
  assert.deepEqual(asked, []);
  // Below a shop that does not stand at the root of its address, nothing above it is reached.
  const below = clientOf({ url: 'https://farebox.example/shop', fetch: fetches });
  await assert.rejects(below.request({ path: '/../x' }), TypeError);
});

test('a key that no header can carry is refused, and not repeated', async () => {
  for (const apiKey of ['fbx_live_secret\nx-other: 1', 'fbx_live_secret words', 'fbx_live_secreté', ''])
    assert.throws(
      () => clientOf({ apiKey, wallets: [] }),
      (error: Error) => error instanceof TypeError && !error.message.includes('secret'),
    );
  const shop = openFakeShop();
  const keys: (string | null)[] = [];
  const fetches: typeof fetch = async (url, init) => {
    keys.push(new Headers(init?.headers as never).get('x-api-key'));
    return shop.fetch(url, init);
  };
  await clientOf({ apiKey: `${KEY}\n`, fetch: fetches }).call('ping');
  assert.deepEqual(keys, [KEY], 'a line of a file has an end');
});

test('of an answer without end no more is read than fits, and what was paid for it is asked for again', async () => {
  const piece = Buffer.alloc(1_000_000, ' ');
  const names: unknown[] = [];
  const { url } = await openServer((request, response) => {
    names.push(request.headers['idempotency-key']);
    if (names.length > 2) {
      response.writeHead(200, { 'content-type': 'application/json', 'x-credits-used': '0.25' }).end('{}');
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    const more = () => {
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', more);
    more();
  });
  const why: string[] = [];
  await hurried(() => clientOf({ url, log: (line) => why.push(line) }).call('ping'));
  assert.deepEqual([names.length, new Set(names).size], [3, 1]);
  assert.match(why.join(), /too large/);
});

test('an answer that comes in drops is waited for until a bound, and no longer', async (t) => {
  const asked: number[] = [];
  const ends: AbortController[] = [];
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    asked.push(ms);
    const end = new AbortController();
    ends.push(end);
    return end.signal;
  });
  const { url } = await openServer((request, response) => {
    const body = isPaid(request) ? 200 : 402;
    response.writeHead(body, terms);
    response.write(' ');
    // The first drop has arrived, and no other comes: the bound is reached.
    setImmediate(() => ends.at(-1)?.abort(new DOMException('late', 'TimeoutError')));
  });
  const byKey = await hurried(() => errorOf(clientOf({ url }).call('ping')));
  assert.deepEqual([byKey.result.code, byKey.result.charged], ['ANSWER_LOST', 'unknown']);
  assert.deepEqual([...new Set(asked)], [120_000]);
  asked.length = 0;
  const price = await errorOf(clientOf({ url, wallets: [wallet] }).call('ping'));
  assert.deepEqual([price.code, price.charged, asked], ['SERVER_AWAY', false, [20_000]]);
});

test('what is no answer of HTTP is a lost answer, and is asked for with the same payment', async () => {
  const garbage = [
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: application/json\r\n\r\nZZZ\r\n{}\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: application/json\r\n\r\n5\r\n{"a":',
    'HTTP/1.1 200 OK\r\ncontent-length: 50\r\ncontent-type: application/json\r\n\r\n{"success":true}',
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"succes}',
    `HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(100_000)}\r\n\r\n{}`,
    'not HTTP at all\r\n\r\n',
    '',
  ];
  const requests: string[] = [];
  const sockets: Socket[] = [];
  const server = createRawServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', (bytes) => {
      requests.push(bytes.toString());
      socket.end(
        garbage.shift() ??
          'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}',
      );
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closes.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const farebox = clientOf({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  let fails = 0;
  for (;;) {
    const { result } = await hurried(() => farebox.call('ping').catch((error) => error));
    if (!(result instanceof FareboxError)) break;
    fails += 1;
    assert.deepEqual([result.code, result.charged], ['ANSWER_LOST', 'unknown']);
  }
  assert.ok(fails < 7);
  assert.equal(requests.length, 8);
  assert.equal(new Set(requests.map((each) => /idempotency-key: (\S+)/i.exec(each)?.[1])).size, 1);
});

test('no wait that a server asks for is longer than the client has patience, or no number', async () => {
  for (const [retryAfter, retryAfterMs] of [
    [String(YEAR_S), YEAR_S * 1_000],
    ['9'.repeat(300), null],
    ['1e308', null],
    ['Infinity', null],
    ['-5', null],
    ['0x10', null],
    ['soon', null],
  ] as const)
    for (const status of [503, 429]) {
      const shop = openFakeShop();
      const busy = { status, body: { code: 'BUSY', charged: false }, headers: { 'retry-after': retryAfter } };
      shop.fates = [busy, busy, busy];
      const farebox = ofShop(shop);
      const { result: error, pausesMs } = await hurried(() => errorOf(farebox.call('ping')));
      assert.deepEqual(
        [error.code, error.charged, error.retryAfterMs, pausesMs],
        ['BUSY', false, retryAfterMs, []],
        retryAfter,
      );
      assert.equal(shop.sent.length, 1);
      assert.equal(await farebox.spentToday(), 0n);
    }
  // A moment, as RFC 9110 lets it be written, counts from the server's own clock.
  const shop = openFakeShop();
  const headers = { 'retry-after': 'Wed, 01 Jan 2025 00:00:07 GMT', date: 'Wed, 01 Jan 2025 00:00:00 GMT' };
  shop.fates = [{ status: 503, body: { code: 'BUSY', charged: false }, headers }];
  const { pausesMs } = await hurried(() => ofShop(shop).call('ping'));
  assert.deepEqual(pausesMs, [7_000]);
});

test('a server that takes payments and answers with its price for ever gets no more than the limit of the day', async () => {
  const shop = openFakeShop();
  const refused = { status: 402, body: { last_error_reason: { code: 'PAYMENT_INVALID', message: 'again' } } };
  shop.fates = Array(50).fill(refused);
  const farebox = ofShop(shop, { wallets: [wallet], limits: { maxDayMicros: 1_000_000n } });
  const codes: string[] = [];
  for (let n = 0; n < 8; n += 1) codes.push((await hurried(() => errorOf(farebox.call('ping')))).result.code);
  assert.deepEqual(codes, [...Array(4).fill('PAYMENT_INVALID'), ...Array(4).fill('ABOVE_LIMIT')]);
  assert.equal(new Set(shop.sent).size, 4);
  // With a key the server's word that it took nothing is the end of it: it could take the credit without a payment as well.
  const endless = openFakeShop();
  endless.fates = Array(50).fill(refused);
  await errorOf(ofShop(endless).call('ping'));
  assert.equal(endless.sent.length, 1);
});

test('a price that is another one after the 402 is agreed to anew, and what a key was charged beyond it is told', async () => {
  const shop = openFakeShop();
  shop.fates = [{ status: 402, body: { last_error_reason: { code: 'PRICE_CHANGED', message: 'dearer' } } }];
  const asked: bigint[] = [];
  const approve = ({ micros }: { micros: bigint }) => asked.push(micros) > 0;
  const limits = { maxCallMicros: 0n };
  const farebox = ofShop(shop, { wallets: [wallet], limits, approve });
  await errorOf(farebox.call('ping'));
  shop.accepts = [{ ...OFFER, amount: '900000' }];
  await farebox.call('ping');
  assert.deepEqual(asked, [250_000n, 900_000n]);
  const dear = openFakeShop();
  dear.fates = [{ status: 200, body: { success: true }, headers: { 'x-credits-used': '9.99' } }];
  const byKey = ofShop(dear, { limits: { maxCallMicros: 250_000n } });
  const { receipt } = await byKey.buy('ping');
  assert.deepEqual(receipt?.doubts, ['9.99 USD were charged, and the price that was told is 0.25 USD']);
  assert.equal(await byKey.spentToday(), 9_990_000n, 'and counts');
});

/** An account that writes down what it is asked to sign. */
function notingAccount() {
  const signed: { primaryType: string; domain: Record<string, unknown>; message: Record<string, unknown> }[] =
    [];
  const account = {
    address: PAYER as `0x${string}`,
    async signTypedData(message: never) {
      signed.push(message);
      return `0x${'11'.repeat(64)}1b` as const;
    },
  };
  return { account, signed };
}

test('whatever a server asks for, a wallet signs one transfer of USDC within its limits and nothing else', async () => {
  const permit = {
    info: {
      from: PAYER,
      asset: OFFER.asset,
      spender: OFFER.payTo,
      amount: '9'.repeat(30),
      nonce: '0',
      deadline: '9999999999',
    },
  };
  const lies: { accepts: object[]; more?: object }[] = [
    {
      accepts: [
        {
          ...OFFER,
          extra: { ...OFFER.extra, name: 'Other Coin', version: '7', verifyingContract: '0x1', chainId: 1 },
        },
      ],
    },
    { accepts: [{ ...OFFER, domain: { name: 'x' }, primaryType: 'Permit' }] },
    {
      accepts: [OFFER],
      more: {
        extensions: { eip2612GasSponsoring: permit, erc20ApprovalGasSponsoring: permit, permit2: permit },
      },
    },
    {
      accepts: [
        { ...OFFER, amount: '1000001' },
        { ...OFFER, asset: '0x4200000000000000000000000000000000000006' },
      ],
    },
    {
      accepts: [
        { ...OFFER, extra: { ...OFFER.extra, assetTransferMethod: 'permit2' } },
        { ...OFFER, scheme: 'upto' },
        OFFER,
      ],
    },
    {
      accepts: Array(60)
        .fill({ ...OFFER, payTo: 7 })
        .concat(OFFER),
    },
    { accepts: [{ ...OFFER, payTo: 'nobody' }] },
    { accepts: [{ ...OFFER, amount: '0' }] },
    { accepts: [{ ...OFFER, maxTimeoutSeconds: 120.5 }] },
  ];
  for (const { accepts, more = {} } of lies) {
    const { account, signed } = notingAccount();
    const shop = openFakeShop();
    const fetches: typeof fetch = async (url, init) => {
      const given = new Headers(init?.headers as never);
      if (given.has('payment-signature')) return shop.fetch(url, init);
      const said = { x402Version: 2, accepts, ...more };
      return Response.json(
        { price_usd: 0.25 },
        { status: 402, headers: { 'payment-required': toBase64(JSON.stringify(said)) } },
      );
    };
    await clientOf({ fetch: fetches, wallets: [await x402Wallet({ evm: account })] })
      .call('ping')
      .catch((error) => assert.ok(error instanceof FareboxError && error.charged === false, String(error)));
    assert.ok(signed.length <= 1);
    for (const { primaryType, domain, message } of signed) {
      assert.equal(primaryType, 'TransferWithAuthorization');
      assert.equal(String(domain.verifyingContract).toLowerCase(), USDC['eip155:8453']?.toLowerCase());
      assert.equal(Number(domain.chainId), 8_453);
      assert.equal(BigInt(message.value as bigint), 250_000n);
      assert.equal(String(message.to).toLowerCase(), OFFER.payTo.toLowerCase());
    }
    assert.equal(shop.sent.length, signed.length);
  }
});

test('a server that is a sandbox only now and then is paid by neither kind of wallet while it is the other', async () => {
  const shop = openFakeShop();
  const made = await x402Wallet({ evm: EVM, sandbox: true });
  const codes: string[] = [];
  for (const sandbox of [true, false, true]) {
    shop.sandbox = sandbox;
    codes.push((await errorOf(ofShop(shop, { wallets: [sandbox ? wallet : made] }).call('ping'))).code);
  }
  assert.deepEqual(codes, ['SANDBOX_REFUSED', 'NOT_A_SANDBOX', 'SANDBOX_REFUSED']);
  assert.deepEqual(shop.sent, []);
  // One of its two doors that says so is enough.
  const fetches: typeof fetch = async (url) => {
    const sandbox = String(url).includes('/mpp/');
    return Response.json(
      { price_usd: 0.25, ...(sandbox ? { sandbox } : {}) },
      { status: 402, headers: terms },
    );
  };
  const both = [wallet, await mppWallet({ evm: EVM })];
  assert.equal(
    (await errorOf(clientOf({ fetch: fetches, wallets: both }).call('ping'))).code,
    'SANDBOX_REFUSED',
  );
});

test('a receipt of another call, payer, amount or network, or of a failure, is doubted', async () => {
  const good = {
    success: true,
    transaction: `0x${'ab'.repeat(32)}`,
    network: 'eip155:8453',
    amount: '250000',
    payer: PAYER,
  };
  const as = (said: unknown) => ({
    'payment-response': toBase64(JSON.stringify(said)),
    'x-call-id': 'call-1',
  });
  for (const [headers, doubts] of [
    [as(good), 0],
    [as({ ...good, payer: PAYER.toLowerCase() }), 0],
    [as({ ...good, success: false }), 1],
    [as({ ...good, payer: OFFER.payTo }), 1],
    [as({ ...good, amount: '1' }), 1],
    [as({ ...good, network: 'eip155:1' }), 1],
    [as({ ...good, transaction: 'x'.repeat(3_000) }), 1],
    [as({ ...good, transaction: undefined }), 1],
    [{ 'payment-response': toBase64(`{"__proto__":${JSON.stringify(good)}}`) }, 2],
    [as('text'), 1],
    [{ 'payment-response': '@@@' }, 1],
    [{}, 1],
  ] as const) {
    const shop = openFakeShop();
    shop.fates = [{ status: 200, body: { success: true }, headers: { ...headers } }];
    const { receipt } = await ofShop(shop, { wallets: [wallet] }).buy('ping');
    assert.equal(receipt?.doubts.length, doubts, JSON.stringify([headers, receipt]));
    assert.ok((receipt?.transaction ?? '').length <= 100);
  }
  const real = {
    id: 'call-1',
    status: 'delivered',
    transaction: good.transaction,
    network: good.network,
    amountUnits: '250000',
  };
  for (const [said, doubts] of [
    [real, 0],
    [{ ...real, id: 'call-2' }, 1],
    [{ ...real, amountUnits: '1' }, 1],
    [{ ...real, status: 'refunded\u001b[2J' }, 1],
    [{ ...real, transaction: '0x1', network: 'x' }, 2],
    [{}, 5],
    [[], 5],
  ] as const) {
    const shop = openFakeShop();
    shop.fates = [{ status: 200, body: {}, headers: as(good) }];
    const fetches: typeof fetch = async (url, init) =>
      String(url).includes('/receipts/') ? Response.json(said) : shop.fetch(url, init);
    const farebox = clientOf({ fetch: fetches, wallets: [wallet] });
    const { receipt } = await farebox.buy('ping');
    assert.ok(receipt);
    const checked = await farebox.check(receipt);
    assert.equal(checked.doubts.length, doubts, JSON.stringify([said, checked.doubts]));
    assert.ok(!checked.doubts.join().includes('\u001b'));
  }
});

test('what a key is said to have cost is an amount, or is doubted', async () => {
  for (const used of ['', '1e9', '-1', '0.25 USD', 'x'.repeat(3_000)]) {
    const shop = openFakeShop();
    shop.fates = [
      {
        status: 200,
        body: {},
        headers: { 'x-credits-used': used, 'x-credits-remaining': used, 'x-call-id': used },
      },
    ];
    const { receipt } = await ofShop(shop).buy('ping');
    assert.deepEqual(
      [receipt?.amountUsd, receipt?.creditLeftUsd, receipt?.doubts.length],
      ['0', null, 1],
      used,
    );
    assert.ok((receipt?.callId ?? '').length <= 200);
  }
});

test('no answer changes what other objects are', async () => {
  const polluting =
    '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"code":"__proto__","fields":[{"field":"__proto__"}],"last_error_reason":{"__proto__":{"code":"X"}}}';
  const header = toBase64(
    `{"x402Version":2,"accepts":[{"__proto__":{"polluted":1}}],"__proto__":{"sandbox":true}}`,
  );
  for (const status of [200, 402, 422]) {
    const fetches: typeof fetch = async () =>
      new Response(polluting, {
        status,
        headers: {
          'content-type': 'application/json',
          'payment-required': header,
          'payment-response': toBase64('{"__proto__":{"polluted":1}}'),
          'www-authenticate':
            'Payment __proto__="x", constructor="y", id="i", request="eyJfX3Byb3RvX18iOnsicG9sbHV0ZWQiOjF9fQ"',
        },
      });
    const wallets = [wallet, await mppWallet({ evm: EVM })];
    for (const pays of [{ apiKey: KEY }, { wallets }, { apiKey: KEY, wallets }]) {
      const farebox = clientOf({ fetch: fetches, store: memoryStore(), ...pays });
      await hurried(() => farebox.buy('ping').catch(() => undefined));
      await farebox.search('x').catch(() => undefined);
    }
  }
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  assert.equal((Object.prototype as { sandbox?: unknown }).sandbox, undefined);
});
