/**
 * Lays a transaction out as the network reads it: of version 0, without signatures and without lookup tables. Byte for byte as
 * `compileTransaction` of `@solana/kit` does, which takes far longer. https://solana.com/docs/core/transactions
 */
import { AccountRole, type Address, type Instruction } from '@solana/kit';
import { bytesOf } from './address-bytes.ts';

const SIGNATURE_BYTES = 64;
const VERSION_0 = 0x80;
const NO_LOOKUP_TABLES = 0;
/** Counts above this take a second byte. Nothing here has so many of anything. */
const MOST_COUNTED = 127;
/** The order of the same kind of accounts, as kit has it. */
const byText = new Intl.Collator('en', {
  caseFirst: 'lower',
  ignorePunctuation: false,
  sensitivity: 'variant',
});

interface Account {
  address: Address;
  role: AccountRole;
  isProgram: boolean;
}

/**
 * @param wallet pays the fee
 * @returns the transaction; every signature is 64 zeros
 * @throws Error where the wallet, or an account that is written to, is a program that is called
 */
export function unsignedTransaction(
  wallet: Address,
  blockhash: string,
  instructions: readonly Instruction[],
): Buffer {
  const accounts = accountsIn(wallet, instructions);
  const places = new Map(accounts.map(({ address }, place) => [address, place]));
  const placeOf = (address: Address) => places.get(address) ?? 0;
  const signers = accounts.filter(({ role }) => isSigner(role));
  const others = accounts.length - signers.length;
  return Buffer.concat([
    count(signers.length),
    Buffer.alloc(signers.length * SIGNATURE_BYTES),
    Uint8Array.of(
      VERSION_0,
      signers.length,
      signers.filter(({ role }) => !isWritable(role)).length,
      others - accounts.filter(({ role }) => role === AccountRole.WRITABLE).length,
    ),
    count(accounts.length),
    ...accounts.map(({ address }) => bytesOf(address)),
    bytesOf(blockhash),
    count(instructions.length),
    ...instructions.flatMap(({ programAddress, accounts: named = [], data = new Uint8Array() }) => [
      Uint8Array.of(placeOf(programAddress)),
      count(named.length),
      Uint8Array.from(named, ({ address }) => placeOf(address)),
      count(data.length),
      Uint8Array.from(data),
    ]),
    Uint8Array.of(NO_LOOKUP_TABLES),
  ]);
}

/** Each account once, with the most that any instruction may do with it: the payer, then those that sign, and those first that are written to. */
function accountsIn(wallet: Address, instructions: readonly Instruction[]): Account[] {
  const found = new Map<Address, Account>();
  const add = (address: Address, role: AccountRole, isProgram: boolean) => {
    const known = found.get(address);
    found.set(address, {
      address,
      // Roles are bits: 1 may be written to, 2 signs.
      role: role | (known?.role ?? AccountRole.READONLY),
      isProgram: isProgram || (known?.isProgram ?? false),
    });
  };
  add(wallet, AccountRole.WRITABLE_SIGNER, false);
  for (const { programAddress, accounts = [] } of instructions) {
    add(programAddress, AccountRole.READONLY, true);
    for (const { address, role } of accounts) add(address, role, false);
  }
  for (const { address, role, isProgram } of found.values())
    if (isProgram && isWritable(role))
      throw new Error(`${address} is called, and cannot pay or be written to`);
  const [payer, ...rest] = found.values();
  const sorted = rest.sort(
    (one, other) => other.role - one.role || byText.compare(one.address, other.address),
  );
  return payer === undefined ? sorted : [payer, ...sorted];
}

function isSigner(role: AccountRole): boolean {
  return role >= AccountRole.READONLY_SIGNER;
}

function isWritable(role: AccountRole): boolean {
  return role === AccountRole.WRITABLE || role === AccountRole.WRITABLE_SIGNER;
}

/** A count as the network writes it. */
function count(of: number): Uint8Array {
  if (of > MOST_COUNTED) throw new RangeError(`${of} are more than a transaction here has`);
  return Uint8Array.of(of);
}
