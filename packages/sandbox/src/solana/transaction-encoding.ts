/** Transactions as JSON-RPC shows them. */
import { getBase58Decoder, getBase58Encoder } from '@solana/kit';
import type { LandedTransaction } from './history.ts';
import { RpcError } from './json-rpc.ts';
import { parseInstruction } from './parsed-instruction.ts';
import type { SlotClock } from './slots.ts';
import type { TransactionError } from './transaction-error.ts';
import { decodeTransaction, isWritable, lookupsOf, type WireTransaction } from './wire-transaction.ts';

const base58 = getBase58Decoder();

export const TRANSACTION_ENCODINGS = ['json', 'jsonParsed', 'base64', 'base58'] as const;
export type TransactionEncoding = (typeof TRANSACTION_ENCODINGS)[number];

const UNSUPPORTED_VERSION = -32015;

/**
 * The result of `getTransaction`.
 *
 * @param maxVersion the highest version that the caller understands; null if the caller understands only legacy
 * @throws RpcError −32015 if the transaction's version is higher
 */
export function transactionView(
  landed: LandedTransaction,
  encoding: TransactionEncoding,
  maxVersion: number | null,
  clock: SlotClock,
): unknown {
  const wire = decodeTransaction(new Uint8Array(Buffer.from(landed.base64, 'base64')));
  const { version } = wire.message;
  if (version === 0 && maxVersion === null)
    throw new RpcError(
      UNSUPPORTED_VERSION,
      'Transaction version (0) is not supported by the requesting client. Please try the request again with ' +
        'the following configuration parameter: "maxSupportedTransactionVersion": 0',
    );
  return {
    slot: landed.slot,
    blockTime: clock.blockTimeOf(landed.slot),
    ...(maxVersion === null ? {} : { version }),
    meta: {
      err: landed.err,
      status: statusOf(landed.err),
      fee: landed.fee,
      preBalances: landed.preBalances,
      postBalances: landed.postBalances,
      preTokenBalances: landed.preTokenBalances,
      postTokenBalances: landed.postTokenBalances,
      logMessages: landed.logMessages,
      innerInstructions:
        encoding === 'jsonParsed'
          ? parsedInnerInstructions(landed.innerInstructions, landed.accountKeys)
          : landed.innerInstructions,
      ...(encoding === 'jsonParsed' ? {} : { loadedAddresses: landed.loadedAddresses }),
      ...(landed.returnData === null ? {} : { returnData: landed.returnData }),
      rewards: [],
      computeUnitsConsumed: landed.computeUnitsConsumed,
    },
    transaction: bodyView(wire, landed, encoding),
  };
}

/** `{Ok: null}` or `{Err: …}`: the older form of an error, which clients still read. */
export function statusOf(err: TransactionError | null): unknown {
  return err === null ? { Ok: null } : { Err: err };
}

/** Inner instructions with addresses in place of indexes. */
export function parsedInnerInstructions(
  inner: LandedTransaction['innerInstructions'],
  accountKeys: readonly string[],
): unknown {
  return inner.map(({ index, instructions }) => ({
    index,
    instructions: instructions.map(({ programIdIndex, accounts, data, stackHeight }) =>
      parsedView(
        programIdIndex,
        accounts,
        Buffer.from(getBase58Encoder().encode(data)),
        stackHeight,
        accountKeys,
      ),
    ),
  }));
}

function bodyView(wire: WireTransaction, landed: LandedTransaction, encoding: TransactionEncoding): unknown {
  const { message, transaction } = wire;
  if (encoding === 'base64') return [landed.base64, encoding];
  if (encoding === 'base58') return [base58.decode(Buffer.from(landed.base64, 'base64')), encoding];
  const signatures = Object.values(transaction.signatures).map((one) =>
    base58.decode(one ?? new Uint8Array(64)),
  );
  const lookups =
    message.version === 0
      ? {
          addressTableLookups: lookupsOf(message).map((lookup) => ({
            accountKey: lookup.lookupTableAddress,
            writableIndexes: lookup.writableIndexes,
            readonlyIndexes: lookup.readonlyIndexes,
          })),
        }
      : {};
  const instructions = message.instructions.map(({ programAddressIndex, accountIndices, data }) => ({
    programIdIndex: programAddressIndex,
    accounts: accountIndices ?? [],
    bytes: Buffer.from(data ?? []),
  }));
  const recentBlockhash = message.lifetimeToken;
  if (encoding === 'jsonParsed')
    return {
      signatures,
      message: {
        accountKeys: keysView(wire, landed),
        recentBlockhash,
        instructions: instructions.map(({ programIdIndex, accounts, bytes }) =>
          parsedView(programIdIndex, accounts, bytes, null, landed.accountKeys),
        ),
        ...lookups,
      },
    };
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = message.header;
  return {
    signatures,
    message: {
      header: {
        numRequiredSignatures: numSignerAccounts,
        numReadonlySignedAccounts: numReadonlySignerAccounts,
        numReadonlyUnsignedAccounts: numReadonlyNonSignerAccounts,
      },
      accountKeys: message.staticAccounts,
      recentBlockhash,
      instructions: instructions.map(({ programIdIndex, accounts, bytes }) => ({
        programIdIndex,
        accounts,
        data: base58.decode(bytes),
        stackHeight: null,
      })),
      ...lookups,
    },
  };
}

function keysView(
  { message }: WireTransaction,
  { accountKeys, loadedAddresses }: LandedTransaction,
): unknown {
  const own = message.staticAccounts.length;
  const writableTo = own + loadedAddresses.writable.length;
  return accountKeys.map((pubkey, index) => ({
    pubkey,
    signer: index < message.header.numSignerAccounts,
    writable: index < own ? isWritable(message, index) : index < writableTo,
    source: index < own ? 'transaction' : 'lookupTable',
  }));
}

function parsedView(
  programIdIndex: number,
  accounts: readonly number[],
  data: Buffer,
  stackHeight: number | null,
  keys: readonly string[],
): unknown {
  const at = (index: number): string => {
    const key = keys[index];
    if (key === undefined) throw new Error(`a transaction refers to account ${index} of ${keys.length}`);
    return key;
  };
  const programId = at(programIdIndex);
  const addresses = accounts.map(at);
  const parsed = parseInstruction({ programId, accounts: addresses, data });
  if (parsed !== null) return { ...parsed, stackHeight };
  return { programId, accounts: addresses, data: base58.decode(data), stackHeight };
}
