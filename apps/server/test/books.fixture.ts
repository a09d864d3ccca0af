import { DECLARED } from '../src/app.ts';
import type { Database } from '../src/db/connection.ts';
import { booksOf } from '../src/declared.ts';
import * as ledger from '../src/ledger/books.ts';

/** Proves the books by the rules of all parts. */
export const proveBooks = (sql: Database) => ledger.proveBooks(sql, booksOf(DECLARED));
