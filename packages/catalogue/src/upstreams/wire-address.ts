/** An EVM address or a longer id of a pool, such as the 32 bytes of Uniswap v4; some markets add their own name. */
const EVM = /^0x[0-9a-fA-F]{40,64}(?::[a-z0-9]{1,20})?$/;
const BASE58 = /^[1-9A-HJ-NP-Za-km-z]{32,44}(?::[a-z0-9]{1,20})?$/;
/** Addresses of other chains, some of which have names in them. */
const OTHER = /^[\w.:-]{1,160}$/;

/**
 * Whether a source's text has the form of a token's or pool's address. Anybody can make a token: no sentence may stand where an
 * address belongs.
 *
 * @param isOurs whether the chain is one of ours, whose addresses have two forms
 */
export function isAddressLike(text: string, isOurs: boolean): boolean {
  return EVM.test(text) || BASE58.test(text) || (!isOurs && OTHER.test(text));
}
