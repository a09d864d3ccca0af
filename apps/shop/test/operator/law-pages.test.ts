/** The official pages of laws, read from the sandbox's mirror over a socket, as an operator and a buyer see them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { followedPage } from '../../../../packages/catalogue/src/compliance/rule.ts';
import { RULES, RULES_AS_OF } from '../../../../packages/catalogue/src/compliance/rules.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';

const TOKEN = 'an-operators-token-of-the-tests';
const DAY_MS = 86_400_000;
const PAGES = new Set(RULES.map(followedPage)).size;

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let nowMs = Date.parse('2026-12-01T09:00:00Z');
before(async () => {
  database = await openTestDatabase();
  upstreams = await startUpstreams(() => nowMs);
  server = await startTestServer({
    pools: database,
    upstreamsUrl: upstreams.url,
    environment: { ADMIN_TOKENS: `desk:${TOKEN}` },
    nowMs: () => nowMs,
  });
});
after(async () => {
  await server?.close();
  await upstreams?.stop();
  await database?.close();
});

const asOperator = (path: string) =>
  jsonOf(fetch(`${server.url}/admin/api/${path}`, { headers: { authorization: `Bearer ${TOKEN}` } }));

test('every page of the rules is read, counted on the overview and listed; nobody else may see the list', async () => {
  const before = (await asOperator('overview')).lawPages;
  assert.deepEqual([before.isOn, before.pages, before.notRead], [true, PAGES, PAGES]);
  assert.equal(await server.app.sources.lawPages.readDue(), PAGES);
  nowMs += DAY_MS;
  assert.equal(await server.app.sources.lawPages.readDue(), PAGES);
  assert.deepEqual((await asOperator('overview')).lawPages, {
    rulesAsOf: RULES_AS_OF,
    isOn: true,
    pages: PAGES,
    changed: 0,
    unreadable: 0,
    unsteady: 0,
    notRead: 0,
  });
  const { rulesAsOf, pages } = await asOperator('law-pages');
  assert.deepEqual([rulesAsOf, pages.length], [RULES_AS_OF, PAGES]);
  assert(pages.every(({ state }: { state: string }) => state === 'same'));
  assert.deepEqual(
    pages.flatMap(({ rules }: { rules: string[] }) => rules).sort(),
    RULES.map(({ id }) => id).sort(),
  );
  assert.equal((await fetch(`${server.url}/admin/api/law-pages`)).status, 401);
});

test('a buyer is told that a page has changed since it was read', async () => {
  const url = RULES.find(({ id }) => id === 'sg-psa')?.url ?? '';
  // As if the page had read otherwise when it was first read.
  await database.sql`update law_pages set first_sha256 = sha256('another text') where url = ${url}`;
  nowMs += 7 * DAY_MS;
  await server.app.sources.lawPages.readDue();
  const key = await server.key('10');
  const body = { operationType: 'custody', jurisdiction: 'Singapore' };
  const told = await jsonOf(server.call('compliance-consultation', key, body));
  const changedOn = new Date(nowMs).toISOString().slice(0, 10);
  const regimes: { id: string; pageChangedOn: string | null }[] = told.applicableRegimes;
  assert.equal(regimes.find(({ id }) => id === 'sg-psa')?.pageChangedOn, changedOn);
  assert.equal(regimes.find(({ id }) => id === 'sg-psn02')?.pageChangedOn, null);
  assert(
    told.provenance.notes.some((note: string) =>
      note.includes('sg-psa has changed since it was read on 2026-12-01'),
    ),
  );
  assert.equal((await asOperator('overview')).lawPages.changed, 1);
});
