/** Reads the wire form of an unsigned Solana transaction. */
import { getCompiledTransactionMessageDecoder, getTransactionDecoder } from '@solana/kit';
import type { SolanaInstruction } from './solana-instructions.ts';

/** The largest packet that validators take. https://solana.com/docs/core/transactions */
const MOST_BYTES = 1_232;
// Made once: making them takes longer than reading by them.
const transactions = getTransactionDecoder();
const messages = getCompiledTransactionMessageDecoder();

export interface SolanaTransaction {
  wire: string;
  feePayer: string;
  signers: string[];
  /** Lookup tables, with the places in them that are used: those written to, then those only read. */
  tables: { table: string; writable: readonly number[]; readable: readonly number[] }[];
  /** The accounts that stand in the transaction itself. */
  accounts: readonly string[];
  /** Whether the account at a place in `accounts` may be written to. */
  isWritable(index: number): boolean;
  /** @param loaded the accounts of the tables in their order; null for one that could not be read */
  instructions(loaded: readonly (string | null)[]): SolanaInstruction[];
}

/** @throws TypeError in words of our own */
export function readSolanaTransaction(wire: string): SolanaTransaction {
  const bytes = Buffer.from(wire, 'base64');
  if (bytes.length > MOST_BYTES) throw new TypeError(`has more than ${MOST_BYTES} bytes`);
  const message = messageIn(bytes);
  const { staticAccounts: accounts, header } = message;
  const { numSignerAccounts: signed, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = header;
  const [feePayer] = accounts;
  if (feePayer === undefined || signed === 0) throw new TypeError('has no payer of the fee');
  return {
    wire,
    feePayer,
    signers: accounts.slice(0, signed),
    tables: message.tables,
    accounts,
    isWritable: (index) =>
      index < signed
        ? index < signed - numReadonlySignerAccounts
        : index < accounts.length - numReadonlyNonSignerAccounts,
    instructions: (loaded) => {
      const all: (string | null)[] = [...accounts, ...loaded];
      return message.instructions.map(({ programAddressIndex, accountIndices = [], data }, index) => ({
        at: `instruction.${index}`,
        program: accounts[programAddressIndex] ?? feePayer,
        accounts: accountIndices.map((place) => all[place] ?? null),
        data: new Uint8Array(data ?? []),
      }));
    },
  };
}

function messageIn(bytes: Uint8Array) {
  try {
    const { messageBytes } = transactions.decode(bytes);
    const message = messages.decode(messageBytes);
    if (message.version !== 'legacy' && message.version !== 0) throw new TypeError('another version');
    const lookups = message.version === 0 ? (message.addressTableLookups ?? []) : [];
    return {
      header: message.header,
      staticAccounts: message.staticAccounts,
      instructions: message.instructions,
      tables: lookups.map(({ lookupTableAddress, writableIndexes, readonlyIndexes }) => ({
        table: lookupTableAddress,
        writable: writableIndexes,
        readable: readonlyIndexes,
      })),
    };
  } catch {
    throw new TypeError('is no transaction of a version that is known (legacy, 0)');
  }
}
