import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { UpstreamUnavailable } from '../../../core/src/words/failure.ts';
import { ofac } from '../upstreams/adapters/ofac.ts';
import { uniswaptokens } from '../upstreams/adapters/uniswaptokens.ts';
import { connectUpstream } from '../upstreams/http.ts';
import type { UpstreamName, Upstreams } from '../upstreams/index.ts';
import { createDataLists } from './data-lists.ts';
import type { ListReport } from './list-fetching.ts';

const START_MS = Date.parse('2026-11-21T05:30:00Z');
const DAY_MS = 86_400_000;

function sdn(entries: number, date = '11/20/2026', stated = entries): string {
  const entry = (at: number) =>
    `<sdnEntry><uid>${at}</uid><lastName>SANDBOX LISTED ${at}</lastName><sdnType>Entity</sdnType><idList><id><idType>Digital Currency Address - ETH</idType><idNumber>0x${String(at).padStart(40, 'A')}</idNumber></id></idList></sdnEntry>`;
  return `<sdnList><publshInformation><Publish_Date>${date}</Publish_Date><Record_Count>${stated}</Record_Count></publshInformation>${Array.from({ length: entries }, (_, at) => entry(at + 1)).join('')}</sdnList>`;
}

let database: TestDatabase;
let publisher: Server;
let address: string;
let nowMs = START_MS;
let requests = 0;
/** The publisher's way with each request. */
let serve: (response: import('node:http').ServerResponse) => void;
const connections: { close(): Promise<void> }[] = [];

before(async () => {
  database = await openTestDatabase();
  publisher = createServer((_request, response) => {
    requests += 1;
    serve(response);
  });
  await new Promise<void>((resolve) => publisher.listen(0, '127.0.0.1', resolve));
  const at = publisher.address();
  if (at === null || typeof at === 'string') throw new Error('no port');
  address = `http://127.0.0.1:${at.port}`;
});
after(async () => {
  await Promise.all(connections.map((each) => each.close()));
  publisher.closeAllConnections();
  await new Promise((resolve) => publisher.close(resolve));
  await database.close();
});
beforeEach(async () => {
  await database.sql`delete from data_lists`;
  nowMs = START_MS;
  requests = 0;
  serve = (response) => response.end(sdn(10));
});

/** One replica, with the list of OFAC's Specially Designated Nationals alone. */
function replica() {
  const reports: ListReport[] = [];
  const connection = connectUpstream(
    ofac,
    { baseUrl: address },
    { userAgent: 'test', acceptSandbox: true, nowMs: () => nowMs },
  );
  connections.push(connection);
  const api = ofac.open(connection.http);
  const upstreams = { ofac: { ...api, consolidated: api.sdn } } as unknown as Upstreams;
  const made = createDataLists(database.sql, {
    upstreams,
    isConfigured: (name: UpstreamName) => name === 'ofac',
    nowMs: () => nowMs,
    report: (report) => reports.push(report),
  });
  return { ...made, reports };
}

const unusable = (reading: Promise<unknown>, why: RegExp) =>
  assert.rejects(
    reading,
    (error) => error instanceof UpstreamUnavailable && error.status === 503 && why.test(error.message),
  );

describe('a published list', () => {
  test('is not there before it was fetched, and then is with date, hash and entries', async () => {
    const { lists, fetchDue } = replica();
    await unusable(lists.current('ofac-sdn'), /not fetched yet/);
    nowMs += 10_000;
    await fetchDue();
    nowMs += 10_000;
    const list = await lists.current('ofac-sdn');
    assert.equal(list.publishedAt, '2026-11-20T00:00:00.000Z');
    assert.match(list.sha256, /^[0-9a-f]{64}$/);
    assert.equal(list.parties.length, 10);
    assert.deepEqual(
      [list.source.name, list.source.asOf, list.source.cached],
      ['ofac', list.publishedAt, true],
    );
    // Hex has no case.
    assert.equal(list.holdersOf(`0x${'1'.padStart(40, 'a')}`)[0]?.name, 'SANDBOX LISTED 1');
    assert.deepEqual(list.holdersOf(`0x${'1'.padStart(40, 'b')}`), []);
  });

  test('that is not configured is none', async () => {
    await unusable(replica().lists.current('un'), /not configured/);
  });

  test('is fetched once by any number of replicas', async () => {
    const replicas = Array.from({ length: 4 }, replica);
    await Promise.all(replicas.map(({ fetchDue }) => fetchDue()));
    // Two lists come from this publisher.
    assert.equal(requests, 2);
    for (const { lists } of replicas) assert.equal((await lists.current('ofac-sdn')).parties.length, 10);
  });

  test('is taken over when the process that fetched it died', async () => {
    await database.sql`
      insert into data_lists (name, next_at)
      values ('ofac-sdn', ${new Date(START_MS + 60_000).toISOString()}),
             ('ofac-consolidated', ${new Date(START_MS + DAY_MS).toISOString()})`;
    const { fetchDue } = replica();
    assert.equal(await fetchDue(), 0);
    nowMs += 61_000;
    assert.equal(await fetchDue(), 1);
  });

  test('whose fetch outlived its lease changes nothing any more', async () => {
    const slow = replica();
    const held = new Promise<import('node:http').ServerResponse>((resolve) => {
      serve = resolve;
    });
    const fetching = slow.fetchDue();
    const response = await held;
    // Somebody else takes the list up and brings a newer one.
    serve = (other) => other.end(sdn(12, '11/21/2026'));
    nowMs += 11 * 60_000;
    await replica().fetchDue();
    response.end(sdn(10));
    await fetching;
    const list = await replica().lists.current('ofac-sdn');
    assert.equal(list.parties.length, 12);
  });

  test('is confirmed when the publisher hands out the same file, and replaced when another', async () => {
    const { lists, fetchDue, reports } = replica();
    await fetchDue();
    nowMs += 7 * 3_600_000;
    await fetchDue();
    const same = await lists.current('ofac-sdn');
    assert.equal(same.confirmedAt, new Date(nowMs).toISOString());
    serve = (response) => response.end(sdn(11, '11/21/2026'));
    nowMs += 7 * 3_600_000;
    await fetchDue();
    assert.equal((await lists.current('ofac-sdn')).parties.length, 11);
    assert.deepEqual(
      reports.filter(({ list }) => list === 'ofac-sdn').map(({ outcome }) => outcome),
      ['replaced', 'confirmed', 'replaced'],
    );
  });

  const BAD: [what: string, body: (response: import('node:http').ServerResponse) => void, why: RegExp][] = [
    ['a file that is cut off', (r) => r.end(sdn(10, '11/21/2026').slice(0, -40)), /not a whole list/],
    ['a file with fewer entries than it says', (r) => r.end(sdn(9, '11/21/2026', 10)), /says 10 records/],
    ['an empty list', (r) => r.end(sdn(0, '11/21/2026')), /empty/],
    ['a list that lost a third', (r) => r.end(sdn(6, '11/21/2026')), /has 6 entries, the one in use 10/],
    ['an older list', (r) => r.end(sdn(10, '11/19/2026')), /before the one in use/],
    ['a list of next year', (r) => r.end(sdn(10, '11/21/2027')), /says it was published/],
    ['an error page', (r) => r.writeHead(500).end('<html/>'), /answered 500/],
    ['an empty file', (r) => r.end(), /not a whole list/],
    [
      'a transfer that breaks off',
      (r) => {
        r.writeHead(200, { 'content-length': '100000' });
        r.write(sdn(10).slice(0, 200));
        setImmediate(() => r.destroy());
      },
      /could not be reached/,
    ],
    ['an endless redirection', (r) => r.writeHead(302, { location: '/again' }).end(), /documented shape/],
    [
      'a redirection to another server without TLS',
      (r) => r.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      /documented shape/,
    ],
  ];
  for (const [what, body, why] of BAD) {
    test(`never gives way to ${what}`, async () => {
      const { lists, fetchDue, states } = replica();
      await fetchDue();
      const good = await lists.current('ofac-sdn');
      serve = body;
      nowMs += 7 * 3_600_000;
      assert.equal(await fetchDue(), 0);
      const kept = await lists.current('ofac-sdn');
      assert.deepEqual([kept.sha256, kept.confirmedAt], [good.sha256, good.confirmedAt]);
      const [state] = await states();
      assert.deepEqual([state?.state, state?.failures], ['usable', 1]);
      assert.match(state?.failure ?? '', why);
      // It is tried again soon, and is well again.
      serve = (response) => response.end(sdn(10, '11/21/2026'));
      nowMs += 61_000;
      assert.equal(await fetchDue(), 2);
      assert.equal((await states())[0]?.failures, 0);
    });
  }

  test('that is larger than its bound is not read to the end', async () => {
    let sent = 0;
    let ended = false;
    serve = (response) => {
      const piece = Buffer.alloc(4 * 1024 * 1024, 0x20);
      const more = () => {
        if (ended || sent > 400 * 1024 * 1024) return void response.end();
        sent += piece.length;
        if (response.write(piece)) setImmediate(more);
        else response.once('drain', more);
      };
      response.on('close', () => {
        ended = true;
      });
      more();
    };
    const { fetchDue, states } = replica();
    await fetchDue();
    assert.match((await states())[0]?.failure ?? '', /documented shape/);
    assert(sent < 300 * 1024 * 1024, `${sent} bytes were sent`);
  });

  test('that is older than a bound of its age is not used, and says so', async () => {
    const { lists, fetchDue, states } = replica();
    await fetchDue();
    nowMs = START_MS + 3 * DAY_MS;
    await lists.current('ofac-sdn');
    nowMs = START_MS + 3 * DAY_MS + 6_000;
    await unusable(lists.current('ofac-sdn'), /last confirmed 3 days ago/);
    assert.equal((await states())[0]?.state, 'unusable');
    // Confirmed every day, and yet nobody has kept it for two months.
    for (let day = 0; day < 60; day++) {
      nowMs += DAY_MS;
      await fetchDue();
    }
    await unusable(lists.current('ofac-sdn'), /published 6\d days ago, and may be 60/);
  });
});

describe('a published list of tokens', () => {
  const token = (at: number, chainId = 8453) => ({
    chainId,
    address: `0x${String(at).padStart(40, '0')}`,
    symbol: `T${at}`,
    name: `Token ${at}`,
    decimals: 18,
  });
  const list = (tokens: unknown[], timestamp = '2026-11-20T00:00:00.000Z') =>
    JSON.stringify({ name: 'A list', timestamp, version: { major: 1, minor: 0, patch: 0 }, tokens });

  function tokenReplica() {
    const parts = { userAgent: 'test', acceptSandbox: true, nowMs: () => nowMs };
    const connection = connectUpstream(uniswaptokens, { baseUrl: address }, parts);
    connections.push(connection);
    const upstreams = { uniswaptokens: uniswaptokens.open(connection.http) } as unknown as Upstreams;
    return createDataLists(database.sql, {
      upstreams,
      isConfigured: (name: UpstreamName) => name === 'uniswaptokens',
      nowMs: () => nowMs,
      report: () => undefined,
    });
  }

  test('is kept with date, hash and its tokens by chain, and no list of parties', async () => {
    serve = (response) => response.end(list([token(1), token(2), token(3, 1), token(4, 99)]));
    const { tokenLists, lists, fetchDue, states } = tokenReplica();
    assert.deepEqual([tokenLists.configured, lists.configured], [['tokens-uniswap'], []]);
    await unusable(tokenLists.current('tokens-uniswap'), /not fetched yet/);
    nowMs += 10_000;
    assert.equal(await fetchDue(), 1);
    const kept = await tokenLists.current('tokens-uniswap');
    assert.equal(kept.publishedAt, '2026-11-20T00:00:00.000Z');
    assert.match(kept.sha256, /^[0-9a-f]{64}$/);
    assert.deepEqual([kept.entries, kept.on('base').length, kept.on('bsc').length], [3, 2, 0]);
    assert.deepEqual(kept.on('ethereum')[0]?.symbol, 'T3');
    assert.equal(kept.source.name, 'uniswaptokens');
    assert.deepEqual(
      (await states()).map(({ name, parties }) => [name, parties]),
      [['tokens-uniswap', 3]],
    );
    await unusable(tokenLists.current('tokens-coingecko-base'), /not configured/);
  });

  test('that lost half of its tokens does not take the place of the one in use', async () => {
    serve = (response) => response.end(list(Array.from({ length: 10 }, (_, at) => token(at + 1))));
    const { tokenLists, fetchDue, states } = tokenReplica();
    await fetchDue();
    serve = (response) => response.end(list([token(1)], '2026-11-21T00:00:00.000Z'));
    nowMs += 7 * 3_600_000;
    assert.equal(await fetchDue(), 0);
    assert.equal((await tokenLists.current('tokens-uniswap')).entries, 10);
    assert.match((await states())[0]?.failure ?? '', /has 1 entries, the one in use 10/);
  });
});
