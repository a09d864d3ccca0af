/** The client for Python buys from the running server by each rail, over a way that loses requests and answers: each call once. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { PrivateKeyAccount } from 'viem/accounts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { MPP_SECRET } from '../mpp.fixture.ts';
import { startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';
import { openFaultyWay, type TypedData } from './faulty-way.fixture.ts';

const FOLDER = join(import.meta.dirname, '../../../../clients/python');
/** Debian's packages are for Debian's own Python, which need not be the first. */
const python = ['python3', '/usr/bin/python3'].find(
  (each) =>
    spawnSync(each, ['-c', 'import sys, httpx, pytest; assert sys.version_info >= (3, 10)']).status === 0,
);
const skip =
  python === undefined &&
  'NOT TESTED: no python3 with httpx and pytest here, so the Python client is not tried';
if (typeof skip === 'string') process.stderr.write(`\n*** ${skip} ***\n\n`);
const mypy = python !== undefined && spawnSync(python, ['-m', 'mypy', '--version']).status === 0;

let world: PaymentWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let way: Awaited<ReturnType<typeof openFaultyWay>>;
let wallet: PrivateKeyAccount;
before(async () => {
  if (python === undefined) return;
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld(),
    openTestDatabase(),
    startUpstreams(),
  ]);
  wallet = await world.wallet(10);
  way = await openFaultyWay({
    sign: (data) => wallet.signTypedData(data as TypedData & { domain: { chainId: number } }),
    received: () => world.received(),
  });
  server = await startTestServer({
    pools: database,
    upstreamsUrl: upstreams.url,
    environment: {
      ...world.environment,
      ...world.made,
      PUBLIC_URL: way.url,
      MPP_METHODS: 'evm',
      MPP_SECRET_KEY: MPP_SECRET,
      FAREBOX_SANDBOX_WALLETS: `${world.made.FAREBOX_SANDBOX_WALLETS},${wallet.address}`,
    },
  });
  way.leadTo(server.url);
});
after(async () => {
  if (python === undefined) return;
  way?.close();
  await server?.close();
  await Promise.all([database?.close(), upstreams?.stop(), world?.stop()]);
});

test('the Python client passes its tests against the running server', { skip }, async () => {
  assert.ok(python !== undefined);
  const { stdout } = await promisify(execFile)(
    python,
    ['-B', '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--color=no'],
    {
      cwd: FOLDER,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: process.env.HOME ?? '',
        FAREBOX_TEST_URL: way.url,
        FAREBOX_TEST_KEY: await server.key('20'),
        FAREBOX_TEST_WALLET: wallet.address,
      },
    },
  ).catch(({ stdout, stderr }) => assert.fail(`${stdout}${stderr}`));
  // Nothing of it may have been left out for want of a server.
  assert.match(stdout, /^\d+ passed(, \d+ warnings?)? in /m);
});

test('its types are complete', { skip: skip || (!mypy && 'mypy is not installed here') }, async () => {
  assert.ok(python !== undefined);
  const told = spawnSync(python, ['-m', 'mypy', '--cache-dir=/dev/null', 'src'], {
    cwd: FOLDER,
    encoding: 'utf8',
  });
  assert.equal(told.status, 0, told.stdout);
});
