/**
 * Keys that this process does not hold: AWS KMS has them, or a signer process of the operator's. Each is named with its address, and what
 * signs is believed only once the signature recovers to that address.
 */
import { request } from 'node:http';
import { secp256k1 } from '@noble/curves/secp256k1';
import {
  hexToBytes,
  keccak256,
  recoverAddress,
  serializeTransaction,
  type TransactionSerializableEIP1559,
} from 'viem';
import { z } from 'zod';
import type { Signer } from './signer.ts';

type Hex = `0x${string}`;

/** A key elsewhere, as the configuration names it: `aws-kms:KEY@ADDRESS` or `signer:SOCKET@ADDRESS`. */
export type RemoteKey = `${'aws-kms' | 'signer'}:${string}@${Hex}`;

/** Payers wait for it, and a transaction of the database may be open meanwhile, for five seconds at most. */
const SIGNED_WITHIN_MS = 2_000;
const MAX_REPLY_BYTES = 4_096;

interface Signature {
  r: bigint;
  s: bigint;
}

interface Place {
  /** @param unsigned the whole transaction, for whoever looks at what it signs */
  sign(unsigned: Hex, digest: Uint8Array): Promise<Signature>;
}

export function remoteSigner(key: RemoteKey): Signer {
  const { kind, where, address } = partsOf(key);
  const place = kind === 'aws-kms' ? awsKms(where) : signerAt(where);
  return {
    address,
    async sign(transaction: TransactionSerializableEIP1559) {
      const unsigned = serializeTransaction(transaction);
      const digest = keccak256(unsigned);
      const { r, s } = inLowerHalf(await place.sign(unsigned, hexToBytes(digest)));
      const signature = { r: hexOf(r), s: hexOf(s) };
      for (const yParity of [0, 1]) {
        const by = await recoverAddress({ hash: digest, signature: { ...signature, yParity } }).catch(
          () => '',
        );
        if (by.toLowerCase() !== address) continue;
        const raw = serializeTransaction(transaction, { ...signature, yParity });
        return { raw, hash: keccak256(raw) };
      }
      throw new Error(`the signer of ${address} signed with another key, or something else`);
    },
  };
}

/** The address of a key elsewhere, in small letters. */
export function addressOfRemote(key: RemoteKey): Hex {
  return partsOf(key).address;
}

function partsOf(key: RemoteKey): { kind: string; where: string; address: Hex } {
  const [kind = '', rest = ''] = [key.slice(0, key.indexOf(':')), key.slice(key.indexOf(':') + 1)];
  const at = rest.lastIndexOf('@');
  return { kind, where: rest.slice(0, at), address: rest.slice(at + 1).toLowerCase() as Hex };
}

/** Chains take only one of the two signatures that there are for everything (EIP-2). KMS answers either. */
function inLowerHalf({ r, s }: Signature): Signature {
  const { n } = secp256k1.CURVE;
  return { r, s: s > n / 2n ? n - s : s };
}

function hexOf(value: bigint): Hex {
  return `0x${value.toString(16).padStart(64, '0')}`;
}

/** A key of AWS KMS of the kind ECC_SECG_P256K1. The client and its credentials are looked for when it first signs. */
function awsKms(keyId: string): Place {
  const region = /^arn:[^:]+:kms:([^:]+):/.exec(keyId)?.[1];
  const opened = once(async () => {
    const { KMSClient, SignCommand } = await import('@aws-sdk/client-kms');
    const client = new KMSClient({
      ...(region === undefined ? {} : { region }),
      maxAttempts: 2,
      requestHandler: { connectionTimeout: SIGNED_WITHIN_MS / 2, requestTimeout: SIGNED_WITHIN_MS },
    });
    return { client, SignCommand };
  });
  return {
    async sign(_unsigned, digest) {
      const { client, SignCommand } = await opened();
      const command = new SignCommand({
        KeyId: keyId,
        Message: digest,
        MessageType: 'DIGEST',
        SigningAlgorithm: 'ECDSA_SHA_256',
      });
      const { Signature } = await client.send(command, {
        abortSignal: AbortSignal.timeout(SIGNED_WITHIN_MS),
      });
      const { r, s } = secp256k1.Signature.fromDER(Signature ?? new Uint8Array());
      return { r, s };
    },
  };
}

/** Keeps what was made; a failure is forgotten, so that the next caller tries again. */
function once<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | null = null;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    });
    return made;
  };
}

const hex32 = z.string().regex(/^0x[0-9a-f]{64}$/);
const signed = z.object({ r: hex32, s: hex32 });

/** A signer process, which listens at a Unix socket: `npm run signer` is one. */
function signerAt(socketPath: string): Place {
  return {
    async sign(unsigned) {
      const { status, text } = await posted(socketPath, JSON.stringify({ unsigned }));
      if (status !== 200) throw new Error(`the signer refused with ${status}`);
      const { r, s } = signed.parse(JSON.parse(text));
      return { r: BigInt(r), s: BigInt(s) };
    },
  };
}

function posted(socketPath: string, body: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(SIGNED_WITHIN_MS);
    const headers = { 'content-type': 'application/json' };
    const asking = request({ socketPath, path: '/sign', method: 'POST', headers, signal }, (reply) => {
      let text = '';
      reply.on('data', (bytes) => {
        text += bytes;
        if (text.length > MAX_REPLY_BYTES) asking.destroy(new Error('the signer says too much'));
      });
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text }));
      reply.on('error', reject);
    });
    asking.on('error', reject);
    asking.end(body);
  });
}
