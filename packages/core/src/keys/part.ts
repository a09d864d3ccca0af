import type { Configured } from '../declared.ts';
import { createBucketTurns } from '../ledger/bucket-turns.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { House, Part } from '../part.ts';
import type { Secrets } from '../secrets/secrets.ts';
import { KEYS } from './declared.ts';
import { createKeys, type Keys } from './keys.ts';
import { KEY_OPERATIONS } from './operations.ts';
import { createTrials, type Trials } from './trial.ts';
import { CLAIMS_PER_MINUTE, trialRoutes } from './trial-routes.ts';

export { KEYS };

const TRIALS_CLOSED_AT_ONCE = 500;
/** The time for which a 402 may promise a trial that another process has given out. */
const TRIALS_LOOKED_AT_EVERY_MS = 5_000;
const CAPS_RELEASED_AT_ONCE = 500;

/**
 * API keys, and the credit that newcomers get to try things with.
 *
 * @example
 * ```ts
 * import { openKeys } from '@farebox/core/keys/part';
 *
 * const opened = openKeys(house, config.keys, { ledger, secrets });
 * await opened.keys.find('fbx_live_unknown'); // null
 * ```
 */
export function openKeys(
  house: House,
  { settings }: Configured<typeof KEYS.variables>,
  needs: {
    ledger: Ledger;
    secrets: Secrets;
  },
): Part & { keys: Keys; trials: Trials } {
  const { nowMs, baseUrl, firstCall, addressOf } = house;
  const { sql } = house.pools;
  const keys = createKeys(sql, nowMs, house.pools.distribution);
  const turns = createBucketTurns(house.pools);
  const { ledger, secrets } = needs;
  const { trialBudgetMicrosPerDay: budgetMicrosPerDay, trialAllowInternal } = settings;
  const trials = createTrials(sql, { keys, ledger, secrets, turns, nowMs, budgetMicrosPerDay });
  return {
    name: 'keys',
    requestHeaders: ['X-API-KEY'],
    operations: [KEY_OPERATIONS],
    keys,
    trials,
    trialsOpen: () => trials.nextAtMs === null,
    routes(http) {
      const claimLimit = house.limitByAddress(CLAIMS_PER_MINUTE);
      trialRoutes(http, {
        trials,
        baseUrl,
        firstCall,
        servicesAvailable: () => house.shelf.services.filter(({ aliasOf = null }) => aliasOf === null).length,
        addressOf,
        nowMs,
        trialAllowInternal,
        claimLimit,
      });
    },
    jobs: [
      {
        name: 'expire-trials',
        intervalMs: 60_000,
        run: async (stopping) => void (await trials.expire(TRIALS_CLOSED_AT_ONCE, stopping)),
      },
      { name: 'look-at-trials', intervalMs: TRIALS_LOOKED_AT_EVERY_MS, run: () => trials.look() },
      {
        name: 'release-caps',
        intervalMs: 60_000,
        run: async (stopping) =>
          void (await turns.each(
            CAPS_RELEASED_AT_ONCE,
            (bucket) => keys.releaseCaps(CAPS_RELEASED_AT_ONCE, bucket),
            stopping,
          )),
      },
      {
        name: 'forget-rotated-keys',
        intervalMs: 3_600_000,
        run: (stopping) => keys.forgetRotated(turns, stopping),
      },
    ],
  };
}
