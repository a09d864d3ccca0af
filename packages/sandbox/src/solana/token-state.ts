/** Reads the state of token accounts and mints from their bytes. */

import type { EncodedAccount } from '@solana/kit';
import {
  getMintDecoder,
  getMintSize,
  getTokenDecoder,
  getTokenSize,
  type Mint,
  type Token,
} from '@solana-program/token';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from './programs.ts';

/** The offset of the byte by which Token-2022 distinguishes kinds of accounts that have extensions. */
const KIND_OFFSET = getTokenSize();
const KIND_TOKEN_ACCOUNT = 2;
const KIND_MINT = 1;

/** An amount as JSON-RPC shows it. */
export interface UiTokenAmount {
  /** Base units. */
  amount: string;
  decimals: number;
  uiAmount: number;
  uiAmountString: string;
}

/** Reads an account as a token account; null if it is none. */
export function readToken({ programAddress, data }: EncodedAccount): Token | null {
  if (!isTokenProgram(programAddress)) return null;
  const isPlain = data.length === getTokenSize();
  if (!isPlain && data[KIND_OFFSET] !== KIND_TOKEN_ACCOUNT) return null;
  const token = getTokenDecoder().decode(data);
  return token.state === 0 ? null : token;
}

/** Reads an account as a mint; null if it is none. */
export function readMint({ programAddress, data }: EncodedAccount): Mint | null {
  if (!isTokenProgram(programAddress)) return null;
  const isPlain = data.length === getMintSize();
  if (!isPlain && data[KIND_OFFSET] !== KIND_MINT) return null;
  const mint = getMintDecoder().decode(data);
  return mint.isInitialized ? mint : null;
}

export function isTokenProgram(program: string): boolean {
  return program === TOKEN_PROGRAM || program === TOKEN_2022_PROGRAM;
}

/** @param amount in base units */
export function uiTokenAmount(amount: bigint, decimals: number): UiTokenAmount {
  const digits = amount.toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '');
  const uiAmountString = fraction === '' ? whole : `${whole}.${fraction}`;
  return { amount: amount.toString(), decimals, uiAmount: Number(uiAmountString), uiAmountString };
}
