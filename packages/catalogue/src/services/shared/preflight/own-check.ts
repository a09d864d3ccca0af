/** The same check as `transaction-preflight` sells, of a transaction that this server builds itself. */
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { BaseError } from 'viem';
import { z } from 'zod';
import { type Finding, VERDICTS, type Verdict } from '../../../preflight/finding.ts';
import { readSolanaTransaction } from '../../../preflight/solana-transaction.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import { type ChainHead, headOf } from '../wallet/wallet-chains.ts';
import type { Call } from '../wallet/wallet-transaction.ts';
import { preflightTransaction } from './evm-preflight.ts';
import { findingForm } from './finding-form.ts';
import { preflightSolana } from './solana-preflight.ts';

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
  return shortened(() => checkOfCall(head, call, nowMs));
}

function checkOfCall(head: ChainHead, call: Call, nowMs: number) {
  const none = { sourcify: undefined, lists: undefined };
  return preflightTransaction(head, { ...call, authorizations: [] }, none, nowMs);
}

/** The same check for the parts that build transactions and are no services: of a call on Base, and of a transaction on Solana. */
export function checksOf({
  upstreams,
  nowMs,
}: {
  upstreams: { apis: Pick<Upstreams, 'base' | 'solana'> };
  nowMs(): number;
}): {
  base(call: Call): Promise<z.input<typeof ownCheck>>;
  solana(base64: string, signer: string): Promise<z.input<typeof ownCheck>>;
} {
  return {
    base: (call) => shortened(async () => checkOfCall(await headOf(upstreams.apis.base), call, nowMs())),
    solana: (base64, signer) =>
      shortened(() =>
        preflightSolana(upstreams.apis.solana, readSolanaTransaction(base64), signer, undefined),
      ),
  };
}

async function shortened(
  check: () => Promise<{ verdict: Verdict; findings: readonly Finding[] }>,
): Promise<z.input<typeof ownCheck>> {
  try {
    const { verdict, findings } = await check();
    return {
      verdict,
      findings: findings
        .slice(0, MOST_FINDINGS)
        .map(({ pattern, severity, address }) => ({ pattern, severity, address })),
    };
  } catch (error) {
    if (error instanceof UpstreamUnavailable || error instanceof BaseError) return null;
    throw error;
  }
}
