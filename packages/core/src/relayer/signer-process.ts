/**
 * A signer: holds keys and signs transactions for whoever may open its Unix socket, so that the server that faces the public holds none.
 * It signs only what a settler sends: calls of contracts that move none of the chain's own currency, for bounded gas.
 */
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { secp256k1 } from '@noble/curves/secp256k1';
import { hexToBytes, keccak256, parseTransaction } from 'viem';
import { addressOf } from './sign.ts';

type Hex = `0x${string}`;

const MAX_REQUEST_CHARACTERS = 400_000;
const MAX_GAS = 5_000_000n;
const NOT_FOR_OTHERS = 0o600;

/** Why a transaction is not signed; null: it is. */
function refusalOf(unsigned: Hex): string | null {
  const transaction = parseTransaction(unsigned);
  if (transaction.type !== 'eip1559' || transaction.r !== undefined)
    return 'not an unsigned EIP-1559 transaction';
  if (transaction.to === undefined || transaction.to === null) return 'it deploys a contract';
  if ((transaction.value ?? 0n) > 0n) return 'it moves the currency of the chain';
  if ((transaction.gas ?? 0n) > MAX_GAS) return `it asks for more gas than ${MAX_GAS}`;
  return null;
}

function answer(reply: ServerResponse, status: number, body: object): void {
  reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
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

/**
 * Serves one key at a socket that only this system user may open. What an earlier process left there is taken away.
 *
 * @returns the key's address, and how to end it
 */
export async function startSigner(
  privateKey: Hex,
  socketPath: string,
): Promise<{ address: Hex; close(): Promise<void> }> {
  const key = hexToBytes(privateKey);
  const server = createServer((request, reply) => {
    bodyOf(request).then(
      (text) => {
        try {
          const { unsigned } = JSON.parse(text) as { unsigned: Hex };
          const refusal = refusalOf(unsigned);
          if (refusal !== null) return answer(reply, 403, { error: refusal });
          const { r, s } = secp256k1.sign(hexToBytes(keccak256(unsigned)), key);
          const hexOf = (value: bigint) => `0x${value.toString(16).padStart(64, '0')}`;
          answer(reply, 200, { r: hexOf(r), s: hexOf(s) });
        } catch {
          answer(reply, 400, { error: 'no transaction that can be read' });
        }
      },
      () => reply.destroy(),
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
    address: addressOf(privateKey),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
