/** (h) calls that are paid on a chain, end to end, against the published middleware with the published facilitator. */
import { startFarebox } from './farebox.ts';
import { startMiddleware } from './middleware.ts';
import { startNodeTime } from './node-time.ts';
import { type PaymentsLoad, startPaymentsLoad } from './payments-load.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare, percentile } from './rounds.ts';
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
/** What a call asks its chain: would it pay, may the key send, and the settlement with its block. */
const ASKED_IN_A_CALL: ReadonlySet<string> = new Set([
  'eth_call',
  'eth_getTransactionCount',
  'eth_getBalance',
  'eth_sendRawTransaction',
  'eth_sendRawTransactionSync',
]);
const OWN_GOAL_MS = 5;

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
    notes: [
      `(h) each of 2 × ${bought.toLocaleString('en')} calls moved its price on its chain`,
      await ownTime(resources, load, plan),
    ],
  };
}

/** How long a call takes beside what its chain takes: one at a time, on a chain whose answers are timed. */
async function ownTime(resources: Resources, load: PaymentsLoad, plan: Plan): Promise<string> {
  const node = await startNodeTime(resources, await startChain(resources, load.wallets), ASKED_IN_A_CALL);
  const url = await startFarebox(resources, resources.folder(), ourSettings(node.url));
  const amount = plan.paidCalls / 2;
  const buy = () =>
    load.buy({ protocol: 'x402', url, path: PATH, body: REQUEST_BODY, connections: 1, amount });
  await buy();
  const rounds: { ownMs: number; nodeMs: number; requests: number }[] = [];
  for (let round = 0; round < plan.rounds; round++) {
    const before = node.noted();
    const { perSecond } = await buy();
    const after = node.noted();
    const nodeMs = (after.waitedMs - before.waitedMs) / amount;
    rounds.push({
      nodeMs,
      ownMs: 1_000 / perSecond - nodeMs,
      requests: (after.requests - before.requests) / amount,
    });
  }
  const middle = (pick: (round: (typeof rounds)[number]) => number) => percentile(rounds.map(pick), 0.5);
  const ownMs = middle((round) => round.ownMs);
  return `(h) at 1 in flight a call waits ${middle((round) => round.nodeMs).toFixed(1)} ms for its node (${middle((round) => round.requests).toFixed(1)} requests), and all the rest takes ${ownMs.toFixed(1)} ms (goal < ${OWN_GOAL_MS}, ${ownMs < OWN_GOAL_MS ? 'met' : 'not met'})`;
}
