/** A server with the published middleware, as a run uses it: its own process. */
import { join } from 'node:path';
import { startProgram } from './answering-process.ts';
import type { Settling } from './relayer-queue.ts';
import type { Resources } from './resources.ts';

export type Framework = 'express' | 'hono';

export interface MiddlewareOptions extends Settling {
  framework: Framework;
  path: string;
  description: string;
  /** JSON of the answer that is sold. */
  answer: string;
  terms: {
    price: { asset: string; amount: string; extra: Record<string, unknown> };
    payTo: string;
    maxTimeoutSeconds: number;
  };
}

/** @returns its address */
export async function startMiddleware(resources: Resources, options: MiddlewareOptions): Promise<string> {
  const { first } = await startProgram<{ url: string }>(
    resources,
    join(import.meta.dirname, 'middleware-program.ts'),
    { environment: { ...process.env, BENCH_MIDDLEWARE: JSON.stringify(options) } },
  );
  return first.url;
}
