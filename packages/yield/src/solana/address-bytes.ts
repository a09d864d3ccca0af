/**
 * Addresses as text and as bytes. Base58 and the curve take longer than all else that is done with an address, and the same few stand in
 * every account and every transaction. What is kept here follows from an address alone, so it is the same for everybody.
 */
import { createHash } from 'node:crypto';
import { type Address, getAddressDecoder, getAddressEncoder, isOffCurveAddress } from '@solana/kit';
import { LRUCache } from 'lru-cache';
import { ATA_PROGRAM, TOKEN_PROGRAM } from './addresses.ts';

/** So many answers are kept of each question. */
export const MOST_KEPT = 2_000;
/** By size and not by `max`, which takes the memory of all answers at once. */
const BOUND = { maxSize: MOST_KEPT, sizeCalculation: () => 1 };
const ADDRESS_BYTES = 32;
const FIRST_BUMP = 255;
const MARKER = 'ProgramDerivedAddress';

const { encode } = getAddressEncoder();
const { decode } = getAddressDecoder();
const bytesByText = kept((text) => Uint8Array.from(encode(text as Address)));
const textByBytes = kept((bytes) => decode(Buffer.from(bytes, 'latin1')));
const onCurve = kept((text) => !isOffCurveAddress(text as Address));
const tokenAccounts = new LRUCache<string, Address>(BOUND);

/** The 32 bytes of an address or of a blockhash; nobody may write to them. @throws SolanaError if it is none */
export function bytesOf(text: string): Uint8Array {
  return bytesByText.memo(text);
}

/** The address whose 32 bytes begin at a place. */
export function addressAt(bytes: Buffer, at: number): Address {
  return textByBytes.memo(bytes.toString('latin1', at, at + ADDRESS_BYTES));
}

/** Whether somebody can have a key for an address. */
export function isOnCurve(address: Address): boolean {
  return onCurve.memo(address);
}

/** Where a wallet keeps an owner's tokens of a mint. */
export function tokenAccountOf(owner: Address, mint: Address): Address {
  const name = `${owner} ${mint}`;
  const account = tokenAccounts.get(name) ?? derivedFrom(owner, mint);
  tokenAccounts.set(name, account);
  return account;
}

/** The first address of the row that follows from an owner and a mint for which nobody can have a key. */
function derivedFrom(owner: Address, mint: Address): Address {
  const before = Buffer.concat([bytesOf(owner), bytesOf(TOKEN_PROGRAM), bytesOf(mint)]);
  const behind = Buffer.concat([bytesOf(ATA_PROGRAM), Buffer.from(MARKER)]);
  for (let bump = FIRST_BUMP; bump > 0; bump -= 1) {
    const hash = createHash('sha256').update(before).update(Uint8Array.of(bump)).update(behind);
    const derived = decode(hash.digest());
    if (isOffCurveAddress(derived)) return derived;
  }
  throw new Error(`no token account follows from ${owner}`);
}

function kept<Answer extends object | string | boolean>(answer: (asked: string) => Answer) {
  return new LRUCache<string, Answer>({ ...BOUND, memoMethod: answer });
}
