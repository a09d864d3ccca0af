/** Runs instructions as a transaction of a role of the sandbox. */
import {
  appendTransactionMessageInstructions,
  blockhash,
  compileTransaction,
  createTransactionMessage,
  getTransactionEncoder,
  type Instruction,
  type KeyPairSigner,
  partiallySignTransaction,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit';
import type { Bank } from './bank.ts';
import { RpcError } from './json-rpc.ts';
import { MEMO_PROGRAM } from './programs.ts';
import { BLOCKHASH_SLOTS } from './slots.ts';
import { textOf } from './transaction-error.ts';
import { decodeTransaction, type WireTransaction } from './wire-transaction.ts';

let run = 0;

/**
 * Signs and lands instructions in one transaction, with a memo that says who did it.
 *
 * @param who the name in the memo
 * @returns the signature of the transaction
 * @throws RpcError −32603 if the transaction fails
 */
export async function runSigned(
  bank: Bank,
  signer: KeyPairSigner,
  who: string,
  instructions: readonly Instruction[],
): Promise<string> {
  const landed = bank.land(await signTransaction(bank, [signer], who, instructions));
  if (landed === null || landed.err !== null)
    throw new RpcError(-32603, `the ${who} failed: ${landed?.err ? textOf(landed.err) : 'it did not land'}`);
  return landed.signature;
}

/** Makes a transaction that can land now and differs from all others. @param signers the first pays its fee */
export async function signTransaction(
  bank: Bank,
  signers: readonly [KeyPairSigner, ...KeyPairSigner[]],
  who: string,
  instructions: readonly Instruction[],
): Promise<WireTransaction> {
  // Without this number, the same instructions twice within a millisecond would make the same transaction.
  run += 1;
  const data = new TextEncoder().encode(`sandbox ${who} ${Date.now()} ${run}`);
  const slot = bank.clock.slot();
  const lifetime = {
    blockhash: blockhash(bank.clock.blockhashOf(slot)),
    lastValidBlockHeight: BigInt(bank.clock.blockHeightOf(slot) + BLOCKHASH_SLOTS),
  };
  const empty = setTransactionMessageFeePayer(signers[0].address, createTransactionMessage({ version: 0 }));
  const message = appendTransactionMessageInstructions(
    [...instructions, { programAddress: MEMO_PROGRAM, data }],
    setTransactionMessageLifetimeUsingBlockhash(lifetime, empty),
  );
  const keys = [...new Set(signers.map(({ keyPair }) => keyPair))];
  const signed = await partiallySignTransaction(keys, compileTransaction(message));
  return decodeTransaction(new Uint8Array(getTransactionEncoder().encode(signed)));
}
