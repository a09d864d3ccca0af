/** The public status of a running server: what callers read, what they do not, and how it looks. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { UPSTREAM_NAMES } from '../../../../packages/catalogue/src/upstreams/index.ts';
import type { StatusDocument } from '../../../../packages/core/src/status/page.ts';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const MADE_EVERY_MS = 15_000;
let database: TestDatabase;
let server: TestServer;
let browser: Browser;
let nowMs = Date.UTC(2026, 10, 1);
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database, nowMs: () => nowMs });
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await server.close();
  await database.close();
});

const later = () => {
  nowMs += MADE_EVERY_MS;
};
const look = async () => {
  await server.app.jobs.find(({ name }) => name === 'note-status')?.run(new AbortController().signal);
};
const read = async (): Promise<StatusDocument> => jsonOf(await fetch(`${server.url}/status.json`));

test('tells what the catalogue tells, and what it has noted', async () => {
  const { services: sold }: { services: { path: string; name: string; available: boolean }[] } = await jsonOf(
    await fetch(`${server.url}/x402/catalog`),
  );
  await look();
  const status = await read();
  assert(status.incidents !== null);
  assert.deepEqual(
    status.services,
    sold.map(({ path, name, available }) => ({
      id: `service:${path.replace('/x402/', '')}`,
      name,
      state: available ? 'up' : 'down',
    })),
  );
  const down = status.services.filter(({ state }) => state === 'down').map(({ id }) => id);
  assert(down.length > 0 && down.length < sold.length, 'without their sources some cannot be sold');
  assert.equal(status.state, 'partly');
  assert.deepEqual(status.incidents.map(({ component }) => component).sort(), down.sort());
  assert(status.incidents.every(({ ended }) => ended === null));
});

test('names no source, no address of one, and nothing of the database', async () => {
  later();
  const [json, page] = await Promise.all(
    ['/status.json', '/status'].map(async (path) => (await fetch(server.url + path)).text()),
  );
  const told = JSON.stringify(await jsonOf(await fetch(`${server.url}/x402/catalog`)));
  for (const name of UPSTREAM_NAMES.filter((each) => !told.includes(each)))
    assert(!json?.includes(name) && !page?.includes(name), name);
  assert.doesNotMatch(`${json}${page}`, /postgres|none'|API_KEY|farebox_|127\.0\.0\.1:\d+\/(?!status)/i);
});

test('is made once for all who come within 15 s', async () => {
  later();
  const first = await read();
  await database.sql`delete from status_spells`;
  assert.deepEqual(await Promise.all(Array.from({ length: 50 }, read)), Array(50).fill(first));
  assert.notDeepEqual(first.incidents, []);
  later();
  assert.deepEqual((await read()).incidents, []);
});

test('answers while the database cannot be read, and says that nobody knows', async () => {
  later();
  await database.sql`alter table status_spells rename to status_spells_away`;
  try {
    const status = await read();
    assert.deepEqual([status.state, status.incidents, status.incidentsTotal], ['partly', null, null]);
    assert.match(await (await fetch(`${server.url}/status`)).text(), /nobody knows/);
  } finally {
    await database.sql`alter table status_spells_away rename to status_spells`;
  }
});

test('is a page in the frame of all pages, which all pages link to', async () => {
  later();
  await look();
  for (const width of [390, 1280]) {
    const page = await browser.newPage({ viewport: { width, height: 900 } });
    await page.goto(`${server.url}/`);
    await page.getByRole('contentinfo').getByRole('link', { name: 'Status' }).click();
    await page.getByRole('heading', { level: 1, name: 'Status' }).waitFor();
    await page.getByRole('heading', { name: 'The last 90 days' }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/status');
    await page.getByRole('navigation', { name: 'Site' }).waitFor();
    await assertReadable(page, `the status at ${width}`);
    await page.close();
  }
});
