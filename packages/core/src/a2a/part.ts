/** The services as skills of A2A: a door to the paid call like those over HTTP and MCP. */
import type { Configured } from '../declared.ts';
import { untilNoneIsDue } from '../jobs/schedule.ts';
import { presentedApiKey } from '../keys/api-key.ts';
import type { Keys } from '../keys/keys.ts';
import type { Sales } from '../paid-call/part.ts';
import type { Headers, Rail } from '../paid-call/rail.ts';
import type { House, Part } from '../part.ts';
import { A2A } from './declared.ts';
import { a2aDoor } from './door.ts';
import { a2aRoutes } from './http.ts';
import { A2A_OPERATIONS } from './operations.ts';
import type { A2aRoutesParts } from './requests.ts';
import { a2aRestRoutes } from './rest.ts';
import { Rpc } from './rpc.ts';
import { createShowing } from './showing.ts';
import { TaskRunner } from './task-runner.ts';
import { Tasks } from './tasks.ts';

export { A2A };

const DROPPED_AT_ONCE = 500;

/** `/a2a`: everything on sale, by key and by x402. */
export function openA2a(
  house: House,
  { settings }: Configured<typeof A2A.variables>,
  needs: {
    sales: Sales;
    keys: Keys;
    x402: Rail;
    credits: Rail;
  },
): Part {
  const { baseUrl, shelf, nowMs, addressOf, logger, pools } = house;
  const { sales, keys, x402, credits } = needs;
  const paidCall = sales.open({
    rails: [x402, credits],
    door: a2aDoor(x402, { baseUrl, trialsOpen: sales.promisesTrials }),
  });
  const tasks = new Tasks(pools.sql, {
    nowMs,
    keptMs: sales.answersLastMs,
    maxUnpaid: settings.maxUnpaidTasks,
  });
  const failed = (error: unknown) => logger.warn({ err: error }, 'a2a');
  const { catalog, shared } = sales;
  const { freeHangUps } = shared;
  const runner = new TaskRunner({
    shelf,
    baseUrl,
    catalog,
    tasks,
    paidCall,
    freeHangUps,
    failed,
  });
  const show = createShowing({ paidCall, shelf, nowMs });
  const unwatched = createUnwatched(failed);
  return {
    name: 'a2a',
    operations: [A2A_OPERATIONS],
    requestHeaders: ['A2A-Version', 'A2A-Extensions', 'X-A2A-Extensions'],
    routes(http) {
      // What nobody waits for is waited for before anything else ends.
      http.addHook('preClose', () => unwatched.end());
      const parts: A2aRoutesParts = {
        rpc: new Rpc({ runner, tasks, show, nowMs, background: unwatched.begin }),
        publicUrl: baseUrl,
        hosts: settings.allowedHosts,
        addressLimit: house.limitByAddress(),
        accountOf: (headers) => accountOf(keys, headers),
        addressOf,
        failed,
      };
      a2aRoutes(http, parts);
      a2aRestRoutes(http, parts);
    },
    jobs: [
      {
        name: 'drop-expired-tasks',
        intervalMs: 60_000,
        run: async (stopping) =>
          void (await untilNoneIsDue(DROPPED_AT_ONCE, () => tasks.dropExpired(DROPPED_AT_ONCE), stopping)),
      },
    ],
  };
}

/** A key that has ended sees nothing any more. */
async function accountOf(keys: Keys, headers: Headers): Promise<bigint | null> {
  const presented = presentedApiKey(headers);
  const known = presented === null ? null : await keys.find(presented);
  if (known === null) return null;
  const record = await keys.record(known.id);
  return record === null || record.status === 'revoked' ? null : known.accountId;
}

/** Work that goes on after its request was answered. */
function createUnwatched(failed: (error: unknown) => void) {
  const running = new Set<Promise<unknown>>();
  let isEnding = false;
  return {
    /** @returns false at the end: whoever asks then waits for its work itself */
    begin(work: () => Promise<unknown>): boolean {
      if (isEnding) return false;
      const run: Promise<unknown> = work()
        .catch(failed)
        .finally(() => running.delete(run));
      running.add(run);
      return true;
    },
    async end(): Promise<void> {
      isEnding = true;
      await Promise.all(running);
    },
  };
}
