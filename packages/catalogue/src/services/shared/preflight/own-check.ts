/** The same check as `transaction-preflight` sells, of a transaction that this server builds itself. */
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { VERDICTS } from '../../../preflight/finding.ts';
import type { ChainHead } from '../wallet/wallet-chains.ts';
import type { Call } from '../wallet/wallet-transaction.ts';
import { preflightTransaction } from './evm-preflight.ts';
import { findingForm } from './finding-form.ts';

const MOST_FINDINGS = 20;

/** Null where the node could not be asked, or there is no complete transaction. */
export const ownCheck = z
  .object({
    verdict: z.enum(VERDICTS).describe('danger: do not sign. unknown: a part was not read or simulated'),
    findings: z
      .array(findingForm(z.string().regex(/^0x[0-9a-fA-F]{40}$/)))
      .describe('What was found; transaction-preflight explains each'),
  })
  .nullable()
  .describe('The check of transaction-preflight, without lists and registers; null where it was not made');

/** Never fails what was built: without an answer of the node there is no check, which is null. */
export async function checkOwn(
  head: ChainHead,
  call: Call,
  nowMs: number,
): Promise<z.input<typeof ownCheck>> {
  try {
    const asked = { ...call, authorizations: [] };
    const none = { sourcify: undefined, lists: undefined };
    const { verdict, findings } = await preflightTransaction(head, asked, none, nowMs);
    return {
      verdict,
      findings: findings
        .slice(0, MOST_FINDINGS)
        .map(({ pattern, severity, address }) => ({ pattern, severity, address })),
    };
  } catch (error) {
    if (error instanceof UpstreamUnavailable) return null;
    throw error;
  }
}
