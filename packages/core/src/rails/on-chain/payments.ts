/**
 * How payments on one chain are verified, settled, looked up and refunded. The `Chains` of a rail are made of these.
 */
import type { ChainVerdict, Finality, OnChainPayment, Refund } from '../../paid-call/rail.ts';

export interface NetworkPayments {
  verify(payment: OnChainPayment): Promise<void>;
  settle(payment: OnChainPayment): Promise<ChainVerdict>;
  look(payment: OnChainPayment): Promise<ChainVerdict>;
  finality(payment: OnChainPayment, transaction: string): Promise<Finality>;
  readonly canRefund: boolean;
  refund(refund: Refund): Promise<string | null>;
}

/**
 * Called with the outcome of each verification and settlement: `valid`, the code of a refusal, or the status of a
 * verdict.
 */
export type Report = (step: 'verify' | 'settle', outcome: string) => void;

/** The same payments with their outcomes reported. `settle` may throw here, which means that the outcome is unknown. */
export function reported(
  { verify, settle }: Pick<NetworkPayments, 'verify' | 'settle'>,
  report: Report,
): Pick<NetworkPayments, 'verify' | 'settle'> {
  return {
    async verify(payment) {
      try {
        await verify(payment);
        report('verify', 'valid');
      } catch (error) {
        report('verify', error instanceof Error && 'code' in error ? String(error.code) : 'failed');
        throw error;
      }
    },
    async settle(payment) {
      const verdict = await settle(payment).catch(
        (error: unknown): ChainVerdict => ({ status: 'unknown', cause: error }),
      );
      report('settle', verdict.status);
      return verdict;
    },
  };
}
