/** Sections of the operator's overview. One that fails is told as not known, and leaves the others standing. */
import type { Database, Transaction } from '../db/connection.ts';

/** Below the four seconds that any statement of a request has, so that it is this section that gives up. */
const SECTION_TIMEOUT_MS = 2_500;
/** The statement's time was over, or a lock was not to be had within `lock_timeout`. */
const TOO_SLOW = ['57014', '55P03'];

export interface Sections {
  /** Sentences for the reader of the page: each says what is not known, and why. */
  notes: string[];
  /** Reads a section. @returns null when it failed: then there is a note */
  read<T>(title: string, read: () => T | Promise<T>): Promise<T | null>;
  /** Reads a section within one snapshot of the database. @returns null when it failed: then there is a note */
  snapshot<T>(title: string, read: (on: Transaction) => Promise<T>): Promise<T | null>;
}

/** @param report told of what failed, for the log: the page says only what an operator can act on */
export function createSections(
  sql: Database,
  report: (failed: { section: string; error: unknown }) => void,
): Sections {
  const notes: string[] = [];
  async function read<T>(title: string, reading: () => T | Promise<T>): Promise<T | null> {
    try {
      return await reading();
    } catch (error) {
      report({ section: title, error });
      const code = error instanceof Error && 'code' in error ? String(error.code) : '';
      notes.push(
        TOO_SLOW.includes(code)
          ? `${title}: not known, because the database took too long to read it.`
          : `${title}: not known, because reading it failed. The server's log says why.`,
      );
      return null;
    }
  }
  return {
    notes,
    read,
    snapshot: <T>(title: string, reading: (on: Transaction) => Promise<T>) =>
      read(title, async () => {
        // The driver's types unwrap what a transaction returns; what is read here holds no promises.
        const [value] = await sql.begin('isolation level repeatable read read only', async (transaction) => {
          await transaction`select set_config('statement_timeout', ${String(SECTION_TIMEOUT_MS)}, true)`;
          return [await reading(transaction)] as const;
        });
        return value as T;
      }),
  };
}
