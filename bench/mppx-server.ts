/** A server that sells by the reference library, as a run uses it: its own process. */
import { join } from 'node:path';
import { startProgram } from './answering-process.ts';
import type { Settling } from './relayer-queue.ts';
import type { Resources } from './resources.ts';

export interface MppxServerOptions extends Settling {
  path: string;
  description: string;
  /** JSON of the answer that is sold. */
  answer: string;
  /** The terms of each challenge; `amount` in the smallest unit. */
  terms: {
    amount: string;
    currency: `0x${string}`;
    recipient: `0x${string}`;
    chainId: number;
    decimals: number;
  };
}

/** @returns its address */
export async function startMppxServer(resources: Resources, options: MppxServerOptions): Promise<string> {
  const { first } = await startProgram<{ url: string }>(
    resources,
    join(import.meta.dirname, 'mppx-server-program.ts'),
    { environment: { ...process.env, BENCH_MPPX_SERVER: JSON.stringify(options) } },
  );
  return first.url;
}
