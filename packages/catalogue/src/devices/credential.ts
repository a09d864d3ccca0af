/**
 * A device's credential: 32 random bytes, which are the seed of an Ed25519 key (RFC 8032). The device signs with it, or sends
 * it as a password over TLS. Kept is the public key alone, which checks both: who reads the database can report nothing.
 */
import { createPrivateKey, createPublicKey, randomBytes, timingSafeEqual, verify } from 'node:crypto';

/** The bytes before the 32 bytes of a key in PKCS #8, and before those of a public key in SPKI (RFC 8410). */
const PRIVATE_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_HEAD = Buffer.from('302a300506032b6570032100', 'hex');
const SECRET = /^[0-9a-f]{64}$/;

interface NewCredential {
  /** 64 hex digits: handed to the owner once, and kept nowhere. */
  secret: string;
  publicKey: Buffer;
}

export function newCredential(): NewCredential {
  const secret = randomBytes(32).toString('hex');
  return { secret, publicKey: publicKeyOf(secret) };
}

function publicKeyOf(secret: string): Buffer {
  const der = Buffer.concat([PRIVATE_HEAD, Buffer.from(secret, 'hex')]);
  const key = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
  return key.export({ format: 'der', type: 'spki' }).subarray(PUBLIC_HEAD.length);
}

/** Whether a password is the secret of the device with this public key. */
export function isSecretOf(presented: string, publicKey: Buffer): boolean {
  return SECRET.test(presented) && timingSafeEqual(publicKeyOf(presented), publicKey);
}

/** The text that a device signs: its name, the time, and the body as it is sent. */
export function signedText(deviceId: string, timestamp: string, body: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${deviceId}\n${timestamp}\n`), body]);
}

/** Whether a signature over `signedText` is the device's. @param signature 128 hex digits */
export function isSignedBy(publicKey: Buffer, text: Buffer, signature: string): boolean {
  if (!/^[0-9a-f]{128}$/i.test(signature)) return false;
  const key = createPublicKey({
    key: Buffer.concat([PUBLIC_HEAD, publicKey]),
    format: 'der',
    type: 'spki',
  });
  return verify(null, text, key, Buffer.from(signature, 'hex'));
}
