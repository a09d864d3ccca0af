/**
 * What our key signs as the fee payer of somebody else's transaction. It is looked at as a published facilitator looks at it,
 * and no less: https://github.com/coinbase/x402/blob/main/specs/schemes/exact/scheme_exact_svm.md
 */
import { getBase64Encoder, getCompiledTransactionMessageDecoder, getTransactionDecoder } from '@solana/kit';
import { refuse } from '../on-chain/refusals.ts';
import {
  COMPUTE_BUDGET_PROGRAM,
  SET_UNIT_LIMIT,
  SET_UNIT_PRICE,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from './solana-programs.ts';

/** The instruction that moves the money. */
export const TRANSFER_AT = 2;
/** As the published facilitator has it, in millionths of a lamport for each unit. */
const MAX_UNIT_PRICE = 5_000_000n;
/** What our key pays beyond the signatures: the payer writes the price of a unit and their number, and we pay. */
const MAX_PRIORITY_LAMPORTS = 25_000n;
const MICRO_LAMPORTS = 1_000_000n;
/** Ours and the payer's: each is paid for. */
const SIGNERS = 2;
const SIGNATURE_LAMPORTS = 5_000n;
/** What a settlement costs at most. */
export const SETTLEMENT_LAMPORTS = BigInt(SIGNERS) * SIGNATURE_LAMPORTS + MAX_PRIORITY_LAMPORTS;
const ORDER = 'SetComputeUnitLimit, SetComputeUnitPrice, TransferChecked, then memos and assertions';
const INSTRUCTIONS = { least: 3, most: 7 };

/**
 * Checks what our key signs beside what `readSolanaTransfer` asks for: the compute budget first and within our bounds, then
 * the transfer; no account of ours in any instruction; two signatures.
 *
 * @param transaction base64 of the wire form
 * @throws PaymentRefused
 */
export function checkTerms(transaction: string, feePayer: string): void {
  const wire = getBase64Encoder().encode(transaction);
  const message = getCompiledTransactionMessageDecoder().decode(
    getTransactionDecoder().decode(wire).messageBytes,
  );
  const unsuitable = (details: Record<string, unknown>) => refuse('PAYMENT_TRANSACTION_UNSUITABLE', details);
  if (message.version !== 0 && message.version !== 'legacy') throw unsuitable({ field: 'version' });
  const { instructions, header, staticAccounts } = message;
  if (staticAccounts[0] !== feePayer) throw unsuitable({ feePayer });
  if (header.numSignerAccounts !== SIGNERS) throw unsuitable({ signatures: SIGNERS });
  if (instructions.length < INSTRUCTIONS.least || instructions.length > INSTRUCTIONS.most)
    throw unsuitable({ instructions: INSTRUCTIONS });
  // The fee payer is the first account: nothing but the fee may be taken from it, nor anything said in its name.
  if (instructions.some(({ accountIndices = [] }) => accountIndices.includes(0)))
    throw unsuitable({ feePayer: 'must be in no instruction' });
  const programs = instructions.map(({ programAddressIndex }) => staticAccounts[programAddressIndex]);
  const [limit, price] = instructions.map(({ data }, index) =>
    programs[index] === COMPUTE_BUDGET_PROGRAM ? Buffer.from(data ?? []) : null,
  );
  if (
    limit?.length !== 5 ||
    limit[0] !== SET_UNIT_LIMIT ||
    price?.length !== 9 ||
    price[0] !== SET_UNIT_PRICE
  )
    throw unsuitable({ instructions: ORDER });
  const isTransferNext =
    programs[TRANSFER_AT] === TOKEN_PROGRAM || programs[TRANSFER_AT] === TOKEN_2022_PROGRAM;
  if (!isTransferNext || programs.slice(TRANSFER_AT).includes(COMPUTE_BUDGET_PROGRAM))
    throw unsuitable({ instructions: ORDER });
  const unitPrice = price.readBigUInt64LE(1);
  const priority = BigInt(limit.readUInt32LE(1)) * unitPrice;
  if (unitPrice > MAX_UNIT_PRICE || priority > MAX_PRIORITY_LAMPORTS * MICRO_LAMPORTS)
    throw unsuitable({
      maxUnitPriceMicroLamports: String(MAX_UNIT_PRICE),
      maxPriorityFeeLamports: String(MAX_PRIORITY_LAMPORTS),
    });
}
