/**
 * A signer: holds a key and signs transactions for whoever may open its Unix socket, so that the server that faces the public holds none.
 * It signs only what settlers and keys for refunds send: on EVM chains and Tempo calls of contracts that move none of the chain's own
 * currency, for bounded gas; what it signs on Solana is decided by `rails/x402/solana-signed.ts`.
 */
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { secp256k1 } from '@noble/curves/secp256k1';
import { hexToBytes, keccak256, parseTransaction } from 'viem';
import { addressOf } from './sign.ts';

type Hex = `0x${string}`;

/** What is answered: the signature, or why there is none. */
export type SignerAnswer = { signed: Record<string, string> } | { refusal: string };

/** A key that a signer process holds. */
export interface HeldKey {
  address: string;
  /** @throws when the question cannot be read */
  answer(question: unknown): SignerAnswer | Promise<SignerAnswer>;
}

const MAX_REQUEST_CHARACTERS = 400_000;
const MAX_GAS = 5_000_000n;
const NOT_FOR_OTHERS = 0o600;
const TEMPO_TYPE = '0x76';

/** Why a transaction is not signed; null: it is. */
async function refusalOf(unsigned: Hex): Promise<string | null> {
  if (unsigned.startsWith(TEMPO_TYPE)) return refusalOfTempo(unsigned as `0x76${string}`);
  const transaction = parseTransaction(unsigned);
  if (transaction.type !== 'eip1559' || transaction.r !== undefined)
    return 'not an unsigned EIP-1559 transaction';
  return refusalOfCalls([transaction], transaction.gas);
}

async function refusalOfTempo(unsigned: `0x76${string}`): Promise<string | null> {
  // Loaded with the first of them: it is large.
  const { Transaction } = await import('viem/tempo');
  const {
    calls = [],
    gas,
    signature,
    keyAuthorization,
    feePayerSignature,
  } = Transaction.deserialize(unsigned);
  if (signature !== undefined) return 'it is signed already';
  if (keyAuthorization !== undefined) return 'it lets another key sign for the account';
  if (feePayerSignature !== undefined) return 'it pays the fee of another account';
  if (calls.length !== 1) return 'it is not one call';
  return refusalOfCalls(calls, gas);
}

function refusalOfCalls(
  calls: readonly { to?: Hex | null | undefined; value?: bigint | undefined }[],
  gas: bigint | undefined,
): string | null {
  for (const { to, value = 0n } of calls) {
    if (to === undefined || to === null) return 'it deploys a contract';
    if (value > 0n) return 'it moves the currency of the chain';
  }
  return (gas ?? 0n) > MAX_GAS ? `it asks for more gas than ${MAX_GAS}` : null;
}

/** A private key of EVM chains and Tempo. */
export function heldEvmKey(privateKey: Hex): HeldKey {
  const key = hexToBytes(privateKey);
  return {
    address: addressOf(privateKey),
    async answer(question) {
      const { unsigned } = question as { unsigned: Hex };
      const refusal = await refusalOf(unsigned);
      if (refusal !== null) return { refusal };
      const { r, s } = secp256k1.sign(hexToBytes(keccak256(unsigned)), key);
      const hexOf = (value: bigint) => `0x${value.toString(16).padStart(64, '0')}`;
      return { signed: { r: hexOf(r), s: hexOf(s) } };
    },
  };
}

function reply(to: ServerResponse, status: number, body: object): void {
  to.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function bodyOf(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    request.on('data', (bytes) => {
      text += bytes;
      if (text.length > MAX_REQUEST_CHARACTERS) request.destroy();
    });
    request.on('end', () => resolve(text));
    request.on('close', () => reject(new Error('it was not heard to its end')));
  });
}

async function answered(key: HeldKey, text: string, to: ServerResponse): Promise<void> {
  try {
    const answer = await key.answer(JSON.parse(text));
    if ('refusal' in answer) reply(to, 403, { error: answer.refusal });
    else reply(to, 200, answer.signed);
  } catch {
    reply(to, 400, { error: 'no transaction that can be read' });
  }
}

/**
 * Serves one key at a socket that only this system user may open. What an earlier process left there is taken away.
 *
 * @returns how to end it
 */
export async function startSigner(key: HeldKey, socketPath: string): Promise<{ close(): Promise<void> }> {
  const server = createServer((request, to) => {
    bodyOf(request).then(
      (text) => answered(key, text, to),
      () => to.destroy(),
    );
  });
  rmSync(socketPath, { force: true });
  const umask = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(socketPath, resolve);
    });
  } finally {
    process.umask(umask);
  }
  chmodSync(socketPath, NOT_FOR_OTHERS);
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
