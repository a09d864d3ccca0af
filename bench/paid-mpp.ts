/** (i) MPP: challenges, and calls that are paid by the method evm, against the reference library on Fastify. */
import { randomBytes } from 'node:crypto';
import { Challenge } from 'mppx';
import { makeKeys, startFarebox } from './farebox.ts';
import { startLoad } from './load.ts';
import { type MppxServerOptions, startMppxServer } from './mppx-server.ts';
import { startPaymentsLoad } from './payments-load.ts';
import type { Plan } from './plan.ts';
import type { Settling } from './relayer-queue.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';
import { ourSettings, proveThatItWasPaid, REQUEST_BODY, settlingOn, startChain } from './x402-world.ts';

const PATH = '/mpp/ping';
const IN_FLIGHT = [1, 8, 32];
const HEADERS = { 'content-type': 'application/json' };
const GOAL = { atLeast: 1 };

export async function measureMpp(
  resources: Resources,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const [load, payer] = [await startLoad(resources), await startPaymentsLoad(resources)];
  const [ourChain, theirChain] = [
    await startChain(resources, payer.wallets),
    await startChain(resources, payer.wallets),
  ];
  const dataDir = resources.folder();
  const ours = await startFarebox(resources, dataDir, {
    ...ourSettings(ourChain),
    MPP_METHODS: 'evm',
    MPP_SECRET_KEY: randomBytes(32).toString('hex'),
  });
  const same = await sameMppTerms(dataDir, ours);
  const theirs = await startMppxServer(resources, { ...settlingOn(theirChain), ...same });
  const demanded = [ours, theirs].map(async (url) => JSON.stringify((await challengeOf(url)).request));
  const [our, their] = await Promise.all(demanded);
  if (our !== their) throw new Error(`the sides sell on different terms: ${our} and ${their}`);

  const challenge = (url: string, connections: number, durationMs: number) =>
    load.send({
      url,
      path: PATH,
      body: REQUEST_BODY,
      apiKeys: [],
      connections,
      until: { durationMs },
      expectStatus: 402,
    });
  let bought = 0;
  const buy = (url: string, connections: number, amount: number) => {
    if (url === ours) bought += amount;
    return payer.buy({ protocol: 'mpp', url, path: PATH, body: REQUEST_BODY, connections, amount });
  };

  const lines: ComparedLine[] = [];
  const measure = async (
    what: { measured: string; unit: 'challenges/s' | 'calls/s' },
    send: (url: string) => ReturnType<typeof buy>,
  ) => {
    const found = await alternate(
      plan.rounds,
      () => send(ours),
      () => send(theirs),
    );
    const compared = (pick: 'perSecond' | 'p50Ms' | 'p99Ms') =>
      compare(
        found.ours.map((result) => result[pick]),
        found.opponent.map((result) => result[pick]),
      );
    const { measured, unit } = what;
    lines.push(
      { part: 'i', measured, unit, ...compared('perSecond'), goal: GOAL },
      { part: 'i', measured: `${measured}, p50`, unit: 'ms', ...compared('p50Ms'), goal: null },
      { part: 'i', measured: `${measured}, p99`, unit: 'ms', ...compared('p99Ms'), goal: null },
    );
  };

  for (const url of [ours, theirs]) await challenge(url, 8, plan.warmUpMs);
  for (const connections of IN_FLIGHT) {
    await measure({ measured: `challenge, ${connections} in flight`, unit: 'challenges/s' }, (url) =>
      challenge(url, connections, plan.roundMs),
    );
  }
  for (const url of [ours, theirs]) await buy(url, 8, plan.paidCalls / 2);
  for (const connections of IN_FLIGHT) {
    // One call at a time takes longest, so fewer are made.
    const amount = connections === 1 ? plan.paidCalls / 2 : plan.paidCalls;
    await measure({ measured: `paid call, ${connections} in flight`, unit: 'calls/s' }, (url) =>
      buy(url, connections, amount),
    );
  }
  for (const chain of [ourChain, theirChain])
    await proveThatItWasPaid(chain, BigInt(bought), BigInt(same.terms.amount));
  return {
    lines,
    notes: [`(i) each of 2 × ${bought.toLocaleString('en')} calls moved its price on its chain`],
  };
}

/** The challenge that a server's 402 makes for the method evm. */
async function challengeOf(url: string) {
  const response = await fetch(url + PATH, { method: 'POST', headers: HEADERS, body: REQUEST_BODY });
  const found = Challenge.fromResponseList(response).find(({ method }) => method === 'evm');
  if (found === undefined) throw new Error(`${url} does not offer the method evm`);
  return found;
}

/**
 * What the opponent must sell to be equal: the terms of our challenge, and the answer of our paid call.
 *
 * @param ours our server, on this folder
 */
async function sameMppTerms(dataDir: string, ours: string): Promise<Omit<MppxServerOptions, keyof Settling>> {
  const { description = '', request } = await challengeOf(ours);
  const { amount, currency, recipient, methodDetails } = request as MppxServerOptions['terms'] & {
    methodDetails: { chainId: number; decimals: number };
  };
  const [apiKey = ''] = await makeKeys(dataDir, 1);
  const answer = await fetch(ours + PATH, {
    method: 'POST',
    headers: { ...HEADERS, 'x-api-key': apiKey },
    body: REQUEST_BODY,
  });
  if (!answer.ok) throw new Error(`the paid call answered ${answer.status}: ${await answer.text()}`);
  const { chainId, decimals } = methodDetails;
  return {
    path: PATH,
    description,
    answer: await answer.text(),
    terms: { amount, currency, recipient, chainId, decimals },
  };
}
