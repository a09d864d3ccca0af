/** A store that several processes share, that they die on, or that has no room, makes no call paid twice and no limit passed. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createFarebox, type FareboxOptions } from './client.ts';
import { type FakeShop, OFFER, openFakeShop } from './fake-shop.fixture.ts';
import { clock, errorOf, hurried, NOON_MS } from './hurried.fixture.ts';
import { fileStore } from './node.ts';
import { memoryStore, type Store } from './store.ts';
import { x402Wallet } from './x402.ts';

const KEY = `fbx_live_${'a'.repeat(64)}`;
const PROGRAM = join(import.meta.dirname, 'store-buyer.fixture.ts');
const NODE = [process.execPath, '--disable-warning=ExperimentalWarning', PROGRAM] as const;
const wallet = await x402Wallet({ evm: `0x${'1'.repeat(64)}` });
const folder = mkdtempSync(join(tmpdir(), 'farebox-store-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let folders = 0;
const newFolder = () => {
  const path = join(folder, String(++folders));
  mkdirSync(path);
  return path;
};

const clientOf = (shop: FakeShop, options: FareboxOptions = {}) =>
  createFarebox({
    url: 'https://farebox.example',
    fetch: shop.fetch,
    nowMs: () => clock.ms,
    ...(options.wallets === undefined ? { apiKey: KEY } : {}),
    ...options,
  });

/** A store whose texts take their time, so that what is read may be old when it is written. @param isShared with a lock of its own */
function slowStore(isShared: boolean): Store {
  const fast = memoryStore();
  const later = () => new Promise<void>((resolve) => setImmediate(resolve));
  let turn: Promise<unknown> = Promise.resolve();
  const slow: Store = {
    get: async (name) => {
      const value = await fast.get(name);
      await later();
      return value;
    },
    set: async (name, value) => {
      await later();
      await fast.set(name, value);
    },
    delete: (name) => fast.delete(name),
  };
  if (isShared)
    slow.exclusively = (work) => {
      const next = turn.then(work);
      turn = next.catch(() => undefined);
      return next;
    };
  return slow;
}

test('receipts of calls that end at once are all kept, by one client and by several', async () => {
  const files = [1, 2, 3].map(() => fileStore(join(folder, 'receipts')));
  const shared = slowStore(true);
  for (const stores of [[slowStore(false)], [shared, shared, shared], files]) {
    const shop = openFakeShop();
    // Answers come together, whatever was done before each.
    const all = Promise.withResolvers<void>();
    const fetches: typeof fetch = async (url, init) => {
      const answer = await shop.fetch(url, init);
      if (shop.sent.length === 12) all.resolve();
      await all.promise;
      return answer;
    };
    const clients = stores.map((store) => clientOf(shop, { store, fetch: fetches }));
    const calls = Array.from({ length: 12 }, (_, n) =>
      (clients[n % clients.length] ?? assert.fail()).call('ping', { message: String(n) }),
    );
    await Promise.all(calls);
    assert.equal((await clients[0]?.receipts())?.length, 12);
  }
});

test('an answer that comes again by its name is one purchase, with one receipt', async () => {
  const farebox = clientOf(openFakeShop());
  for (let n = 0; n < 3; n += 1) await farebox.call('ping', {}, { id: 'mine' });
  assert.deepEqual(
    (await farebox.receipts()).map(({ replayed }) => replayed),
    [false],
  );
});

test('a process that dies at any of its writes has its call bought once by the next', async () => {
  for (const pays of [{ apiKey: KEY }, { wallets: [wallet] }])
    for (const named of [{}, { id: 'mine' }])
      for (let lives = 0; ; lives += 1) {
        const shop = openFakeShop();
        const kept = memoryStore();
        const dies = Promise.withResolvers<'dead'>();
        let left = lives;
        // Of what comes after its death nothing is done, and nothing is heard of it.
        const mortal = <T>(work: () => T): T | Promise<never> => {
          if (left-- > 0) return work();
          dies.resolve('dead');
          return new Promise<never>(() => {});
        };
        const dying: Store = {
          get: (name) => mortal(() => kept.get(name)),
          set: (name, value) => mortal(() => kept.set(name, value)),
          delete: (name) => mortal(() => kept.delete(name)),
        };
        const first = clientOf(shop, { ...pays, store: dying });
        const end = await Promise.race([dies.promise, first.call('ping', {}, named)]);
        const next = clientOf(shop, { ...pays, store: kept });
        if (end !== 'dead') {
          assert.ok(lives > 5, `${lives} reads and writes`);
          break;
        }
        await next.call('ping', {}, named);
        assert.deepEqual([new Set(shop.sent).size, shop.sales()], [1, 1], `after ${lives}`);
        assert.equal(await next.spentToday(), 250_000n, `after ${lives}`);
      }
});

/** A process that holds the lock of a folder. */
async function startHolder(path: string) {
  const [program, ...args] = NODE;
  const child = spawn(program, [...args, 'hold', path], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

test('the lock of a process that was killed is taken at once, with what it left half written', async () => {
  const path = newFolder();
  const child = await startHolder(path);
  writeFileSync(join(path, 'farebox-book.json.1.new'), '{"half');
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
  assert.ok(existsSync(join(path, 'lock')));
  // As many as there are want to be next, and each has its turn.
  let inside = 0;
  const store = fileStore(path);
  const turns = Array.from({ length: 8 }, (_, n) =>
    store.exclusively?.(async () => {
      assert.equal(++inside, 1, 'one at a time');
      await store.set('text', String(n));
      inside -= 1;
    }),
  );
  await Promise.all(turns);
  assert.deepEqual(readdirSync(path), ['text.json']);
});

test('the lock of a process that lives is not taken, however long it was suspended', async (t) => {
  const path = newFolder();
  const child = await startHolder(path);
  t.after(() => child.kill('SIGKILL'));
  child.kill('SIGSTOP');
  const hoursAgo = Date.now() / 1_000 - 3 * 3_600;
  utimesSync(join(path, 'lock'), hoursAgo, hoursAgo);
  const before = readFileSync(join(path, 'lock'), 'utf8');
  let late = 0;
  t.mock.method(performance, 'now', () => (late += 10_000));
  const shop = openFakeShop();
  const error = await errorOf(clientOf(shop, { store: fileStore(path) }).call('ping'));
  assert.deepEqual([error.code, shop.sent.length], ['CANNOT_BUY', 0]);
  assert.match(error.message, /used by another process/);
  assert.equal(readFileSync(join(path, 'lock'), 'utf8'), before);
});

test('a lock of another machine counts for a while, and one without a holder too', async () => {
  const elsewhere = { token: 'of-another', host: 'another', pid: 1, began: '1' };
  for (const text of [JSON.stringify(elsewhere), '', '{"tok', '[]']) {
    const path = newFolder();
    writeFileSync(join(path, 'lock'), text);
    const store = fileStore(path);
    let isIn = false;
    const work = store.exclusively?.(async () => {
      isIn = true;
    });
    for (let n = 0; n < 20; n += 1) await store.get('anything');
    assert.ok(!isIn, 'it may be at work');
    utimesSync(join(path, 'lock'), 1, 1);
    await work;
    assert.deepEqual(readdirSync(path), []);
  }
});

test('a process that was thought dead does not take away the lock of who came after it', async () => {
  const path = newFolder();
  const store = fileStore(path);
  await store.exclusively?.(async () => {
    const mine = readFileSync(join(path, 'lock'), 'utf8');
    const next = JSON.stringify({ ...JSON.parse(mine), token: 'of-the-next' });
    writeFileSync(join(path, 'lock'), next);
  });
  assert.match(readFileSync(join(path, 'lock'), 'utf8'), /of-the-next/);
});

/** A shop that is asked by other processes. */
async function openShop(t: { after(run: () => void): void }) {
  const shop = openFakeShop();
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const init = {
      headers: request.headers as Record<string, string>,
      body: Buffer.concat(pieces).toString(),
    };
    const answer = await shop.fetch('', init);
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { shop, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('a disk without room lets nothing be bought, and is left as it was', {
  skip: process.platform === 'win32' && 'NOT TESTED: no limit of the size of files here',
}, async (t) => {
  for (const pad of ['x'.repeat(1_000), '']) await buyWithoutRoom(t, pad);
});

/** @param pad that makes a payment longer: with it not even the purchase can be written down, and without it not that it leaves */
async function buyWithoutRoom(t: { after(run: () => void): void }, pad: string) {
  const { shop, url } = await openShop(t);
  shop.accepts = [{ ...OFFER, extra: { ...OFFER.extra, pad } }];
  const path = newFolder();
  // No file may be larger than a kilobyte.
  const words = ['-c', 'ulimit -f 1; exec "$@"', 'bash', ...NODE, 'buy', path, url];
  const child = spawn('bash', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (bytes) => {
    out += bytes;
  });
  await once(child, 'close');
  assert.deepEqual(JSON.parse(out).slice(0, 2), ['CANNOT_BUY', pad === '' ? 'unknown' : false], out);
  assert.equal(shop.sent.length, 0);
  assert.ok(
    readdirSync(path).every((name) => name.endsWith('.json')),
    String(readdirSync(path)),
  );
  const [program, ...args] = NODE;
  const later = spawn(program, [...args, 'buy', path, url], { stdio: ['ignore', 'ignore', 'inherit'] });
  await once(later, 'close');
  assert.equal(shop.sales(), 1);
  assert.match(readFileSync(join(path, 'farebox-book.json'), 'utf8'), /"ping":"250000"}},"open":{}/);
}

test('an answer that came is given though the disk is full by then, and the same call is not paid again', async () => {
  for (const pays of [{ apiKey: KEY }, { wallets: [wallet] }]) {
    const shop = openFakeShop();
    const store = memoryStore();
    const filling: Store = {
      ...store,
      set: (name, value) => {
        if (shop.sent.length > 0) throw new Error('ENOSPC: no space left on device');
        return store.set(name, value);
      },
    };
    assert.ok(await clientOf(shop, { ...pays, store: filling }).call('ping'));
    const next = clientOf(shop, { ...pays, store });
    assert.equal(await next.spentToday(), pays.apiKey === undefined ? 250_000n : 0n, 'what was open counts');
    await next.call('ping');
    assert.deepEqual([new Set(shop.sent).size, shop.sales(), await next.spentToday()], [1, 1, 250_000n]);
  }
});

test('a clock that is put back or forth gives the day no second limit', async () => {
  const shop = openFakeShop();
  const store = memoryStore();
  const limits = { maxDayMicros: 500_000n };
  const buy = async (ms: number) => {
    clock.ms = ms;
    const { farebox } = { farebox: clientOf(shop, { store, limits }) };
    return farebox.call('ping').then(
      () => 'sold',
      (error) => error.code,
    );
  };
  const DAY_MS = 86_400_000;
  assert.deepEqual(
    [await buy(NOON_MS), await buy(NOON_MS), await buy(NOON_MS)],
    ['sold', 'sold', 'ABOVE_LIMIT'],
  );
  assert.equal(await buy(NOON_MS - DAY_MS), 'sold', 'yesterday has a limit of its own');
  assert.equal(await buy(NOON_MS), 'ABOVE_LIMIT');
  for (let n = 1; n <= 20; n += 1) await buy(NOON_MS + n * 400 * DAY_MS);
  assert.equal(await buy(NOON_MS - DAY_MS), 'sold');
  assert.equal(
    await buy(NOON_MS - DAY_MS),
    'ABOVE_LIMIT',
    'what was spent is not forgotten for a clock that was wrong',
  );
  clock.ms = NOON_MS;
});

test('an approval that fails is none, and one that never comes ends with the caller', async () => {
  const shop = openFakeShop();
  const limits = { maxCallMicros: 0n };
  for (const approve of [
    () => {
      throw new Error('no window');
    },
    () => Promise.reject(new Error('no window')),
  ]) {
    const error = await errorOf(clientOf(shop, { limits, approve }).call('ping'));
    assert.deepEqual([error.code, error.charged], ['CANNOT_BUY', false]);
    assert.match(error.message, /no window/);
  }
  for (const word of ['yes', 1, {}, null])
    assert.equal(
      (await errorOf(clientOf(shop, { limits, approve: () => word as never }).call('ping'))).code,
      'DECLINED',
    );
  const leaving = new AbortController();
  const asked = Promise.withResolvers<void>();
  const approve = ({ input }: { input: Record<string, unknown> }) => {
    if (input.message === 'quick') return true;
    asked.resolve();
    return new Promise<boolean>(() => {});
  };
  const farebox = clientOf(shop, { limits, approve });
  const waiting = farebox.call('ping', {}, { signal: leaving.signal });
  await asked.promise;
  await farebox.call('ping', { message: 'quick' });
  leaving.abort(new Error('gone'));
  await assert.rejects(waiting, /gone/);
  assert.equal(shop.sales(), 1);
});

test('of calls that are made at once with a wallet no more are paid than the limit has room for', async () => {
  const shop = openFakeShop();
  const store = fileStore(newFolder());
  const limits = { maxDayMicros: 1_000_000n };
  const clients = [1, 2].map(() => clientOf(shop, { wallets: [wallet], store, limits }));
  const calls = clients.flatMap((farebox, of) =>
    Array.from({ length: 10 }, (_, n) => farebox.call('ping', { message: `${of} ${n}` })),
  );
  const ends = await Promise.allSettled(calls);
  assert.equal(shop.sales(), 4);
  assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 4);
});

test('a text that was cut off says that it may be paid for, and nothing is bought with it', async () => {
  const path = newFolder();
  const shop = openFakeShop();
  shop.fates = Array(20).fill('answer lost');
  const store = fileStore(path);
  const { result } = await hurried(() => errorOf(clientOf(shop, { store, wallets: [wallet] }).call('ping')));
  assert.equal(result.code, 'ANSWER_LOST');
  shop.fates = [];
  const sent = shop.sent.length;
  for (const name of readdirSync(path)) {
    const whole = readFileSync(join(path, name), 'utf8');
    for (const part of ['', whole.slice(0, whole.length / 2), '{}', 'null', '[]']) {
      writeFileSync(join(path, name), part);
      const error = await errorOf(clientOf(shop, { store, wallets: [wallet] }).call('ping'));
      assert.deepEqual([error.code, error.charged], ['CANNOT_BUY', 'unknown'], `${name}: ${part}`);
      assert.match(error.message, /damaged/);
    }
    writeFileSync(join(path, name), whole);
  }
  assert.equal(shop.sent.length, sent);
  await clientOf(shop, { store, wallets: [wallet] }).call('ping');
  assert.equal(shop.sales(), 1);
});
