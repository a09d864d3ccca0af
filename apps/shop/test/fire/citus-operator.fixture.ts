/** The same sales on any database, and everything that an operator and the customers are shown of them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { learnDistribution } from '../../../../packages/core/src/db/distribution.ts';
import { createBucketTurns } from '../../../../packages/core/src/ledger/bucket-turns.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { newCallId, transferIdFor } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { OPERATOR_ROUTES } from '../../../../packages/core/src/operator/roles.ts';
import { createCallStore } from '../../../../packages/core/src/paid-call/inside/calls.ts';
import { foldSales } from '../../../../packages/core/src/paid-call/inside/fold-sales.ts';
import { measureServices } from '../../../../packages/core/src/paid-call/service-figures.ts';
import { type PaymentWorld, paymentHeader, signPayment } from '../x402.fixture.ts';
import { giveBackPrice, PRICE, sellCall, sellShared } from './citus-money.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const OPERATOR = 'the-token-of-an-operator-of-these-tests';
const HOUR_MS = 3_600_000;
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

export interface Customer {
  id: bigint;
  bucket: number;
  apiKey: string;
}

/** A database with a server on it, and two customers. */
export interface SalesStage {
  url: string;
  pools: Pools;
  server: ServerProcess;
  customers: readonly [Customer, Customer];
  close(): Promise<void>;
}

/** The ids of sold calls by what became of them. */
export interface SoldCalls {
  charged: string[];
  refunded: string;
  givenBack: string;
  failed: string;
  running: string;
  onChain: string;
  transaction: string;
  payer: string;
}

/** @param options.keys of the two customers */
export async function openSalesStage(
  url: string,
  options: { keys: readonly string[]; buckets: number; world: PaymentWorld },
): Promise<SalesStage> {
  const pools = connectPools(url, 6);
  await learnDistribution(pools);
  const customers: Customer[] = [];
  for (const apiKey of options.keys) {
    const [row] = await pools.sql<{ id: bigint; bucket: number }[]>`
      select account_id as id, bucket from api_keys where digest = sha256(convert_to(${apiKey}, 'UTF8'))`;
    assert(row !== undefined);
    customers.push({ ...row, apiKey });
  }
  const [first, second] = customers.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  assert(first !== undefined && second !== undefined);
  const server = await startServerProcess({
    DATABASE_URL: url,
    ACCOUNT_BUCKETS: String(options.buckets),
    RECONCILE_INTERVAL_MS: '200',
    SERVICES: 'ping',
    ADMIN_TOKENS: `desk:${OPERATOR}`,
    ...options.world.environment,
  });
  return {
    url,
    pools,
    server,
    customers: [first, second],
    async close() {
      await server.end('SIGKILL');
      await endPools(pools, 1);
    },
  };
}

/** Sells to both customers and on a chain: calls are charged, fail, and are given back; one still runs. */
export async function sellEverything(stage: SalesStage, world: PaymentWorld): Promise<SoldCalls> {
  const { pools, server, customers } = stage;
  const [first, second] = customers;
  const charged: string[] = [];
  for (const customer of customers)
    for (let count = 0; count < 3; count++) {
      const response = await fetch(`${server.url}/x402/ping`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': customer.apiKey },
        body: '{}',
      });
      assert.equal(response.status, 200, await response.text());
      charged.push(response.headers.get('x-call-id') ?? '');
    }
  const shared = await sellShared(pools, first, { beneficiary: second.id, micros: PRICE / 5n });
  const ledger = createLedger(pools, Date.now, { accountBuckets: 16 });
  const givenBack = await sellCall(pools, second, async () => {});
  await giveBackPrice(ledger, second.id, givenBack);
  const failed = await failCall(pools, first);
  const running = await beginCall(pools, second);
  const onChain = await payOnChain(stage, world);
  const refunded = charged[0] ?? '';
  await askOperator(stage, `accounts/${first.id}/refund-call`, {
    reason: 'no good answer',
    callId: refunded,
  });
  await leaveOrders(stage);
  await until('it to be heard of', async () => (await pools.sql`select 1 from ledger_outbox`).length === 0);
  return { charged: [...charged, shared], refunded, givenBack, failed, running, ...onChain };
}

/** Card orders: one that is disputed, and one that was never paid. */
async function leaveOrders({ pools, customers: [first, second] }: SalesStage): Promise<void> {
  const paid = randomUUID();
  await pools.sql`
    insert into card_orders (id, kind, account_id, amount_micros, credit_micros, state, dispute, reversed_micros, email, created_at, expires_at, paid_at)
    values (${paid}, 'checkout', ${String(first.id)}, 9000000, 9000000, 1, 'needs_response', 0, 'buyer@farebox.test', now(), now(), now()),
           (${randomUUID()}, 'checkout', ${String(second.id)}, 5000000, 5000000, 0, null, 0, null, now() - interval '2 hours', now() - interval '1 hour', null)`;
  const ledger = createLedger(pools, Date.now);
  const { status } = await ledger.transfer({
    id: transferIdFor(`card:${paid}:payment`),
    accountId: first.id,
    phase: 'posted',
    side: 'credit',
    house: 'card_clearing',
    code: 'card_payment',
    amountMicros: 9_000_000n,
    note: `order ${paid}`,
  });
  assert.equal(status, 'done');
}

const callOf = ({ id: accountId, bucket }: Customer) => ({
  id: newCallId(Date.now(), bucket),
  accountId,
  bucket,
  keyId: null,
  rail: 'credits',
  service: 'ping',
  ttlMs: HOUR_MS,
  priceMicros: PRICE,
  revenue: 'revenue_credits' as const,
  identity: null,
  onChainIdentity: null,
  fingerprint: null,
});

async function beginCall(pools: Pools, customer: Customer): Promise<string> {
  const calls = createCallStore(pools, { nowMs: Date.now, answerTtlMs: HOUR_MS });
  const call = callOf(customer);
  assert.equal((await calls.begin(call)).status, 'authorized');
  return call.id;
}

async function failCall(pools: Pools, customer: Customer): Promise<string> {
  const calls = createCallStore(pools, { nowMs: Date.now, answerTtlMs: HOUR_MS });
  const call = callOf(customer);
  assert.equal((await calls.begin(call)).status, 'authorized');
  const finished = await calls.finish({ ...call, capture: false, outcome: 'UPSTREAM_FAILED', answer: null });
  assert.equal(finished.status, 'done');
  return call.id;
}

async function payOnChain({ server, pools }: SalesStage, world: PaymentWorld) {
  const pay = (header?: string) =>
    fetch(`${server.url}/x402/ping`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(header === undefined ? {} : { 'payment-signature': header }),
      },
      body: '{}',
    });
  const challenge = await pay();
  const { accepts }: { accepts: { amount: string }[] } = JSON.parse(
    Buffer.from(challenge.headers.get('payment-required') ?? '', 'base64').toString(),
  );
  const wallet = await world.wallet();
  const valueUnits = BigInt(accepts[0]?.amount ?? 0);
  const header = await paymentHeader(
    challenge,
    await signPayment(wallet, { to: world.recipient, valueUnits }),
  );
  let onChain = '';
  await until('the payer to get its answer', async () => {
    const response = await pay(header);
    const text = await response.text();
    assert.notEqual(response.status, 402, text);
    onChain = response.headers.get('x-call-id') ?? '';
    return response.status === 200;
  });
  let transaction = '';
  await until('it to be settled', async () => {
    const [row] = await pools.sql<{ transaction: string | null; state: number }[]>`
      select transaction, state from settlements where bucket = 0 and call_id = ${onChain}`;
    transaction = row?.transaction ?? '';
    return row?.state === 1;
  });
  return { onChain, transaction, payer: wallet.address.toLowerCase() };
}

/** Asks as an operator. A body makes it a POST. @returns what was answered, whatever the status */
export async function askOperator({ server }: SalesStage, path: string, body?: object): Promise<string> {
  const response = await fetch(`${server.url}/admin/api/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${OPERATOR}`,
      ...(body === undefined ? {} : { 'idempotency-key': randomUUID(), 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // A file whose making fails ends without its end.
  return `${response.status} ${await response.text().catch(String)}`;
}

/** Reads what is shown of the sales, by its address, in words that do not differ between two databases with the same sales. */
export async function shownOf(stage: SalesStage, sold: SoldCalls): Promise<Record<string, unknown>> {
  const { server, customers } = stage;
  const today = new Date().toISOString().slice(0, 10);
  const yesterday = new Date(Date.now() - 24 * HOUR_MS).toISOString().slice(0, 10);
  const [first, second] = customers;
  const paths = [
    ...plainPages(),
    'overview?days=2',
    'owed?skip=0',
    `accounting.jsonl?from=${yesterday}&to=${today}`,
    `accounting.csv?from=${yesterday}&to=${today}`,
    ...['test', 'buyer@farebox.test', 'nothing of the kind', String(first.id)].map((q) => `keys?q=${q}`),
    `keys?q=${first.apiKey.slice(0, 12)}`,
    ...customers.map(({ id }) => `accounts/${id}`),
    'accounts/5',
    'accounts/999999',
    ...[...sold.charged, sold.failed, sold.givenBack, sold.running, sold.onChain].map((id) => `find?q=${id}`),
    ...[sold.transaction, sold.payer, 'test', 'req_nobody', 'buyer@farebox.test'].map((q) => `find?q=${q}`),
    ...[sold.refunded, sold.failed].map((id) => `calls/${id}?account=${first.id}`),
    ...[sold.givenBack, sold.running].map((id) => `calls/${id}?account=${second.id}`),
    `calls/${sold.onChain}`,
    `calls/${randomUUID()}?account=${first.id}`,
    `acts?account=${first.id}`,
  ];
  const named = naming(stage, sold);
  const shown: Record<string, unknown> = {};
  for (const path of paths) shown[named(path)] = told(named(await askOperator(stage, path)));
  for (const [index, { apiKey }] of customers.entries()) {
    const response = await fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': apiKey } });
    shown[`/api/keys/me of customer ${index}`] = told(named(`${response.status} ${await response.text()}`));
  }
  return shown;
}

/** The pages that need nothing named. */
function plainPages(): string[] {
  return Object.keys(OPERATOR_ROUTES)
    .filter((route) => route.startsWith('GET /') && !route.includes(':') && !/accounting|find/.test(route))
    .map((route) => route.slice('GET /'.length));
}

/** Names ids for what they are, and leaves out whatever is another one each time. */
function naming({ customers, server }: SalesStage, sold: SoldCalls): (text: string) => string {
  const names = new Map<string, string>();
  for (const [what, ids] of Object.entries(sold))
    for (const [index, id] of [ids].flat().entries()) if (!names.has(id)) names.set(id, `<${what} ${index}>`);
  return (text) => {
    let said = text.replaceAll(server.url, '<server>');
    for (const [id, name] of names) said = said.replaceAll(id, name);
    for (const [index, { id, apiKey }] of customers.entries()) {
      said = said.replaceAll(apiKey.slice(0, 12), `<key ${index}>`);
      said = said.replace(
        new RegExp(`(?<=["/=]|\\baccount )${id}(?=[\\\\"/&?\\s]|$)`, 'g'),
        `<account ${index}>`,
      );
    }
    return said
      .replace(UUID, '<id>')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z?/g, '<time>')
      .replace(/\breq_[\w-]+/g, '<request>')
      .replace(/fbx_[0-9a-zA-Z_-]{6,}/g, '<key>')
      .replace(/"(keyId|sessionId|accountId)":"\d+"/g, '"$1":"<number>"')
      .replace(/\b[0-9a-f]{64}\b/g, '<digest>');
  };
}

function told(answer: string): unknown {
  const [status = '', ...rest] = answer.split(' ');
  const text = rest.join(' ');
  try {
    return { status, body: JSON.parse(text, comparable) as unknown };
  } catch {
    return { status, body: text.split('\n') };
  }
}

/** The verdict on the books, of which a spread database has more rules; the price of gas; and what sources and lists are doing. */
const OTHERS = ['verdict', 'provingSince', 'books', 'gas', 'dataLists', 'upstreams', 'lawPages'];

/** Leaves out what does not come from the sales; and whether the chain has made a payment final by now. */
function comparable(key: string, value: unknown): unknown {
  if (OTHERS.includes(key)) return undefined;
  if (key === 'events' && Array.isArray(value)) return value.filter(({ what }) => what !== 'final');
  return value;
}

/** Reads the overview's sales and money. */
export async function soldOf(stage: SalesStage): Promise<unknown> {
  const { sales, money } = JSON.parse((await askOperator(stage, 'overview')).slice('200 '.length));
  return { sales, money };
}

/** Counts all that was sold, or what was in one bucket: as if the minute were over in which a statement may still begin to write. */
export async function countSales({ pools }: SalesStage, bucket: number | null = null): Promise<void> {
  const turns = createBucketTurns(pools);
  const job = foldSales(pools.sql, 2, turns);
  await job.run();
  const { sql } = pools;
  await sql`
    update ${sql(turns.isSpread ? 'sales_folded_buckets' : 'sales_folded')} set complete_to = now()
    where ${bucket === null ? sql`true` : sql`bucket = ${bucket}`}`;
  await job.run();
}

/** Reads what was counted, by day and service, in the words of the tables. */
export async function countedIn({ pools: { sql }, customers }: SalesStage): Promise<unknown> {
  const named = (account: bigint) => customers.findIndex(({ id }) => id === account);
  const accounts = await sql<{ account_id: bigint }[]>`
    select * from account_sales_days where account_id in ${sql(customers.map(({ id }) => String(id)))} or account_id < 1000
    order by account_id, day, service, rail`;
  return {
    days: [...(await sql`select * from sales_days order by day, service, rail`)],
    accounts: accounts.map((row) => ({ ...row, account_id: named(row.account_id) })),
    transfers: [...(await sql`select * from transfer_days order by day, code`)],
    open: (await sql`select 1 from sales_open`).length,
    services: [...(await sql`select service, answered, failed from service_figures order by service`)],
  };
}

/** Measures how services answered. */
export async function measure({ pools }: SalesStage): Promise<void> {
  await pools.sql`delete from service_figures`;
  await measureServices(pools.sql, Date.now, createBucketTurns(pools)).job.run();
}
