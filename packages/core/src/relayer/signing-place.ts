/**
 * Where keys are that this process does not hold: AWS KMS has them, or a signer process of the operator's. Nothing here is believed:
 * whoever asks verifies the signature against the key's address.
 */
import { request } from 'node:http';
import { secp256k1 } from '@noble/curves/secp256k1';
import { z } from 'zod';
import { onceLoaded } from './once-loaded.ts';

type Hex = `0x${string}`;

/** A key elsewhere, as the configuration names it: `aws-kms:KEY@ADDRESS` or `signer:SOCKET@ADDRESS`. */
export type KeyElsewhere = `${'aws-kms' | 'signer'}:${string}@${string}`;

export interface Signature {
  r: bigint;
  s: bigint;
}

export interface SigningPlace {
  /**
   * Signs a transaction of an EVM chain.
   *
   * @param unsigned the whole transaction, for whoever looks at what it signs
   * @param digest what is signed of it
   * @throws when it refuses, or does not answer within two seconds
   */
  ecdsa(unsigned: Hex, digest: Uint8Array): Promise<Signature>;
  /** Signs a message by Ed25519, whole (RFC 8032). @returns 64 bytes @throws as `ecdsa` does */
  ed25519(message: Uint8Array): Promise<Uint8Array>;
}

/** Payers wait for it, and a transaction of the database may be open meanwhile, for five seconds at most. */
const SIGNED_WITHIN_MS = 2_000;
const MAX_REPLY_BYTES = 4_096;
const ELSEWHERE = /^(aws-kms|signer):/;

/** Whether the configuration names a key that is kept elsewhere. */
export function isElsewhere(key: string): key is KeyElsewhere {
  return ELSEWHERE.test(key);
}

/** The place of a key, and the address that it is named with. */
export function placeOfKey(key: KeyElsewhere): { place: SigningPlace; address: string } {
  const { kind, where, address } = partsOf(key);
  return { place: kind === 'aws-kms' ? awsKms(where) : signerAt(where), address };
}

/** The address that a key elsewhere is named with. */
export function addressNamedIn(key: KeyElsewhere): string {
  return partsOf(key).address;
}

function partsOf(key: KeyElsewhere): { kind: string; where: string; address: string } {
  const [kind = '', rest = ''] = [key.slice(0, key.indexOf(':')), key.slice(key.indexOf(':') + 1)];
  const at = rest.lastIndexOf('@');
  return { kind, where: rest.slice(0, at), address: rest.slice(at + 1) };
}

/**
 * A key of AWS KMS: ECC_SECG_P256K1 for EVM chains, ECC_NIST_EDWARDS25519 for Solana. The client and its credentials are looked for when it
 * first signs. https://docs.aws.amazon.com/kms/latest/APIReference/API_Sign.html
 */
function awsKms(keyId: string): SigningPlace {
  const region = /^arn:[^:]+:kms:([^:]+):/.exec(keyId)?.[1];
  const opened = onceLoaded(async () => {
    const { KMSClient, SignCommand } = await import('@aws-sdk/client-kms');
    const client = new KMSClient({
      ...(region === undefined ? {} : { region }),
      maxAttempts: 2,
      requestHandler: { connectionTimeout: SIGNED_WITHIN_MS / 2, requestTimeout: SIGNED_WITHIN_MS },
    });
    return { client, SignCommand };
  });
  async function sign(
    Message: Uint8Array,
    how:
      | { MessageType: 'DIGEST'; SigningAlgorithm: 'ECDSA_SHA_256' }
      | { MessageType: 'RAW'; SigningAlgorithm: 'ED25519_SHA_512' },
  ): Promise<Uint8Array> {
    const { client, SignCommand } = await opened();
    const { Signature } = await client.send(new SignCommand({ KeyId: keyId, Message, ...how }), {
      abortSignal: AbortSignal.timeout(SIGNED_WITHIN_MS),
    });
    return Signature ?? new Uint8Array();
  }
  return {
    async ecdsa(_unsigned, digest) {
      const der = await sign(digest, { MessageType: 'DIGEST', SigningAlgorithm: 'ECDSA_SHA_256' });
      const { r, s } = secp256k1.Signature.fromDER(der);
      return { r, s };
    },
    ed25519: (message) => sign(message, { MessageType: 'RAW', SigningAlgorithm: 'ED25519_SHA_512' }),
  };
}

const hex32 = z.string().regex(/^0x[0-9a-f]{64}$/);
const ecdsaSigned = z.object({ r: hex32, s: hex32 });
const ed25519Signed = z.object({ signature: z.base64() });

/** A signer process, which listens at a Unix socket: `npm run signer` is one. */
function signerAt(socketPath: string): SigningPlace {
  async function asked(question: Record<string, string>): Promise<unknown> {
    const { status, text } = await posted(socketPath, JSON.stringify(question));
    if (status !== 200) throw new Error(`the signer refused with ${status}`);
    return JSON.parse(text);
  }
  return {
    async ecdsa(unsigned) {
      const { r, s } = ecdsaSigned.parse(await asked({ unsigned }));
      return { r: BigInt(r), s: BigInt(s) };
    },
    async ed25519(message) {
      const { signature } = ed25519Signed.parse(
        await asked({ message: Buffer.from(message).toString('base64') }),
      );
      return new Uint8Array(Buffer.from(signature, 'base64'));
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
