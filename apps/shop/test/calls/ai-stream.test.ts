/**
 * ai-inference in pieces, against a model's server that really streams and really breaks: whole or broken, with a key, by
 * x402 and by MPP, each with the client that the field uses.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from '../fire/money.fixture.ts';
import { METHODS, type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startUpstreams } from '../server.fixture.ts';
import { openStorefront, type Storefront } from '../storefront.fixture.ts';

const GRANTED = 1_000_000n;
const PRICE = 50_000n;
const SAID = 'One piece after the other makes the whole of it.';

let world: MppWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let shop: Storefront;

before(async () => {
  [world, database, upstreams] = await Promise.all([startMppWorld(), openTestDatabase(), startUpstreams()]);
  const environment = { ...world.environment, AI_SILENCE_SECONDS: '1' };
  shop = await openStorefront({ pools: database, environment, upstreamsUrl: upstreams.url });
});
after(async () => {
  await shop?.stop();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
});

const asking = (headers: Record<string, string> = {}, more: object = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ prompt: `Repeat: ${SAID}`, stream: true, ...more }),
});

/** Breaks the next stream of the model's server after so many events, of which the first has no text. */
async function breakNext(fault: string, afterEvents: number): Promise<void> {
  const set = await fetch(`${upstreams.url}/__control/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ upstream: 'ai', pathIncludes: 'completions', fault, afterEvents, remaining: 1 }),
  });
  assert.equal(set.status, 201);
}

/** The text by the way of who reads streams of chat completions and knows nothing of ours, and the last event. */
function heard(stream: string) {
  const lines = stream.split('\n').filter((line) => line.startsWith('data: '));
  const events = lines.map((line) => JSON.parse(line.slice(6)));
  const text = events.map((event) => event.choices?.[0]?.delta?.content ?? '').join('');
  const name = /event: (\w+)\ndata: [^\n]*\n\n$/.exec(stream)?.[1];
  return { text, pieces: events.length - 1, name, last: events.at(-1) };
}

test('with a key the pieces make up the answer, which is charged once and repeated', async () => {
  const key = await shop.key('1');
  const account = await accountOf(database.sql, key);
  const headers = { 'x-api-key': key, 'idempotency-key': 'one' };
  const first = await (await fetch(`${shop.url}/x402/ai-inference`, asking(headers))).text();
  const { text, pieces, name, last } = heard(first);
  assert.equal(name, 'result');
  assert.deepEqual([text, last.content, last.simulated], [SAID, SAID, true]);
  assert.ok(pieces > 5);
  assert.ok(last.usage.completion_tokens > 5);
  assert.deepEqual([last.finishReason, last.success, last.service], ['stop', true, 'ai-inference']);
  const again = await fetch(`${shop.url}/x402/ai-inference`, asking(headers));
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(await again.text(), first);
  const whole = await jsonOf(
    fetch(`${shop.url}/x402/ai-inference`, asking({ 'x-api-key': key }, { stream: false })),
  );
  assert.deepEqual([whole.content, whole.usage], [last.content, last.usage]);
  assert.equal(await balanceOf(database.sql, account), GRANTED - 2n * PRICE);
});

for (const fault of ['reset', 'hang', 'malformed', 'error', 'unfinished'].map((kind) => `stream-${kind}`)) {
  test(`${fault} of the model's server costs nothing, before the first piece and after it`, async () => {
    const key = await shop.key('1');
    const account = await accountOf(database.sql, key);
    const buy = () =>
      fetch(`${shop.url}/x402/ai-inference`, asking({ 'x-api-key': key, 'idempotency-key': 'one' }));
    await breakNext(fault, 1);
    const early = await buy();
    const refused = await jsonOf(early);
    assert.deepEqual([early.status, refused.code, refused.charged], [503, 'UPSTREAM_UNAVAILABLE', false]);
    await breakNext(fault, 4);
    const late = await buy();
    assert.equal(late.status, 200);
    const { text, name, last } = heard(await late.text());
    assert.ok(text.length > 0 && SAID.startsWith(text), text);
    assert.deepEqual([name, last.code, last.charged], ['error', 'UPSTREAM_UNAVAILABLE', false]);
    assert.equal(await balanceOf(database.sql, account), GRANTED);
    assert.equal(heard(await (await buy()).text()).last.content, SAID);
    assert.equal(await balanceOf(database.sql, account), GRANTED - PRICE);
  });
}

test('what the model may not or cannot say is refused before it is charged', async () => {
  const key = await shop.key('1');
  const strict = { model: 'another', strictModel: true };
  const refused = await fetch(`${shop.url}/x402/ai-inference`, asking({ 'x-api-key': key }, strict));
  assert.deepEqual([refused.status, (await jsonOf(refused)).code], [400, 'UNSUPPORTED_MODEL']);
  const cut = await fetch(`${shop.url}/x402/ai-inference`, asking({ 'x-api-key': key }, { maxTokens: 2 }));
  const { text, last } = heard(await cut.text());
  assert.deepEqual([text, last.finishReason], [last.content, 'length']);
});

test('by x402 it has settled before the first piece, and a broken one runs again for the same payment', async () => {
  const account = await world.base.wallet();
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account));
  const pay = wrapFetchWithPayment(fetch, client);
  const received = await world.received('evm');
  await breakNext('stream-reset', 4);
  const response = await pay(`${shop.url}/x402/ai-inference`, asking());
  assert.notEqual(response.headers.get('payment-response'), null);
  const broken = heard(await response.text());
  assert.deepEqual([broken.name, broken.last.charged], ['error', true]);
  assert.ok(broken.last.refund);
  const payment = shop.payments.at(-1) ?? assert.fail('nothing was presented');
  const text = await (await shop.present(payment)).text();
  assert.equal(heard(text).last.content, SAID);
  assert.equal(await (await shop.present(payment)).text(), text);
  assert.equal((await world.received('evm')) - received, PRICE);
});

for (const method of METHODS) {
  test(`by MPP (${method}) it is told to its end, and repeated for the same credential`, async () => {
    const account = await world.wallet();
    const received = await world.received(method);
    const unpaid = await fetch(`${shop.url}/mpp/ai-inference`, asking());
    const { streaming } = await jsonOf(unpaid.clone());
    assert.deepEqual(
      [streaming.ask, streaming.keptUpToBytes, streaming.beyond],
      [{ stream: true }, 1_000_000, 'ANSWER_NOT_KEPT'],
    );
    const authorization = await world.credential(account, method, unpaid);
    const response = await fetch(`${shop.url}/mpp/ai-inference`, asking({ authorization }));
    assert.notEqual(response.headers.get('payment-receipt'), null);
    const text = await response.text();
    const { last } = heard(text);
    assert.deepEqual([last.content, last.protocol, typeof last.responseTimeMs], [SAID, 'mpp', 'number']);
    const again = await fetch(`${shop.url}/mpp/ai-inference`, asking({ authorization }));
    assert.equal(await again.text(), text);
    assert.equal((await world.received(method)) - received, PRICE);
  });
}

test('who reads the documents first knows of it', async () => {
  const { paths, components } = await jsonOf(fetch(`${shop.url}/openapi.json`));
  const reference = paths['/x402/ai-inference'].post.responses[200].$ref.split('/').at(-1);
  assert.ok(components.responses[reference].content['text/event-stream']);
  const { streaming } = await jsonOf(fetch(`${shop.url}/x402/recipes/ai-inference`));
  assert.deepEqual(streaming.ask, { stream: true });
  assert.match(streaming.curl, /^curl -sSN .*"stream":true/s);
  assert.equal((await jsonOf(fetch(`${shop.url}/x402/recipes/ping`))).streaming, null);
});

test('the books balance', () => assertBooksClosed(database.patient));
