/** Reads what a payer signed on Solana: one transfer of the asset, and who pays its fee. */
import { createHash } from 'node:crypto';
import {
  type Address,
  getBase64Encoder,
  getCompiledTransactionMessageDecoder,
  getPublicKeyFromAddress,
  getTransactionDecoder,
  verifySignature,
} from '@solana/kit';
import { refuse } from '../on-chain/refusals.ts';
import {
  COMPUTE_BUDGET_PROGRAM,
  LIGHTHOUSE_PROGRAM,
  MEMO_PROGRAM,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
  tokenAccountOf,
} from './solana-programs.ts';

/** What may stand beside the transfer: compute budget, memo, and the assertions that wallets add. */
const HARMLESS = new Set<string>([COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM, LIGHTHOUSE_PROGRAM]);
const TRANSFER_CHECKED = 12;
const MAX_INSTRUCTIONS = 7;

export interface SolanaTransfer {
  payer: string;
  /** The account that the money leaves. */
  source: string;
  amountUnits: bigint;
  feePayer: string;
  blockhash: string;
  /** SHA-256 of what was signed: the same for every copy of this transaction. */
  messageHash: string;
  /** The text of its first memo; null if it has none. */
  memo: string | null;
}

/**
 * Reads what a transaction would move, and that its payer signed it.
 *
 * @param transaction base64 of the wire form
 * @param wanted.payTo null: to anybody, for what was bought when the recipient was another one
 * @throws PaymentRefused when it is anything but one transfer of the asset to the recipient
 */
export async function readSolanaTransfer(
  transaction: string,
  wanted: { asset: string; payTo: string | null },
): Promise<SolanaTransfer> {
  try {
    const decoded = getTransactionDecoder().decode(getBase64Encoder().encode(transaction));
    const message = getCompiledTransactionMessageDecoder().decode(decoded.messageBytes);
    if (message.version !== 0 && message.version !== 'legacy') throw new Error('unknown version');
    if ('addressTableLookups' in message && (message.addressTableLookups?.length ?? 0) > 0)
      throw new Error('looks accounts up elsewhere');
    const accounts: readonly Address[] = message.staticAccounts;
    const at = (index: number | undefined): Address => {
      const found = index === undefined ? undefined : accounts[index];
      if (found === undefined) throw new Error('no such account');
      return found;
    };
    if (message.instructions.length > MAX_INSTRUCTIONS) throw new Error('too many instructions');
    const transfers = message.instructions.filter(
      ({ programAddressIndex }) => !HARMLESS.has(at(programAddressIndex)),
    );
    const [transfer] = transfers;
    if (transfers.length !== 1 || transfer === undefined) throw new Error('not one transfer');
    const program = at(transfer.programAddressIndex);
    if (program !== TOKEN_PROGRAM && program !== TOKEN_2022_PROGRAM) throw new Error('not the token program');
    const data = Buffer.from(transfer.data ?? []);
    if (data.length !== 10 || data.readUInt8(0) !== TRANSFER_CHECKED) throw new Error('not TransferChecked');
    const [source, mint, destination, authority] = (transfer.accountIndices ?? []).map(at);
    if (source === undefined || authority === undefined || mint !== wanted.asset)
      throw new Error('another asset');
    const { payTo } = wanted;
    if (payTo !== null && destination !== (await tokenAccountOf(payTo, wanted.asset)))
      throw refuse('PAYMENT_RECIPIENT_MISMATCH', { payTo });
    const feePayer = at(0);
    if (feePayer === authority) throw new Error('the payer would pay the fee');
    const signature = decoded.signatures[authority];
    if (signature === undefined || signature === null) throw refuse('PAYMENT_SIGNATURE_INVALID');
    const memo = message.instructions.find(
      ({ programAddressIndex }) => at(programAddressIndex) === MEMO_PROGRAM,
    );
    const key = await getPublicKeyFromAddress(authority);
    if (!(await verifySignature(key, signature, decoded.messageBytes)))
      throw refuse('PAYMENT_SIGNATURE_INVALID');
    return {
      payer: authority,
      source,
      amountUnits: data.readBigUInt64LE(1),
      feePayer,
      blockhash: message.lifetimeToken,
      messageHash: createHash('sha256').update(Uint8Array.from(decoded.messageBytes)).digest('hex'),
      memo: memo === undefined ? null : Buffer.from(memo.data ?? []).toString('utf8'),
    };
  } catch (error) {
    if (error instanceof Error && error.name === 'PaymentRefused') throw error;
    throw refuse('PAYMENT_TRANSACTION_UNSUITABLE');
  }
}
