/** The memos of a transaction, as a node lists them beside its signature. */
import { MEMO_PROGRAM } from './programs.ts';
import type { WireMessage } from './wire-transaction.ts';

/** `[length] text` of each memo, joined by `; `; null if there is none. */
export function memoOf({ staticAccounts, instructions }: WireMessage): string | null {
  const memos = instructions
    .filter(({ programAddressIndex }) => staticAccounts[programAddressIndex] === MEMO_PROGRAM)
    .map(({ data }) => Buffer.from(data ?? []))
    .map((bytes) => `[${bytes.length}] ${bytes.toString('utf8')}`);
  return memos.length === 0 ? null : memos.join('; ');
}
