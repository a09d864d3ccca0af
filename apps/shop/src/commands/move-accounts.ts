#!/usr/bin/env node
import { parseArgs } from 'node:util';
/** `npm run database:move-accounts`: moves accounts that are there into the buckets that new ones are opened in. */
import { databaseOf, readConfig } from '@farebox/core/config';
import { DATABASE } from '@farebox/core/db/declared';
import { openDatabase } from '@farebox/core/db/open';
import { moveAccounts } from '@farebox/core/ledger/account-moves';
import { moveSales } from '@farebox/core/paid-call/moved-sales';
import { runCommand, UsageError } from '@farebox/process/run-command';

/** How often it comes back to accounts that had to stay: most calls have ended by then. */
const AGAIN = { times: 15, afterMs: 2_000 };
/** So many are named of the accounts that stay. */
const NAMED = 20;

await runCommand('npm run database:move-accounts -- [--from 0]', async () => {
  const { values } = parseArgs({ options: { from: { type: 'string', default: '0' } } });
  const from = Number(values.from);
  if (!/^\d+$/.test(values.from) || from > 4_095)
    throw new UsageError('--from must be the number of a bucket, from 0 to 4095');
  const config = databaseOf(readConfig(process.env, [DATABASE], { all: false }));
  if (config.accountBuckets < 2)
    throw new UsageError(
      'ACCOUNT_BUCKETS is 1, so there is no other bucket to move accounts to. Set it to the number that the servers will have',
    );
  const database = await openDatabase(config, { exclusive: false });
  try {
    const { moved, open } = await moveAccounts(database, {
      from,
      buckets: config.accountBuckets,
      carry: moveSales,
      again: AGAIN,
      moved: (accounts) => process.stdout.write(`${accounts} accounts moved\n`),
    });
    if (open.length === 0) {
      process.stdout.write(
        moved === 0 ? 'No account had to be moved.\n' : 'All accounts of the bucket are moved.\n',
      );
      return 0;
    }
    const named = open.slice(0, NAMED).join(', ');
    process.stdout.write(
      `${open.length} accounts stay, because a call or a notice of theirs was open each time that they were looked at: ${named}${open.length > NAMED ? ', …' : ''}. Run this again when less is sold.\n`,
    );
    return 1;
  } finally {
    await database.close();
  }
});
