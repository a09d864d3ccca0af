import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { SANDBOX_HEADER } from '../upstreams/wire.ts';
import { createLawPages, type LawPages } from './law-pages.ts';
import type { PageReport } from './page-reading.ts';
import { PageSites } from './page-sites.ts';

const START_MS = Date.parse('2026-12-01T09:00:00Z');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const AS_OF = '2026-11-28';
const LAW = 'Whoever keeps crypto-assets for others holds a licence of the authority. '.repeat(5);
const FIRST = 'https://law.example/act/1?part=2';
const SECOND = 'https://rules.example/notice%20(4).html';
const RULES = [
  { id: 'one', url: FIRST },
  { id: 'one-too', url: FIRST },
  { id: 'two', url: SECOND },
];

let database: TestDatabase;
let mirror: Server;
let address: string;
let nowMs = START_MS;
let asked: string[] = [];
/** The mirror's way with a request. */
let serve: (response: ServerResponse, path: string) => void;
const opened: LawPages[] = [];

before(async () => {
  database = await openTestDatabase();
  mirror = createServer((request: IncomingMessage, response) => {
    asked.push(request.url ?? '');
    serve(response, request.url ?? '');
  });
  await new Promise<void>((resolve) => mirror.listen(0, '127.0.0.1', resolve));
  const at = mirror.address();
  if (at === null || typeof at === 'string') throw new Error('no port');
  address = `http://127.0.0.1:${at.port}`;
});
after(async () => {
  await Promise.all(opened.map((each) => each.close()));
  mirror.closeAllConnections();
  await new Promise((resolve) => mirror.close(resolve));
  await database.close();
});
beforeEach(async () => {
  await database.sql`delete from law_pages`;
  nowMs = START_MS;
  asked = [];
  serve = (response) => response.end(html(LAW));
});

const html = (text: string) => `<!doctype html><html><body><main>${text}</main></body></html>`;
const only =
  (path: string, other: (response: ServerResponse) => void) => (response: ServerResponse, at: string) =>
    at.startsWith(path) ? other(response) : void response.end(html(LAW));

interface Replica extends LawPages {
  reports: PageReport[];
  /** The page's state by its address. */
  of(url: string): Promise<Awaited<ReturnType<LawPages['states']>>['pages'][number]>;
}

/** One replica that reads the mirror. */
function replica({
  rules = RULES,
  rulesAsOf = AS_OF,
  acceptSandbox = true,
  on = true,
}: {
  rules?: readonly { id: string; url: string }[];
  rulesAsOf?: string;
  acceptSandbox?: boolean;
  on?: boolean;
} = {}): Replica {
  const reports: PageReport[] = [];
  const pages = createLawPages(database.sql, {
    rules,
    rulesAsOf,
    at: on ? { mirror: address } : null,
    site: { userAgent: 'test', acceptSandbox, nowMs: () => nowMs },
    nowMs: () => nowMs,
    report: (report) => reports.push(report),
  });
  opened.push(pages);
  return {
    ...pages,
    reports,
    async of(url) {
      const found = (await pages.states()).pages.find((page) => page.url === url);
      assert(found !== undefined, url);
      return found;
    },
  };
}

/** A replica that has seen that both pages stand still. */
async function settled(): Promise<Replica> {
  const pages = replica();
  await pages.readDue();
  nowMs += DAY_MS;
  await pages.readDue();
  asked = [];
  return pages;
}

describe('an official page', () => {
  test('is read once for all its rules at its host and path, again a day later, and then each week', async () => {
    const pages = replica();
    assert.equal(await pages.readDue(), 2);
    assert.deepEqual(asked.sort(), ['/law.example/act/1?part=2', '/rules.example/notice%20(4).html']);
    assert.deepEqual(
      (await pages.states()).pages.map(({ url, rules, state }) => [url, rules, state]),
      [
        [FIRST, ['one', 'one-too'], 'read_once'],
        [SECOND, ['two'], 'read_once'],
      ],
    );
    for (const [afterMs, due] of [
      [DAY_MS - 1_000, 0],
      [1_000, 2],
      [7 * DAY_MS - 1_000, 0],
      [1_000, 2],
    ] as const) {
      nowMs += afterMs;
      assert.equal(await pages.readDue(), due);
    }
    assert.deepEqual(
      (await pages.states()).pages.map(({ state }) => state),
      ['same', 'same'],
    );
    assert.equal((await pages.changed()).size, 0);
  });

  test('that reads differently than at first has changed since then, until the first text comes back', async () => {
    const pages = await settled();
    const firstReadAt = new Date(START_MS).toISOString();
    nowMs += 7 * DAY_MS;
    const changedAt = new Date(nowMs).toISOString();
    serve = only('/law.example/', (response) => response.end(html(`${LAW} Not before 2028.`)));
    await pages.readDue();
    assert.deepEqual([...(await replica().changed())], [[FIRST, { firstReadAt, changedAt }]]);
    nowMs += 7 * DAY_MS;
    serve = only('/law.example/', (response) => response.end(html(`${LAW} Not before 2029.`)));
    await pages.readDue();
    const page = await pages.of(FIRST);
    assert.deepEqual([page.state, page.changedAt, page.firstReadAt], ['changed', changedAt, firstReadAt]);
    assert.equal((await pages.of(SECOND)).state, 'same');
    assert.deepEqual(
      pages.reports.filter(({ outcome }) => outcome === 'changed').map(({ url }) => url),
      [FIRST, FIRST],
    );
    nowMs += 7 * DAY_MS;
    serve = (response) => response.end(html(LAW));
    await pages.readDue();
    assert.equal((await pages.of(FIRST)).state, 'same');
    assert.equal((await replica().changed()).size, 0);
  });

  test('whose text never stands still is not told as changed', async () => {
    const pages = replica();
    let visits = 0;
    serve = only('/law.example/', (response) => {
      visits += 1;
      response.end(html(`${LAW} Visit ${visits}.`));
    });
    await pages.readDue();
    nowMs += DAY_MS;
    const unsteadySince = new Date(nowMs).toISOString();
    await pages.readDue();
    for (let week = 0; week < 3; week++) {
      nowMs += 7 * DAY_MS;
      await pages.readDue();
    }
    const page = await pages.of(FIRST);
    assert.deepEqual([page.state, page.unsteadySince, page.changedAt], ['unsteady', unsteadySince, null]);
    assert.equal(visits, 5);
    assert.equal((await pages.changed()).size, 0);
    assert.equal((await pages.summary()).unsteady, 1);
    // It stands still from here on, and is followed.
    serve = (response) => response.end(html(LAW));
    for (let week = 0; week < 2; week++) {
      nowMs += 7 * DAY_MS;
      await pages.readDue();
    }
    assert.deepEqual([(await pages.of(FIRST)).state, (await pages.of(FIRST)).unsteadySince], ['same', null]);
  });

  const BAD: [
    what: string,
    answer: (response: ServerResponse) => void,
    why: RegExp,
    status: number | null,
  ][] = [
    ['refuses', (r) => r.writeHead(403).end('<b>robots</b>'), /^its server answered 403$/, 403],
    ['is gone', (r) => r.writeHead(404).end(html(LAW)), /answered 404/, 404],
    ['fails', (r) => r.writeHead(503).end('<b>later</b>'), /answered 503/, 503],
    ['asks to wait', (r) => r.writeHead(429, { 'retry-after': '9' }).end(), /answered 429/, 429],
    ['breaks off', (r) => r.destroy(), /could not be reached/, null],
    [
      'has moved to another server',
      (r) => r.writeHead(301, { location: 'https://127.0.0.1:1/x' }).end(),
      /to another server$/,
      null,
    ],
    [
      'is drawn by a script',
      (r) => r.end('<html><body><script>x()</script></body></html>'),
      /0 characters/,
      null,
    ],
    ['is a file', (r) => r.end('%PDF-1.4'), /no page of HTML/, null],
    ['has no end', (r) => r.end(Buffer.alloc(9 * 1024 * 1024, 0x20)), /more than 8388608 bytes/, null],
  ];
  for (const [what, answer, why, status] of BAD) {
    test(`that ${what} is noted with why and since when, and stands in no other's way`, async () => {
      const pages = replica();
      serve = only('/law.example/', answer);
      assert.equal(await pages.readDue(), 1);
      const unreadableSince = new Date(nowMs).toISOString();
      for (const pauseMs of [HOUR_MS, 6 * HOUR_MS, DAY_MS, 7 * DAY_MS]) {
        asked = [];
        nowMs += pauseMs - 1_000;
        await pages.readDue();
        assert(!asked.some((path) => path.startsWith('/law.example/')), 'asked too early');
        nowMs += 1_000;
        await pages.readDue();
        assert(
          asked.some((path) => path.startsWith('/law.example/')),
          'not asked again',
        );
      }
      const page = await pages.of(FIRST);
      assert.match(page.failure ?? '', why);
      assert.deepEqual(
        [page.state, page.status, page.unreadableSince],
        ['not_read', status, unreadableSince],
      );
      assert.deepEqual(await pages.summary(), {
        rulesAsOf: AS_OF,
        isOn: true,
        pages: 2,
        changed: 0,
        unreadable: 1,
        unsteady: 0,
        notRead: 1,
      });
      assert.equal((await pages.of(SECOND)).state, 'same');
      // It is well again. A process that starts anew has not seen that its server failed.
      serve = (response) => response.end(html(LAW));
      nowMs += 7 * DAY_MS;
      await replica().readDue();
      const well = await pages.of(FIRST);
      assert.deepEqual([well.state, well.failure, well.unreadableSince], ['read_once', null, null]);
    });
  }

  test('is not told as unreadable when its server was not asked, since it had failed with other pages', async () => {
    const rules = Array.from({ length: 8 }, (_, at) => ({
      id: `${at}`,
      url: `https://law.example/act/${at}`,
    }));
    serve = (response) => response.writeHead(500).end();
    const pages = replica({ rules });
    assert.equal(await pages.readDue(), 0);
    assert.deepEqual([asked.length, (await pages.summary()).unreadable], [5, 5]);
    // They are due again within the hour.
    nowMs += 60_000;
    assert.equal(await pages.queue.depth(), 3);
    serve = (response) => response.end(html(LAW));
    assert.equal(await replica({ rules }).readDue(), 3);
  });

  test('that cannot be read for a while has still changed or not', async () => {
    const pages = await settled();
    nowMs += 7 * DAY_MS;
    serve = (response) => response.writeHead(500).end();
    await pages.readDue();
    assert.equal((await pages.of(FIRST)).state, 'same');
    nowMs += HOUR_MS;
    serve = only('/law.example/', (response) => response.end(html(`${LAW} New.`)));
    await pages.readDue();
    assert.equal((await pages.of(FIRST)).state, 'changed');
  });

  test('is followed within its own server, as servers do that spell an address otherwise', async () => {
    serve = (response, path) => {
      if (path === '/law.example/act/1?part=2')
        response.writeHead(302, { location: '/law.example/act/1/2' }).end();
      else response.end(html(LAW));
    };
    assert.equal(await replica().readDue(), 2);
    assert(asked.includes('/law.example/act/1/2'));
  });

  test('that hangs does not keep the others from being read', async () => {
    const stopping = new AbortController();
    const hung = new Promise<void>((resolve) => {
      serve = only('/law.example/', () => resolve());
    });
    const slow = replica();
    const reading = slow.readDue(stopping.signal);
    await hung;
    // Another replica reads the other page meanwhile, unless the first one has already.
    await replica().readDue();
    assert(asked.some((path) => path.startsWith('/rules.example/')));
    // The server ends: the page is due at once for whoever comes.
    stopping.abort();
    await reading;
    serve = (response) => response.end(html(LAW));
    await replica().readDue();
    assert.equal((await slow.of(FIRST)).state, 'read_once');
    assert.equal((await slow.of(FIRST)).failure, null);
  });

  test('is read once by any number of replicas', async () => {
    await Promise.all(Array.from({ length: 4 }, () => replica().readDue()));
    assert.equal(asked.length, 2);
  });

  test('is taken over when the process that read it died, and its late reader notes nothing', async () => {
    const held = new Promise<ServerResponse>((resolve) => {
      serve = only('/law.example/', resolve);
    });
    const slow = replica({ rules: RULES.slice(0, 1) });
    const reading = slow.readDue();
    const response = await held;
    serve = (other) => other.end(html(`${LAW} Newer.`));
    nowMs += 3 * 60_000;
    const quick = replica({ rules: RULES.slice(0, 1) });
    assert.equal(await quick.readDue(), 1);
    response.end(html(LAW));
    await reading;
    assert.deepEqual(slow.reports, []);
    nowMs += DAY_MS;
    await quick.readDue();
    assert.equal((await quick.of(FIRST)).state, 'same');
  });

  test('of a sandbox is none to a server of production', async () => {
    serve = (response) => response.writeHead(200, { [SANDBOX_HEADER]: 'upstreams' }).end(html(LAW));
    const pages = replica({ acceptSandbox: false });
    assert.equal(await pages.readDue(), 0);
    assert.match((await pages.of(FIRST)).failure ?? '', /sandbox part/);
  });
});

describe('the notes of official pages', () => {
  test('start anew with rules that were written later, and not with those of an older release', async () => {
    const old = await settled();
    nowMs += 7 * DAY_MS;
    serve = only('/law.example/', (response) => response.end(html(`${LAW} New.`)));
    await old.readDue();
    assert.equal((await replica().changed()).size, 1);
    const next = replica({ rulesAsOf: '2026-12-09' });
    assert.equal((await next.changed()).size, 0);
    assert.deepEqual(
      (await next.states()).pages.map(({ state }) => state),
      ['not_read', 'not_read'],
    );
    asked = [];
    assert.equal(await next.readDue(), 2);
    assert.equal((await next.of(FIRST)).state, 'read_once');
    // A replica of the older release still runs: it takes nothing back.
    await old.readDue();
    assert.equal(asked.length, 2);
    assert.equal((await next.of(FIRST)).state, 'read_once');
  });

  test('are those of the newest release alone, whatever pages an older one still knows', async () => {
    const old = await settled();
    const third = { id: 'three', url: 'https://law.example/act/3' };
    const next = replica({ rules: [...RULES.slice(2), third], rulesAsOf: '2026-12-09' });
    assert.equal(await next.readDue(), 2);
    asked = [];
    await old.readDue();
    const rows = await database.sql<{ url: string }[]>`select url from law_pages order by url`;
    assert.deepEqual(
      rows.map(({ url }) => url),
      [third.url, SECOND],
    );
    assert.deepEqual(asked, []);
    assert.equal((await next.of(third.url)).state, 'read_once');
  });

  test('forget a page that no rule leads to any more, and know a new one', async () => {
    await settled();
    const third = { id: 'three', url: 'https://law.example/act/3' };
    const next = replica({ rules: [...RULES.slice(2), third] });
    assert.equal(await next.readDue(), 1);
    const rows = await database.sql<{ url: string }[]>`select url from law_pages order by url`;
    assert.deepEqual(
      rows.map(({ url }) => url),
      [third.url, SECOND],
    );
    const none = replica({ rules: [] });
    assert.equal(await none.readDue(), 0);
    assert.equal((await database.sql`select 1 from law_pages`).length, 0);
    assert.deepEqual([(await none.summary()).pages, await none.queue.depth()], [0, 0]);
  });

  test('are not made where the pages are read nowhere, and no work waits there', async () => {
    await replica().readDue();
    nowMs += 30 * DAY_MS;
    const off = replica({ on: false });
    asked = [];
    assert.equal(await off.readDue(), 0);
    assert.deepEqual([off.isOn, (await off.summary()).isOn, asked.length], [false, false, 0]);
    assert.deepEqual([await off.queue.depth(), await replica().queue.depth()], [0, 2]);
  });

  test('hold no word of a page', async () => {
    serve = only('/law.example/', (response) =>
      response.writeHead(500, '<script>alert(1)</script>').end('<script>alert(1)</script>'),
    );
    const pages = replica();
    await pages.readDue();
    const rows = await database.sql`select * from law_pages`;
    const kept = JSON.stringify([rows, await pages.states(), pages.reports]);
    assert(!/alert|licence of the authority/.test(kept), kept);
  });
});

test('no address but an https one is read', async () => {
  const sites = new PageSites('direct', { userAgent: 'test', acceptSandbox: true, nowMs: Date.now });
  await assert.rejects(sites.read(`${address}/x`, undefined), /no address of an official page/);
  assert.deepEqual(asked, []);
  await sites.close();
});
