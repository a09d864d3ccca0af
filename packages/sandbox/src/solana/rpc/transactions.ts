/** Methods about transactions that landed. */
import { getBase58Encoder } from '@solana/kit';
import type { LandedTransaction } from '../history.ts';
import {
  addressAt,
  choiceOf,
  configAt,
  flagOf,
  integerOf,
  invalid,
  listAt,
  settledCommitmentOf,
  textAt,
} from '../params.ts';
import { BLOCKHASH_SLOTS, FINAL_AFTER_SLOTS } from '../slots.ts';
import { statusOf, TRANSACTION_ENCODINGS, transactionView } from '../transaction-encoding.ts';
import { checkMinContextSlot, type Methods, slotAt, withContext } from './method.ts';

const MAX_STATUSES = 256;
const MAX_SIGNATURES = 1_000;
const SIGNATURE_BYTES = 64;

export const TRANSACTION_METHODS: Methods = {
  getSignatureStatuses({ bank }, params) {
    const searches = flagOf(configAt(params, 1), 'searchTransactionHistory');
    const slot = bank.clock.slot();
    const statuses = listAt(params, 0, MAX_STATUSES).map((signature) => {
      const landed = bank.history.bySignature(toSignature(signature));
      // Like a node, finds older transactions only if it is told to search the history.
      const isKnown = landed !== undefined && (searches || slot - landed.slot <= BLOCKHASH_SLOTS);
      if (!isKnown) return null;
      const isFinal = slot - landed.slot >= FINAL_AFTER_SLOTS;
      return {
        slot: landed.slot,
        confirmations: isFinal ? null : slot - landed.slot,
        err: landed.err,
        status: statusOf(landed.err),
        confirmationStatus: isFinal ? 'finalized' : 'confirmed',
      };
    });
    return withContext(slot, statuses);
  },

  getTransaction({ bank }, params) {
    const signature = toSignature(textAt(params, 0));
    // In the older form of the call, an encoding stands in place of the options.
    const config = typeof params[1] === 'string' ? { encoding: params[1] } : configAt(params, 1);
    const encoding = choiceOf(config, 'encoding', TRANSACTION_ENCODINGS, 'json');
    const commitment = settledCommitmentOf(config);
    const { maxSupportedTransactionVersion: version } = config;
    const maxVersion =
      version === undefined || version === null
        ? null
        : integerOf(config, 'maxSupportedTransactionVersion', 0, 255);
    const landed = bank.history.bySignature(signature);
    if (landed === undefined || landed.slot > slotAt(bank, commitment)) return null;
    return transactionView(landed, encoding, maxVersion, bank.clock);
  },

  getSignaturesForAddress({ bank }, params) {
    const address = addressAt(params, 0);
    const config = configAt(params, 1);
    const slot = slotAt(bank, settledCommitmentOf(config));
    checkMinContextSlot(config, slot);
    const limit = integerOf(config, 'limit', MAX_SIGNATURES, MAX_SIGNATURES);
    if (limit === 0) throw invalid(`Invalid limit; max ${MAX_SIGNATURES}`);
    const newest = bank.history.latestFirst();
    const from = placeOf(newest, config.before) + 1;
    const to = config.until === undefined || config.until === null ? -1 : placeOf(newest, config.until);
    return newest
      .slice(from, to === -1 ? undefined : to)
      .filter((one) => one.slot <= slot && one.accountKeys.includes(address))
      .slice(0, limit)
      .map((one) => ({
        signature: one.signature,
        slot: one.slot,
        err: one.err,
        memo: one.memo,
        blockTime: bank.clock.blockTimeOf(one.slot),
        confirmationStatus: bank.clock.slot() - one.slot >= FINAL_AFTER_SLOTS ? 'finalized' : 'confirmed',
      }));
  },
};

/** The index of the transaction with this signature in the list; −1 if no signature was given, or none in the list has it. */
function placeOf(newest: readonly LandedTransaction[], signature: unknown): number {
  if (signature === undefined || signature === null) return -1;
  const wanted = toSignature(signature);
  return newest.findIndex((one) => one.signature === wanted);
}

/** @throws RpcError −32602 if the value is no signature */
export function toSignature(value: unknown): string {
  if (typeof value !== 'string') throw invalid('Invalid param: Invalid');
  let bytes: number;
  try {
    bytes = value.length > 90 ? 0 : getBase58Encoder().encode(value).length;
  } catch {
    throw invalid('Invalid param: Invalid');
  }
  if (bytes !== SIGNATURE_BYTES) throw invalid('Invalid param: WrongSize');
  return value;
}
