/** The paying load generator as a run uses it: its own process with its own wallets. */
import { join } from 'node:path';
import { order, startProgram } from './answering-process.ts';
import type { LoadResult } from './load.ts';
import type { Resources } from './resources.ts';

export interface PaymentsOrder {
  protocol: 'x402' | 'mpp';
  url: string;
  path: string;
  body: string;
  connections: number;
  /** The number of calls. Each has its own payment, signed before the clock starts. */
  amount: number;
}

export interface PaymentsLoad {
  /** The wallets that pay. */
  wallets: readonly `0x${string}`[];
  /** Every call must be answered with 200. */
  buy(command: PaymentsOrder): Promise<LoadResult>;
}

export async function startPaymentsLoad(resources: Resources): Promise<PaymentsLoad> {
  const { child, first } = await startProgram<{ wallets: readonly `0x${string}`[] }>(
    resources,
    join(import.meta.dirname, 'payments-load-program.ts'),
    { environment: process.env },
  );
  return {
    wallets: first.wallets,
    buy: (command) => order<PaymentsOrder, LoadResult>(child, command),
  };
}
