/** `grant`: makes a key with credit, as an operator does. The key is printed once and kept nowhere. */
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { openDatabase } from '../db/open.ts';
import { createKeys } from '../keys/keys.ts';
import { grantKey } from '../keys/trial.ts';
import { createLedger } from '../ledger/ledger.ts';
import { microsToUsd, usdToMicros } from '../ledger/money.ts';

const { values } = parseArgs({
  options: {
    usd: { type: 'string' },
    label: { type: 'string', default: 'granted' },
    reason: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
if (values.usd === undefined || values.reason === undefined) {
  process.stderr.write('usage: npm run grant -- --usd 200 --reason "why" [--label name] [--json]\n');
  process.exit(2);
}
const amountMicros = usdToMicros(values.usd);
const database = await openDatabase(readConfig(process.env), { exclusive: false });
try {
  const parts = {
    sql: database.sql,
    keys: createKeys(database.sql, Date.now),
    ledger: createLedger(database, Date.now),
    nowMs: Date.now,
  };
  const key = await grantKey(parts, { amountMicros, label: values.label, note: values.reason });
  const balanceUsd = microsToUsd(amountMicros, 2);
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ apiKey: key.apiKey, balanceUsd })}\n`
      : `${key.apiKey}  (${balanceUsd} USD)\n`,
  );
} finally {
  await database.close();
}
