/** An EVM chain and its USDC, as far as payments by signed authorizations need to know them. */
export interface EvmNetwork {
  title: string;
  /** CAIP-2. */
  id: `eip155:${number}`;
  chainId: number;
  asset: `0x${string}`;
  /** EIP-712 domain of the asset. It is not the same text on every chain. */
  domain: { name: string; version: string };
  /** How many blocks must follow on a transaction's block before the transaction counts as final. */
  finalAfterBlocks: number;
  /** How many confirmations a transfer needs that is presented by its hash. */
  transferConfirmations: number;
}
