/** Does what `npm start` has to do in the server's process, whose code is loaded there, before the server runs and beside it. */

import { databaseOf, readConfig } from '@farebox/core/config';
import { connectDatabase, connectPools, databaseMs, endPools } from '@farebox/core/db/connection';
import { DATABASE } from '@farebox/core/db/declared';
import { migrate } from '@farebox/core/db/migrate';
import { serverOn } from '@farebox/core/db/open';
import { openGrants } from '@farebox/core/keys/grant';
import { usdToMicros } from '@farebox/core/ledger/money';
import {
  runningEmbeddedPostgres,
  startEmbeddedPostgres,
  stopEmbeddedPostgres,
} from '@farebox/process/embedded-postgres';

const CONNECTIONS_END_WITHIN_S = 3;
/** A key after the other needs one for its requests, and the one for commits. */
const CONNECTIONS = 2;

type Environment = Readonly<Record<string, string | undefined>>;

/** A key to be made, as it is told from process to process. */
export interface GrantAsked {
  usd: string;
  label: string;
  reason: string;
}

/** Starts the embedded database, brings its schema up to date, and leaves it running for the server, which opens it then. */
export async function bringDatabaseUp(environment: Environment): Promise<void> {
  const { localUrl } = await startEmbeddedPostgres(configured(environment).dataDir);
  const sql = connectDatabase(localUrl, 1);
  try {
    await migrate(sql);
  } finally {
    await sql.end({ timeout: CONNECTIONS_END_WITHIN_S });
  }
}

/** Ends what `bringDatabaseUp` has started, unless another server has taken it over. */
export async function letGoOfDatabase(environment: Environment): Promise<void> {
  const { dataDir } = configured(environment);
  if (serverOn(dataDir) === null) await stopEmbeddedPostgres(dataDir);
}

/**
 * Makes keys with credit while the server runs, and starts no database: one that is gone by now is gone for good.
 *
 * @returns the keys, in the order in which they were asked for
 */
export async function makeKeys(environment: Environment, grants: readonly GrantAsked[]): Promise<string[]> {
  const { databaseUrl, dataDir } = configured(environment);
  const url = databaseUrl ?? (await runningEmbeddedPostgres(dataDir));
  if (url === null) throw new Error('there is no database any more');
  const pools = connectPools(url, CONNECTIONS);
  try {
    await pools.clock.measure(() => databaseMs(pools.sql));
    const make = openGrants(pools, pools.clock.nowMs);
    const made: string[] = [];
    for (const { usd, label, reason } of grants)
      made.push((await make({ amountMicros: usdToMicros(usd), label, note: reason })).apiKey);
    return made;
  } finally {
    await endPools(pools, CONNECTIONS_END_WITHIN_S);
  }
}

/** Reads the configuration of the database alone: the addresses of the world's parts may not be known yet. */
function configured(environment: Environment) {
  return databaseOf(readConfig(environment, [DATABASE], { all: false }));
}
