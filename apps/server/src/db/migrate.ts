import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../start-error.ts';
import type { Database } from './connection.ts';

const FOLDER = join(import.meta.dirname, 'migrations');

/**
 * Brings the schema up to date: runs every `migrations/*.sql` that has not run, in order of name, each in a
 * transaction. Replicas that start together take turns.
 *
 * @returns the names of those that ran now
 * @throws when a file that has run was changed since: an applied migration is history, write a new one
 */
export async function migrate(sql: Database): Promise<string[]> {
  return sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(8402)`;
    await transaction`set local statement_timeout = 0`;
    await transaction`
      create table if not exists schema_migrations (
        name text primary key, checksum text not null, applied_at timestamptz not null default now()
      )`;
    const applied = await transaction<{ name: string; checksum: string }[]>`
      select name, checksum from schema_migrations`;
    const checksums = new Map(applied.map(({ name, checksum }) => [name, checksum]));
    const ran: string[] = [];
    for (const name of readdirSync(FOLDER).sort()) {
      const text = readFileSync(join(FOLDER, name), 'utf8');
      const checksum = createHash('sha256').update(text).digest('hex');
      const known = checksums.get(name);
      if (known === checksum) continue;
      if (known !== undefined)
        throw new StartError(
          `migration ${name} was changed after it had run on this database. Use a version that knows it, or, if it is a sandbox's, npm run sandbox:reset.`,
        );
      await transaction.unsafe(text);
      await transaction`insert into schema_migrations (name, checksum) values (${name}, ${checksum})`;
      ran.push(name);
    }
    return ran;
  });
}
