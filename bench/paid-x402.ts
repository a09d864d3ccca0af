/** (h) calls that are paid on a chain, end to end, against the published middleware with the published facilitator. */
import { startFarebox } from './farebox.ts';
import { startMiddleware } from './middleware.ts';
import { startPaymentsLoad } from './payments-load.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';
import {
  ourSettings,
  PATH,
  proveThatItWasPaid,
  REQUEST_BODY,
  sameTerms,
  settlingOn,
  startChain,
} from './x402-world.ts';

const IN_FLIGHT = [1, 8, 32];
/** The price of `PATH`. */
const PRICE_MICROS = 250_000n;
const GOAL = { atLeast: 2.5 };

export async function measurePaidX402(
  resources: Resources,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const load = await startPaymentsLoad(resources);
  const [ourChain, theirChain] = [
    await startChain(resources, load.wallets),
    await startChain(resources, load.wallets),
  ];
  const dataDir = resources.folder();
  const ours = await startFarebox(resources, dataDir, ourSettings(ourChain));
  const theirs = await startMiddleware(resources, {
    framework: 'express',
    ...settlingOn(theirChain),
    ...(await sameTerms(dataDir, ours)),
  });
  let bought = 0;
  const buy = (url: string, connections: number, amount: number) => {
    if (url === ours) bought += amount;
    return load.buy({ protocol: 'x402', url, path: PATH, body: REQUEST_BODY, connections, amount });
  };

  for (const url of [ours, theirs]) await buy(url, 8, plan.paidCalls / 2);
  const lines: ComparedLine[] = [];
  for (const connections of IN_FLIGHT) {
    // One call at a time takes longest, so fewer are made.
    const amount = connections === 1 ? plan.paidCalls / 2 : plan.paidCalls;
    const found = await alternate(
      plan.rounds,
      () => buy(ours, connections, amount),
      () => buy(theirs, connections, amount),
    );
    const compared = (pick: 'perSecond' | 'p50Ms' | 'p99Ms') =>
      compare(
        found.ours.map((result) => result[pick]),
        found.opponent.map((result) => result[pick]),
      );
    const measured = `${connections} in flight`;
    lines.push(
      { part: 'h', measured, unit: 'calls/s', ...compared('perSecond'), goal: GOAL },
      { part: 'h', measured: `${measured}, p50`, unit: 'ms', ...compared('p50Ms'), goal: null },
      { part: 'h', measured: `${measured}, p99`, unit: 'ms', ...compared('p99Ms'), goal: null },
    );
  }
  for (const chain of [ourChain, theirChain]) await proveThatItWasPaid(chain, BigInt(bought), PRICE_MICROS);
  return {
    lines,
    notes: [`(h) each of 2 × ${bought.toLocaleString('en')} calls moved its price on its chain`],
  };
}
