/** The operator's side over HTTP: who gets in, what is shown, and that every act is done once and leaves its trace. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import pino from 'pino';
import { deriveAddress } from '../../../../packages/core/src/http/caller-address.ts';
import { createAddressLimit } from '../../../../packages/core/src/http/rate-limit.ts';
import { createHttpServer } from '../../../../packages/core/src/http/server.ts';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { microsToUsd } from '../../../../packages/core/src/ledger/money.ts';
import type { CardRefunds } from '../../../../packages/core/src/operator/act.ts';
import { createOperators } from '../../../../packages/core/src/operator/credentials.ts';
import { openOperatorDoor } from '../../../../packages/core/src/operator/operator.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const TOKEN = 'an-operators-token-of-the-tests';
const OTHER_TOKEN = 'another-operators-token-of-the-tests';
const DAY_MS = 86_400_000;
const START_MS = Date.parse('2026-11-21T10:00:00Z');

let database: TestDatabase;
let server: TestServer;
let nowMs = START_MS;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({
    pools: database,
    nowMs: () => nowMs,
    environment: {
      TRUSTED_PROXIES: 'loopback',
      ADMIN_TOKENS: `desk:${TOKEN}, night-desk:${OTHER_TOKEN}`,
    },
  });
});
after(async () => {
  await server.close();
  await database.close();
});

interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: whatever came, as in `jsonOf`
  body: any;
}

/** Asks as an operator. A body makes it a POST, with an Idempotency-Key of its own unless one is given. */
async function ask(
  path: string,
  body?: unknown,
  options: { key?: string; token?: string; headers?: Record<string, string>; base?: string } = {},
): Promise<Answer> {
  const { key = randomUUID(), token = TOKEN, headers = {}, base = server.url } = options;
  const response = await fetch(`${base}/admin/api/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'idempotency-key': key, 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
}

/** A key with credit and label, and the account behind it. */
async function customer(usd: string, label = `customer ${randomUUID()}`) {
  const key = await server.key(usd);
  const known = await server.app.keys.find(key);
  assert(known !== null);
  await server.app.keys.update(known.id, { label });
  const account = String(known.accountId);
  return { key, prefix: known.prefix, label, account, keyId: known.id };
}

async function actRows(account: string) {
  const rows = await database.sql<
    { actor: string; act: string; reason: string; amount_micros: bigint | null; transfer_id: string | null }[]
  >`select actor, act, reason, amount_micros, transfer_id from operator_acts where account_id = ${account} order by number`;
  return [...rows];
}
async function transferOf(account: string, id: string | null) {
  const rows = await database.sql<{ code: string; amount_micros: bigint; note: string }[]>`
    select code, amount_micros, note from ledger_transfers where account_id = ${account} and id = ${id}`;
  return rows.map((row) => ({ ...row }));
}

/** A moment from now, as the server writes it. */
const at = (afterMs: number) => new Date(nowMs + afterMs).toISOString();

const call = (account: string) => ({
  id: randomUUID(),
  accountId: BigInt(account),
  bucket: 0,
  keyId: null,
  rail: 'credits',
  service: 'ping',
  priceMicros: 250_000n,
  revenue: 'revenue_credits' as const,
  identity: null,
  onChainIdentity: null,
  fingerprint: null,
  ttlMs: 60_000,
});

/** A card order as reconciling leaves it; its money is not in the books, which are not asked of it here. */
async function paidOrder(
  account: string,
  order: {
    email?: string;
    amount?: bigint;
    reversed?: bigint;
    dispute?: string;
    state?: number;
    createdAtMs?: number;
    expiresAtMs?: number;
  },
): Promise<string> {
  const id = randomUUID();
  const { amount = 5_000_000n, state = 1, createdAtMs = 0, expiresAtMs = 3_600_000 } = order;
  await database.sql`
    insert into card_orders (id, kind, state, amount_micros, credit_micros, account_id, email, reversed_micros, dispute,
                             created_at, expires_at, paid_at, token_digest, card_fingerprint, session_url)
    values (${id}, 'checkout', ${state}, ${String(amount)}, ${String(amount)}, ${account}, ${order.email ?? null},
            ${String(order.reversed ?? 0n)}, ${order.dispute ?? null}, ${at(createdAtMs)}, ${at(expiresAtMs)},
            ${state === 1 ? at(createdAtMs) : null}, ${Buffer.from('digest')}, 'fingerprint', 'https://session_url')`;
  return id;
}

async function assertBalanced(): Promise<void> {
  const { checks } = await proveBooks(database.patient);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
}

describe('the door', () => {
  test('without tokens there is nothing below /admin, and no job', async () => {
    const plain = await startTestServer({ pools: database });
    try {
      for (const path of ['/admin', '/admin/', '/admin/api/overview', '/admin/api/session']) {
        const response = await fetch(plain.url + path, { headers: { authorization: `Bearer ${TOKEN}` } });
        assert.equal(response.status, 404, path);
        const nothing = await fetch(`${plain.url}/nothing`);
        assert.equal((await jsonOf(response)).code, (await jsonOf(nothing)).code);
      }
      assert(!plain.app.jobs.some(({ name }) => name === 'prove-books'));
    } finally {
      await plain.close();
    }
    assert(server.app.jobs.some(({ name }) => name === 'prove-books'));
  });

  test('a token tells who acts; anything else is 401', async () => {
    assert.equal((await ask('session')).body.actor, 'desk');
    assert.equal((await ask('session', undefined, { token: OTHER_TOKEN })).body.actor, 'night-desk');
    const from = { headers: { 'x-forwarded-for': '8.8.1.1' } };
    const nearly = [TOKEN.slice(0, -1), `${TOKEN}x`, `desk:${TOKEN}`, 'desk', TOKEN.toUpperCase(), '[]'];
    for (const token of nearly) {
      const refused = await ask('overview', undefined, { token, ...from });
      assert.deepEqual([refused.status, refused.body.code], [401, 'OPERATOR_TOKEN_INVALID'], token);
    }
    const response = await fetch(`${server.url}/admin/api/overview`, { headers: from.headers });
    assert.equal(response.status, 401);
  });

  test('ten bad tokens a minute from one address, then 429 there for all but a good one', async () => {
    const at = (address: string, token: string) =>
      ask('session', undefined, { token, headers: { 'x-forwarded-for': address } });
    for (let tried = 1; tried <= 10; tried += 1) assert.equal((await at('8.8.2.2', 'wrong')).status, 401);
    assert.equal((await at('8.8.2.2', 'wrong')).status, 429);
    // Whoever sends bad ones from an operator's own address keeps no operator out.
    for (const token of [TOKEN, OTHER_TOKEN]) assert.equal((await at('8.8.2.2', token)).status, 200);
    const locked = await at('8.8.2.2', `${TOKEN}x`);
    assert.deepEqual([locked.status, locked.headers.get('retry-after')], [429, '60']);
    assert.equal((await at('8.8.2.3', 'wrong')).status, 401);
    nowMs += 60_000;
    assert.equal((await at('8.8.2.2', 'wrong')).status, 401);
    const lines = server.log.filter((line) => line.includes('operator refused'));
    assert.equal(
      lines.filter((line) => line.includes('"address":"8.8.2.2"')).length,
      11,
      'no line for each 429',
    );
    assert(!server.log.some((line) => line.includes(TOKEN) || line.includes('Bearer')));
  });

  test('an IPv6 neighbourhood is one address, and whichever token fits is found', () => {
    const refusalLimit = createAddressLimit({ perMinute: 10, maxNames: 100, nowMs: () => nowMs });
    const tokens = Array.from({ length: 20 }, (_, index) => ({
      name: `desk-${index}`,
      token: `token-${index}-of-the-tests`,
    }));
    const operators = createOperators(() => tokens, { refusalLimit });
    assert.equal(operators.admit('Bearer token-19-of-the-tests', '2001:db8::1'), 'desk-19');
    assert.equal(operators.admit('bearer  token-0-of-the-tests ', '2001:db8::1'), 'desk-0');
    for (let tried = 1; tried <= 10; tried += 1)
      assert.throws(() => operators.admit('Bearer no', `2001:db8::${tried}`), { status: 401 });
    assert.throws(() => operators.admit('Bearer no', '2001:db8::ffff'), { status: 429 });
    assert.equal(operators.admit('Bearer token-0-of-the-tests', '2001:db8::ffff'), 'desk-0');
    assert.throws(() => operators.admit('Bearer no', '2001:db8:1::1'), { status: 401 });
  });

  test('how the address of whoever asks came about is shown', async () => {
    const { body } = await ask('caller', undefined, {
      headers: { 'x-forwarded-for': '9.9.9.9, 2606:4700:1:2::3', forwarded: 'for=6.6.6.6' },
    });
    assert.deepEqual(body, {
      address: '2606:4700:1:2::3',
      peer: '127.0.0.1',
      by: 'header',
      header: 'x-forwarded-for',
      hops: [{ written: '2606:4700:1:2::3', trusted: false }],
      ignored: ['forwarded'],
      internal: false,
      countedAs: ['2606:4700:1:2::/64', '2606:4700:1::/48'],
    });
  });

  test('no other origin may ask, nothing is kept, nothing is indexed, nothing is advertised', async () => {
    const { headers } = await ask('overview');
    const refused = await ask('overview', undefined, {
      token: 'wrong',
      headers: { 'x-forwarded-for': '8.8.1.9' },
    });
    const page = await fetch(`${server.url}/admin`, { headers: { 'accept-encoding': 'gzip' } });
    const missing = await fetch(`${server.url}/admin/nothing`);
    const preflight = await fetch(`${server.url}/admin/api/overview`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://elsewhere.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization',
      },
    });
    assert.deepEqual([page.status, missing.status, refused.status], [200, 404, 401]);
    for (const each of [headers, refused.headers, page.headers, missing.headers, preflight.headers]) {
      assert.equal(each.get('access-control-allow-origin'), null);
      assert.equal(each.get('access-control-allow-headers'), null);
      assert.equal(each.get('cache-control'), 'no-store');
      assert.match(each.get('x-robots-tag') ?? '', /noindex/);
    }
    const policy = page.headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'self'/);
    assert(!policy.includes('unsafe'));
    const documents = [
      '/openapi.json',
      '/robots.txt',
      '/llms.txt',
      '/',
      '/api/auth/capabilities',
      '/x402/catalog',
    ];
    for (const path of [...documents, '/.well-known/agent-instructions.json']) {
      assert.doesNotMatch(await (await fetch(server.url + path)).text(), /\/admin/, path);
    }
  });
});

describe('an act', () => {
  test('wants a reason, a key of its own, and an account of a customer', async () => {
    const { account } = await customer('1');
    const refusals: [string, unknown, string, number][] = [
      [`accounts/${account}/freeze`, {}, 'INVALID_REQUEST', 400],
      [`accounts/${account}/freeze`, { reason: '  x ' }, 'INVALID_REQUEST', 400],
      [`accounts/${account}/freeze`, { reason: 'x'.repeat(501) }, 'INVALID_REQUEST', 400],
      [`accounts/${account}/freeze`, { reason: 'so\u0000 it is' }, 'INVALID_REQUEST', 400],
      [`accounts/${account}/freeze`, { reason: 'why not', cause: 'debt' }, 'INVALID_REQUEST', 400],
      [`accounts/${account}/grant`, { reason: 'why not', amountUsd: '0' }, 'INVALID_REQUEST', 400],
      [`accounts/${account}/grant`, { reason: 'why not', amountUsd: '-1' }, 'INVALID_REQUEST', 400],
      [`accounts/${account}/grant`, { reason: 'why not', amountUsd: '10000.000001' }, 'INVALID_REQUEST', 400],
      [`accounts/${account}/grant`, { reason: 'why not', amountUsd: '1e3' }, 'INVALID_REQUEST', 400],
      [`accounts/${account}/unfreeze`, { reason: 'why not' }, 'NOT_FROZEN', 409],
      ['accounts/4/grant', { reason: 'to the house', amountUsd: '1' }, 'NO_SUCH_ACCOUNT', 404],
      ['accounts/999999/freeze', { reason: 'nobody' }, 'NO_SUCH_ACCOUNT', 404],
      ['accounts/99999999999999999999/freeze', { reason: 'nobody' }, 'INVALID_REQUEST', 400],
      ['accounts/1000%20or%201=1/freeze', { reason: 'nobody' }, 'INVALID_REQUEST', 400],
      [`accounts/${account}/refund-call`, { reason: 'why not', callId: randomUUID() }, 'NO_SUCH_CALL', 404],
      [
        `accounts/${account}/refund-order`,
        { reason: 'why not', orderId: randomUUID(), amountUsd: null },
        'CARDS_NOT_CONFIGURED',
        503,
      ],
    ];
    for (const [path, body, code, status] of refusals) {
      const refused = await ask(path, body);
      assert.deepEqual(
        [refused.status, refused.body.code],
        [status, code],
        `${path} ${JSON.stringify(body)}`,
      );
    }
    const unnamed = await ask(`accounts/${account}/freeze`, { reason: 'why not' }, { key: 'short' });
    assert.deepEqual([unnamed.status, unnamed.body.code], [400, 'IDEMPOTENCY_KEY_REQUIRED']);
    assert.deepEqual(await actRows(account), [], 'what was refused left nothing');
    const { body } = await ask(`accounts/${account}`);
    assert.deepEqual([body.balanceUsd, body.freezes, body.acts], ['1.000000', [], []]);
  });

  test('to freeze stops the key at once, with who and why; to unfreeze lets it go on', async () => {
    const { key, account } = await customer('1');
    assert.equal((await server.call('ping', key)).status, 200);
    const frozen = await ask(`accounts/${account}/freeze`, { reason: 'sent by mistake' });
    assert.deepEqual([frozen.status, frozen.body.repeated, frozen.body.act.act], [200, false, 'freeze']);
    const refused = await server.call('ping', key);
    assert.equal((await jsonOf(refused)).last_error_reason.code, 'API_KEY_FROZEN');
    const { body } = await ask(`accounts/${account}`);
    assert.deepEqual(body.freezes, [
      { cause: 'operator', note: 'desk: sent by mistake', since: new Date(nowMs).toISOString() },
    ]);
    const thawed = await ask(
      `accounts/${account}/unfreeze`,
      { reason: 'all is well' },
      { token: OTHER_TOKEN },
    );
    assert.equal(thawed.status, 200);
    assert.equal((await server.call('ping', key)).status, 200);
    assert.deepEqual(
      (await actRows(account)).map(({ actor, act, reason }) => [actor, act, reason]),
      [
        ['desk', 'freeze', 'sent by mistake'],
        ['night-desk', 'unfreeze', 'all is well'],
      ],
    );
  });

  test('to grant is one transfer with who and why; the same key again, even at once, is the same grant', async () => {
    const { account } = await customer('1');
    const key = randomUUID();
    const grant = { reason: "for the outage; it's 100% ours", amountUsd: '2.50' };
    const all = await Promise.all(
      Array.from({ length: 6 }, () => ask(`accounts/${account}/grant`, grant, { key })),
    );
    assert.deepEqual(
      all.map(({ status }) => status),
      [200, 200, 200, 200, 200, 200],
    );
    assert.equal(all.filter(({ body }) => !body.repeated).length, 1);
    assert.equal(new Set(all.map(({ body }) => body.act.actId)).size, 1);
    const rows = await actRows(account);
    assert.equal(rows.length, 1);
    assert.equal(rows[0]?.amount_micros, 2_500_000n);
    assert.deepEqual(await transferOf(account, rows[0]?.transfer_id ?? null), [
      { code: 'operator_grant', amount_micros: 2_500_000n, note: "desk: for the outage; it's 100% ours" },
    ]);
    assert.equal((await ask(`accounts/${account}`)).body.balanceUsd, '3.500000');

    for (const other of [
      ask(`accounts/${account}/grant`, { ...grant, amountUsd: '2.51' }, { key }),
      ask(`accounts/${account}/grant`, { ...grant, reason: 'another' }, { key }),
      ask(`accounts/${account}/freeze`, { reason: grant.reason }, { key }),
      ask(`accounts/${account}/grant`, grant, { key, token: OTHER_TOKEN }),
    ]) {
      const { status, body } = await other;
      assert.deepEqual([status, body.code], [409, 'IDEMPOTENCY_KEY_REUSED']);
    }
    assert.equal((await ask(`accounts/${account}`)).body.balanceUsd, '3.500000');
    await assertBalanced();
  });

  test('a long reason stands whole in the act, and as far as it goes in the ledger', async () => {
    const { account } = await customer('1');
    const reason = `${'y'.repeat(498)}zz`;
    const { body } = await ask(`accounts/${account}/grant`, { reason, amountUsd: 1 });
    assert.equal(body.act.reason, reason);
    const [transfer] = await transferOf(account, body.act.transferId);
    assert.equal(transfer?.note, `desk: ${'y'.repeat(494)}`);
  });

  test('to grant keeps a trial alive, and is refused where no key could spend it', async () => {
    const response = await fetch(`${server.url}/api/m2m/credits/trial`, {
      headers: { 'x-forwarded-for': '8.8.3.1' },
    });
    const { apiKey } = await jsonOf(response);
    const known = await server.app.keys.find(apiKey);
    assert(known !== null);
    const granted = await ask(`accounts/${known.accountId}/grant`, { reason: 'a good idea', amountUsd: '1' });
    assert.equal(granted.status, 200);
    assert.equal((await server.app.keys.record(known.id))?.expiresAt, null);

    const gone = await customer('1');
    await server.app.keys.revoke(gone.keyId);
    const refused = await ask(`accounts/${gone.account}/grant`, { reason: 'too late', amountUsd: '1' });
    assert.deepEqual([refused.status, refused.body.code], [409, 'NO_USABLE_KEY']);
    assert.deepEqual(await actRows(gone.account), []);
  });

  test('a captured call goes back once, at its price, whoever asks and however often', async () => {
    const { key, account } = await customer('1');
    const paid = await server.call('ping', key);
    await paid.text();
    const { body: before } = await ask(`accounts/${account}`);
    const [call] = before.calls;
    assert.deepEqual(
      [call.service, call.priceUsd, call.state, call.refunded],
      ['ping', '0.250000', 'captured', false],
    );
    const refunds = await Promise.all(
      ['one', 'two', 'three', 'four'].map((reason) =>
        ask(`accounts/${account}/refund-call`, { reason, callId: call.callId }),
      ),
    );
    assert.deepEqual(refunds.map(({ status }) => status).sort(), [200, 409, 409, 409]);
    for (const { status, body } of refunds)
      if (status === 409) assert.equal(body.code, 'CALL_ALREADY_REFUNDED');
    const rows = await actRows(account);
    assert.equal(rows.length, 1);
    const [transfer] = await transferOf(account, rows[0]?.transfer_id ?? null);
    assert.deepEqual([transfer?.code, transfer?.amount_micros], ['operator_refund', 250_000n]);
    assert.match(transfer?.note ?? '', /^desk: (one|two|three|four)$/);
    const { body: now } = await ask(`accounts/${account}`);
    assert.deepEqual([now.balanceUsd, now.calls[0].refunded], ['1.000000', true]);

    // Found to be undelivered afterwards: the reconciler and the operator cannot both give it back.
    server.app.reconciler.undelivered({
      id: call.callId,
      accountId: BigInt(account),
      bucket: 0,
      service: 'ping',
      priceMicros: 250_000n,
      revenue: 'revenue_credits',
      retrievable: false,
    });
    await server.app.reconciler.run();
    assert.equal((await ask(`accounts/${account}`)).body.balanceUsd, '1.000000');
    await assertBalanced();

    // A call that was not charged has nothing to give back.
    const elsewhere = await customer('1');
    const foreign = await ask(`accounts/${elsewhere.account}/refund-call`, {
      reason: 'not yours',
      callId: call.callId,
    });
    assert.equal(foreign.body.code, 'NO_SUCH_CALL');
  });

  test('is never changed nor taken away', async () => {
    for (const statement of [
      "update operator_acts set reason = 'other'",
      'delete from operator_acts',
      'truncate operator_acts cascade',
      'delete from operator_act_outcomes',
    ]) {
      await assert.rejects(database.sql.unsafe(statement), /only ever added/, statement);
    }
  });
});

describe('the records', () => {
  test('are found by prefix, label, e-mail and account number, and no text is a pattern', async () => {
    const plain = await customer('2', 'Plain label');
    const odd = await customer('3', `50%_off's "best" \\ label`);
    await paidOrder(plain.account, { email: 'Buyer_1@example.com' });
    const find = async (q: string): Promise<string[]> => {
      const { status, body } = await ask(`keys?q=${encodeURIComponent(q)}`);
      assert.equal(status, 200, q);
      return body.keys.map(({ accountId }: { accountId: string }) => accountId);
    };
    assert((await find(plain.prefix)).includes(plain.account));
    assert((await find(plain.key)).includes(plain.account), 'of a whole key only the beginning counts');
    assert.deepEqual(await find('plain LABEL'), [plain.account]);
    assert.deepEqual(await find('buyer_1@EXAMPLE'), [plain.account]);
    assert.deepEqual(await find('buyerx1@example'), []);
    assert.deepEqual(await find(plain.account), [plain.account]);
    assert.deepEqual(await find("50%_off's"), [odd.account]);
    assert.deepEqual(await find('"best" \\'), [odd.account]);
    for (const q of [
      '%',
      '_off%',
      "' or '1'='1",
      "'; drop table api_keys; --",
      '\\',
      '999999999999999999999999',
    ]) {
      const found = await find(q);
      assert(!found.includes(plain.account), q);
    }
    assert.equal((await ask('keys?q=%00')).status, 400);
    assert.equal((await ask(`keys?q=${'x'.repeat(201)}`)).status, 400);
    assert.equal((await ask('keys?after=1%20or%201=1')).status, 400);
  });

  test('come in pages, the newest first, each once', async () => {
    const made: string[] = [];
    for (let index = 0; index < 55; index += 1)
      made.push((await customer('1', `page of keys ${index}`)).account);
    const first = await ask('keys?q=page%20of%20keys');
    assert.equal(first.body.keys.length, 50);
    const second = await ask(`keys?q=page%20of%20keys&after=${first.body.after}`);
    assert.deepEqual([second.body.keys.length, second.body.after], [5, null]);
    const accounts = [...first.body.keys, ...second.body.keys].map(({ accountId }) => accountId);
    assert.deepEqual(accounts, made.reverse());
  });

  test('show all of an account, and nothing that a secret could be found by', async () => {
    const { account, key, prefix, label } = await customer('5');
    await (await server.call('ping', key)).text();
    await (await server.call('token-price', key, {})).text();
    const orderId = await paidOrder(account, { email: 'who@example.com' });
    await ask(`accounts/${account}/grant`, { reason: 'to be seen', amountUsd: '2' });
    const { body } = await ask(`accounts/${account}`);
    assert.deepEqual(
      [body.balanceUsd, body.availableUsd, body.reservedUsd, body.spentUsd, body.owedUsd],
      ['6.750000', '6.750000', '0.000000', '0.250000', '0.000000'],
    );
    assert.deepEqual(
      [body.keys.length, body.keys[0].keyPrefix, body.keys[0].label, body.keys[0].status],
      [1, prefix, label, 'active'],
    );
    assert.deepEqual(
      body.transfers
        .map((row: { code: string; phase: string; amountUsd: string; with: string; note: string }) => [
          row.code,
          row.phase,
          row.amountUsd,
          row.with,
          row.note,
        ])
        .sort(),
      [
        ['call', 'pending', '-0.250000', 'revenue_credits', null],
        ['call', 'post', '-0.250000', 'revenue_credits', null],
        ['operator_grant', 'posted', '2.000000', 'operator_grants', 'desk: to be seen'],
        ['operator_grant', 'posted', '5.000000', 'operator_grants', 'test'],
      ],
    );
    assert.deepEqual([body.cardOrders[0].orderId, body.cardOrders[0].state], [orderId, 'paid']);
    assert.equal(body.acts[0].reason, 'to be seen');
    const [listed] = (await ask(`keys?q=${account}`)).body.keys;
    assert.deepEqual(
      [listed.balanceUsd, listed.spentUsd, listed.cardOrders, listed.lastUsedDay],
      ['6.750000', '0.250000', 1, new Date(nowMs).toISOString().slice(0, 10)],
    );
    const text = JSON.stringify([body, listed]);
    for (const secret of [key.slice(12), 'digest', 'fingerprint', 'session_url', 'lookup'])
      assert(!text.includes(secret), secret);
    assert.equal((await ask('accounts/1')).status, 404, "the house's own accounts are not customers");
  });
});

describe('the overview', () => {
  test('adds up what was sold, by day, rail and service, within the days asked for', async () => {
    // A time of its own, in which nothing else of this file falls.
    nowMs += 200 * DAY_MS;
    const day = (ago: number) => new Date(nowMs - ago * DAY_MS).toISOString().slice(0, 10);
    const { key, account } = await customer('10');
    const today = nowMs;
    nowMs = today - 7 * DAY_MS;
    await (await server.call('ping', key)).text();
    nowMs = today - 6 * DAY_MS;
    await (await server.call('ping', key)).text();
    await (await server.call('first-call', key)).text();
    nowMs = today;
    await (await server.call('ping', key)).text();
    const release = { ...call(account), capture: false, outcome: 'EXPIRED', answer: null };
    await server.app.calls.begin(release);
    await server.app.calls.finish(release);
    const open = call(account);
    await server.app.calls.begin(open);
    const onChain = call('5');
    const topup = call('5');
    await database.sql`
      insert into calls (account_id, id, state, rail, service, price_micros, created_at, expires_at, finished_at)
      values (5, ${onChain.id}, 1, 'x402', 'ping', 250000, ${at(-DAY_MS)}, ${at(0)}, ${at(-DAY_MS)}),
             (5, ${topup.id}, 1, 'x402', 'credits/topup/5', 5000000, ${at(-DAY_MS)}, ${at(0)}, ${at(-DAY_MS)})`;

    const { body } = await ask('overview?days=7');
    assert.deepEqual([body.days, body.since, body.notes], [7, day(6), []]);
    assert.deepEqual(
      [body.sales.capturedUsd, body.sales.calls, body.sales.releasedUsd, body.sales.released],
      ['0.800000', 4, '0.250000', 1],
    );
    const line = (
      rail: string,
      calls: number,
      capturedUsd: string,
      released = 0,
      releasedUsd = '0.000000',
    ) => ({
      rail,
      calls,
      capturedUsd,
      released,
      releasedUsd,
    });
    assert.deepEqual(body.sales.byDay, [
      { day: day(6), ...line('credits', 2, '0.300000') },
      { day: day(1), ...line('x402', 1, '0.250000') },
      { day: day(0), ...line('credits', 1, '0.250000', 1, '0.250000') },
    ]);
    assert.deepEqual(body.sales.byService, [
      { service: 'ping', ...line('credits', 2, '0.500000', 1, '0.250000') },
      { service: 'ping', ...line('x402', 1, '0.250000') },
      { service: 'first-call', ...line('credits', 1, '0.050000') },
    ]);
    assert.equal((await ask('overview?days=8')).body.sales.calls, 5);
    assert.equal(body.money.reserved.creditsUsd, '0.250000');
    for (const days of ['0', '91', '1.5', 'x', '-7'])
      assert.equal((await ask(`overview?days=${days}`)).status, 400, days);
    assert.equal(
      body.sales.creditSoldOnChainsUsd,
      '5.000000',
      'what buys credit is no sale until it is spent',
    );
    await database.sql`delete from calls where id in (${onChain.id}, ${topup.id})`;
    await server.app.calls.finish({ ...open, capture: false, outcome: 'EXPIRED', answer: null });
  });

  test('tells what is owed, what moved, and what has been open for too long', async () => {
    nowMs += 100 * DAY_MS;
    const { account, key } = await customer('4');
    await (await server.call('ping', key)).text();
    const [paid] = (await ask(`accounts/${account}`)).body.calls;
    await ask(`accounts/${account}/refund-call`, { reason: 'was wrong', callId: paid.callId });
    await ask(`accounts/${account}/grant`, { reason: 'for the trouble', amountUsd: '1.5' });
    await paidOrder(account, { amount: 20_000_000n, reversed: 5_000_000n, dispute: 'needs_response' });
    await paidOrder(account, { amount: 5_000_000n });
    const late = await paidOrder(account, { state: 0, createdAtMs: -3_600_000, expiresAtMs: -1_800_000 });
    await paidOrder(account, { state: 0, createdAtMs: -60_000, expiresAtMs: 1_800_000 });
    await database.sql`insert into account_debts (account_id, owed_micros, since) values (${account}, 1250000, ${at(0)})`;
    await database.sql`insert into card_events (id, type, created_at, received_at, next_at, attempts)
      values ('evt_waiting', 'charge.refunded', ${at(0)}, ${at(-5_000)}, ${at(0)}, 3),
             ('evt_done', 'charge.refunded', ${at(0)}, ${at(-9_000)}, null, 1)`;
    const stuck = [randomUUID(), randomUUID(), randomUUID()];
    for (const [index, id] of stuck.entries()) {
      const since = at([-30_000, -120_000, -600_000][index] ?? 0);
      await database.sql`insert into calls (account_id, id, state, rail, service, price_micros, created_at, expires_at)
        values (5, ${id}, 3, 'x402', 'ping', 250000, ${since}, ${at(0)})`;
      await database.sql`insert into settlements (account_id, call_id, rail, network, asset, payer, pay_to, amount_units,
          evidence, answered, state, dead_after, lease_until, next_at, created_at)
        values (5, ${id}, 'x402', 'eip155:8453', '0xa', '0xb', '0xc', 250000, '{"signature":"0xsecret"}', true,
                ${index === 2 ? 3 : 0}, ${at(0)}, ${at(0)}, ${at(0)}, ${since})`;
    }
    await database.sql`insert into refunds (account_id, call_id, network, asset, payee, amount_micros, reason, created_at, next_at)
      values (5, ${stuck[0] ?? ''}, 'eip155:8453', '0xa', '0xb', 250000, 'failed', ${at(0)}, ${at(0)})`;

    const { body } = await ask('overview?days=1');
    assert.deepEqual(body.money.owed, {
      byCustomersUsd: '1.250000',
      customers: 1,
      onChainUsd: '0.250000',
      onChainRefunds: 1,
      onChainSince: at(0),
    });
    assert.deepEqual(body.money.reserved, { creditsUsd: '0.000000', onChainUsd: '0.750000' });
    assert.deepEqual(body.money.refunded, { onChainUsd: '0.000000', callsUsd: '0.250000' });
    assert.deepEqual(body.money.granted, { byOperatorsUsd: '5.500000', inTrialsUsd: '0.000000' });
    assert.deepEqual(body.money.cards, {
      ordersPaid: 2,
      paidUsd: '25.000000',
      reversedUsd: '5.000000',
      disputes: [{ status: 'needs_response', orders: 1, reversedUsd: '5.000000' }],
    });
    const { count, toAnswer, nextDue } = body.unfinished.disputes;
    assert.deepEqual([count, toAnswer, nextDue.length], [1, 1, 1]);
    assert.deepEqual(
      [nextDue[0].accountId, nextDue[0].status, nextDue[0].evidenceDueAt],
      [account, 'needs_response', null],
    );
    assert.deepEqual(
      body.unfinished.settlements.oldest.map((row: { callId: string; state: string }) => [
        row.callId,
        row.state,
      ]),
      [
        [stuck[2], 'refused'],
        [stuck[1], 'with_chain'],
      ],
      'the oldest first, and none that is younger than a minute',
    );
    assert.deepEqual(
      [body.unfinished.cardOrders.count, body.unfinished.cardOrders.oldest[0].orderId],
      [1, late],
    );
    assert.deepEqual(body.unfinished.inbox, { waiting: 1, oldestAt: at(-5_000), mostAttempts: 3 });
    assert(body.upstreams.some(({ name }: { name: string }) => name === 'coinbase'));
    assert(!JSON.stringify(body).includes('0xsecret'));

    for (const table of ['refunds', 'settlements']) {
      await database.sql`delete from ${database.sql(table)} where call_id = any(${`{${stuck}}`}::text::uuid[])`;
    }
    await database.sql`delete from calls where id = any(${`{${stuck}}`}::text::uuid[])`;
    await database.sql`delete from card_events`;
    await database.sql`delete from account_debts`;
  });
});

describe('a card payment', () => {
  let cards: FastifyInstance;
  let base: string;
  /** The refunds that the card provider was asked for, and below them its next answer. */
  let asked: Parameters<CardRefunds['refund']>[0][] = [];
  let answers: (() => Awaited<ReturnType<CardRefunds['refund']>>)[] = [];
  before(async () => {
    const logger = pino({ level: 'silent' });
    cards = createHttpServer(logger);
    const operators = [
      { name: 'desk', token: TOKEN },
      { name: 'night-desk', token: OTHER_TOKEN },
    ];
    const door = openOperatorDoor(() => operators, {
      sql: database.sql,
      patient: database.patient,
      books: [],
      ledger: createLedger(database, () => nowMs),
      keys: createKeys(database.sql, () => nowMs),
      collectDebts: async () => {},
      cards: {
        async refund(order) {
          asked.push(order);
          return (answers.shift() ?? (() => ({ status: 'refunded', refundId: 're_1' })))();
        },
        prepareKeyLink: async () => async () => {},
      },
      payments: { look: async () => 'unknown', owe: async () => {} },
      stock: {
        services: () => [],
        state: async () => ({}),
        versions: async () => [],
        version: async () => ({}),
        set: async () => {},
        follow: async () => {},
      },
      secondAboveMicros: 50_000_000n,
      serviceCosts: [],
      creditServices: () => ['credits/topup/'],
      trialBudgetMicrosPerDay: null,
      upstreamHealth: () => [],
      sourceTerms: () => [],
      sourceCosts: async () => [],
      sourceCostsOn: async () => [],
      dataLists: async () => [],
      lawPages: { summary: async () => ({}), states: async () => ({}) },
      shut: () => null,
      rails: () => [],
      gas: () => [],
      owed: async () => ({ owed: [], total: 0 }),
      sendPage: (_request, reply) => reply.send(''),
      signIn: {
        issuer: null,
        clientId: null,
        scopes: 'openid',
        rules: [],
        idleMs: 1_800_000,
        longestMs: 43_200_000,
        retentionDays: 90,
      },
      signInSecret: () => null,
      baseUrl: 'http://farebox.test',
      refusalLimit: createAddressLimit({ perMinute: 10, maxNames: 100, nowMs: () => nowMs }),
      signInLimit: createAddressLimit({ perMinute: 10, maxNames: 100, nowMs: () => nowMs }),
      addressOf: () => '127.0.0.1',
      explainAddress: (request) => deriveAddress(request.raw, { proxies: [], header: 'x-forwarded-for' }),
      logger,
      nowMs: () => nowMs,
    });
    door?.routes(cards);
    base = await cards.listen({ host: '127.0.0.1', port: 0 });
  });
  after(() => cards.close());

  async function order(amount = 20_000_000n, reversed = 0n) {
    asked = [];
    answers = [];
    const { account } = await customer('1');
    const orderId = await paidOrder(account, { amount, reversed });
    return { account, orderId, path: `accounts/${account}/refund-order` };
  }

  test('goes back in part or in whole, by the act and nobody twice', async () => {
    const { account, orderId, path } = await order(20_000_000n, 5_000_000n);
    const key = randomUUID();
    const body = { reason: 'asked for it', orderId, amountUsd: null };
    const twice = await Promise.all([ask(path, body, { base, key }), ask(path, body, { base, key })]);
    for (const { status, body: told } of twice) {
      assert.deepEqual([status, told.act.state, told.act.outcome.refundId], [200, 'done', 're_1']);
    }
    assert.equal(new Set(asked.map(({ actKey }) => actKey)).size, 1);
    assert.deepEqual([asked[0]?.orderId, asked[0]?.amountMicros], [orderId, 15_000_000n]);
    const again = await ask(path, body, { base, key });
    assert.deepEqual([again.body.repeated, asked.length <= 2], [true, true]);
    assert.equal((await actRows(account)).length, 1);
    const part = await ask(path, { ...body, amountUsd: '2.50' }, { base });
    assert.equal(part.body.act.amountUsd, '2.500000');
  });

  test('that cannot go back is refused, and leaves nothing', async () => {
    const { account, orderId, path } = await order(20_000_000n, 5_000_000n);
    const other = await customer('1');
    const unpaid = await paidOrder(account, { state: 0 });
    const refusals: [string, string | null, string, number][] = [
      [orderId, '15.01', 'REFUND_REFUSED', 409],
      [orderId, '1.005', 'INVALID_REQUEST', 400],
      [unpaid, null, 'REFUND_REFUSED', 409],
      [randomUUID(), null, 'NO_SUCH_ORDER', 404],
    ];
    for (const [id, amountUsd, code, status] of refusals) {
      const refused = await ask(path, { reason: 'asked for it', orderId: id, amountUsd }, { base });
      assert.deepEqual([refused.status, refused.body.code], [status, code], `${id} ${amountUsd}`);
    }
    const foreign = `accounts/${other.account}/refund-order`;
    assert.equal(
      (await ask(foreign, { reason: 'not theirs', orderId, amountUsd: null }, { base })).body.code,
      'NO_SUCH_ORDER',
    );
    assert.deepEqual([asked, await actRows(account), await actRows(other.account)], [[], [], []]);
  });

  test('whose end nobody knows is visible, and can be gone on with: the provider hears the same again', async () => {
    const { account, orderId, path } = await order();
    answers = [
      () => ({ status: 'unknown_outcome' }),
      () => {
        throw new Error('the connection was cut');
      },
    ];
    const key = randomUUID();
    const body = { reason: 'asked for it', orderId, amountUsd: '20' };
    const unknown = await ask(path, body, { base, key });
    assert.deepEqual([unknown.status, unknown.body.code], [503, 'REFUND_OUTCOME_UNKNOWN']);
    const open = async () =>
      (await ask('overview', undefined, { base })).body.openActs.map(({ actId }: { actId: string }) => actId);
    assert.deepEqual(await open(), [unknown.body.actId]);
    assert.equal((await ask(path, body, { base, key })).status, 500);
    assert.deepEqual(await open(), [unknown.body.actId]);
    const done = await ask(`acts/${unknown.body.actId}/go-on`, {}, { base });
    assert.deepEqual([done.status, done.body.act.state], [200, 'done']);
    assert.deepEqual(await open(), []);
    assert.deepEqual(
      asked,
      Array(3).fill({ orderId, amountMicros: 20_000_000n, actKey: unknown.body.actId }),
    );
    assert.equal((await ask(path, body, { base, key })).body.repeated, true);
    assert.equal(asked.length, 3, 'what is done is not asked for again');
    assert.equal((await actRows(account)).length, 1);
    const unknownAct = await ask(`acts/${randomUUID()}/go-on`, {}, { base });
    assert.deepEqual([unknownAct.status, unknownAct.body.code], [404, 'NO_SUCH_ACT']);
  });

  test('that goes back in parts needs a second operator as soon as the whole would, also for two parts at once', async () => {
    const { orderId, path } = await order(200_000_000n);
    const part = (amountUsd: string, key = randomUUID()) =>
      ask(path, { reason: 'asked for it', orderId, amountUsd }, { base, key });
    const key = randomUUID();
    const first = await part('30', key);
    assert.deepEqual([first.status, first.body.act?.state], [200, 'done']);
    const proposed = await part('30');
    assert.deepEqual([proposed.status, proposed.body.proposal?.amountUsd], [202, '30.000000']);
    assert.deepEqual(
      [(await part('30', key)).body.repeated, asked.length],
      [true, 1],
      'what is done is done',
    );
    const approved = await ask(
      `proposals/${proposed.body.proposal.proposalId}/approve`,
      {},
      { base, token: OTHER_TOKEN },
    );
    assert.deepEqual([approved.status, approved.body.act?.actor], [200, 'desk and night-desk']);
    assert.equal((await part('20')).status, 200, 'what two agreed to does not count for one');
    assert.equal((await part('0.01')).status, 202);

    const other = await order(200_000_000n);
    const told = await Promise.all(
      Array.from({ length: 6 }, () =>
        ask(other.path, { reason: 'all at once', orderId: other.orderId, amountUsd: '20' }, { base }),
      ),
    );
    const alone = told.filter(({ status }) => status === 200);
    assert.equal(alone.length, 2, JSON.stringify(told.map(({ status, body }) => [status, body.code])));
    for (const { status, body } of told)
      if (status === 409) assert.equal(body.code, 'SECOND_OPERATOR_NEEDED');
    assert.equal(asked.length, 2);
  });

  test('of calls and grants are counted together by operator, and need a second one as soon as the sum would', async () => {
    // Of nobody else's day: the tests before and after have theirs.
    nowMs += 2 * 86_400_000;
    const [one, other] = [await customer('1'), await customer('1')];
    const grant = (account: string, amountUsd: string, as: object = {}) =>
      ask(`accounts/${account}/grant`, { reason: 'for the trouble', amountUsd }, { base, ...as });
    const key = randomUUID();
    assert.equal((await grant(one.account, '30', { key })).status, 200);
    // Another customer, and the same operator.
    const proposed = await grant(other.account, '20.01');
    const { proposalId, act, amountUsd, orderId, callId } = proposed.body.proposal;
    assert.deepEqual(
      [proposed.status, act, amountUsd, orderId, callId],
      [202, 'grant', '20.010000', null, null],
    );
    assert.equal((await grant(one.account, '30', { key })).body.repeated, true, 'what is done is done');
    assert.equal(
      (await grant(other.account, '20', { token: OTHER_TOKEN })).status,
      200,
      'each has their own',
    );
    const approve = (as: object) => ask(`proposals/${proposalId}/approve`, {}, { base, ...as });
    assert.equal((await approve({})).body.code, 'SECOND_OPERATOR_NEEDED');
    const agreed = await approve({ token: OTHER_TOKEN });
    assert.deepEqual([agreed.status, agreed.body.act.actor], [200, 'desk and night-desk']);
    assert.equal((await approve({ token: OTHER_TOKEN })).body.repeated, true);

    // 20 of the day are left: 19.99 and the price of a call, though not of two at once.
    assert.equal((await grant(one.account, '19.99')).status, 200);
    const calls = [];
    for (const { key: buyer } of [one, other])
      calls.push((await server.call('ping', buyer)).headers.get('x-call-id') ?? assert.fail());
    const refund = (account: string, callId: string) =>
      ask(`accounts/${account}/refund-call`, { reason: 'no good answer', callId }, { base });
    const refunds = await Promise.all([
      refund(one.account, calls[0] ?? ''),
      refund(other.account, calls[1] ?? ''),
    ]);
    assert.ok(refunds.every(({ status }) => status !== 200));
    assert.ok(refunds.every(({ status, body }) => status === 202 || body.code === 'SECOND_OPERATOR_NEEDED'));
    nowMs += 86_400_000;
    assert.equal(
      (await refund(one.account, calls[0] ?? '')).status,
      200,
      'the next day it is one operator’s again',
    );
    const many = await Promise.all(Array.from({ length: 6 }, () => grant(other.account, '20')));
    assert.equal(many.filter(({ status }) => status === 200).length, 2, 'also of several at once');
  });

  test('that was proposed is not done alone by the same key, though what counted against it was refused since', async () => {
    const { account, orderId, path } = await order(200_000_000n);
    answers = [() => ({ status: 'unknown_outcome' })];
    const body = { reason: 'asked for it', orderId, amountUsd: '40' };
    const open = await ask(path, body, { base });
    assert.equal(open.status, 503);
    const key = randomUUID();
    const proposed = await ask(path, body, { base, key });
    assert.equal(proposed.status, 202);
    answers = [() => ({ status: 'too_much' })];
    assert.equal((await ask(`acts/${open.body.actId}/go-on`, {}, { base })).status, 409);
    const again = await ask(path, body, { base, key });
    assert.deepEqual(
      [again.status, again.body.proposal?.proposalId],
      [202, proposed.body.proposal.proposalId],
    );
    assert.equal((await actRows(account)).length, 1);
    assert.equal(
      (await ask(path, { ...body, amountUsd: '50' }, { base })).status,
      200,
      'the refused does not count',
    );
  });

  test('that the provider refuses stays on record as refused', async () => {
    const { account, orderId, path } = await order();
    answers = [() => ({ status: 'too_much' })];
    const key = randomUUID();
    const body = { reason: 'asked for it', orderId, amountUsd: '20' };
    for (let time = 1; time <= 2; time += 1) {
      const refused = await ask(path, body, { base, key });
      assert.deepEqual([refused.status, refused.body.code], [409, 'REFUND_REFUSED']);
    }
    assert.equal(asked.length, 1);
    const { acts } = (await ask(`acts?account=${account}`, undefined, { base })).body;
    assert.deepEqual([acts.length, acts[0].state, acts[0].outcome.status], [1, 'refused', 'too_much']);
  });
});

// Last, because it spoils the books.
describe('the verdict on the books', () => {
  before(() => database.sql`delete from card_orders`);

  test('is proved on demand, one proof at a time, and kept for whoever asks', async () => {
    assert.equal((await ask('books')).body.verdict, null);
    const { body, status } = await ask('books', {});
    assert.deepEqual([status, body.verdict.balanced, body.provingSince], [200, true, null]);
    assert.equal(body.verdict.endedAt, at(0));
    const { body: overview } = await ask('overview');
    assert.deepEqual(overview.books.verdict, body.verdict);
    const grants = body.verdict.house.find(
      ({ account }: { account: string }) => account === 'operator_grants',
    );
    const [sum] = await database.sql<{ sum: bigint }[]>`
      select sum(amount_micros)::bigint as sum from ledger_transfers where debit_account = 4`;
    assert.equal(grants.netUsd, microsToUsd(-(sum?.sum ?? 0n)));

    await database.sql`
      update books_proof set leased_until = clock_timestamp() + interval '1 hour', started_at = ${at(0)}`;
    const busy = await ask('books', {});
    assert.deepEqual([busy.status, busy.body.code, busy.body.since], [409, 'BOOKS_BEING_PROVEN', at(0)]);
    assert.equal((await ask('books')).body.provingSince, at(0));
    await database.sql`update books_proof set leased_until = clock_timestamp()`;
    assert.equal(
      (await ask('books', {})).status,
      200,
      'a proof that was cut off does not stop the next for ever',
    );

    const job = server.app.jobs.find(({ name }) => name === 'prove-books');
    const verdicts = async () =>
      Number((await database.sql`select count(*) as count from books_verdicts`)[0]?.count);
    const before = await verdicts();
    await job?.run();
    assert.equal(await verdicts(), before, 'it was proved a moment ago');
    nowMs += 15 * 60_000;
    await job?.run();
    assert.equal(await verdicts(), before + 1);
  });

  test('names a transfer that no act explains', async () => {
    const { account } = await customer('1');
    await server.app.ledger.transfer({
      id: randomUUID(),
      accountId: BigInt(account),
      phase: 'posted',
      side: 'credit',
      house: 'revenue_credits',
      amountMicros: 1n,
      code: 'operator_refund',
    });
    const { body } = await ask('books', {});
    assert.equal(body.verdict.balanced, false);
    const broken = body.verdict.checks.filter(({ ok }: { ok: boolean }) => !ok);
    assert.equal(broken.length, 1);
    assert.match(broken[0].name, /every act of an operator/);
  });
});
