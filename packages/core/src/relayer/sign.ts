/**
 * Signs transactions with libsecp256k1 where the platform has its binding, else in JavaScript: the same deterministic
 * signatures (RFC 6979), in a tenth of the time.
 */
import { createRequire } from 'node:module';
import { hexToBytes, keccak256, serializeTransaction } from 'viem';
import { privateKeyToAccount, sign } from 'viem/accounts';
import { addressOfRemote, type RemoteKey, remoteSigner } from './remote-signer.ts';
import type { Signer } from './signer.ts';

type Hex = `0x${string}`;

interface NativeBinding {
  ecdsaSign(digest: Uint8Array, privateKey: Uint8Array): { signature: Uint8Array; recid: number };
}

function loadNative(): NativeBinding | null {
  try {
    return createRequire(import.meta.url)('secp256k1/bindings');
  } catch {
    return null;
  }
}
const native = loadNative();

/** A key that signs transactions on EVM chains: a private key, or the name of one that is kept elsewhere. */
export type EvmKey = Hex | RemoteKey;

function isHere(key: EvmKey): key is Hex {
  return key.startsWith('0x');
}

/** A key's address, in small letters. */
export function addressOf(key: EvmKey): Hex {
  return isHere(key) ? addressOfPrivate(key) : addressOfRemote(key);
}

function addressOfPrivate(privateKey: Hex): Hex {
  return privateKeyToAccount(privateKey).address.toLowerCase() as Hex;
}

/** @param binding for tests: null signs in JavaScript */
export function createSigner(key: EvmKey, binding: NativeBinding | null = native): Signer {
  const { address, signatureOf } = isHere(key) ? localSigner(key, binding) : remoteSigner(key);
  return {
    address,
    signatureOf,
    async sign(transaction) {
      const raw = serializeTransaction(transaction, await signatureOf(serializeTransaction(transaction)));
      return { raw, hash: keccak256(raw) };
    },
  };
}

function localSigner(
  privateKey: Hex,
  binding: NativeBinding | null,
): Pick<Signer, 'address' | 'signatureOf'> {
  const address = addressOfPrivate(privateKey);
  if (binding === null) {
    return {
      address,
      async signatureOf(unsigned) {
        const { r, s, yParity } = await sign({ hash: keccak256(unsigned), privateKey });
        if (yParity === undefined) throw new Error('a signature without its parity');
        return { r, s, yParity };
      },
    };
  }
  const key = hexToBytes(privateKey);
  return {
    address,
    async signatureOf(unsigned) {
      const { signature, recid } = binding.ecdsaSign(hexToBytes(keccak256(unsigned)), key);
      const text = Buffer.from(signature).toString('hex');
      return { r: `0x${text.slice(0, 64)}`, s: `0x${text.slice(64)}`, yParity: recid };
    },
  };
}
