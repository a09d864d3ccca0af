/** One thing that `npm run doctor` looks at, and what it found there. Each look is bounded in time and changes nothing. */

/**
 * - fine: it is as it must be.
 * - mend: something does not work, or costs money or customers.
 * - note: it works, and an operator should know about it.
 * - off: it is not configured, so there was nothing to look at.
 */
export type Verdict = 'fine' | 'mend' | 'note' | 'off';

export interface Finding {
  /** The step of docs/going-live.md that it belongs to. */
  step: string;
  verdict: Verdict;
  /** A sentence without a secret. */
  found: string;
  /** The way to mend it; null where there is nothing to do. */
  mend: string | null;
}

export interface Look {
  step: string;
  /** Looks, and never changes anything. What it throws counts as a finding that asks to be mended. */
  look(signal: AbortSignal): Promise<Finding | readonly Finding[]>;
}

/** Makes the findings of one step. */
export function findingsOf(step: string) {
  const finding =
    (verdict: Verdict) =>
    (found: string, mend: string | null = null): Finding => ({ step, verdict, found, mend });
  return { fine: finding('fine'), mend: finding('mend'), note: finding('note'), off: finding('off') };
}

/**
 * Takes all looks at once, and gives each so much time.
 *
 * @param plain writes the words of an error without addresses that hold secrets
 * @returns the findings, in the order of the looks
 */
export async function takeLooks(
  looks: readonly Look[],
  { withinMs, plain }: { withinMs: number; plain(error: unknown): string },
): Promise<Finding[]> {
  const found = await Promise.all(looks.map((each) => takeLook(each, withinMs, plain)));
  return found.flat();
}

async function takeLook(
  { step, look }: Look,
  withinMs: number,
  plain: (error: unknown) => string,
): Promise<readonly Finding[]> {
  const { mend } = findingsOf(step);
  const signal = AbortSignal.timeout(withinMs);
  const late = Promise.withResolvers<Finding>();
  signal.addEventListener('abort', () =>
    late.resolve(
      mend(`it did not answer within ${withinMs / 1_000} s`, 'See what is silent there, and look again.'),
    ),
  );
  try {
    return [await Promise.race([look(signal), late.promise])].flat();
  } catch (error) {
    return [mend(`it could not be looked at: ${plain(error)}`, 'Mend that, and look again.')];
  }
}
