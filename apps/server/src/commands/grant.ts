/** `npm run grant`: makes a key with credit, as an operator does. The key is printed once and kept nowhere. */
import { parseArgs } from 'node:util';
import { runCommand, UsageError } from '../../../../packages/process/src/run-command.ts';
import { DECLARED } from '../app.ts';
import { databaseOf, readConfig } from '../config.ts';
import { openDatabase } from '../db/open.ts';
import { createKeys } from '../keys/keys.ts';
import { grantKey } from '../keys/trial.ts';
import { createLedger } from '../ledger/ledger.ts';
import { microsToUsd, usdToMicros } from '../ledger/money.ts';

// Whoever started us with a channel is gone when it closes, and ends the database: nobody must start it anew.
if (process.send !== undefined) {
  if (!process.connected) process.exit(1);
  process.once('disconnect', () => process.exit(1));
  process.channel?.unref();
}

function amountOf(usd: string | undefined): bigint {
  try {
    const amountMicros = usdToMicros(usd ?? '');
    if (amountMicros > 0n) return amountMicros;
  } catch {
    // said below
  }
  throw new UsageError('--usd must be an amount above 0 with at most six places');
}

await runCommand('npm run grant -- --usd 200 --reason "why" [--label name] [--json]', async () => {
  const { values } = parseArgs({
    options: {
      usd: { type: 'string' },
      label: { type: 'string', default: 'granted' },
      reason: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const amountMicros = amountOf(values.usd);
  if (values.reason === undefined) throw new UsageError('--reason must say why: it stands in the ledger');
  const database = await openDatabase(databaseOf(readConfig(process.env, DECLARED)), { exclusive: false });
  try {
    const { sql } = database;
    const keys = createKeys(sql, Date.now);
    const ledger = createLedger(database, Date.now);
    const grant = { amountMicros, label: values.label, note: values.reason };
    const { apiKey } = await grantKey({ sql, keys, ledger, nowMs: Date.now }, grant);
    const balanceUsd = microsToUsd(amountMicros, 2);
    process.stdout.write(
      values.json ? `${JSON.stringify({ apiKey, balanceUsd })}\n` : `${apiKey}  (${balanceUsd} USD)\n`,
    );
    return 0;
  } finally {
    await database.close();
  }
});
