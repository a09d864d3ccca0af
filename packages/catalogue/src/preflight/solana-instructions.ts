/** Reads the instructions of a Solana transaction: what each does, and what in it is a known theft. */
import { type Address, isOffCurveAddress } from '@solana/kit';
import { type Finding, found, type Pattern, type Severity } from './finding.ts';
import { addressAt, TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from './solana-accounts.ts';

export interface SolanaInstruction {
  at: string;
  program: string;
  /** Null: it stands in a lookup table that could not be read. */
  accounts: (string | null)[];
  data: Uint8Array;
}

export interface SolanaApproval {
  at: string;
  owner: string;
  /** The token account. */
  token: string;
  spender: string;
  amount: bigint | null;
  by: 'call' | 'simulation';
}

export interface SolanaMeaning {
  /** Null: not known. */
  called: string | null;
  findings: Finding[];
  approvals: SolanaApproval[];
}

const SYSTEM = '11111111111111111111111111111111';
const ASSOCIATED = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';
const BUDGET = 'ComputeBudget111111111111111111111111111111';
const MEMOS = ['MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr', 'Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo'];
const STAKE = 'Stake11111111111111111111111111111111111111';
const LOADER = 'BPFLoaderUpgradeab1e11111111111111111111111';

/** @param signer who is asked to sign */
export function readInstruction(instruction: SolanaInstruction, signer: string): SolanaMeaning {
  const { program, at, accounts } = instruction;
  if (accounts.includes(null)) {
    return told(null, [found('hidden_accounts', 'unknown', at, program)]);
  }
  try {
    if (program === SYSTEM) return system(instruction, signer);
    if (program === TOKEN_PROGRAM || program === TOKEN_2022_PROGRAM) return token(instruction, signer);
    if (program === ASSOCIATED && (instruction.data[0] ?? 0) <= 1) return told('create token account');
    if (program === BUDGET) return told('compute budget');
    if (MEMOS.includes(program)) return told('memo');
    if (program === STAKE) return stake(instruction, signer);
    if (program === LOADER) return loader(instruction, signer);
  } catch {
    return told(null, [found('unread_instruction', 'unknown', at, program)]);
  }
  const pattern = program === ASSOCIATED ? 'unread_instruction' : 'unknown_program';
  return told(null, [found(pattern, 'unknown', at, program)]);
}

/** Who can sign is a person; an address off the curve is a program's. */
export function delegateSeverity(delegate: string): Severity {
  return isOffCurveAddress(delegate as Address) ? 'caution' : 'danger';
}

function told(
  called: string | null,
  findings: Finding[] = [],
  approvals: SolanaApproval[] = [],
): SolanaMeaning {
  return { called, findings, approvals };
}

function accountAt({ accounts }: SolanaInstruction, index: number): string {
  const address = accounts[index];
  if (address == null) throw new TypeError('no account');
  return address;
}

function numberIn(data: Uint8Array, offset: number): bigint {
  return new DataView(data.buffer, data.byteOffset, data.byteLength).getBigUint64(offset, true);
}

/** Something of the signer's that goes to somebody else, or stays. */
function handed(pattern: Pattern, at: string, to: string, signer: string): Finding[] {
  return [found(pattern, to === signer ? 'info' : 'danger', at, to)];
}

function system(instruction: SolanaInstruction, signer: string): SolanaMeaning {
  const { at, data } = instruction;
  const kind = new DataView(data.buffer, data.byteOffset, data.byteLength).getUint32(0, true);
  switch (kind) {
    case 0:
    case 3:
      return told('create account');
    case 1:
    case 10:
      return told('assign', [found('account_assigned', 'danger', at, accountAt(instruction, 0))]);
    case 2:
      return told('transfer', [found('transfer', 'info', at, accountAt(instruction, 1))]);
    case 11:
      return told('transfer', [found('transfer', 'info', at, accountAt(instruction, 2))]);
    case 4:
      return told('advance nonce', [found('durable_nonce', 'caution', at, accountAt(instruction, 0))]);
    case 5:
      return told('withdraw nonce', [
        found(
          'nonce_authority',
          accountAt(instruction, 1) === signer ? 'info' : 'danger',
          at,
          accountAt(instruction, 1),
        ),
      ]);
    case 6:
      return told('initialize nonce', handed('nonce_authority', at, addressAt(data, 4), signer));
    case 7:
      return told('authorize nonce', handed('nonce_authority', at, addressAt(data, 4), signer));
    case 8:
    case 9:
      return told('allocate');
    default:
      return told(null, [found('unread_instruction', 'unknown', at, SYSTEM)]);
  }
}

function token(instruction: SolanaInstruction, signer: string): SolanaMeaning {
  const { at, data, program } = instruction;
  const kind = data[0] ?? 255;
  switch (kind) {
    case 3:
      return told('transfer', [found('transfer', 'info', at, accountAt(instruction, 1))]);
    case 12:
      return told('transferChecked', [found('transfer', 'info', at, accountAt(instruction, 2))]);
    case 4:
      return approved(instruction, 1, 2, signer);
    case 13:
      return approved(instruction, 2, 3, signer);
    case 6:
      return setAuthority(instruction, signer);
    case 7:
    case 14:
      return told('mintTo', [found('token_minted', 'caution', at, accountAt(instruction, 1))]);
    case 8:
    case 15:
      return told('burn', [found('transfer_to_token', 'caution', at, accountAt(instruction, 1))]);
    case 9:
      return told('closeAccount', handed('account_closed_to_other', at, accountAt(instruction, 1), signer));
    case 10:
    case 11:
      return told('freeze or thaw', [found('control_change', 'caution', at, accountAt(instruction, 0))]);
    case 0:
    case 1:
    case 16:
    case 18:
    case 20:
      return told('initialize');
    case 5:
      return told('revoke');
    case 17:
      return told('syncNative');
    default:
      return told(null, [found('unread_instruction', 'unknown', at, program)]);
  }
}

function approved(
  instruction: SolanaInstruction,
  delegateAt: number,
  ownerAt: number,
  signer: string,
): SolanaMeaning {
  const { at, data } = instruction;
  const spender = accountAt(instruction, delegateAt);
  const owner = accountAt(instruction, ownerAt);
  const amount = numberIn(data, 1);
  const severity = spender === signer ? 'info' : delegateSeverity(spender);
  const pattern = severity === 'danger' ? 'approval_to_account' : 'approval';
  const token = accountAt(instruction, 0);
  return told(
    'approve',
    [found(pattern, severity, at, spender)],
    [{ at, owner, token, spender, amount, by: 'call' }],
  );
}

/** One byte for the kind of authority, one that says whether there is a new one, and the new one. */
function setAuthority({ at, data, accounts }: SolanaInstruction, signer: string): SolanaMeaning {
  if (data[2] !== 1)
    return told('setAuthority', [found('authority_change', 'caution', at, accounts[0] ?? null)]);
  return told('setAuthority', handed('authority_change', at, addressAt(data, 3), signer));
}

function stake(instruction: SolanaInstruction, signer: string): SolanaMeaning {
  const { at, data } = instruction;
  const kind = new DataView(data.buffer, data.byteOffset, data.byteLength).getUint32(0, true);
  // Authorize, AuthorizeWithSeed, AuthorizeChecked, AuthorizeCheckedWithSeed.
  if ([1, 8, 10, 11].includes(kind)) {
    const to = kind === 1 ? addressAt(data, 4) : null;
    return told('authorize stake', [found('authority_change', to === signer ? 'info' : 'danger', at, to)]);
  }
  if (kind === 4) {
    const to = accountAt(instruction, 1);
    return told('withdraw stake', [found('transfer', to === signer ? 'info' : 'caution', at, to)]);
  }
  return told(null, [found('unread_instruction', 'unknown', at, STAKE)]);
}

function loader(instruction: SolanaInstruction, signer: string): SolanaMeaning {
  const { at, data } = instruction;
  const kind = new DataView(data.buffer, data.byteOffset, data.byteLength).getUint32(0, true);
  if (kind === 3) return told('upgrade', [found('upgrade', 'caution', at, accountAt(instruction, 1))]);
  if (kind === 4 || kind === 7) {
    const to = instruction.accounts[2] ?? null;
    return told('set authority', [found('authority_change', to === signer ? 'info' : 'danger', at, to)]);
  }
  if (kind === 5)
    return told('close', handed('account_closed_to_other', at, accountAt(instruction, 1), signer));
  return told(null, [found('unread_instruction', 'unknown', at, LOADER)]);
}
