import type { TransactionSerializableEIP1559 } from 'viem';

type Hex = `0x${string}`;

export interface EvmSignature {
  r: Hex;
  s: Hex;
  yParity: number;
}

/** Signs transactions of one key, wherever that is kept. */
export interface Signer {
  address: Hex;
  /** @returns the transaction as it is sent, and its hash */
  sign(transaction: TransactionSerializableEIP1559): Promise<{ raw: Hex; hash: Hex }>;
  /** The signature of a transaction of any form. @param unsigned as the chain serializes it, without a signature */
  signatureOf(unsigned: Hex): Promise<EvmSignature>;
}
