/**
 * `npm run grant`: makes keys with credit, as an operator does: one for each `--usd`, with the label and the reason that
 * stand in the same place. A key is printed once and kept nowhere.
 */
import { parseArgs } from 'node:util';
import { databaseOf, readConfig } from '@farebox/core/config';
import { DATABASE } from '@farebox/core/db/declared';
import { openDatabase } from '@farebox/core/db/open';
import { type Grant, openGrants } from '@farebox/core/keys/grant';
import { microsToUsd, usdToMicros } from '@farebox/core/ledger/money';
import { runCommand, UsageError } from '@farebox/process/run-command';

function amountOf(usd: string | undefined): bigint {
  try {
    const amountMicros = usdToMicros(usd ?? '');
    if (amountMicros > 0n) return amountMicros;
  } catch {
    // said below
  }
  throw new UsageError('--usd must be an amount above 0 with at most six places');
}

const USAGE =
  'npm run grant -- --usd 200 --reason "why" [--label name] [--json]; for more keys, all of it again';

function grantsAsked(): { grants: readonly Grant[]; json: boolean } {
  const text = { type: 'string', multiple: true } as const;
  const { values } = parseArgs({
    options: { usd: text, label: text, reason: text, json: { type: 'boolean', default: false } },
  });
  const { usd = [''], reason = [], label = [], json } = values;
  if (reason.length !== usd.length)
    throw new UsageError('--reason must say why, for each key: it stands in the ledger');
  if (label.length > 0 && label.length !== usd.length)
    throw new UsageError('--label must stand once for each key, or not at all');
  const grants = reason.map((note, index) => ({
    amountMicros: amountOf(usd[index]),
    label: label[index] ?? 'granted',
    note,
  }));
  return { grants, json };
}

await runCommand(USAGE, async () => {
  const { grants, json } = grantsAsked();
  // Of the database alone: with all parts, most of the time would go by in loading them.
  const config = readConfig(process.env, [DATABASE], { all: false });
  const database = await openDatabase(databaseOf(config), { exclusive: false });
  try {
    const make = openGrants(database, database.clock.nowMs, config.database.settings);
    for (const grant of grants) {
      const { apiKey } = await make(grant);
      const balanceUsd = microsToUsd(grant.amountMicros, 2);
      process.stdout.write(
        json ? `${JSON.stringify({ apiKey, balanceUsd })}\n` : `${apiKey}  (${balanceUsd} USD)\n`,
      );
    }
    return 0;
  } finally {
    await database.close();
  }
});
