/**
 * Whose a managed wallet or a registered identity is: whoever paid for it, in a form that cannot be claimed by anybody
 * else. A key's prefix is no owner: there are 4096 of them.
 */
export type Owner = string & { readonly owner: unique symbol };

/** Who paid, as far as the payment proves it. */
export type Payer =
  /** Credit of a ledger account, whichever of its keys was used. */
  | { by: 'account'; accountId: bigint }
  /** A wallet that signed the payment. `network`: CAIP-2, such as `eip155:8453`. */
  | { by: 'signature'; network: string; address: string }
  /** A transfer that anybody may have pointed to, such as a transaction's hash: it proves no person, only itself. */
  | { by: 'transfer'; network: string; transaction: string };

/**
 * The owner that a payment stands for. A wallet is an owner on its own network: the same address of a smart wallet may
 * belong to somebody else on another chain.
 */
export function ownerOf(payer: Payer): Owner {
  switch (payer.by) {
    case 'account':
      return `account:${payer.accountId}` as Owner;
    case 'signature':
      return `wallet:${payer.network}:${canonical(payer.address)}` as Owner;
    case 'transfer':
      return `transfer:${payer.network}:${canonical(payer.transaction)}` as Owner;
  }
}

/** Hex is the same in either case; base58 is not. */
function canonical(name: string): string {
  return name.startsWith('0x') ? name.toLowerCase() : name;
}
