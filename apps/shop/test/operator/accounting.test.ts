/** The export for an accountant: every micro-dollar of the books is in it once, on its day, and no cell is a formula. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import {
  type AccountingLine,
  accountingLines,
  asCsv,
  COLUMNS,
} from '../../../../packages/core/src/operator/accounting.ts';
import { proveBooks } from '../books.fixture.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

const TOKEN = 'an-operators-token-of-the-tests';
const DAY_MS = 86_400_000;
/** The card provider goes by the clock of this machine, so its payment is of today. */
const TODAY_MS = Date.now();
const [FIRST = '', MIDDLE = '', LAST = ''] = [-1, 0, 1].map((days) =>
  new Date(TODAY_MS + days * DAY_MS).toISOString().slice(0, 10),
);

let world: CardWorld;
let nowMs = Date.parse(`${FIRST}T23:59:59.990Z`);
before(async () => {
  world = await startCardWorld({
    environment: { ADMIN_TOKENS: `desk:${TOKEN}`, SERVICE_COSTS_USD: 'ping=0.0004' },
    nowMs: () => nowMs,
  });
});
after(() => world.stop());

function ask(path: string, body?: object): Promise<Response> {
  return fetch(`${world.server.url}/admin/api/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}
async function lines(from = FIRST, to = LAST): Promise<AccountingLine[]> {
  const text = await (await ask(`accounting.jsonl?from=${from}&to=${to}`)).text();
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

test('the sum of all lines is each balance of the books, and each day has what was taken on it', async () => {
  const { server } = world;
  // The last milliseconds of a day in UTC, the first of the next, and a day more.
  const key = await server.key('10');
  const known = await server.app.keys.find(key);
  assert.equal((await server.call('ping', key)).status, 200);
  nowMs = Date.parse(`${MIDDLE}T00:00:00.000Z`);
  for (let calls = 0; calls < 3; calls += 1) assert.equal((await server.call('ping', key)).status, 200);
  nowMs = TODAY_MS;
  const checkout = { amountUsd: 100, email: 'buyer@example.com' };
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', checkout));
  await world.pay(opened.checkoutUrl);
  const status = `${opened.sessionId}?token=${opened.retrievalToken}`;
  await jsonOf(fetch(`${server.url}/api/m2m/credits/checkout/status/${status}`));
  nowMs = Date.parse(`${LAST}T12:00:00.000Z`);
  assert.equal((await server.call('first-call', key)).status, 200);
  const [order] = await ordersOf();
  const refund = { reason: 'for the test', orderId: order?.id, amountUsd: '40' };
  assert.equal((await ask(`accounts/${order?.account_id}/refund-order`, refund)).status, 200);
  const [call] = await world.database.sql<{ id: string }[]>`
    select id from calls where account_id = ${String(known?.accountId)} and state = 1 order by finished_at limit 1`;
  const back = await ask(`accounts/${known?.accountId}/refund-call`, {
    reason: 'for the test',
    callId: call?.id,
  });
  assert.equal(back.status, 200, await back.text());
  // A reservation that is not taken moves nothing.
  await createLedger(world.database, () => nowMs).transfer({
    id: randomUUID(),
    accountId: known?.accountId ?? 0n,
    phase: 'pending',
    side: 'debit',
    house: 'revenue_credits',
    amountMicros: 5n,
    code: 'call',
  });

  const all = await lines();
  const end = all.at(-1);
  assert.deepEqual([end?.kind, end?.count], ['end', String(all.length - 1)]);
  const net = new Map<string, bigint>();
  for (const { debit, credit, amountUsd } of all) {
    if (debit === null || credit === null || amountUsd === null) continue;
    net.set(debit, (net.get(debit) ?? 0n) - usdToMicros(amountUsd));
    net.set(credit, (net.get(credit) ?? 0n) + usdToMicros(amountUsd));
  }
  const books = await proveBooks(world.database.patient);
  for (const { account, netMicros } of books.house) assert.equal(net.get(account), netMicros, account);
  assert.equal(net.get('customers'), books.customersMicros);
  assert.equal(net.size, books.house.length + 1);

  const of = (day: string, kind: string) => all.filter((line) => line.day === day && line.kind === kind);
  const told = (found: AccountingLine[]) =>
    found.map(({ rail, service, count, amountUsd }) => [rail, service, count, amountUsd]);
  assert.deepEqual(told(of(FIRST, 'revenue')), [['credits', 'ping', '1', '0.250000']]);
  assert.deepEqual(told(of(MIDDLE, 'revenue')), [['credits', 'ping', '3', '0.750000']]);
  assert.deepEqual(told(of(MIDDLE, 'source_cost')), [[null, 'ping', '3', '0.001200']]);
  assert.deepEqual(told(of(MIDDLE, 'provider_fee')), [['card', null, '1', null]]);
  assert.deepEqual(told(of(LAST, 'source_cost')), [[null, 'first-call', '1', '0.000000']]);
  const refunds = of(LAST, 'refund').reduce((sum, { amountUsd }) => sum + usdToMicros(amountUsd ?? '0'), 0n);
  assert.equal(refunds, 40_250_000n);
  // Each day alone has the same lines.
  assert.deepEqual(
    (await lines(MIDDLE, MIDDLE)).slice(0, -1),
    all.filter(({ day }) => day === MIDDLE),
  );
});

function ordersOf() {
  return world.database.sql<{ id: string; account_id: bigint }[]>`
    select id, account_id from card_orders where state = 1`;
}

test('what a source was measured to cost stands by source, and is shared by the services that asked it', async () => {
  const { sql, patient } = world.database;
  await sql`insert into source_costs (day, source, requests, cost_micros) values (${MIDDLE}::date, 'ai', 7, 1001)`;
  const measured = (await lines()).filter(({ kind }) => kind === 'measured_cost');
  assert.deepEqual(
    measured.map(({ day, source, count, amountUsd }) => [day, source, count, amountUsd]),
    [[MIDDLE, 'ai', '7', '0.001001']],
  );
  const key = await world.server.key('1');
  assert.equal((await world.server.call('ping', key)).status, 200);
  const costsOf = async (declared: readonly { service: string; costMicros: bigint }[], needs: string[]) => {
    const services = ['ping', 'first-call'].map((path) => ({ path, costsMoney: true, needs }));
    const measuredOn = async () => [{ source: 'ai', requests: 7n, costMicros: 1_001n }];
    const found: (string | null)[][] = [];
    const [fromMs, toMs] = [FIRST, LAST].map((each) => Date.parse(each)) as [number, number];
    for await (const line of accountingLines(patient, {
      fromMs,
      toMs,
      costs: { declared, services, measuredOn },
    }))
      if (line.kind === 'source_cost') found.push([line.day, line.service, line.count, line.amountUsd]);
    return found;
  };
  assert.deepEqual(await costsOf([], ['ai']), [
    [FIRST, 'ping', '1', '0.001001'],
    [MIDDLE, 'ping', '3', '0.001001'],
    // A part of a micro-dollar is rounded up.
    [LAST, 'first-call', '1', '0.000501'],
    [LAST, 'ping', '1', '0.000501'],
  ]);
  assert.deepEqual(await costsOf([{ service: 'ping', costMicros: 5n }], ['other']), [
    [FIRST, 'ping', '1', '0.000005'],
    [MIDDLE, 'ping', '3', '0.000015'],
    [LAST, 'first-call', '1', null],
    [LAST, 'ping', '1', '0.000005'],
  ]);
});

test('the CSV has the same lines, with a head, and opens as text', async () => {
  const answer = await ask(`accounting.csv?from=${FIRST}&to=${LAST}`);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/csv; charset=utf-8/);
  const rows = (await answer.text()).split('\r\n');
  assert.equal(rows[0], COLUMNS.join(','));
  assert.equal(rows.at(-1), '');
  assert.equal(rows.length - 2, (await lines()).length);
  const line: AccountingLine = {
    day: '2026-10-01',
    kind: 'revenue',
    rail: 'credits',
    code: 'call',
    debit: 'customers',
    credit: 'revenue_credits',
    count: '1',
    amountUsd: '0.001000',
    units: null,
    unit: null,
    service: '=cmd|"/C calc"!A0',
    note: '+1,\r\n2',
    source: null,
  };
  assert.equal(
    asCsv(line),
    '2026-10-01,revenue,credits,"\'=cmd|""/C calc""!A0",call,customers,revenue_credits,1,0.001000,,,"\'+1,\r\n2",\r\n',
  );
});

test('a year is the most, and days must be days', async () => {
  const wrong = [
    '',
    'from=2026-01-01',
    'from=2026-02-30&to=2026-03-01',
    'from=2026-03-02&to=2026-03-01',
    'from=2025-01-01&to=2026-01-02',
    'from=1999-01-01&to=1999-01-02',
  ];
  for (const query of wrong) {
    const refused = await ask(`accounting.csv?${query}`);
    assert.deepEqual([refused.status, (await jsonOf(refused)).code], [400, 'INVALID_REQUEST'], query);
  }
  const year = await ask('accounting.csv?from=2025-10-02&to=2026-10-02');
  assert.equal(year.status, 200);
  assert.match(await year.text(), /^day,kind/);
});

test('two files are made at once, and a reader that goes away gives its place back', async () => {
  // A lock on the ledger keeps files from being made while they are asked for.
  let release = () => {};
  const held = new Promise<void>((done) => {
    release = done;
  });
  const holding = world.database.sql.begin(async (transaction) => {
    await transaction`lock table ledger_transfers in access exclusive mode`;
    await held;
  });
  const path = `accounting.csv?from=${FIRST}&to=${LAST}`;
  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${TOKEN}` };
  const gone = fetch(`${world.server.url}/admin/api/${path}`, { headers, signal: leaving.signal });
  const first = await gone;
  const second = await ask(path);
  const third = await ask(path);
  assert.deepEqual([first.status, second.status, third.status], [200, 200, 503]);
  assert.equal((await jsonOf(third)).code, 'EXPORTS_BUSY');
  leaving.abort();
  release();
  await holding;
  await second.text();
  await first.text().catch(() => '');
  let again = await ask(path);
  while (again.status === 503) again = await ask(path);
  assert.match(await again.text(), /,end,/);
});
