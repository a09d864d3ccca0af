/** A server with the published middleware, seen from the run: a process of its own. */
import { join } from 'node:path';
import { startProgram } from './answering-process.ts';
import type { Settling } from './relayer-queue.ts';
import type { Resources } from './resources.ts';

export type Framework = 'express' | 'hono';

export interface MiddlewareOptions extends Settling {
  framework: Framework;
  path: string;
  description: string;
  /** JSON of what is sold. */
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
