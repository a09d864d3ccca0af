/** Reads accounts of Solana's token programs and address lookup tables from their bytes. */
import { getAddressDecoder } from '@solana/kit';

export const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
export const TOKEN_2022_PROGRAM = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
const LOOKUP_TABLE_PROGRAM = 'AddressLookupTab1e1111111111111111111111111';

const ACCOUNT_BYTES = 165;
const MINT_BYTES = 82;
const MINT_KIND = 1;
const ACCOUNT_KIND = 2;
const TABLE_HEADER_BYTES = 56;
const ADDRESS_BYTES = 32;
const NOBODY = '11111111111111111111111111111111';
const MOST_EXTENSIONS = 50;

export interface StoredAccount {
  lamports: bigint;
  owner: string;
  data: Uint8Array;
}

export interface TokenAccount {
  mint: string;
  owner: string;
  amount: bigint;
  delegate: string | null;
  delegatedAmount: bigint;
  closeAuthority: string | null;
}

export type Extension = 'permanent_delegate' | 'transfer_hook' | 'transfer_fee' | 'freezable_token';

export interface Mint {
  decimals: number;
  extensions: Extension[];
}

const decoder = getAddressDecoder();

/** The address in 32 bytes. */
export function addressAt(data: Uint8Array, offset: number): string {
  return decoder.decode(data, offset);
}

const viewOf = (data: Uint8Array) => new DataView(data.buffer, data.byteOffset, data.byteLength);
const isOfTokenProgram = ({ owner }: StoredAccount) =>
  owner === TOKEN_PROGRAM || owner === TOKEN_2022_PROGRAM;

/** Null for any other account. */
export function tokenAccountIn(account: StoredAccount | null): TokenAccount | null {
  if (account === null || !isOfTokenProgram(account)) return null;
  const { data } = account;
  if (data.length < ACCOUNT_BYTES || (data.length > ACCOUNT_BYTES && data[ACCOUNT_BYTES] !== ACCOUNT_KIND))
    return null;
  const view = viewOf(data);
  const optional = (offset: number) =>
    view.getUint32(offset, true) === 0 ? null : addressAt(data, offset + 4);
  return {
    mint: addressAt(data, 0),
    owner: addressAt(data, 32),
    amount: view.getBigUint64(64, true),
    delegate: optional(72),
    delegatedAmount: view.getBigUint64(121, true),
    closeAuthority: optional(129),
  };
}

/** Null for any other account. */
export function mintIn(account: StoredAccount | null): Mint | null {
  if (account === null || !isOfTokenProgram(account)) return null;
  const { data } = account;
  if (data.length !== MINT_BYTES && !(data.length > ACCOUNT_BYTES && data[ACCOUNT_BYTES] === MINT_KIND))
    return null;
  return { decimals: data[44] ?? 0, extensions: extensionsIn(data) };
}

/** Token-2022 keeps them one after another: a number of two bytes, a length of two, the content. */
function extensionsIn(data: Uint8Array): Extension[] {
  const found: Extension[] = [];
  const view = viewOf(data);
  let offset = ACCOUNT_BYTES + 1;
  for (let count = 0; count < MOST_EXTENSIONS && offset + 4 <= data.length; count += 1) {
    const kind = view.getUint16(offset, true);
    const length = view.getUint16(offset + 2, true);
    const start = offset + 4;
    if (kind === 0 || start + length > data.length) break;
    const named = (at: number) => length >= at + ADDRESS_BYTES && addressAt(data, start + at) !== NOBODY;
    if (kind === 1) found.push('transfer_fee');
    if (kind === 6 && data[start] === 2) found.push('freezable_token');
    if (kind === 9) found.push('freezable_token');
    if (kind === 12 && named(0)) found.push('permanent_delegate');
    if (kind === 14 && named(32)) found.push('transfer_hook');
    offset = start + length;
  }
  return found;
}

/** The addresses of a lookup table; null for any other account. */
export function tableIn(account: StoredAccount | null): string[] | null {
  if (account === null || account.owner !== LOOKUP_TABLE_PROGRAM) return null;
  const { data } = account;
  if (data.length < TABLE_HEADER_BYTES) return null;
  const count = Math.floor((data.length - TABLE_HEADER_BYTES) / ADDRESS_BYTES);
  return Array.from({ length: count }, (_, index) =>
    addressAt(data, TABLE_HEADER_BYTES + index * ADDRESS_BYTES),
  );
}
