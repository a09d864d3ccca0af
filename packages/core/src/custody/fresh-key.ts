import { generateKeyPairSync, type JsonWebKey } from 'node:crypto';
import { getBase58Decoder } from '@solana/kit';
import { bytesToHex, hexToBytes } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';

/** One key serves every EVM chain; Solana has another curve and so another key. */
export type KeyKind = 'evm' | 'solana';

/** A key just made, or just decrypted. Whoever holds `secret` holds whatever lies at `address`. */
export interface WalletKey {
  kind: KeyKind;
  /** EIP-55 on EVM chains, base58 on Solana. */
  address: string;
  /** 32 bytes of secp256k1, or Solana's 64: the ed25519 seed, and then the public key. */
  secret: Uint8Array;
}

const BASE58 = getBase58Decoder();

/** Makes a key from the system's random generator. */
export function freshKey(kind: KeyKind): WalletKey {
  if (kind === 'evm') {
    const privateKey = generatePrivateKey();
    return { kind, address: privateKeyToAddress(privateKey), secret: hexToBytes(privateKey) };
  }
  const pair = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const publicKey = partOf(pair, 'x');
  return { kind, address: BASE58.decode(publicKey), secret: Buffer.concat([partOf(pair, 'd'), publicKey]) };
}

function partOf(key: JsonWebKey, name: 'd' | 'x'): Buffer {
  const part = key[name];
  if (part === undefined) throw new Error(`an ed25519 key has no ${name}`);
  return Buffer.from(part, 'base64url');
}

/** A key as wallets import it: 0x and 64 hex digits, or base58 of Solana's 64 bytes. */
export function writtenKey({ kind, secret }: Pick<WalletKey, 'kind' | 'secret'>): string {
  return kind === 'evm' ? bytesToHex(secret) : BASE58.decode(secret);
}
