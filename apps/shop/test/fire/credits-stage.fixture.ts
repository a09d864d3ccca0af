/** A stage for the rail of prepaid credit: a shop of its own, with a database and two replicas. A payment is a key and a name. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { HOUSE_ACCOUNTS } from '../../../../packages/core/src/ledger/accounts.ts';
import { openTestDatabase } from '../database.fixture.ts';
import { startTestServer } from '../server.fixture.ts';
import { countingServices } from './counting-services.fixture.ts';
import type { Asking, Told } from './fault-table.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from './money.fixture.ts';

const PRICE = 50_000n;
const SERVICE_TIMEOUT_MS = 2_000;

export type CreditsStage = Awaited<ReturnType<typeof setCreditsStage>>;

export async function setCreditsStage() {
  const database = await openTestDatabase();
  const elsewhere = connectPools(database.url, 6);
  const script = { runs: 0, during: async (_run: number): Promise<void> => {} };
  const services = countingServices(script, { nickel: '0.05', deed: '0.05' }, SERVICE_TIMEOUT_MS);
  const open = (pools: Pools, environment: Record<string, string> = {}) =>
    startTestServer({ pools, services, environment });
  let [here, there] = await Promise.all([open(database), open(elsewhere)]);
  /** The revenue and the calls when the row began. */
  let before: { revenueMicros: bigint; calls: readonly string[] } = { revenueMicros: 0n, calls: [] };

  async function revenueMicros(): Promise<bigint> {
    const id = String(HOUSE_ACCOUNTS.revenue_credits);
    const [row] = await database.patient<{ micros: bigint }[]>`
      select coalesce(sum(case when credit_account = ${id} then amount_micros else -amount_micros end), 0)::bigint
        as micros
      from ledger_transfers where phase in (1, 3) and ${id} in (credit_account, debit_account)`;
    return row?.micros ?? 0n;
  }

  const stage = {
    database,
    script,
    get here() {
      return here;
    },
    get there() {
      return there;
    },
    wallet: (usd = 5): Promise<string> => here.key(String(usd)),
    pay: async (key: string): Promise<string> => `${key} ${randomUUID()}`,
    async present(payment: string, asking: Asking = {}): Promise<Told> {
      const { path = 'nickel', body = {}, on = here, signal, send = fetch } = asking;
      const [key = '', name = ''] = payment.split(' ');
      const response = await send(`${on.url}/x402/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': key, 'idempotency-key': name },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      });
      return toldOf(response);
    },
    async restart(more?: Record<string, string>): Promise<void> {
      await here.close();
      here = await open(database, more);
    },
    async rest(): Promise<void> {
      await here.app.reconciler.run();
    },
    priceOf: (): bigint => PRICE,
    /** The revenue since the row began. */
    moved: async (): Promise<bigint> => (await revenueMicros()) - before.revenueMicros,
    held: async (key: string): Promise<bigint> => balanceOf(database.sql, await accountOf(database.sql, key)),
    async calls() {
      const rows = await database.patient<{ state: number; count: number; micros: bigint }[]>`
        select state, count(*)::integer as count, sum(price_micros)::bigint as micros from calls
        where not id = any(${before.calls as string[]}::uuid[]) group by state`;
      const of = (state: number) => rows.find((row) => row.state === state);
      return {
        open: of(0)?.count ?? 0,
        captured: of(1)?.count ?? 0,
        released: of(2)?.count ?? 0,
        withChain: of(3)?.count ?? 0,
        capturedMicros: of(1)?.micros ?? 0n,
      };
    },
    receiptOf: ({ headers }: Told): string | null => headers.get('x-call-id'),
    assertProper({ status, text, body, headers }: Told): void {
      assert.doesNotMatch(body, /\b(?:viem|ECONN|postgres)|at \S+ \(/i, 'inner text got out');
      assert.equal(headers.has('x-credits-used'), status === 200, text);
      if (status === 503) assert(Number(headers.get('retry-after')) >= 1, 'no Retry-After');
    },
    assertBooksBalance: () => assertBooksClosed(database.patient),
    async reset(): Promise<void> {
      script.runs = 0;
      script.during = async () => {};
      const calls = await database.patient<{ id: string }[]>`select id from calls`;
      before = { revenueMicros: await revenueMicros(), calls: calls.map(({ id }) => id) };
    },
    async close(): Promise<void> {
      await Promise.all([here.close(), there.close()]);
      await endPools(elsewhere, 1);
      await database.close();
    },
  };
  return stage;
}

async function toldOf(response: Response): Promise<Told> {
  const body = await response.text();
  const { status, headers } = response;
  const said: { code?: string; last_error_reason?: { code?: string } } = JSON.parse(body);
  const code = said.last_error_reason?.code ?? said.code;
  const again = headers.get('idempotent-replayed') === 'true';
  const text = [String(status), ...(code === undefined ? [] : [code]), ...(again ? ['again'] : [])].join(' ');
  return { status, text, body, headers };
}
