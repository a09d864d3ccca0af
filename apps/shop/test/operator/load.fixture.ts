/** Callers who buy from a server process while its secrets are exchanged, and the proof that each call was taken once. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { proveBooks } from '../books.fixture.ts';
import type { TestDatabase } from '../database.fixture.ts';
import type { ServerProcess } from '../fire/server-process.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

/** Between two calls of a caller, so that what is tested beside them has a processor too. */
const PAUSE_MS = 50;
/** Calls that a caller of limited means buys beyond those that are waited for, so that some are always under way. */
const AHEAD = 4;

/** Buys one call at the server of this address. */
export type Buy = (url: string) => Promise<Response>;

/**
 * Starts callers who buy one call after the other until they are stopped.
 *
 * @param callers each with the name that its sales are counted under; two may share one
 * @param limited names of callers whose means end, as a card's do: each wait for more gives them a few purchases, so that they buy
 *   the same number however slow the machine is
 */
export function startLoad<Name extends string>(
  first: { url: string },
  callers: readonly [Name, Buy][],
  limited: readonly Name[] = [],
) {
  let at = first;
  let isOver = false;
  const sold = Object.fromEntries(callers.map(([name]) => [name, 0])) as Record<Name, number>;
  const mayBuy = new Map(limited.map((name) => [name, AHEAD]));
  const failed: string[] = [];
  const running = new Map<{ url: string }, number>();
  const count = (server: { url: string }, by: number) => running.set(server, (running.get(server) ?? 0) + by);
  const buying = async ([name, buy]: [Name, Buy]) => {
    while (true) {
      while (!isOver && sold[name] >= (mayBuy.get(name) ?? Number.POSITIVE_INFINITY)) await sleep(PAUSE_MS);
      if (isOver) return;
      const server = at;
      count(server, 1);
      try {
        const reply = await buy(server.url);
        const text = await reply.text();
        if (reply.status === 200) sold[name] += 1;
        else failed.push(`${name}: ${reply.status} ${text}`);
      } catch (error) {
        failed.push(`${name}: ${error}`);
      } finally {
        count(server, -1);
      }
      await sleep(PAUSE_MS);
    }
  };
  const all = Promise.all(callers.map(buying));
  return {
    sold,
    /** Waits until each caller has bought more. @param calls at least so many; those of callers who share a name count together */
    async more(calls = 3): Promise<void> {
      const before = { ...sold };
      for (const name of mayBuy.keys()) mayBuy.set(name, before[name] + calls + AHEAD);
      const haveBought = () => callers.every(([name]) => sold[name] >= before[name] + calls);
      await until('more calls to be sold', () => failed.length > 0 || haveBought());
      assert.deepEqual(failed, []);
    },
    /** Sends callers elsewhere, and waits until none is left at the one before. */
    async moveTo(server: { url: string }): Promise<void> {
      const before = at;
      at = server;
      await until('the callers to have left', () => running.get(before) === 0);
    },
    async stop(): Promise<void> {
      isOver = true;
      await all;
      assert.deepEqual(failed, []);
    },
  };
}

/** @returns a function that writes secrets into files of a folder, and gives the variables that name them */
export const filesIn =
  (folder: () => string) =>
  (secrets: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(secrets).map(([name, value]) => {
        writeFileSync(join(folder(), name), `${value}\n`);
        return [`${name}_FILE`, join(folder(), name)];
      }),
    );

/**
 * Has a server read its files again.
 *
 * @param waits whether some wait for a start, which it says in a line of its own
 */
export async function hangUp(
  server: ServerProcess,
  waits = false,
): Promise<{ renewed: string[]; waiting: string[] }> {
  const said = server.listen();
  server.process.kill('SIGHUP');
  const lineWith = (message: string) =>
    said()
      .split('\n')
      .find((line) => line.endsWith(`"msg":"${message}"}`));
  const read = 'secrets were read again';
  const waitFor = 'these new secrets wait for the next start';
  await until(
    'the secrets to be read again',
    () => lineWith(read) !== undefined && (!waits || lineWith(waitFor) !== undefined),
  );
  const waiting = lineWith(waitFor);
  return {
    renewed: JSON.parse(lineWith(read) ?? '').renewed.toSorted(),
    waiting: waiting === undefined ? [] : JSON.parse(waiting).waiting.toSorted(),
  };
}

/** POSTs JSON to a server. */
export const post = (url: string, path: string, headers: Record<string, string>, body: object = {}) =>
  fetch(`${url}/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

/**
 * Has an operator give a payment back, as soon as the chain has made it final.
 *
 * @param callId the paid call's
 */
export async function giveBack(
  { sql }: TestDatabase,
  { url, token, callId }: { url: string; token: string; callId: string | null },
): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'idempotency-key': randomUUID() };
  const isTaken = async () => {
    // Before all that the callers pay meanwhile, which would be looked at first on a slow machine.
    await sql`
      update settlements set next_at = now() - interval '1 hour' where call_id = ${callId} and final_at is null`;
    const asked = await post(url, `admin/api/payments/${callId}/refund`, headers, {
      reason: 'no good answer',
    });
    const told = await jsonOf(asked);
    assert(asked.status === 200 || told.code === 'PAYMENT_NOT_FINAL', JSON.stringify(told));
    return asked.status === 200;
  };
  await until('the refund to be taken', isTaken);
}

/** The calls that were sold on this database so far, and what was taken for them. */
export async function boughtOn({ sql }: TestDatabase): Promise<{ calls: number; micros: bigint }> {
  const [row] = await sql<{ calls: number; micros: bigint }[]>`
    select count(*)::integer as calls, coalesce(sum(price_micros), 0)::bigint as micros from calls where state = 1`;
  return { calls: row?.calls ?? 0, micros: BigInt(row?.micros ?? 0) };
}

/** Proves the books, and that as much was taken since as was delivered. */
export async function assertTakenOnce(
  database: TestDatabase,
  before: Awaited<ReturnType<typeof boughtOn>>,
  delivered: { calls: number; micros: bigint },
): Promise<void> {
  const isQuiet = async () => {
    const [open] = await database.sql<{ open: number }[]>`
      select count(*)::integer as open from calls where state in (0, 3)`;
    return open?.open === 0;
  };
  await until('every call to have ended', isQuiet);
  const now = await boughtOn(database);
  assert.deepEqual({ calls: now.calls - before.calls, micros: now.micros - before.micros }, delivered);
  const { checks } = await proveBooks(database.patient);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
}
