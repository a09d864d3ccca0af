/**
 * An answer in pieces: on a chain it is paid before the first of them, with a key before the last one leaves. Broken by
 * us it costs nothing and runs again; broken by its reader it is charged, and what was sent is kept.
 */
import assert from 'node:assert/strict';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { z } from 'zod';
import { defineService, type Piece } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { sourceUnavailable } from '../../../../packages/core/src/words/failure.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf } from '../fire/money.fixture.ts';
import { startMortalReplica } from '../fire/mortal-replica.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { METHODS, type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { openStorefront, type Storefront } from '../storefront.fixture.ts';

const GRANTED = 1_000_000n;
const PRICE = 40_000n;

/** A tale that is told as the test goes on. */
class Tale {
  readonly #words: (string | Error | null)[] = [];
  #wake = () => {};
  /** How often it was begun. */
  told = 0;
  /** Whether nobody wants to hear it any more. */
  stopped = false;

  /** The next word; an error breaks the tale, null ends it. */
  say(...words: (string | Error | null)[]): void {
    this.#words.push(...words);
    this.#wake();
  }

  async *pieces(signal: AbortSignal): AsyncGenerator<Piece, string> {
    this.told += 1;
    signal.addEventListener('abort', () => {
      this.stopped = true;
      this.#wake();
    });
    const heard: string[] = [];
    for (;;) {
      const word = this.#words.shift();
      if (word === null) return heard.join(' ');
      if (word instanceof Error) throw word;
      if (word !== undefined) {
        heard.push(word);
        yield { event: 'word', data: { word } };
      } else if (signal.aborted) return '';
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
const tales = new Map<string, Tale>();
let count = 0;
function newTale(): { name: string; tale: Tale } {
  count += 1;
  const name = `tale ${count}`;
  const tale = new Tale();
  tales.set(name, tale);
  return { name, tale };
}

const teller = defineService({
  path: 'tale',
  name: 'Tale',
  tag: 'AI Services',
  priceUsd: '0.04',
  mpp: true,
  summary: 'A tale, word by word.',
  input: z.object({ name: z.string(), stream: z.boolean().default(false) }),
  output: z.object({ text: z.string() }),
  example: { name: 'tale' },
  run: async ({ name }) => answer({ text: `All of ${name}.` }, { method: 'At once.' }),
  stream: {
    field: 'stream',
    async *run({ name }, { signal }) {
      const text = yield* (tales.get(name) ?? assert.fail(name)).pieces(signal);
      return answer({ text }, { method: 'Word by word.' });
    },
  },
});
const services = [teller];

let world: MppWorld;
let database: TestDatabase;
let shop: Storefront;
let here: TestServer;
let there: TestServer;

before(async () => {
  [world, database] = await Promise.all([startMppWorld(), openTestDatabase()]);
  const options = { pools: database, services };
  const environment = { ...world.environment, MAX_ANSWER_BYTES: '10000' };
  shop = await openStorefront({ ...options, environment });
  [here, there] = (await Promise.all(
    [1, 2].map(() => startTestServer({ ...options, environment: { ...environment, PUBLIC_URL: shop.url } })),
  )) as [TestServer, TestServer];
});
after(async () => {
  await Promise.all([shop?.stop(), here?.close(), there?.close()]);
  await Promise.all([world?.stop(), database?.close()]);
});

const asking = (name: string, headers: Record<string, string> = {}, signal?: AbortSignal) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ name, stream: true }),
  ...(signal === undefined ? {} : { signal }),
});

/** Reads a stream's events one by one, as a client does. */
function readerOf(response: Response) {
  const bytes = response.body?.getReader() ?? assert.fail('there is no stream');
  const decoder = new TextDecoder();
  let text = '';
  return {
    /** All that came so far. */
    get text() {
      return text;
    },
    /** The next event; null at the end. */
    async next(): Promise<{ event: string; data: Record<string, unknown> } | null> {
      const from = text.length - this.rest.length;
      while (!text.slice(from).includes('\n\n')) {
        const { value, done } = await bytes.read();
        if (done) return null;
        text += decoder.decode(value, { stream: true });
        this.rest = text.slice(from);
      }
      const whole = text.slice(from, text.indexOf('\n\n', from));
      this.rest = text.slice(from + whole.length + 2);
      const [, event = '', data = '{}'] = /^event: (.*)\ndata: (.*)$/s.exec(whole) ?? [];
      return event === '' ? this.next() : { event, data: JSON.parse(data) };
    },
    rest: '',
    async all(): Promise<string> {
      while ((await this.next()) !== null);
      return text;
    },
  };
}

const connectedTo = (server: TestServer) =>
  new Promise<number>((resolve) => server.app.http.server.getConnections((_, open) => resolve(open)));

async function customer() {
  const key = await here.key('1');
  const account = await accountOf(database.sql, key);
  return {
    account,
    headers: { 'x-api-key': key, 'idempotency-key': 'one' },
    keyless: { 'x-api-key': key },
    charged: async () => GRANTED - (await balanceOf(database.sql, account)),
    states: async () => (await callsOf(database.sql, account)).map(({ state }) => state),
  };
}

test('with a key, pieces leave as they come, and the last one after the commit that takes the price', async () => {
  const { name, tale } = newTale();
  const { headers, account, charged, states } = await customer();
  tale.say('once');
  const response = await fetch(`${here.url}/x402/tale`, asking(name, headers));
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  assert.equal(response.headers.get('x-accel-buffering'), 'no');
  assert.equal(response.headers.get('x-credits-reserved'), '0.0400');
  assert.equal(response.headers.get('x-credits-used'), null);
  assert.equal(response.headers.get('x-credits-remaining'), '0.9600');
  const reader = readerOf(response);
  assert.deepEqual(await reader.next(), { event: 'word', data: { word: 'once' } });
  assert.deepEqual([await charged(), await states()], [0n, [0]], 'reserved, and not taken');
  // While somebody else holds the account the price cannot be taken.
  const free = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const holder = database.patient.begin(async (sql) => {
    await sql`select 1 from ledger_accounts where id = ${String(account)} for no key update`;
    held.resolve();
    await free.promise;
  });
  await held.promise;
  tale.say('upon', null);
  assert.deepEqual(await reader.next(), { event: 'word', data: { word: 'upon' } });
  let isWhole = false;
  const last = reader.next().then((event) => {
    isWhole = true;
    return event;
  });
  await until('its price waits to be taken', () => here.app.calls.depth > 0);
  assert.equal(isWhole, false);
  free.resolve();
  await holder;
  const whole = await last;
  assert.deepEqual([await charged(), await states()], [PRICE, [1]]);
  assert.equal(whole?.event, 'result');
  assert.equal(whole?.data.text, 'once upon');
  assert.equal(whole?.data.success, true);
  assert.match(JSON.stringify(whole?.data.provenance), /"method":"Word by word."/);
  assert.equal(await reader.next(), null);

  const again = await fetch(`${there.url}/x402/tale`, asking(name, headers));
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(again.headers.get('content-type'), 'text/event-stream');
  assert.equal(await again.text(), reader.text);
  assert.equal(tale.told, 1);
  assert.equal(await charged(), PRICE);
});

test('who asks for no stream gets the answer whole, and terms tell of streams before payment', async () => {
  const { headers } = await customer();
  const whole = await fetch(`${here.url}/x402/tale`, {
    ...asking('x', headers),
    body: JSON.stringify({ name: 'x' }),
  });
  assert.equal((await jsonOf(whole)).text, 'All of x.');
  for (const door of ['x402', 'mpp']) {
    const { streaming } = await jsonOf(fetch(`${here.url}/${door}/tale`));
    assert.deepEqual(streaming.ask, { stream: true });
    assert.deepEqual([streaming.keptUpToBytes, streaming.beyond], [10_000, 'ANSWER_NOT_KEPT']);
  }
});

test('broken by us before its first piece it is a failure like any other; after it, an event that tells it', async () => {
  const { name, tale } = newTale();
  const { headers, charged, states } = await customer();
  tale.say(sourceUnavailable('library', 'upstream_down', 'It is closed.'));
  const refused = await fetch(`${here.url}/x402/tale`, asking(name, headers));
  assert.deepEqual([refused.status, (await jsonOf(refused)).charged], [503, false]);
  tale.say('once', sourceUnavailable('library', 'upstream_down', 'It is closed.'));
  const response = await fetch(`${here.url}/x402/tale`, asking(name, headers));
  const reader = readerOf(response);
  await reader.next();
  const broken = await reader.next();
  assert.equal(broken?.event, 'error');
  assert.deepEqual([broken?.data.code, broken?.data.charged], ['UPSTREAM_UNAVAILABLE', false]);
  assert.equal(await reader.next(), null);
  assert.deepEqual([await charged(), await states()], [0n, [2, 2]]);
  tale.say('again', null);
  const run = readerOf(await fetch(`${here.url}/x402/tale`, asking(name, headers)));
  assert.match(await run.all(), /event: result\ndata: .*"text":"again"/);
  assert.deepEqual([await charged(), tale.told], [PRICE, 3]);
});

test('a stream whose reader is lost goes on to its end, and the repeat brings all of it', async () => {
  const deserted = await startTestServer({ pools: database, services });
  const { name, tale } = newTale();
  const { headers, charged, states } = await customer();
  const leaving = new AbortController();
  tale.say('once', 'upon');
  const reader = readerOf(await fetch(`${deserted.url}/x402/tale`, asking(name, headers, leaving.signal)));
  await reader.next();
  await reader.next();
  leaving.abort();
  await until('nobody reads it', async () => (await connectedTo(deserted)) === 0);
  tale.say('a time', null);
  await until('it is charged', async () => (await states())[0] === 1);
  assert.equal(await charged(), PRICE);
  const again = await fetch(`${there.url}/x402/tale`, asking(name, headers));
  const text = await again.text();
  assert.ok(text.startsWith(reader.text));
  assert.match(text, /event: result\n.*"text":"once upon a time"/);
  assert.deepEqual([await charged(), tale.told], [PRICE, 1]);
  await deserted.close();
});

test('without a key to ask again with, it is broken off and charged', async () => {
  const { name, tale } = newTale();
  const { keyless, charged, states } = await customer();
  const leaving = new AbortController();
  tale.say('once', 'upon');
  const reader = readerOf(await fetch(`${here.url}/x402/tale`, asking(name, keyless, leaving.signal)));
  await reader.next();
  await reader.next();
  leaving.abort();
  await until('it is charged', async () => (await states())[0] === 1);
  assert.equal(await charged(), PRICE);
  await until('the service has stopped', () => tale.stopped);
});

test('broken by us after its reader was lost it costs nothing, and the same key runs it again', async () => {
  const deserted = await startTestServer({ pools: database, services });
  const { name, tale } = newTale();
  const { headers, charged, states } = await customer();
  const leaving = new AbortController();
  tale.say('once');
  const reader = readerOf(await fetch(`${deserted.url}/x402/tale`, asking(name, headers, leaving.signal)));
  await reader.next();
  leaving.abort();
  await until('nobody reads it', async () => (await connectedTo(deserted)) === 0);
  tale.say(sourceUnavailable('library', 'upstream_down', 'It is closed.'));
  await until('the price is given back', async () => (await states())[0] === 2);
  tale.say('again', null);
  const text = await (await fetch(`${there.url}/x402/tale`, asking(name, headers))).text();
  assert.match(text, /event: result\n.*"text":"again"/);
  assert.deepEqual([await charged(), tale.told], [PRICE, 2]);
  await deserted.close();
});

for (const size of ['kept', 'beyond what is kept']) {
  test(`readers of one key that read nothing: what is told is ${size}, and each is charged once`, async () => {
    const SLOW = Number(GRANTED / PRICE);
    const deserted = await startTestServer({
      pools: database,
      services,
      environment: { MAX_ANSWER_BYTES: '10000' },
    });
    const { headers, charged } = await customer();
    const told = Array.from({ length: SLOW }, () => newTale());
    const pieces = size === 'kept' ? 2 : 20;
    const buy = (n: number, signal?: AbortSignal) =>
      fetch(
        `${deserted.url}/x402/tale`,
        asking(told[n]?.name ?? '', { ...headers, 'idempotency-key': `slow-${n}` }, signal),
      );
    const leaving = new AbortController();
    for (const { tale } of told) tale.say('x'.repeat(1_000));
    const answers = await Promise.all(Array.from({ length: SLOW }, (_, n) => buy(n, leaving.signal)));
    assert.ok(answers.every(({ status }) => status === 200));
    leaving.abort();
    await until('nobody reads them', async () => (await connectedTo(deserted)) === 0);
    for (const { tale } of told) tale.say(...Array.from({ length: pieces }, () => 'x'.repeat(1_000)), null);
    await until('all are charged', async () => (await charged()) === GRANTED);
    await until('none runs', () => deserted.app.paidCall.running === 0);
    for (const n of answers.keys()) {
      const again = await buy(n);
      if (size === 'kept') assert.match(await again.text(), /event: result\n/);
      else assert.deepEqual([again.status, (await jsonOf(again)).code], [409, 'ANSWER_NOT_KEPT']);
    }
    assert.equal(await charged(), GRANTED);
    await deserted.close();
  });
}

for (const withKey of [true, false]) {
  test(`a reader that left before the first piece is ${withKey ? 'charged at the end' : 'not charged'}`, async () => {
    const deserted = await startTestServer({ pools: database, services });
    const { name, tale } = newTale();
    const { headers, keyless, charged, states } = await customer();
    const leaving = new AbortController();
    const sent = asking(name, withKey ? headers : keyless, leaving.signal);
    const asked = fetch(`${deserted.url}/x402/tale`, sent).catch(() => null);
    await until('it is being told', () => tale.told === 1);
    leaving.abort();
    await asked;
    await until('nobody is connected', async () => (await connectedTo(deserted)) === 0);
    tale.say('once', null);
    await until('it has ended', async () => (await states())[0] === (withKey ? 1 : 2));
    assert.equal(await charged(), withKey ? PRICE : 0n);
    if (withKey) {
      const text = await (await fetch(`${there.url}/x402/tale`, asking(name, headers))).text();
      assert.match(text, /event: word\n.*event: result\n.*"text":"once"/s);
    }
    assert.deepEqual([await charged(), tale.told], [withKey ? PRICE : 0n, 1]);
    await deserted.close();
  });
}

test('more than is kept is sent all the same, and a repeat is told so', async () => {
  const { name, tale } = newTale();
  const { headers, charged } = await customer();
  tale.say(...Array.from({ length: 20 }, () => 'x'.repeat(1_000)), null);
  const text = await (await fetch(`${here.url}/x402/tale`, asking(name, headers))).text();
  assert.equal(text.match(/event: word/g)?.length, 20);
  assert.match(text, /event: result/);
  const again = await fetch(`${there.url}/x402/tale`, asking(name, headers));
  const told = await jsonOf(again);
  assert.deepEqual([again.status, told.code, told.charged], [409, 'ANSWER_NOT_KEPT', true]);
  assert.deepEqual([await charged(), tale.told], [PRICE, 1]);
});

test('a proxy that keeps all of it until the end passes on all of it', async () => {
  const proxy = createServer((incoming, outgoing) => {
    const { hostname, port } = new URL(here.url);
    const on = {
      hostname,
      port,
      path: incoming.url,
      method: 'POST',
      headers: incoming.headers,
      agent: false,
    };
    incoming.pipe(
      httpRequest(on, async (from) => {
        const chunks = [];
        for await (const chunk of from) chunks.push(chunk);
        outgoing
          .writeHead(from.statusCode ?? 0, { 'content-type': from.headers['content-type'] })
          .end(Buffer.concat(chunks));
      }),
    );
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  try {
    const { name, tale } = newTale();
    const { headers, charged } = await customer();
    tale.say('once', null);
    const { port } = proxy.address() as AddressInfo;
    const text = await (await fetch(`http://127.0.0.1:${port}/x402/tale`, asking(name, headers))).text();
    assert.match(text, /^event: word\n(.*\n)*event: result\n/);
    assert.equal(await charged(), PRICE);
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});

test('a server that is told to stop ends its streams first', async () => {
  const leaving = await startTestServer({ pools: database, services });
  const { name, tale } = newTale();
  const { headers } = await customer();
  tale.say('once');
  const reader = readerOf(await fetch(`${leaving.url}/x402/tale`, asking(name, headers)));
  await reader.next();
  leaving.app.drain();
  const closed = leaving.close();
  tale.say('more', null);
  assert.match(await reader.all(), /event: result/);
  await closed;
});

test('a process that dies in mid-stream costs nothing, and the same key runs it again', async () => {
  let laterMs = 0;
  const replica = await startMortalReplica({
    databaseUrl: database.url,
    services,
    environment: world.environment,
    nowMs: () => Date.now() + laterMs,
  });
  try {
    const { name, tale } = newTale();
    const { headers, charged, states } = await customer();
    tale.say('once');
    const { url } = await replica.server();
    await readerOf(await fetch(`${url}/x402/tale`, asking(name, headers))).next();
    replica.die();
    await replica.server();
    laterMs = 300_000;
    await replica.reconcile();
    assert.deepEqual([await charged(), await states()], [0n, [2]]);
    const retold = new Tale();
    tales.set(name, retold);
    retold.say('again', null);
    const text = await (await fetch(`${there.url}/x402/tale`, asking(name, headers))).text();
    assert.match(text, /"text":"again"/);
    assert.deepEqual([await charged(), retold.told], [PRICE, 1]);
    // Lets the dead process's teller go, of which nobody hears.
    tale.say(null);
  } finally {
    await replica.close();
  }
});

test('by x402 it has settled before the first piece; broken by us, the same payment runs again and is paid once', async () => {
  const account = await world.base.wallet();
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account));
  const pay = wrapFetchWithPayment(fetch, client);
  const { name, tale } = newTale();
  const received = await world.received('evm');
  tale.say('once', sourceUnavailable('library', 'upstream_down', 'It is closed.'));
  const response = await pay(`${shop.url}/x402/tale`, asking(name));
  assert.notEqual(response.headers.get('payment-response'), null);
  const reader = readerOf(response);
  assert.equal((await reader.next())?.event, 'word');
  assert.equal((await world.received('evm')) - received, PRICE);
  const broken = await reader.next();
  assert.deepEqual([broken?.event, broken?.data.charged], ['error', true]);
  assert.ok(broken?.data.refund);
  const { headers } = shop.payments.at(-1) ?? assert.fail('nothing was presented');
  const signed = { 'payment-signature': headers['payment-signature'] ?? assert.fail('nothing was signed') };
  tale.say('again', null);
  const again = await fetch(`${there.url}/x402/tale`, asking(name, signed));
  const text = await again.text();
  assert.match(text, /event: result\n.*"text":"again"/);
  assert.equal(await (await fetch(`${here.url}/x402/tale`, asking(name, signed))).text(), text);
  assert.deepEqual([(await world.received('evm')) - received, tale.told], [PRICE, 2]);
});

for (const method of METHODS) {
  test(`by MPP (${method}) it is paid before the first piece, and the same credential repeats it`, async () => {
    const account = await world.wallet();
    const { name, tale } = newTale();
    const received = await world.received(method);
    const unpaid = await fetch(`${shop.url}/mpp/tale`, asking(name));
    const authorization = await world.credential(account, method, unpaid);
    tale.say('once');
    const response = await fetch(`${shop.url}/mpp/tale`, asking(name, { authorization }));
    assert.notEqual(response.headers.get('payment-receipt'), null);
    const reader = readerOf(response);
    assert.equal((await reader.next())?.event, 'word');
    assert.equal((await world.received(method)) - received, PRICE);
    tale.say(null);
    const text = await reader.all();
    assert.match(text, /event: result\n/);
    const again = await fetch(`${there.url}/mpp/tale`, asking(name, { authorization }));
    assert.equal(await again.text(), text);
    assert.deepEqual([(await world.received(method)) - received, tale.told], [PRICE, 1]);
  });
}

test('the books balance', () => assertBooksClosed(database.patient));
