/** A transaction that somebody wants sent, and why none of our keys may send it. */
import type { PendingQuery, Row } from 'postgres';
import type { Database } from '../db/connection.ts';

export type Hex = `0x${string}`;

export interface TransactionToSend {
  /** The transaction's purpose. While one with this id is pending, no second is made. */
  id: string;
  to: Hex;
  data: Hex;
  /** The node is asked to measure it where it is not given. */
  gasLimit?: bigint;
  /** The most it may cost, gas times fees. This bounds both the gas limit and every raise of the fees. */
  maxCostWei?: bigint;
  /** `true`: a transaction that was mined under this id does not count, and a new one is made. */
  again?: boolean;
  /** A condition in SQL. The transaction is stored, and so sent, only if it holds in the commit that stores it. */
  onlyIf?: (sql: Database) => PendingQuery<Row[]>;
}

/** Thrown when what a transaction depends on is not in the database. Nothing was sent. */
export class NotWanted extends Error {
  constructor(id: string) {
    super(`nothing in the database wants ${id} sent`);
    this.name = 'NotWanted';
  }
}

/** Thrown when none of our keys holds enough for a transaction, and nothing was sent. */
export class OutOfGas extends Error {
  constructor(network: string) {
    super(`no key of ours holds enough gas for this on ${network}`);
    this.name = 'OutOfGas';
  }
}
