import type { Database } from '../../../packages/core/src/db/connection.ts';
import { booksOf } from '../../../packages/core/src/declared.ts';
import * as ledger from '../../../packages/core/src/ledger/books.ts';
import { DECLARED } from '../src/app.ts';

/** Proves the books by the rules of all parts. */
export const proveBooks = (sql: Database) => ledger.proveBooks(sql, booksOf(DECLARED));
