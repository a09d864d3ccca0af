/** Reads an encoded transaction, and lets through only what the virtual machine (LiteSVM) can read. */
import { createHash } from 'node:crypto';
import {
  type Address,
  type CompiledTransactionMessage,
  type CompiledTransactionMessageWithLifetime,
  getBase58Decoder,
  getBase58Encoder,
  getCompiledTransactionMessageDecoder,
  getCompiledTransactionMessageEncoder,
  getTransactionDecoder,
  getTransactionEncoder,
  type Transaction,
} from '@solana/kit';
import { invalid } from './params.ts';

/** The most bytes that a packet of the network holds. */
const MAX_TRANSACTION_BYTES = 1_232;
const MAX_BASE64_CHARACTERS = 1_644;
const MAX_BASE58_CHARACTERS = 1_683;
const MAX_ACCOUNTS = 256;

// Made once: making them takes longer than a transaction does.
const transactions = { encode: getTransactionEncoder().encode, decode: getTransactionDecoder().decode };
const messages = {
  encode: getCompiledTransactionMessageEncoder().encode,
  decode: getCompiledTransactionMessageDecoder().decode,
};
const base58 = { encode: getBase58Encoder().encode, decode: getBase58Decoder().decode };

type AnyMessage = CompiledTransactionMessage & CompiledTransactionMessageWithLifetime;
export type WireMessage = Exclude<AnyMessage, { version: 1 }>;

export interface WireTransaction {
  transaction: Transaction;
  message: WireMessage;
  /** The first signature, base58; 64 times the digit 1 if it is missing. */
  signature: string;
  /** SHA-256 of the message, hex. The network runs no message twice, whatever its signatures are. */
  messageHash: string;
  isFullySigned: boolean;
}

export type WireEncoding = 'base58' | 'base64';

/**
 * Reads an encoded transaction.
 *
 * @throws RpcError −32602 if the text is no transaction, is too large, or refers to accounts that it does not contain
 */
export function readTransaction(text: string, encoding: WireEncoding): WireTransaction {
  return decodeTransaction(bytesOf(text, encoding));
}

/** Reads a transaction's bytes; throws as `readTransaction` does. */
export function decodeTransaction(bytes: Uint8Array): WireTransaction {
  if (bytes.length > MAX_TRANSACTION_BYTES)
    throw invalid(
      `decoded VersionedTransaction too large: ${bytes.length} bytes (max: ${MAX_TRANSACTION_BYTES} bytes)`,
    );
  const transaction = attempt(() => transactions.decode(bytes), 'failed to deserialize transaction');
  const message = decodeMessage(new Uint8Array(transaction.messageBytes));
  // LiteSVM ends the process on bytes that it cannot read, and kit's decoder is more lenient than LiteSVM's: only the
  // one canonical form goes through.
  const again = attempt(() => transactions.encode(transaction), 'failed to deserialize transaction');
  if (!isSame(again, bytes)) throw invalid('failed to deserialize transaction: not in canonical form');
  const signatures = Object.values(transaction.signatures);
  if (signatures.length !== message.header.numSignerAccounts)
    throw invalid('invalid transaction: Transaction failed to sanitize accounts offsets correctly');
  return {
    transaction,
    message,
    signature: base58.decode(signatures[0] ?? new Uint8Array(64)),
    messageHash: createHash('sha256').update(new Uint8Array(transaction.messageBytes)).digest('hex'),
    isFullySigned: signatures.every((signature) => signature !== null),
  };
}

/** Reads a message without signatures; throws as `readTransaction` does. */
export function decodeMessage(bytes: Uint8Array): WireMessage {
  const message = attempt(() => messages.decode(bytes), 'failed to deserialize transaction message');
  if (message.version === 1) throw invalid('failed to deserialize transaction: unsupported version 1');
  const again = attempt(() => messages.encode(message), 'failed to deserialize');
  if (!isSame(again, bytes)) throw invalid('failed to deserialize transaction: not in canonical form');
  if (!isSane(message))
    throw invalid('invalid transaction: Transaction failed to sanitize accounts offsets correctly');
  return message;
}

/** The rules of a node's `sanitize`. */
function isSane(message: WireMessage): boolean {
  const { header, staticAccounts, instructions } = message;
  const lookups = lookupsOf(message);
  const loaded = lookups.map((lookup) => lookup.writableIndexes.length + lookup.readonlyIndexes.length);
  const accounts = staticAccounts.length + loaded.reduce((sum, count) => sum + count, 0);
  return (
    header.numReadonlySignerAccounts < header.numSignerAccounts &&
    header.numSignerAccounts + header.numReadonlyNonSignerAccounts <= staticAccounts.length &&
    accounts <= MAX_ACCOUNTS &&
    loaded.every((count) => count > 0) &&
    instructions.every(
      ({ programAddressIndex, accountIndices = [] }) =>
        programAddressIndex > 0 &&
        programAddressIndex < staticAccounts.length &&
        accountIndices.every((index) => index < accounts),
    )
  );
}

/** The lookup tables that a message takes addresses from. */
export function lookupsOf(message: WireMessage) {
  return message.version === 0 ? (message.addressTableLookups ?? []) : [];
}

/** Whether the static account with this index may be written. */
export function isWritable({ header, staticAccounts }: WireMessage, index: number): boolean {
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = header;
  return index < numSignerAccounts
    ? index < numSignerAccounts - numReadonlySignerAccounts
    : index < staticAccounts.length - numReadonlyNonSignerAccounts;
}

/** The addresses in the data of a lookup table, where they follow a header of 56 bytes. */
export function addressesOfTable(data: Uint8Array, decode: (bytes: Uint8Array) => Address): Address[] {
  const addresses: Address[] = [];
  for (let at = 56; at + 32 <= data.length; at += 32) addresses.push(decode(data.subarray(at, at + 32)));
  return addresses;
}

function bytesOf(text: string, encoding: WireEncoding): Uint8Array {
  const maximum = encoding === 'base64' ? MAX_BASE64_CHARACTERS : MAX_BASE58_CHARACTERS;
  if (text.length > maximum)
    throw invalid(
      `${encoding} encoded VersionedTransaction too large: ${text.length} bytes (max: ${maximum})`,
    );
  if (encoding === 'base58')
    return new Uint8Array(attempt(() => base58.encode(text), 'invalid base58 encoding'));
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw invalid('invalid base64 encoding');
  return new Uint8Array(bytes);
}

function attempt<T>(read: () => T, failure: string): T {
  try {
    return read();
  } catch (error) {
    throw invalid(`${failure}: ${error instanceof Error ? error.message : error}`);
  }
}

function isSame(one: ArrayLike<number>, other: ArrayLike<number>): boolean {
  return Buffer.compare(Uint8Array.from(one), Uint8Array.from(other)) === 0;
}
