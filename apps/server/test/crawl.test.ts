/** Every address that a document prints answers, on the running server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from './database.fixture.ts';
import { EVERYTHING_ON } from './everything-on.fixture.ts';
import { startTestServer, type TestServer } from './server.fixture.ts';

/** The address that documents name; requests to it go to wherever the server listens. */
const PUBLIC_URL = 'http://farebox.test';
let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  const environment = {
    ...EVERYTHING_ON,
    ...{ PUBLIC_URL, CONTACT_EMAIL: 'operator@farebox.test', TRIAL_ALLOW_INTERNAL: 'true' },
  };
  server = await startTestServer({ pools: database, environment });
});
after(async () => {
  await server?.close();
  await database?.close();
});

/** Of every document that stands at an address of its own. */
function documents(): string[] {
  return server.app.routes
    .filter(({ method, path }) => method === 'GET' && !/[:*]/.test(path))
    .filter(({ path }) =>
      /\.(json|txt|xml)$|catalog$|^\/\.well-known|^\/$|services$|docs$|capabilities$/.test(path),
    )
    .map(({ path }) => path);
}

const read = (path: string) => fetch(server.url + path, { headers: { accept: 'application/json' } });

test('no address that is printed leads nowhere', async () => {
  const printed = new Map<string, string>();
  const asked = documents();
  assert.ok(asked.length > 25, asked.join());
  for (const path of asked) {
    const response = await read(path);
    const text = await response.text();
    assert.ok([200, 404].includes(response.status), `${path}: ${response.status}`);
    if (response.status !== 200) continue;
    assert.match(response.headers.get('etag') ?? '', /^"/, path);
    assert.equal(response.headers.get('access-control-allow-origin'), '*', path);
    for (const [url] of text.matchAll(/http:\/\/farebox\.test[^\s"'`<>)\\,;]*/g)) {
      const address = url.replace(/[.:]+$/, '').slice(PUBLIC_URL.length) || '/';
      if (!address.includes('{')) printed.set(address, path);
    }
  }
  assert.ok(printed.size > 200, String(printed.size));
  for (const [address, by] of printed) {
    const response = await read(address);
    await response.arrayBuffer();
    // What is only posted to is known there; what costs says so, and so does what needs a key or a source.
    assert.ok(
      [200, 201, 400, 401, 402, 405, 503].includes(response.status) ||
        (response.status === 404 && /^\/(x402\/receipts|credits|api\/)/.test(address)),
      `${by} prints ${address}, which answers ${response.status}`,
    );
  }
});
