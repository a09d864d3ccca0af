/** `npm run books`: proves that the money adds up. Ends with 0 when it does, with 1 when it does not. */
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { openDatabase } from '../db/open.ts';
import { type Books, proveBooks } from '../ledger/books.ts';
import { microsToUsd } from '../ledger/money.ts';
import { runCommand } from './run-command.ts';

await runCommand('npm run books [-- --json]', async () => {
  const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
  const config = readConfig(process.env);
  const database = await openDatabase(config, { exclusive: false });
  try {
    const books = await proveBooks(database.sql);
    process.stdout.write(values.json ? asJson(books) : asText(books));
    return books.balanced ? 0 : 1;
  } finally {
    await database.close();
  }
});

function asJson(books: Books): string {
  return `${JSON.stringify(books, (_, value) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`;
}

function asText(books: Books): string {
  const { captured, released, open } = books.calls;
  const sum = (name: string, micros: bigint) => `${name.padEnd(24)}${microsToUsd(micros).padStart(18)} USD`;
  const rows = books.checks.flatMap(({ name, ok, finding }) => [
    `${ok ? 'ok  ' : 'FAIL'}  ${name}`,
    ...(finding === null ? [] : [`      ${finding}`]),
  ]);
  rows.push(
    '',
    ...books.house.map(({ account, netMicros }) => sum(account, netMicros)),
    `${sum('owed to customers', books.customersMicros)}, ${microsToUsd(books.reservedMicros)} of it reserved`,
    `${books.transfers} transfers; calls: ${captured} captured, ${released} released, ${open} open`,
    '',
    books.balanced ? 'The books balance.' : 'The books do NOT balance.',
  );
  return `${rows.join('\n')}\n`;
}
