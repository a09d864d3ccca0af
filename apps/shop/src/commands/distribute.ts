#!/usr/bin/env node
import { parseArgs } from 'node:util';
/** `npm run database:distribute`: spreads the database over the servers of Citus, or brings to them what a new version added. */
import { databaseOf, readConfig } from '@farebox/core/config';
import { DATABASE } from '@farebox/core/db/declared';
import { distribute, USUAL_SHARDS } from '@farebox/core/db/distribute';
import { openDatabase } from '@farebox/core/db/open';
import { runCommand, UsageError } from '@farebox/process/run-command';
import { StartError } from '@farebox/process/start-error';

await runCommand('npm run database:distribute -- --preview [--shards 32]', async () => {
  const { values } = parseArgs({
    options: {
      preview: { type: 'boolean', default: false },
      shards: { type: 'string', default: String(USUAL_SHARDS) },
    },
  });
  if (!values.preview)
    throw new UsageError(
      'this is a preview. On a database that is spread weeks of calls do not leave for files, and there is no way back: docs/citus.md says what else does not work. Say --preview for a database that you can do without',
    );
  const shards = Number(values.shards);
  if (!Number.isInteger(shards) || shards < 2 || shards > 1_024)
    throw new UsageError('--shards must be a whole number from 2 to 1024');
  const config = readConfig(process.env, [DATABASE], { all: false });
  if (databaseOf(config).databaseUrl === null)
    throw new StartError(
      'the embedded PostgreSQL is one server. Set DATABASE_URL to the coordinator of a Citus cluster.',
    );
  const database = await openDatabase(databaseOf(config), { exclusive: false });
  try {
    const { steps } = await distribute(database.patient, {
      shards,
      report: (step) => process.stdout.write(`${step}\n`),
    });
    process.stdout.write(
      steps.length === 0 ? 'The database is spread already.\n' : 'The database is spread.\n',
    );
    return 0;
  } finally {
    await database.close();
  }
});
