/** The payment methods: transactions on Tempo, and authorizations on an EVM chain that another rail settles. */
import { mustBeRefundable, type Quote } from '../../paid-call/rail.ts';
import type { Hex } from '../evm/eip3009.ts';
import type { AuthorizationSettler } from '../evm/settler.ts';

export const TEMPO_CHAIN_ID = 4217;
export const TEMPO = `eip155:${TEMPO_CHAIN_ID}`;
/** Every accepted token has units of a millionth of a dollar. */
export const DECIMALS = 6;
export const RPC_TIMEOUT_MS = 5_000;

export type MethodName = 'tempo' | 'evm';

/** The configuration of each method; null for a method that is not offered. */
export interface Methods {
  /** In order of preference. */
  names: readonly MethodName[];
  tempo: { rpcUrl: string; recipient: Hex; currency: Hex } | null;
  evm: AuthorizationSettler | null;
}

/** A method as documents name it. */
export interface OfferedMethod {
  method: MethodName;
  chainId: number;
  currency: Hex;
  recipient: Hex;
}

/** The methods that are offered, in order of preference. */
export function offeredMethods({ names, tempo, evm }: Methods): OfferedMethod[] {
  return names.flatMap((method): OfferedMethod[] => {
    if (method === 'tempo') {
      if (tempo === null) return [];
      const { currency, recipient } = tempo;
      return [{ method, chainId: TEMPO_CHAIN_ID, currency, recipient }];
    }
    if (evm === null) return [];
    return [{ method, chainId: evm.chainId, currency: evm.asset, recipient: evm.payTo }];
  });
}

/**
 * Whether a method can pay for this quote now. What is paid before its answer is there needs a method whose money can be refunded.
 */
export function isOffered(
  { method, chainId }: OfferedMethod,
  quote: Quote,
  { evm, canRefund }: { evm: AuthorizationSettler | null; canRefund(network: string): boolean },
): boolean {
  return method === 'evm'
    ? evm?.offers(quote) === true
    : !mustBeRefundable(quote) || canRefund(`eip155:${chainId}`);
}
