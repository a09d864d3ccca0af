/**
 * Parses instructions for the encoding `jsonParsed`: those that move or create money. Any other instruction is shown with
 * its accounts and data, as nodes show the instructions of programs that they do not know.
 */

import { getAddressDecoder } from '@solana/kit';
import {
  ASSOCIATED_TOKEN_PROGRAM,
  MEMO_PROGRAM,
  SYSTEM_PROGRAM,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from './programs.ts';
import { uiTokenAmount } from './token-state.ts';

export interface RawInstruction {
  programId: string;
  accounts: readonly string[];
  data: Buffer;
}

interface Parsed {
  type: string;
  info: Readonly<Record<string, unknown>>;
}

const PARSERS: Readonly<
  Record<string, { program: string; parse: (instruction: RawInstruction) => Parsed | string | null }>
> = {
  [SYSTEM_PROGRAM]: { program: 'system', parse: parseSystem },
  [TOKEN_PROGRAM]: { program: 'spl-token', parse: parseToken },
  [TOKEN_2022_PROGRAM]: { program: 'spl-token', parse: parseToken },
  [ASSOCIATED_TOKEN_PROGRAM]: { program: 'spl-associated-token-account', parse: parseAssociatedToken },
  [MEMO_PROGRAM]: { program: 'spl-memo', parse: ({ data }) => data.toString('utf8') },
};

/** `{program, programId, parsed}`, or null if this instruction cannot be parsed here. */
export function parseInstruction(instruction: RawInstruction): Record<string, unknown> | null {
  const parser = PARSERS[instruction.programId];
  if (parser === undefined) return null;
  const parsed = parser.parse(instruction);
  return parsed === null ? null : { program: parser.program, programId: instruction.programId, parsed };
}

function parseSystem({ accounts, data }: RawInstruction): Parsed | null {
  const [source, other] = accounts;
  const kind = data.length >= 4 ? data.readUInt32LE(0) : null;
  if (kind === 2 && data.length >= 12 && accounts.length >= 2)
    return { type: 'transfer', info: { source, destination: other, lamports: data.readBigUInt64LE(4) } };
  if (kind === 0 && data.length >= 52 && accounts.length >= 2) {
    const info = {
      source,
      newAccount: other,
      lamports: data.readBigUInt64LE(4),
      space: data.readBigUInt64LE(12),
      owner: getAddressDecoder().decode(data.subarray(20, 52)),
    };
    return { type: 'createAccount', info };
  }
  return null;
}

/** Instructions of the token program whose data is an amount and, if checked, the decimals. */
const TOKEN_AMOUNTS: Readonly<
  Record<number, { type: string; accounts: readonly string[]; authority: string }>
> = {
  3: { type: 'transfer', accounts: ['source', 'destination'], authority: 'authority' },
  7: { type: 'mintTo', accounts: ['mint', 'account'], authority: 'mintAuthority' },
  8: { type: 'burn', accounts: ['account', 'mint'], authority: 'authority' },
  12: { type: 'transferChecked', accounts: ['source', 'mint', 'destination'], authority: 'authority' },
  14: { type: 'mintToChecked', accounts: ['mint', 'account'], authority: 'mintAuthority' },
  15: { type: 'burnChecked', accounts: ['account', 'mint'], authority: 'authority' },
};
const CLOSE_ACCOUNT = 9;
const INITIALIZE_ACCOUNT_3 = 18;
const INITIALIZE_IMMUTABLE_OWNER = 22;

function parseToken({ accounts, data }: RawInstruction): Parsed | null {
  const kind = data[0] ?? -1;
  if (kind === CLOSE_ACCOUNT && accounts.length >= 3) {
    const [account, destination] = accounts;
    return {
      type: 'closeAccount',
      info: { account, destination, ...authorityOf('owner', accounts.slice(2)) },
    };
  }
  if (kind === INITIALIZE_ACCOUNT_3 && data.length >= 33 && accounts.length >= 2) {
    const [account, mint] = accounts;
    const owner = getAddressDecoder().decode(data.subarray(1, 33));
    return { type: 'initializeAccount3', info: { account, mint, owner } };
  }
  if (kind === INITIALIZE_IMMUTABLE_OWNER && accounts.length >= 1)
    return { type: 'initializeImmutableOwner', info: { account: accounts[0] } };
  const shape = TOKEN_AMOUNTS[kind];
  if (shape === undefined || data.length < 9 || accounts.length <= shape.accounts.length) return null;
  const amount = data.readBigUInt64LE(1);
  const decimals = data[9];
  return {
    type: shape.type,
    info: {
      ...Object.fromEntries(shape.accounts.map((name, index) => [name, accounts[index]])),
      ...authorityOf(shape.authority, accounts.slice(shape.accounts.length)),
      ...(shape.type.endsWith('Checked') && decimals !== undefined
        ? { tokenAmount: uiTokenAmount(amount, decimals) }
        : { amount: amount.toString() }),
    },
  };
}

/** A single account is the authority itself. Of several accounts, the first is a multisig and the others sign for it. */
function authorityOf(name: string, accounts: readonly string[]): Record<string, unknown> {
  const [authority, ...signers] = accounts;
  if (signers.length === 0) return { [name]: authority };
  return { [`multisig${name.charAt(0).toUpperCase()}${name.slice(1)}`]: authority, signers };
}

function parseAssociatedToken({ accounts, data }: RawInstruction): Parsed | null {
  const type = data.length === 0 || data[0] === 0 ? 'create' : data[0] === 1 ? 'createIdempotent' : null;
  if (type === null || accounts.length < 6) return null;
  const [source, account, wallet, mint, systemProgram, tokenProgram] = accounts;
  return { type, info: { source, account, wallet, mint, systemProgram, tokenProgram } };
}
