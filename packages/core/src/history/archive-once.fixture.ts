/**
 * Archives the weeks that are due and ends; says on its standard output what a week waits for or what went wrong. A process of its own, so that it can be
 * killed and have less room than its parent.
 *
 *   DATABASE FOLDER NOW_MS HISTORY_DAYS [KILLED_AT]
 *
 * With `KILLED_AT` it kills itself at that renewal of a lease: before each group of rows that it writes, and after each that it
 * reads back. Or it is the name of a step, after which it kills itself.
 */
import { connectPools, type Database, endPools } from '../db/connection.ts';
import { archiveWeeks } from './archive-weeks.ts';

const [url = '', folder = '', nowMs = '', historyDays = '', killedAt = '0'] = process.argv.slice(2);
const pools = connectPools(url, 2);
let renewals = 0;

const counted: Database = new Proxy(pools.sql, {
  apply(target, self, args) {
    const [strings] = args;
    if (
      /^\s*update call_archives set lease_until = /.test(String(strings?.[0])) &&
      ++renewals === Number(killedAt)
    )
      process.kill(process.pid, 'SIGKILL');
    return Reflect.apply(target, self, args);
  },
});

try {
  await archiveWeeks(
    {
      pools: { sql: counted, patient: pools.patient },
      nowMs: () => Number(nowMs),
      historyDays: Number(historyDays),
      folder,
      report: (week, step, detail) => {
        if (step === killedAt) process.kill(process.pid, 'SIGKILL');
        if (step === 'waits') process.stdout.write(`${week} waits: ${detail}`);
      },
    },
    () => true,
  );
} catch (error) {
  const errors = error instanceof AggregateError ? error.errors : [error];
  process.stdout.write(errors.map((each) => each?.code ?? String(each)).join(' '));
}
await endPools(pools, 1);
