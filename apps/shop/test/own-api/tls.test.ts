/** An API behind https: its certificate must be of an authority that Node trusts, or that the operator names, and of its host. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { makeCertificate } from '../../../../packages/sandbox/src/devices/certificate.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from '../fire/money.fixture.ts';
import { type ServerProcess, startServerProcess } from '../fire/server-process.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

const GRANT_MICROS = 1_000_000n;
const PRICE_MICROS = 20_000n;

let database: TestDatabase;
let api: Server;
let folder: string;
let asked = 0;
/** Sends calls to the API by a name that is in the certificate, and by an address that is not. */
let config: string;
const servers: ServerProcess[] = [];

before(async () => {
  database = await openTestDatabase();
  const { cert, key } = makeCertificate(new Date(Date.now() - 60_000));
  api = createServer({ cert, key }, (_request, reply) => {
    asked += 1;
    reply.end('by https');
  });
  api.listen(0);
  await once(api, 'listening');
  const address = api.address();
  assert(address !== null && typeof address === 'object');
  folder = await mkdtemp(join(tmpdir(), 'own-api-tls-'));
  config = join(folder, 'farebox.config.yaml');
  await writeFile(join(folder, 'authority.pem'), cert);
  await writeFile(
    config,
    `upstreams:
  named: { url: "https://localhost:${address.port}", prefix: "/" }
  other: { url: "https://127.0.0.2:${address.port}", prefix: "/" }
routes:
  "GET /named": { upstream: named, price: "0.02" }
  "GET /other": { upstream: other, price: "0.02" }
`,
  );
});
after(async () => {
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  api?.closeAllConnections();
  api?.close();
  await database?.close();
  await rm(folder, { recursive: true });
});

async function start(environment: Record<string, string>): Promise<ServerProcess> {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    FAREBOX_CONFIG: config,
    ...environment,
  });
  servers.push(server);
  return server;
}

async function newKey(): Promise<string> {
  const nowMs = Date.now;
  const { sql } = database;
  const parts = { sql, keys: createKeys(sql, nowMs), ledger: createLedger(database, nowMs), nowMs };
  return (await grantKey(parts, { amountMicros: GRANT_MICROS, label: 'test', note: 'test' })).apiKey;
}

test('an authority that the operator names vouches for the API, under its own name alone', async () => {
  const key = await newKey();
  const headers = { 'x-api-key': key };
  const left = async () => balanceOf(database.sql, await accountOf(database.sql, key));

  const distrustful = await start({});
  const refused = await fetch(`${distrustful.url}/named`, { headers });
  const { code, charged } = await jsonOf(refused);
  assert.deepEqual([refused.status, code, charged, asked], [502, 'UPSTREAM_FAILED', false, 0]);
  assert.equal(await left(), GRANT_MICROS);

  const trusting = await start({ NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem') });
  const bought = await fetch(`${trusting.url}/named`, { headers });
  assert.deepEqual([bought.status, await bought.text(), asked], [200, 'by https', 1]);
  const elsewhere = await fetch(`${trusting.url}/other`, { headers });
  assert.deepEqual([elsewhere.status, asked], [502, 1]);
  assert.equal(await left(), GRANT_MICROS - PRICE_MICROS);
  await assertBooksClosed(database.sql);
});
