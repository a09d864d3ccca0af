/**
 * Signs transactions with libsecp256k1 where the platform has its binding, else in JavaScript: the same deterministic
 * signatures (RFC 6979), in a tenth of the time.
 */
import { createRequire } from 'node:module';
import { hexToBytes, keccak256, serializeTransaction, type TransactionSerializableEIP1559 } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

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

export interface Signer {
  address: Hex;
  /** @returns the transaction as it is sent, and its hash */
  sign(transaction: TransactionSerializableEIP1559): Promise<{ raw: Hex; hash: Hex }>;
}

/** A key's address, in small letters. */
export function addressOf(privateKey: Hex): Hex {
  return privateKeyToAccount(privateKey).address.toLowerCase() as Hex;
}

/** @param binding for tests: null signs in JavaScript */
export function createSigner(privateKey: Hex, binding: NativeBinding | null = native): Signer {
  const account = privateKeyToAccount(privateKey);
  const address = addressOf(privateKey);
  if (binding === null) {
    return {
      address,
      async sign(transaction) {
        const raw = await account.signTransaction(transaction);
        return { raw, hash: keccak256(raw) };
      },
    };
  }
  const key = hexToBytes(privateKey);
  return {
    address,
    async sign(transaction) {
      const digest = hexToBytes(keccak256(serializeTransaction(transaction)));
      const { signature, recid } = binding.ecdsaSign(digest, key);
      const text = Buffer.from(signature).toString('hex');
      const raw = serializeTransaction(transaction, {
        r: `0x${text.slice(0, 64)}`,
        s: `0x${text.slice(64)}`,
        yParity: recid,
      });
      return { raw, hash: keccak256(raw) };
    },
  };
}
