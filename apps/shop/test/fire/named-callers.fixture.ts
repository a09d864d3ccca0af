/** Callers that ask for each call by its name until it is answered, and the proof of what they were charged. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Database } from '../../../../packages/core/src/db/connection.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf } from './money.fixture.ts';
import { until } from './until.fixture.ts';

/** How long a call may be asked for again and again. */
const ANSWERED_WITHIN_MS = 120_000;

export interface NamedCallers {
  /** The ids of the calls that were answered, in their order. */
  readonly sold: readonly string[];
  /** The longest time between two answers since it was asked for last, in milliseconds. */
  takeLongestGapMs(): number;
  /** How often each code of an error was answered since it was asked for last. */
  takeRefusals(): ReadonlyMap<string, number>;
  /** Asks once. */
  ask(name: string): Promise<Response>;
  /** One call, asked for by its name until it is answered. */
  buy(): Promise<void>;
  /** So many callers buy so many each, and go on until it is over. */
  buyAtOnce(callers: number, each: number, isOver: () => boolean): Promise<void>;
  /** What was answered was charged, once, and nothing else was. */
  assertCharged(sql: Database, grantedMicros: bigint): Promise<void>;
}

export function namedCallers(url: string, key: string): NamedCallers {
  const sold: string[] = [];
  let lastMs: number | null = null;
  let longestGapMs = 0;
  let refusals = new Map<string, number>();
  const ask = (name: string) =>
    fetch(`${url}/x402/ping`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': key, 'idempotency-key': name },
      body: '{}',
    });
  const buy = async () => {
    const name = randomUUID();
    let id: string | null = null;
    const isAnswered = async () => {
      // A connection that lay idle may be closed as it is used again: asked by its name, the call is the same.
      const response = await ask(name).catch(() => null);
      if (response === null) return false;
      const text = await response.text();
      assert([200, 409, 503].includes(response.status), text);
      if (response.status !== 200) {
        const { code } = JSON.parse(text) as { code: string };
        refusals.set(code, (refusals.get(code) ?? 0) + 1);
      }
      id = response.headers.get('x-call-id');
      return response.status === 200;
    };
    await until('a call to be answered', isAnswered, ANSWERED_WITHIN_MS);
    assert(id !== null);
    sold.push(id);
    longestGapMs = Math.max(longestGapMs, performance.now() - (lastMs ?? performance.now()));
    lastMs = performance.now();
  };
  const buyMany = async (least: number, isOver: () => boolean) => {
    for (let count = 0; count < least || !isOver(); count++) await buy();
  };
  return {
    sold,
    takeLongestGapMs() {
      const gapMs = longestGapMs;
      [lastMs, longestGapMs] = [null, 0];
      return gapMs;
    },
    takeRefusals() {
      const taken = refusals;
      refusals = new Map();
      return taken;
    },
    ask,
    buy,
    async buyAtOnce(callers, each, isOver) {
      await Promise.all(Array.from({ length: callers }, () => buyMany(each, isOver)));
    },
    async assertCharged(sql, grantedMicros) {
      await endOpenCalls(sql);
      await assertChargedOnce(sql, { key, sold, grantedMicros });
      await assertBooksClosed(sql);
    },
  };
}

/** Waits until the reconciler has ended every call, none of which is given more time. */
export async function endOpenCalls(sql: Database): Promise<void> {
  await until('no call to be open', async () => {
    await sql`update calls set expires_at = now() where state = 0`;
    return (await sql`select 1 from calls where state = 0`).length === 0;
  });
}

/** Holds that what was answered to a key was charged, once, and nothing else was. @param of.sold the ids of the calls */
export async function assertChargedOnce(
  sql: Database,
  { key, sold, grantedMicros }: { key: string; sold: readonly string[]; grantedMicros: bigint },
): Promise<void> {
  const account = await accountOf(sql, key);
  const captured = (await callsOf(sql, account)).filter(({ state }) => state === 1);
  assert.equal(new Set(sold).size, sold.length, 'each name got an answer of its own');
  assert.deepEqual(
    captured.map(({ id }) => id).sort(),
    sold.toSorted(),
    'what was answered was charged, once',
  );
  const price = captured[0]?.price_micros ?? 0n;
  assert.equal(await balanceOf(sql, account), grantedMicros - price * BigInt(sold.length));
}
