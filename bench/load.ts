/** The load generator as a run uses it: its own process that is told what to send. */
import { join } from 'node:path';
import { order, startProgram } from './answering-process.ts';
import type { Resources } from './resources.ts';

export interface LoadOrder {
  url: string;
  path: string;
  body: string;
  /** Absent: any. */
  accept?: string;
  /** Sent in turn by each connection, each with its own header `x-api-key`; empty: none is sent. */
  apiKeys: readonly string[];
  connections: number;
  /** For how long, or how many requests in all. */
  until: { durationMs: number } | { amount: number };
  /** Any other status fails the measurement. */
  expectStatus: number;
}

export interface LoadResult {
  requests: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
}

export interface Load {
  send(command: LoadOrder): Promise<LoadResult>;
}

export async function startLoad(resources: Resources): Promise<Load> {
  const { child } = await startProgram(resources, join(import.meta.dirname, 'load-program.ts'), {
    environment: process.env,
  });
  return { send: (command) => order<LoadOrder, LoadResult>(child, command) };
}
