/** The lending protocols and the vault as they were built, to be put on a chain without building them again. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Address, Hex } from 'viem';

/** A time that a contract stored: five bytes of a slot, seconds since 1970. */
export interface StoredTime {
  contract: Address;
  slot: Hex;
  /** The distance of the time's last byte from the slot's last byte. */
  offsetBytes: number;
}

export interface SnapshotAccount {
  nonce: number;
  code: Hex;
  storage: Readonly<Record<Hex, Hex>>;
}

/** The balances and allowances of a token that is on the chain already. */
export interface TokenPart {
  /** By account, in the token's smallest units, as decimal text. */
  balances: Readonly<Record<Address, string>>;
  /** The slots of the token's storage that hold allowances, with their values. */
  allowances: Readonly<Record<Hex, Hex>>;
}

export interface Snapshot {
  /** The time (seconds since 1970) as of which the stored times are given. A placement shifts them to the chain's time. */
  takenAt: number;
  accounts: Readonly<Record<Address, SnapshotAccount>>;
  usdc: TokenPart;
  weth: TokenPart;
  /** The builder's nonce after the build. With a lower one, its next deployments would get addresses that are taken. */
  builderNonce: number;
}

/** What the snapshot holds, for people and for the tests that compare it with its sources. */
export interface Manifest {
  chainId: number;
  /** SHA-256 of the snapshot's JSON. */
  snapshotSha256: string;
  /** The contracts that stand in for real ones, by name, with what they are. */
  doubles: Readonly<Record<string, string>>;
  /** By name: the address of each contract, and the Keccak-256 hash of its code on the chain. */
  contracts: Readonly<Record<string, { address: Address; codeHash: Hex }>>;
  vault: Address;
  permitDeposit: Address;
  /** `owner` built the protocols and the vault and owns them; `borrower` owes to all three protocols. */
  accounts: { owner: Address; borrower: Address };
  /** The times that `npm run sandbox:warp` moves back. */
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
/** JSON, compressed with gzip. */
export const SNAPSHOT_FILE = join(import.meta.dirname, 'snapshot.json.gz');

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(MANIFEST_FILE, 'utf8'));
}

export function readSnapshot(): Snapshot {
  return JSON.parse(gunzipSync(readFileSync(SNAPSHOT_FILE)).toString());
}
