import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '../../../../packages/process/src/start-error.ts';
import { type Database, isLockTimeout } from './connection.ts';

const LOCK_TIMEOUT_MS = 3_000;
const LOCK_PAUSE_MS = 2_000;
const LOCK_ATTEMPTS = 60;
const FOLDER = join(import.meta.dirname, 'migrations');

/**
 * Brings the schema up to date: runs every `migrations/*.sql` that has not run, in order of name, each in a
 * transaction. Replicas that start together take turns.
 *
 * @returns the names of those that ran now
 * @throws when a file that has run was changed since: an applied migration is history, write a new one
 */
export async function migrate(sql: Database): Promise<string[]> {
  const ran: string[] = [];
  for (const name of readdirSync(FOLDER).sort()) if (await runPatiently(sql, name)) ran.push(name);
  return ran;
}

/** A migration that waits for a lock holds up everybody who comes after it: it steps aside, and tries again. */
async function runPatiently(sql: Database, name: string): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run(sql, name);
    } catch (error) {
      if (!isLockTimeout(error) || attempt === LOCK_ATTEMPTS) throw error;
      await sleep(LOCK_PAUSE_MS);
    }
  }
}

/** @returns whether it ran now. Its locks go with its own commit: what another one takes long for waits for none of it. */
function run(sql: Database, name: string): Promise<boolean> {
  const text = readFileSync(join(FOLDER, name), 'utf8');
  const checksum = createHash('sha256').update(text).digest('hex');
  return sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(8402)`;
    await transaction`set local statement_timeout = 0`;
    await transaction`
      create table if not exists schema_migrations (
        name text primary key, checksum text not null, applied_at timestamptz not null default now()
      )`;
    const [known] = await transaction<{ checksum: string }[]>`
      select checksum from schema_migrations where name = ${name}`;
    if (known?.checksum === checksum) return false;
    if (known !== undefined)
      throw new StartError(
        `migration ${name} was changed after it had run on this database. Use a version that knows it, or, if it is a sandbox's, npm run sandbox:reset.`,
      );
    await transaction.unsafe(`set local lock_timeout = '${LOCK_TIMEOUT_MS}ms'`);
    await transaction.unsafe(text);
    await transaction`insert into schema_migrations (name, checksum) values (${name}, ${checksum})`;
    return true;
  });
}
