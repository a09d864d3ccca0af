/** `kill -9` of a real server at each step of a call that a chain pays: the payer pays once and gets its answer. */
import assert from 'node:assert/strict';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type PaymentWorld, paymentHeader, signPayment, startPaymentWorld } from '../x402.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';
import { type NodeFault, type NodeWire, startNodeWire } from './x402-node.fixture.ts';

const PRICE_UNITS = 50_000n;
const PATH = 'ai-inference';

type SettledBy = 'facilitator' | 'own settler';

let world: PaymentWorld;
let database: TestDatabase;
/** A language model that answers when the test lets it. */
let model: Server;
let modelUrl: string;
let held: ServerResponse[] = [];
let holds = false;
let runs = 0;
let node: NodeWire;
/** The server that came after the last one that was killed is the next to be killed. */
let server: { process: ServerProcess; settledBy: SettledBy } | null = null;
let receivedBefore = 0n;
let sentBefore = 0;
let receivedAtFirst = 0n;
const SEND = 'eth_sendRawTransactionSync';

function complete(response: ServerResponse): void {
  response.setHeader('content-type', 'application/json');
  const content = `Answer ${runs}.`;
  response.end(JSON.stringify({ model: 'slow', choices: [{ message: { content }, finish_reason: 'stop' }] }));
}

before(async () => {
  [world, database] = await Promise.all([startPaymentWorld(), openTestDatabase()]);
  model = createServer((request, response) => {
    request.resume();
    runs += 1;
    if (holds) held.push(response);
    else complete(response);
  });
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve));
  const address = model.address();
  assert(address !== null && typeof address === 'object');
  modelUrl = `http://127.0.0.1:${address.port}/v1`;
  node = await startNodeWire(world.chain.url);
  receivedAtFirst = await world.received();
});
after(async () => {
  await server?.process.end('SIGKILL');
  await node?.close();
  model?.closeAllConnections();
  model?.close();
  await Promise.all([world?.stop(), database?.close()]);
});

async function start(settledBy: SettledBy): Promise<ServerProcess> {
  const process = await startServerProcess({
    DATABASE_URL: database.url,
    AI_BASE_URL: modelUrl,
    AI_MODEL: 'slow',
    RECONCILE_INTERVAL_MS: '100',
    ...(settledBy === 'facilitator' ? world.environment : world.ownSettler),
    UPSTREAM_BASE_BASE_URL: node.url,
  });
  server = { process, settledBy };
  return process;
}

interface Told {
  status: number;
  body: string;
}
async function present(url: string, header: string): Promise<Told | null> {
  try {
    const response = await fetch(`${url}/x402/${PATH}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'payment-signature': header },
      body: JSON.stringify({ prompt: 'Say something.' }),
    });
    return { status: response.status, body: await response.text() };
  } catch {
    return null;
  }
}

async function counted(what: 'verify' | 'settle' | 'broadcasts'): Promise<number> {
  const reply = await fetch(`${world.facilitator.url}/__control`);
  const { counts }: { counts: Record<string, number> } = JSON.parse(await reply.text());
  return counts[what] ?? 0;
}

const sent = () => node.asked.get(SEND) ?? 0;

interface Step {
  step: string;
  faults: readonly Record<string, unknown>[];
  /** Our own settler, and what befalls the transaction that it sends. */
  own?: NodeFault;
  holdsModel?: true;
  /** Whether the call has come there. */
  reached(): Promise<boolean>;
  /** How often the service runs in all. */
  runs: number;
}

const LATE_MS = 3_000;
const STEPS: readonly Step[] = [
  {
    step: 'while it is verified',
    faults: [{ on: 'verify', fault: 'never', broadcast: false }],
    reached: async () => (await counted('verify')) === 1,
    runs: 1,
  },
  {
    step: 'while the service runs',
    faults: [],
    holdsModel: true,
    reached: async () => held.length === 1,
    runs: 2,
  },
  {
    step: 'while the facilitator has it and has not sent it',
    faults: [{ on: 'settle', fault: 'never', broadcast: false }],
    reached: async () => (await counted('settle')) === 1,
    runs: 1,
  },
  {
    step: 'while the facilitator has it and will send it later',
    faults: [{ on: 'settle', fault: 'late', delayMs: LATE_MS }],
    reached: async () => (await counted('settle')) === 1,
    runs: 1,
  },
  {
    step: 'after the facilitator sent it, before it said so',
    faults: [{ on: 'settle', fault: 'never', broadcast: true }],
    reached: async () => (await counted('broadcasts')) === 1,
    runs: 1,
  },
  {
    step: 'when our own settler has signed it and not sent it',
    faults: [],
    own: 'no answer',
    reached: async () => sent() > sentBefore,
    runs: 1,
  },
  {
    step: 'after our own settler sent it, before the node said so',
    faults: [],
    own: 'reply held',
    reached: async () => sent() > sentBefore && (await world.received()) > receivedBefore,
    runs: 1,
  },
];

for (const { step, faults, own, holdsModel, reached, runs: expectedRuns } of STEPS) {
  test(`kill -9 ${step}`, async () => {
    runs = 0;
    held = [];
    holds = holdsModel === true;
    await world.faults([]);
    await world.faults(faults);
    const payer = await world.wallet();
    receivedBefore = await world.received();
    sentBefore = sent();
    if (own !== undefined) node.next(SEND, own);
    const settledBy = own === undefined ? 'facilitator' : 'own settler';
    if (server?.settledBy !== settledBy) await server?.process.end('SIGKILL');
    let { url, end } = server?.settledBy === settledBy ? server.process : await start(settledBy);
    const challenge = await fetch(`${url}/x402/${PATH}`, { method: 'POST' });
    const payment = await signPayment(payer, { to: world.recipient, valueUnits: PRICE_UNITS });
    const header = await paymentHeader(challenge, payment);
    const asked = present(url, header);
    await until(`the call to be killed ${step}`, reached);
    await end('SIGKILL');
    assert.equal(await asked, null, 'it was answered before it was killed');
    holds = false;
    // What the dead process held has its time; the test does not wait for it.
    await database.sql`update calls set expires_at = now() - interval '1 second' where state = 0`;
    await database.sql`update relayer_transactions set sent_at = sent_at - interval '11 seconds' where state = 0`;
    await database.sql`update settlements set next_at = now(), lease_until = now() where final_at is null`;

    ({ url, end } = await start(settledBy));
    let told: Told | null = null;
    await until('the payer to get its answer', async () => {
      told = await present(url, header);
      assert(told !== null && told.status !== 402, 'it was asked to pay again');
      return told.status === 200;
    });
    const again = await present(url, header);
    assert.deepEqual(again, told, 'the same payment got another answer');
    assert.equal(runs, expectedRuns, 'runs of the service');
    assert.equal((await world.received()) - receivedBefore, PRICE_UNITS, 'USDC moved');
    const [row] = await database.sql<{ captured: number; open: number }[]>`
      select count(*) filter (where state = 1)::integer as captured,
             count(*) filter (where state in (0, 3))::integer as open
      from calls c where c.payment_key like ${`%${payer.address.toLowerCase()}%`}`;
    assert.deepEqual(row, { captured: 1, open: 0 });
    const books = await proveBooks(database.patient);
    assert.deepEqual(
      books.checks.filter(({ ok }) => !ok),
      [],
    );
  });
}

test('what a facilitator carried out late moved nothing more', async () => {
  assert.equal((await world.received()) - receivedAtFirst, PRICE_UNITS * BigInt(STEPS.length));
});
