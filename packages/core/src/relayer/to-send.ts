/** A transaction that somebody wants sent, and why none of our keys may send it. */
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
}

/** Thrown when none of our keys holds enough for a transaction, and nothing was sent. */
export class OutOfGas extends Error {
  constructor(network: string) {
    super(`no key of ours holds enough gas for this on ${network}`);
    this.name = 'OutOfGas';
  }
}
