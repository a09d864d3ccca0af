import type { TransactionSerializableEIP1559 } from 'viem';

type Hex = `0x${string}`;

/** Signs transactions of one key, wherever that is kept. */
export interface Signer {
  address: Hex;
  /** @returns the transaction as it is sent, and its hash */
  sign(transaction: TransactionSerializableEIP1559): Promise<{ raw: Hex; hash: Hex }>;
}
