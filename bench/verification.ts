/** (g) who signed a payment: our digest and recovery, natively and in JavaScript, against viem's on the same payments. */
import { join } from 'node:path';
import { order, startProgram } from './answering-process.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

export type Verifier = 'native' | 'javascript' | 'viem';

export interface VerificationOrder {
  by: Verifier;
  durationMs: number;
}

export interface VerificationResult {
  perSecond: number;
}

const GOAL = { atLeast: 9 };

export async function measureVerification(
  resources: Resources,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const { child, first } = await startProgram<{ hasNative: boolean }>(
    resources,
    join(import.meta.dirname, 'verification-program.ts'),
    { environment: process.env },
  );
  const verify = (by: Verifier, durationMs: number) =>
    order<VerificationOrder, VerificationResult>(child, { by, durationMs });

  const ours = first.hasNative ? (['native', 'javascript'] as const) : (['javascript'] as const);
  const lines: ComparedLine[] = [];
  await verify('viem', plan.warmUpMs);
  for (const by of ours) {
    await verify(by, plan.warmUpMs);
    const found = await alternate(
      plan.rounds,
      () => verify(by, plan.roundMs),
      () => verify('viem', plan.roundMs),
    );
    lines.push({
      part: 'g',
      measured: by === 'native' ? 'natively' : 'in JavaScript',
      unit: 'payments/s',
      ...compare(
        found.ours.map(({ perSecond }) => perSecond),
        found.opponent.map(({ perSecond }) => perSecond),
      ),
      goal: by === 'native' ? GOAL : null,
    });
  }
  return { lines, notes: first.hasNative ? [] : ['(g) this platform has no native recovery'] };
}
