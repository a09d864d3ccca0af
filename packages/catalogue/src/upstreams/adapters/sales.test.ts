import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { DECLARED } from '../../../../../apps/shop/src/app.ts';
import { ConfigError, readConfig } from '../../../../core/src/config.ts';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { createUpstreamSandbox, SANDBOX_SALES } from '../../../../sandbox/src/upstreams/server.ts';
import { connectUpstream } from '../http.ts';
import { againstLocalServer } from '../local-server.fixture.ts';
import { sales } from './sales.ts';

const SETTINGS = {
  UPSTREAM_SALES_NAME: 'County records',
  UPSTREAM_SALES_TERMS: 'Credit asked: County records',
};
const ROW = {
  id: 'parcel-1',
  soldOn: '2026-05-04',
  priceUsd: 412_000,
  lat: 38.9,
  lon: -77.03,
  type: 'house',
  squareFeet: 1_800,
};
const ASKED = { lat: 38.9, lon: -77.03, radiusMeters: 1_600, from: '2024-11-21', to: '2026-11-21' };
const ask = (body: string, config: { apiKey?: string; settings?: Record<string, string> } = {}) =>
  againstLocalServer(
    sales,
    { settings: SETTINGS, ...config },
    () => ({ body }),
    (api) => api.near(ASKED),
  );
const replyOf = (...rows: unknown[]) => JSON.stringify({ sales: rows });

describe('a source of sales', () => {
  it('is asked for a place and two days, with the key if there is one, and shown as its operator says', () =>
    againstLocalServer(
      sales,
      { apiKey: 'a-key', settings: { ...SETTINGS, UPSTREAM_SALES_LINK: 'https://records.test/' } },
      () => ({ body: replyOf(ROW) }),
      async (api, asked) => {
        const { value, source } = await api.near(ASKED);
        assert.equal(asked[0]?.url.pathname, '/base/sales');
        assert.deepEqual(Object.fromEntries(asked[0]?.url.searchParams ?? []), {
          lat: '38.9',
          lon: '-77.03',
          radiusMeters: '1600',
          from: '2024-11-21',
          to: '2026-11-21',
          limit: '200',
        });
        assert.equal(asked[0]?.headers.authorization, 'Bearer a-key');
        assert.deepEqual(value, { sales: [ROW], malformed: 0, firstProblem: null });
        assert.deepEqual(
          [source.name, source.url, source.licence],
          ['sales', 'https://records.test/', 'County records: Credit asked: County records'],
        );
        assert.deepEqual(api.publisher, {
          name: 'County records',
          url: 'https://records.test/',
          terms: SETTINGS.UPSTREAM_SALES_TERMS,
        });
      },
    ));

  it('shows the source’s name in place of an address of the operator’s network', async () => {
    assert.equal((await ask(replyOf())).source.url, 'urn:source:sales');
  });

  it('reads nothing of people and of streets', async () => {
    const people = { buyer: 'Jane Roe', seller: { name: 'John Doe' }, address: '1 Main St' };
    const { value } = await ask(replyOf({ ...ROW, ...people }));
    assert.deepEqual(value.sales, [ROW]);
  });

  it('takes an area that is left out, null or 0 for one that is not known, and a number for an id', async () => {
    const { squareFeet: _, ...bare } = ROW;
    const { value } = await ask(
      replyOf(bare, { ...ROW, squareFeet: null }, { ...ROW, squareFeet: 0, id: 17 }),
    );
    assert.deepEqual(
      value.sales.map(({ id, squareFeet }) => [id, squareFeet]),
      [
        ['parcel-1', null],
        ['parcel-1', null],
        ['17', null],
      ],
    );
  });

  it('leaves out a row that is no sale, counts it, and says what is wrong without repeating it', async () => {
    for (const [field, value] of [
      ['priceUsd', -5],
      ['priceUsd', '412000'],
      ['priceUsd', 1e12],
      ['soldOn', '2026-02-30'],
      ['soldOn', '05/04/2026'],
      ['lat', 90.1],
      ['lat', -122.4],
      ['lon', 181],
      ['lon', null],
      ['type', 'castle'],
      ['squareFeet', -1],
      ['id', ''],
      ['id', 'Jane Roe '.repeat(20)],
    ] as const) {
      const { value: read } = await ask(replyOf(ROW, { ...ROW, [field]: value }, ROW));
      const told = `${field} ${value}`;
      assert.deepEqual([read.sales.length, read.malformed], [2, 1], told);
      assert.match(read.firstProblem ?? '', new RegExp(`^sales\\[1\\]\\.${field}: `), told);
      assert.doesNotMatch(read.firstProblem ?? '', /castle|Jane|412000|05\/04/, told);
    }
    const { value } = await ask(replyOf(ROW, ROW, ROW, null, 'x', []));
    assert.deepEqual([value.sales.length, value.malformed], [3, 3]);
  });

  it('takes nothing else for an answer', async () => {
    const many = Array(501).fill(ROW);
    for (const wrong of [
      '<html><body>Please sign in</body></html>',
      '',
      '[]',
      '{"sales":{}}',
      '{"rows":[]}',
      replyOf(ROW, {}, {}),
      replyOf({ ...ROW, priceUsd: -1 }),
      replyOf(...many),
    ])
      await assert.rejects(ask(wrong), UpstreamUnavailable, wrong.slice(0, 60));
    assert.equal((await ask(replyOf(...many.slice(1)))).value.sales.length, 500);
  });

  it('reads a reply of a million rows no further than its bound', async () => {
    const line = `${JSON.stringify(ROW)},`;
    let sent = 0;
    const server = createServer((_request, response) => {
      response.write('{"sales":[');
      const more = () => {
        while (!response.destroyed && sent < 1_000_000) {
          sent += 500;
          if (!response.write(line.repeat(500))) return void response.once('drain', more);
        }
        response.end();
      };
      more();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const connection = connectUpstream(
      sales,
      { baseUrl: `http://127.0.0.1:${port}`, settings: SETTINGS },
      { userAgent: 'test', acceptSandbox: true, nowMs: Date.now },
    );
    try {
      await assert.rejects(sales.open(connection.http).near(ASKED), UpstreamUnavailable);
      assert(sent < 500_000, `${sent} rows were sent`);
    } finally {
      await connection.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('that goes silent is given up after the time that it has', () =>
    againstLocalServer(
      { ...sales, timeoutMs: 50 },
      { settings: SETTINGS },
      () => ({ body: new Uint8Array(), status: 200, headers: { 'content-length': '10' } }),
      async (api) => {
        await assert.rejects(
          api.near(ASKED),
          (error) => error instanceof UpstreamUnavailable && error.reason === 'timeout',
        );
      },
    ));

  it('is probed more strictly: one row that is no sale is said', async () => {
    await againstLocalServer(
      sales,
      { settings: SETTINGS },
      () => ({ body: replyOf(ROW, ROW, { ...ROW, soldOn: 'x' }) }),
      async (api) => {
        await assert.rejects(sales.probe(api, Date.now()) as Promise<unknown>, /1 rows .*sales\[2\]\.soldOn/);
      },
    );
  });

  it('has a double in the sandbox that speaks as it does, and has nothing of some places', async () => {
    const startedAtMs = Date.now();
    const nowMs = () => startedAtMs;
    const sandbox = createUpstreamSandbox({ host: '127.0.0.1', port: 0, seed: 1, nowMs });
    const { url } = await sandbox.start();
    const connection = connectUpstream(
      sales,
      { baseUrl: `${url}/sales`, settings: SANDBOX_SALES },
      { userAgent: 'test', acceptSandbox: true, nowMs },
    );
    const api = sales.open(connection.http);
    const day = (daysAgo: number) => new Date(startedAtMs - daysAgo * 86_400_000).toISOString().slice(0, 10);
    const span = { radiusMeters: 1_600, from: day(730), to: day(0) };
    try {
      const { value, source } = await api.near({ ...ASKED, ...span });
      assert.equal(source.sandbox, true);
      assert(value.sales.length >= 10 && value.malformed === 0, JSON.stringify(value));
      assert(value.sales.every(({ soldOn }) => soldOn >= span.from && soldOn <= span.to));
      assert.deepEqual((await api.near({ ...ASKED, ...span })).value, value, 'the same again');
      assert.deepEqual((await api.near({ lat: 18.47, lon: -66.11, ...span })).value.sales, []);
    } finally {
      await connection.close();
      await sandbox.stop();
    }
  });
});

it('a source of sales that is half configured, or wrongly, stops the start with the line to change', () => {
  const problems = (environment: Record<string, string>) => {
    try {
      readConfig({ FAREBOX_SECRET: 'kT9fQ2mZ7xWb4LrN8vYc1HsD6pGa3JeU', ...environment }, DECLARED);
      return [];
    } catch (error) {
      assert(error instanceof ConfigError);
      return error.problems;
    }
  };
  const whole = { UPSTREAM_SALES_BASE_URL: 'https://sales.example.com/v1', ...SETTINGS };
  assert.deepEqual(problems(whole), []);
  assert.deepEqual(problems({ ...whole, UPSTREAM_SALES_NAME: '', UPSTREAM_SALES_TERMS: '' }), [
    'UPSTREAM_SALES_NAME is needed with UPSTREAM_SALES_BASE_URL',
    'UPSTREAM_SALES_TERMS is needed with UPSTREAM_SALES_BASE_URL',
  ]);
  assert.deepEqual(problems({ AI_BASE_URL: 'https://model.example.com/v1' }), [
    'AI_MODEL is needed with AI_BASE_URL',
  ]);
  for (const [name, value] of [
    ['UPSTREAM_SALES_BASE_URL', 'sales.csv'],
    ['UPSTREAM_SALES_NAME', 'x'.repeat(81)],
    ['UPSTREAM_SALES_NAME', 'County\u202erecords'],
    ['UPSTREAM_SALES_TERMS', 'x'.repeat(301)],
    ['UPSTREAM_SALES_LINK', 'http://records.test/'],
    ['UPSTREAM_SALES_LINK', 'https://user:secret@records.test/'],
    ['UPSTREAM_SALES_REQUESTS_PER_MINUTE', '0'],
  ] as const) {
    const found = problems({ ...whole, [name]: value });
    assert.equal(found.length, 1, name);
    assert(found[0]?.startsWith(`${name}: must`), found[0]);
    assert(!found[0]?.includes('secret'), found[0]);
  }
});
