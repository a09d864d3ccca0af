/** The lending protocols and the vault as they were built, to be put on a chain without building them again. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Address, Hex } from 'viem';

/** A time that a contract stored: five bytes of a slot, seconds since 1970. */
export interface StoredTime {
  contract: Address;
  slot: Hex;
  /** From the slot's last byte. */
  offsetBytes: number;
}

export interface SnapshotAccount {
  nonce: number;
  code: Hex;
  storage: Readonly<Record<Hex, Hex>>;
}

/** What is held of a token that is on the chain already, and what may be taken of it. */
export interface TokenPart {
  /** In the token's units, as decimal text. */
  balances: Readonly<Record<Address, string>>;
  /** Of the token's own storage. */
  allowances: Readonly<Record<Hex, Hex>>;
}

export interface Snapshot {
  /** The time that the stored times are of, seconds since 1970: whoever places the snapshot moves them to their own. */
  takenAt: number;
  accounts: Readonly<Record<Address, SnapshotAccount>>;
  usdc: TokenPart;
  weth: TokenPart;
  /** From this account's nonce the addresses of what it deployed follow. */
  builderNonce: number;
}

/** What the snapshot holds, for people and for the tests that compare it with its sources. */
export interface Manifest {
  chainId: number;
  /** SHA-256 of the snapshot's JSON. */
  snapshotSha256: string;
  /** What stands in for the real thing, with the reason. */
  doubles: Readonly<Record<string, string>>;
  /** By name: where each contract is, and the hash of its code as it lies there (Keccak-256). */
  contracts: Readonly<Record<string, { address: Address; codeHash: Hex }>>;
  vault: Address;
  permitDeposit: Address;
  /** The first is the builder's, who owns the protocols and the vault; the second owes to all three. */
  accounts: { owner: Address; borrower: Address };
  /** What `npm run sandbox:warp` moves back. */
  storedTimes: readonly StoredTime[];
  /** The Morpho market that the MetaMorpho lends to. */
  morphoMarket: {
    id: Hex;
    loanToken: Address;
    collateralToken: Address;
    oracle: Address;
    irm: Address;
    lltv: string;
  };
}

export const MANIFEST_FILE = join(import.meta.dirname, 'manifest.json');
/** JSON, packed. */
export const SNAPSHOT_FILE = join(import.meta.dirname, 'snapshot.json.gz');

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(MANIFEST_FILE, 'utf8'));
}

export function readSnapshot(): Snapshot {
  return JSON.parse(gunzipSync(readFileSync(SNAPSHOT_FILE)).toString());
}
