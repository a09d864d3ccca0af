/**
 * What a signer process signs for Solana: what a settler and a key for refunds send, and nothing else. It is in the place of the server,
 * which may be in somebody else's hands.
 */
import { getCompiledTransactionMessageDecoder } from '@solana/kit';
import {
  ATA_PROGRAM,
  COMPUTE_BUDGET_PROGRAM,
  LIGHTHOUSE_PROGRAM,
  MEMO_PROGRAM,
  SET_UNIT_LIMIT,
  SET_UNIT_PRICE,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from './solana-programs.ts';

const CREATE_IDEMPOTENT = 1;
const TRANSFER_CHECKED = 12;
const MAX_INSTRUCTIONS = 7;
/** What is paid beyond the signatures and a new account's deposit. Ours pay 24,000 at most. */
const MAX_PRIORITY_LAMPORTS = 25_000n;
const MICRO_LAMPORTS = 1_000_000n;

/**
 * Why a message is not signed; null: it is.
 *
 * @param message as the chain compiles it
 * @param address of the key, which must pay the fee
 */
export function refusalOfMessage(message: Uint8Array, address: string): string | null {
  const compiled = getCompiledTransactionMessageDecoder().decode(message);
  if (compiled.version !== 0 && compiled.version !== 'legacy') return 'not a version that is known here';
  if ('addressTableLookups' in compiled && (compiled.addressTableLookups?.length ?? 0) > 0)
    return 'it looks accounts up elsewhere';
  const { instructions, staticAccounts } = compiled;
  if (staticAccounts[0] !== address) return 'another key pays its fee';
  if (instructions.length > MAX_INSTRUCTIONS) return 'it has too many instructions';
  let [limit, price, transfers, opens] = [0n, 0n, 0, 0];
  for (const { programAddressIndex, data: bytes = new Uint8Array() } of instructions) {
    const program = staticAccounts[programAddressIndex];
    const data = Buffer.from(bytes);
    if (program === MEMO_PROGRAM || program === LIGHTHOUSE_PROGRAM) continue;
    if (program === COMPUTE_BUDGET_PROGRAM && data[0] === SET_UNIT_LIMIT && data.length === 5)
      limit = BigInt(data.readUInt32LE(1));
    else if (program === COMPUTE_BUDGET_PROGRAM && data[0] === SET_UNIT_PRICE && data.length === 9)
      price = data.readBigUInt64LE(1);
    else if (program === ATA_PROGRAM && data[0] === CREATE_IDEMPOTENT && data.length === 1) opens += 1;
    else if (
      (program === TOKEN_PROGRAM || program === TOKEN_2022_PROGRAM) &&
      data[0] === TRANSFER_CHECKED &&
      data.length === 10
    )
      transfers += 1;
    else return 'it does more than to transfer a token';
  }
  if (transfers !== 1) return 'it is not one transfer of a token';
  // Each takes a deposit of ours, which is its owner's.
  if (opens > 1) return 'it opens more than one account';
  // Without a limit of its own the chain's counts, and the price could be any.
  if (price > 0n && limit === 0n) return 'it sets no limit of units';
  return limit * price > MAX_PRIORITY_LAMPORTS * MICRO_LAMPORTS ? 'it pays too high a fee' : null;
}
