/**
 * Real processes, ended in the middle of their work.
 *
 * What `kill -9` may cost is stated exactly: a call with an Idempotency-Key is never lost, it is either free or its
 * answer can be asked for. A call without one is charged without an answer only if the price had been taken, in one
 * commit, and the process died before the bytes of the answer had left it; nobody can tell from the books whether they
 * had.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf, openCalls, refundsOf } from './money.fixture.ts';
import { sendAsToolCall } from './over-mcp.fixture.ts';
import { startWire } from './proxy.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const CALLS = 200;
const KEYS = 8;
const GRANT = usdToMicros('20');
/** The services that are bought, in turn; the slow one waits for a model. */
const BOUGHT = [
  { path: 'ping', micros: usdToMicros('0.25'), body: { message: 'π' } },
  { path: 'first-call', micros: usdToMicros('0.05'), body: {} },
  { path: 'ai-inference', micros: usdToMicros('0.05'), body: { prompt: 'Say something.' } },
  { path: 'first-call', micros: usdToMicros('0.05'), body: { agentId: 'a' } },
] as const;

let database: TestDatabase;
/** A language model that answers when the test lets it. */
let model: Server;
let modelUrl: string;
let asked: ServerResponse[] = [];
let held = false;
let completions = 0;

function complete(response: ServerResponse): void {
  completions += 1;
  response.setHeader('content-type', 'application/json');
  response.end(
    JSON.stringify({
      model: 'slow',
      choices: [{ message: { content: `Answer ${completions}.` }, finish_reason: 'stop' }],
    }),
  );
}

before(async () => {
  database = await openTestDatabase();
  model = createServer((request, response) => {
    request.resume();
    if (held) asked.push(response);
    else setTimeout(() => complete(response), randomInt(5, 120));
  });
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve));
  const address = model.address();
  assert(address !== null && typeof address === 'object');
  modelUrl = `http://127.0.0.1:${address.port}/v1`;
});
after(async () => {
  model.closeAllConnections();
  model.close();
  await database.close();
});

const start = (environment: Record<string, string> = {}) =>
  startServerProcess({
    DATABASE_URL: database.url,
    AI_BASE_URL: modelUrl,
    AI_MODEL: 'slow',
    AI_REQUESTS_PER_MINUTE: '100000',
    RECONCILE_INTERVAL_MS: '100',
    ...environment,
  });

async function newKey(): Promise<string> {
  const nowMs = Date.now;
  const parts = {
    sql: database.sql,
    keys: createKeys(database.sql, nowMs),
    ledger: createLedger(database, nowMs),
    nowMs,
  };
  return (await grantKey(parts, { amountMicros: GRANT, label: 'test', note: 'test' })).apiKey;
}

interface Told {
  status: number;
  body: string;
  callId: string | null;
  replayed: boolean;
}

/** A paid call; null when no whole answer came. */
async function buy(
  url: string,
  key: string,
  { path, body }: { path: string; body: object },
  order: string | null,
  send: typeof fetch = fetch,
): Promise<Told | null> {
  try {
    const response = await send(`${url}/x402/${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': key,
        ...(order === null ? {} : { 'idempotency-key': order }),
      },
      body: JSON.stringify(body),
    });
    return {
      status: response.status,
      body: await response.text(),
      callId: response.headers.get('x-call-id'),
      replayed: response.headers.get('idempotent-replayed') === 'true',
    };
  } catch {
    return null;
  }
}

/** All at once; and in a steady flow, in which reserving, running and taking go on side by side; as tool calls too. */
for (const { atOnce, over, send } of [
  { atOnce: CALLS, over: 'HTTP', send: fetch },
  { atOnce: 40, over: 'HTTP', send: fetch },
  { atOnce: 40, over: 'MCP', send: sendAsToolCall },
]) {
  test(`kill -9 under ${CALLS} calls, ${atOnce} at once, over ${over}`, async (t) => {
    let server: ServerProcess = await start();
    const keys = await Promise.all(Array.from({ length: KEYS }, newKey));
    const account = new Map(
      await Promise.all(keys.map(async (key) => [key, await accountOf(database.sql, key)] as const)),
    );
    // At a random moment, measured in work done.
    const killAfter = randomInt(5, CALLS - 40);
    t.diagnostic(`killed after ${killAfter} of ${CALLS} answers`);
    let ended = 0;
    let killed: Promise<unknown> | undefined;
    const lanes: Promise<void>[] = Array.from({ length: atOnce }, () => Promise.resolve());
    const calls = await Promise.all(
      Array.from({ length: CALLS }, async (_, i) => {
        const turn = Promise.withResolvers<void>();
        const before = lanes[i % atOnce];
        lanes[i % atOnce] = turn.promise;
        await before;
        const key = keys[i % KEYS] ?? '';
        const what = BOUGHT[(i >> 3) % BOUGHT.length] ?? BOUGHT[0];
        const order = i % 2 === 0 ? `order-${i}` : null;
        const told = await buy(server.url, key, what, order, send);
        ended += 1;
        if (ended === killAfter) killed = server.end('SIGKILL');
        turn.resolve();
        return { key, what, order, told };
      }),
    );
    await killed;
    const cut = calls.filter(({ told }) => told === null);
    assert(cut.length > 0, 'nothing was running when it was killed');

    // What it left open has its time; the next process gives it back.
    const [{ open = 0 } = {}] = await database.sql<{ open: number }[]>`
      with late as (update calls set expires_at = now() - interval '1 second' where state = 0 returning 1)
      select count(*)::integer as open from late`;
    server = await start();
    try {
      await until('open calls to be released', async () => (await openCalls(database.sql)) === 0);

      // With an Idempotency-Key every call comes to its answer, and each to one only.
      for (const call of calls) {
        if (call.order === null) continue;
        const again = await buy(server.url, call.key, call.what, call.order, send);
        assert.equal(again?.status, 200, again?.body);
        if (call.told?.status === 200) {
          assert.deepEqual(
            [again.body, again.callId, again.replayed],
            [call.told.body, call.told.callId, true],
          );
        }
        call.told = again;
      }

      const delivered = new Map<string, (typeof calls)[number]>();
      for (const call of calls) {
        if (call.told?.status !== 200) continue;
        assert(call.told.callId !== null && !delivered.has(call.told.callId));
        delivered.set(call.told.callId, call);
      }
      let blind = 0;
      for (const key of keys) {
        const id = account.get(key) ?? 0n;
        const captured = (await callsOf(database.sql, id)).filter(({ state }) => state === 1);
        const unheard = captured.filter((row) => !delivered.has(row.id));
        for (const row of unheard) {
          assert.equal(row.identity, null, 'a call that can be asked for was charged and not delivered');
        }
        const cutBlind = calls.filter(
          (call) => call.key === key && call.order === null && call.told === null,
        );
        for (const { path } of BOUGHT) {
          const paid = unheard.filter(({ service }) => service === path).length;
          assert(
            paid <= cutBlind.filter(({ what }) => what.path === path).length,
            `${path} was charged for nothing`,
          );
        }
        blind += unheard.length;
        const own = [...delivered.values()].filter((call) => call.key === key);
        const spent =
          own.reduce((sum, { what }) => sum + what.micros, 0n) +
          unheard.reduce((sum, row) => sum + row.price_micros, 0n);
        assert.equal(captured.length, own.length + unheard.length, 'an answer was not charged');
        assert.equal(await balanceOf(database.sql, id), GRANT - spent);
        assert.deepEqual(await refundsOf(database.sql, id), []);
      }
      t.diagnostic(
        `${cut.length} connections cut, ${open} calls open at the kill; ${blind} calls without an Idempotency-Key were ` +
          'charged and their answer died with the process',
      );
      await assertBooksClosed(database.patient);
    } finally {
      await server.end('SIGKILL');
    }
  });
}

test('SIGTERM: running calls end with 200, new ones are turned away, and the exit is clean', async () => {
  const server = await start();
  try {
    const key = await newKey();
    held = true;
    const [, , slow] = BOUGHT;
    const early: (Told | null)[] = [];
    const running = Array.from({ length: 6 }, async (_, i) => {
      const told = await buy(server.url, key, slow, i % 2 === 0 ? `term-${i}` : null);
      early.push(told);
      return told;
    });
    await until('the model to be asked', () => {
      assert.deepEqual(early, [], 'answered before the model was asked');
      return asked.length === running.length;
    });
    let exitCode: number | null | undefined;
    void server.end('SIGTERM').then((code) => {
      exitCode = code;
    });
    await until('new calls to be turned away', async () => {
      const refused = await buy(server.url, key, BOUGHT[0], null);
      if (refused?.status === 200) return false;
      assert(refused === null || refused.status === 503, `a new call was told ${refused?.status}`);
      return true;
    });
    assert.equal(server.process.exitCode, null, 'it did not wait for the running calls');
    for (const response of asked) complete(response);
    for (const told of await Promise.all(running)) assert.equal(told?.status, 200);
    // The last answer ends it, and not the patience of clients who keep their connections for later.
    await until('the process to end', () => exitCode !== undefined);
    assert.equal(exitCode, 0);
    const captured = await callsOf(database.sql, await accountOf(database.sql, key));
    assert.equal(
      captured.filter(({ service, state }) => service === slow.path && state === 1).length,
      running.length,
    );
    await assertBooksClosed(database.patient);
  } finally {
    held = false;
    asked = [];
    await server.end('SIGKILL');
  }
});

test('SIGTERM: a refund that is owed is paid before the process ends', async () => {
  const wire = await startWire(database.url);
  const server = await start({ DATABASE_URL: wire.url, RECONCILE_INTERVAL_MS: '600000' });
  try {
    const key = await newKey();
    wire.cutNext(
      (sent) => sent.includes('{"answered"'),
      ['reply lost', 'statement lost', 'statement lost', 'statement lost', 'statement lost'],
    );
    const told = await buy(server.url, key, BOUGHT[0], null);
    assert.match(told?.body ?? '', /OUTCOME_UNKNOWN/);
    wire.mend();
    const account = await accountOf(database.sql, key);
    assert.equal(await balanceOf(database.sql, account), GRANT - BOUGHT[0].micros, 'the price was taken');
    assert.equal(await server.end('SIGTERM'), 0);
    assert.equal(await balanceOf(database.sql, account), GRANT, 'only the process knew of the refund');
  } finally {
    await server.end('SIGKILL');
    await wire.close();
  }
});
