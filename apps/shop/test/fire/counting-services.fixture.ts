import { z } from 'zod';
import { defineService, type Service } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';

/** The services' script, and how often they ran; a test may make them fail or wait. */
export interface Script {
  runs: number;
  during(run: number): Promise<void>;
}

/** Services that answer with the number of their run. `deed` leaves something behind, so it is paid first. */
export function countingServices<Path extends string>(
  script: Script,
  priceUsd: Readonly<Record<Path, string>>,
  timeoutMs: number,
): Service[] {
  return Object.entries<string>(priceUsd).map(([path, price]) =>
    defineService({
      path,
      name: path,
      tag: 'Discovery',
      priceUsd: price,
      mpp: true,
      summary: 'For tests.',
      effect: path === 'deed' ? 'write' : 'read',
      timeoutMs,
      input: z.object({ name: z.string().default('a') }),
      output: z.object({ name: z.string(), run: z.number().int() }),
      example: { name: 'a' },
      async run({ name }) {
        script.runs += 1;
        const { runs } = script;
        await script.during(runs);
        return answer({ name, run: runs }, { method: 'Counted.' });
      },
    }),
  );
}
