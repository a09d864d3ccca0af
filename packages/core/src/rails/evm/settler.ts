import type { Chains, Quote } from '../../paid-call/rail.ts';
import type { AuthorizationText, Hex } from './eip3009.ts';
import type { EvmEvidence } from './evidence.ts';

/**
 * Settles EIP-3009 authorizations that came by another protocol, with the same chain, keys and facilitators as x402's.
 */
export interface AuthorizationSettler {
  chainId: number;
  /** Whether this quote can be paid by such authorizations now. */
  offers(quote: Quote): boolean;
  asset: Hex;
  domain: { name: string; version: string };
  payTo: Hex;
  chains: Chains;
  isSignedByPayer(authorization: AuthorizationText, signature: Hex): Promise<boolean>;
  evidenceOf(authorization: AuthorizationText, signature: Hex, quote: Quote): EvmEvidence;
}
