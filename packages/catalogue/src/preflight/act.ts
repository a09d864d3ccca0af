/** The acts of a transaction, or those that a signature would allow, in one form for all ways to write it. */
import type { Address, Hex } from 'viem';

/** The way that it is known: the data says it, a signature would allow it, or the simulation showed it. */
export type Evidence = 'call' | 'signature' | 'simulation';

interface Seen {
  /** Where it stands, such as `call.2.0` or `message.details`. */
  at: string;
  by: Evidence;
}

export interface Approval extends Seen {
  kind: 'approval';
  owner: Address;
  token: Address;
  spender: Address;
  /** In the token's smallest unit; null: all of it. */
  amount: bigint | null;
  /** One token of a collection, in place of an amount. */
  tokenId: bigint | null;
  /** Unix seconds; null: it does not end by itself. */
  expiresAtS: bigint | null;
}

export interface Operator extends Seen {
  kind: 'operator';
  owner: Address;
  collection: Address;
  operator: Address;
}

export interface Transfer extends Seen {
  kind: 'transfer';
  /** Null: the chain's own coin. */
  token: Address | null;
  from: Address;
  to: Address;
  amount: bigint;
  /** The account that makes the token move; another than `from` uses an allowance. */
  mover: Address;
  /** The end of a signature's use, in Unix seconds. */
  expiresAtS: bigint | null;
}

/** One side of an order. */
export interface Goods {
  token: Address | null;
  amount: bigint;
  isNft: boolean;
}

export type Act =
  | Approval
  | Operator
  | Transfer
  | (Seen & { kind: 'revocation'; token: Address; spender: Address })
  | (Seen & { kind: 'delegatecall'; actor: Address; target: Address })
  | (Seen & { kind: 'upgrade'; contract: Address; implementation: Address })
  | (Seen & { kind: 'owner'; contract: Address; to: Address })
  | (Seen & { kind: 'control'; contract: Address; to: Address | null; what: string; grave: boolean })
  | (Seen & { kind: 'account-delegation'; delegate: Address; everywhere: boolean })
  | (Seen & { kind: 'order'; maker: Address; gives: Goods[]; gets: Goods[]; expiresAtS: bigint | null })
  | (Seen & { kind: 'bait'; contract: Address; called: string; value: bigint })
  | (Seen & { kind: 'unread'; contract: Address; selector: Hex | null; value: bigint })
  | (Seen & { kind: 'harmless'; contract: Address; what: string });

/** A call as it was read. */
export interface ReadCall {
  at: string;
  from: Address;
  to: Address;
  value: bigint;
  selector: Hex | null;
  /** The published signature of the function; null where it is not known. */
  called: string | null;
}

export interface Reading {
  acts: Act[];
  calls: ReadCall[];
  /** The accounts whose goods are at stake: the signer, and accounts that the signer acts for by this. */
  ours: Address[];
  /** True where a bound was met, so that there may be more. */
  isCut: boolean;
}
