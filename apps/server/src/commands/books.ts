/** `npm run books`: proves that the money adds up. Ends with 0 when it does, with 1 when it does not. */
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { openDatabase } from '../db/open.ts';
import { proveBooks } from '../ledger/books.ts';
import { microsToUsd } from '../ledger/money.ts';

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
const database = await openDatabase(readConfig(process.env), { exclusive: false });
try {
  const books = await proveBooks(database.sql);
  process.exitCode = books.balanced ? 0 : 1;
  if (values.json) {
    process.stdout.write(
      `${JSON.stringify(books, (_, value) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`,
    );
  } else {
    const rows = [
      ...books.checks.map(
        ({ name, ok, finding }) =>
          `${ok ? 'ok  ' : 'FAIL'}  ${name}${finding === null ? '' : `\n      ${finding}`}`,
      ),
      '',
      ...books.house.map(
        ({ account, netMicros }) => `${account.padEnd(24)}${microsToUsd(netMicros).padStart(18)} USD`,
      ),
      `${'owed to customers'.padEnd(24)}${microsToUsd(books.customersMicros).padStart(18)} USD, ${microsToUsd(books.reservedMicros)} of it reserved`,
      `${books.transfers} transfers; calls: ${books.calls.captured} captured, ${books.calls.released} released, ${books.calls.open} open`,
      '',
      books.balanced ? 'The books balance.' : 'The books do NOT balance.',
    ];
    process.stdout.write(`${rows.join('\n')}\n`);
  }
} finally {
  await database.close();
}
