/**
 * The facilitator's signer on Solana: the reference library's own signer, with time limits. Its failures are noted.
 */
import {
  address,
  createKeyPairSignerFromBytes,
  getBase58Decoder,
  getBase64Encoder,
  getTransactionDecoder,
  isSolanaError,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_NODE_UNHEALTHY,
  SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR,
} from '@solana/kit';
import { SettlementCache, toFacilitatorSvmSigner } from '@x402/svm';
import { ExactSvmScheme } from '@x402/svm/exact/facilitator';
import { ExactSvmSchemeV1 } from '@x402/svm/exact/v1/facilitator';
import { currentAttempt, noteNodeFailure, noteSettlement, noteUnconfirmed } from './attempt.ts';

export const SOLANA_NETWORK = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
export const SOLANA_NETWORK_V1 = 'solana';
const RPC_TIMEOUT_MS = 10_000;
/** The library gives up by itself after 30 s. */
const CONFIRMATION_TIMEOUT_MS = 35_000;

export interface SolanaOptions {
  rpcUrl: string;
  /** 64 bytes: the private key, then the public key. It needs SOL for fees. */
  feePayerSecretKey: Uint8Array;
  /** Told the signature of each transaction that has gone to the node. */
  onBroadcast: (signature: string) => void;
  /** Ends the waits for confirmations. */
  stopping: AbortSignal;
}

export interface SolanaSchemes {
  v1: ExactSvmSchemeV1;
  v2: ExactSvmScheme;
}

/** Opens the two generations of the `exact` scheme over one fee payer. */
export async function openSolana(options: SolanaOptions): Promise<SolanaSchemes> {
  const { rpcUrl, feePayerSecretKey, onBroadcast, stopping } = options;
  const feePayer = await createKeyPairSignerFromBytes(feePayerSecretKey);
  const library = toFacilitatorSvmSigner(feePayer, { defaultRpcUrl: rpcUrl });

  /** Waits for an answer, and notes it when the node had none. */
  async function answered<T>(answer: Promise<T>): Promise<T> {
    try {
      return await bounded(answer, RPC_TIMEOUT_MS, stopping);
    } catch (error) {
      if (isUnanswered(error) || isSolanaError(error, SOLANA_ERROR__JSON_RPC__SERVER_ERROR_NODE_UNHEALTHY)) {
        noteNodeFailure(error);
      }
      throw error;
    }
  }

  const signer: typeof library = {
    ...library,
    simulateTransaction: (...call) => answered(library.simulateTransaction(...call)),
    async sendTransaction(transaction, network) {
      const signature = await answered(library.sendTransaction(transaction, network)).catch(
        (error: unknown) => {
          // Without the node's answer the transaction may still have been executed. Its status will show it.
          if (!isUnanswered(error)) throw error;
          return signatureOf(transaction, feePayer.address);
        },
      );
      onBroadcast(signature);
      noteSettlement(signature);
      return signature;
    },
    async confirmTransaction(...call) {
      try {
        if (currentAttempt()?.blind === true) throw new Unanswered('no confirmation in time');
        await bounded(library.confirmTransaction(...call), CONFIRMATION_TIMEOUT_MS, stopping);
      } catch (error) {
        if (!(error instanceof Error) || error.name !== 'TransactionOnchainFailureError') noteUnconfirmed();
        throw error;
      }
    },
  };
  // Shared, so that one transaction is not settled under both generations.
  const settled = new SettlementCache();
  return { v2: new ExactSvmScheme(signer, settled), v1: new ExactSvmSchemeV1(signer, settled) };
}

/** The signature by which the network knows a transaction: the fee payer's. */
function signatureOf(transactionBase64: string, feePayer: string): string {
  const transaction = getTransactionDecoder().decode(getBase64Encoder().encode(transactionBase64));
  const signature = transaction.signatures[address(feePayer)];
  if (!signature) throw new Error('the transaction is not signed by its fee payer');
  return getBase58Decoder().decode(signature);
}

class Unanswered extends Error {}

/** Waits for an answer. @throws Unanswered when the time is over or the server stops */
async function bounded<T>(answer: Promise<T>, timeoutMs: number, stopping: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const giveUp = () => reject(new Unanswered('no answer from the node in time'));
  const timer = setTimeout(giveUp, timeoutMs);
  stopping.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
    stopping.removeEventListener('abort', giveUp);
  }
}

/** Distinguishes a node that did not answer from one that did: fetch fails with a TypeError. */
function isUnanswered(error: unknown): boolean {
  return (
    error instanceof Unanswered ||
    error instanceof TypeError ||
    isSolanaError(error, SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR)
  );
}
