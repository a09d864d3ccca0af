/** The engine of the client, for whoever reaches a Farebox through another door than HTTP. */

export { isThisMachine } from '../address.ts';
export { inUsd, microsOf } from '../money.ts';
export { NETWORKS, type NetworkName, USUAL_NETWORKS } from '../networks.ts';
export {
  keyPayer,
  type Payer,
  type Quote,
  type Signed,
  type Terms,
  type Wallet,
  walletPayer,
} from '../payer.ts';
export { USDC } from '../usdc.ts';
export type { Book, DayLimits, Denial, Purchase, Send } from './book.ts';
export { type Bought, type Buyable, type Buyer, type BuyerParts, createBuyer, type Limits } from './buyer.ts';
export { AnswerLost, type Door, type Outcome, type Reading, Refused } from './door.ts';
