/** A chain on which nobody can pay any more is told: an error in the log, a row for the operator and a gauge. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { generatePrivateKey } from 'viem/accounts';
import { startTestChain, type TestChain } from '../chain.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type NodeWire, startNodeWire } from '../fire/x402-node.fixture.ts';
import { MPP_SECRET } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const TOKEN = 'a-token-of-the-rail-tests';
const BASE = 'eip155:8453';
const TEMPO = 'eip155:4217';

let chain: TestChain;
let node: NodeWire;
let database: TestDatabase;
before(async () => {
  [chain, database] = await Promise.all([startTestChain(), openTestDatabase()]);
  node = await startNodeWire(chain.url);
});
after(async () => {
  await node?.close();
  await Promise.all([chain?.stop(), database?.close()]);
});

/** A facilitator that settles Base for as long as it answers. */
async function startFacilitator() {
  let answers = true;
  const server = createServer((_request, response) => {
    if (!answers) return void response.writeHead(503).end();
    const kinds = [1, 2].map((x402Version) => ({
      x402Version,
      scheme: 'exact',
      network: x402Version === 2 ? BASE : 'base',
    }));
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ kinds }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answer(yes: boolean) {
      answers = yes;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function look(server: TestServer): Promise<void> {
  for (const { name, run } of server.app.jobs)
    if (['ask-facilitators', 'look-at-tempo'].includes(name)) await run(new AbortController().signal);
}

/** What the operator, Prometheus and the log say. */
async function told(server: TestServer) {
  const overview = await jsonOf(
    fetch(`${server.url}/admin/api/overview`, { headers: { authorization: `Bearer ${TOKEN}` } }),
  );
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const gauge = (network: string) =>
    Number(new RegExp(`^farebox_rail_offered\\{network="${network}"\\} (\\d)$`, 'm').exec(metrics)?.[1]);
  const errors = server.log
    .map((line): { level: number; network?: string; msg: string } => JSON.parse(line))
    .filter(({ level, msg }) => level === 50 && msg.startsWith('payments on a chain'));
  return { rails: overview.rails, base: gauge(BASE), tempo: gauge(TEMPO), errors: errors.length };
}

test('a facilitator or a node that fails is told once, and so is its return', async () => {
  const [first, second] = await Promise.all([startFacilitator(), startFacilitator()]);
  const server = await startTestServer({
    pools: database,
    environment: {
      ADMIN_TOKENS: `desk:${TOKEN}`,
      X402_NETWORKS: 'base',
      UPSTREAM_BASE_BASE_URL: node.url,
      X402_RECIPIENT: chain.accounts.recipient.address,
      FACILITATOR_URL: `${first.url},${second.url}`,
      MPP_METHODS: 'tempo',
      MPP_SECRET_KEY: MPP_SECRET,
      MPP_TEMPO_RPC_URL: node.url,
      MPP_TEMPO_RECIPIENT: chain.accounts.recipient.address,
    },
  });
  await look(server);
  const fine = (network: string) => ({ network, offered: true, reason: null, since: null });
  assert.deepEqual(await told(server), { rails: [fine(BASE), fine(TEMPO)], base: 1, tempo: 1, errors: 0 });

  const reasonOf = async (network: string) =>
    (await told(server)).rails.find((each: { network: string }) => each.network === network).reason;
  first.answer(false);
  await look(server);
  assert.equal(await reasonOf(BASE), 'of 2 facilitators 1 did not answer');
  assert.deepEqual([(await told(server)).base, (await told(server)).errors], [1, 1]);
  second.answer(false);
  await look(server);
  await look(server);
  assert.equal(await reasonOf(BASE), 'no facilitator answers');
  assert.deepEqual([(await told(server)).base, (await told(server)).errors], [0, 2]);
  first.answer(true);
  second.answer(true);
  await look(server);
  assert.equal(await reasonOf(BASE), null);

  node.cut();
  await look(server);
  for (const network of [BASE, TEMPO]) assert.equal(await reasonOf(network), 'its node does not answer');
  const down = await told(server);
  assert.deepEqual([down.base, down.tempo, down.errors], [0, 0, 4]);
  assert.match(down.rails[0].since, /^20\d\d-/);
  node.mend();
  node.answerWith((method) =>
    method === 'eth_getBlockByNumber'
      ? { number: '0x10', timestamp: '0x65000000', hash: generatePrivateKey() }
      : undefined,
  );
  await look(server);
  for (const network of [BASE, TEMPO]) assert.equal(await reasonOf(network), 'its node is behind');
  node.mend();
  await look(server);
  assert.deepEqual((await told(server)).rails, [fine(BASE), fine(TEMPO)]);
  await server.close();
  await Promise.all([first.stop(), second.stop()]);
});
