/** (f) the 402 with offers of a chain, against a bare route and against the published middleware on the same terms. */
import { join } from 'node:path';
import { startProgram } from './answering-process.ts';
import { startFarebox } from './farebox.ts';
import type { Load } from './load.ts';
import { startMiddleware } from './middleware.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';
import { ourSettings, PATH, REQUEST_BODY, sameTerms, settlingOn, startChain } from './x402-world.ts';

const CONNECTIONS = 32;
/** The goal for the bare route that sends the same bytes; the other opponents have none. */
const GOAL = { atLeast: 0.9 };

export async function measureUnpaid(
  resources: Resources,
  load: Load,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  // Nobody pays here, so one chain serves all sides.
  const rpcUrl = await startChain(resources, []);
  const dataDir = resources.folder();
  const ours = await startFarebox(resources, dataDir, ourSettings(rpcUrl));
  const same = await sameTerms(dataDir, ours);
  const bare = (environment: NodeJS.ProcessEnv) =>
    startProgram<{ url: string }>(resources, join(import.meta.dirname, 'bare-program.ts'), {
      environment: { ...process.env, ...environment },
    });
  const plain = await bare({ BENCH_ANSWER: same.answer });
  const challenge = await challengeOf(ours + PATH);
  const asLong = await bare({ BENCH_FIXED: JSON.stringify(challenge) });
  const opponents = [
    { name: 'a bare route', url: plain.first.url, expectStatus: 200, goal: null },
    // What remains when the length of the answer does not matter.
    { name: 'a bare route with our 402', url: asLong.first.url, expectStatus: 402, goal: GOAL },
    ...(await Promise.all(
      (['hono', 'express'] as const).map(async (framework) => ({
        name: `@x402/${framework}`,
        url: await startMiddleware(resources, { framework, ...settlingOn(rpcUrl), ...same }),
        expectStatus: 402,
        goal: null,
      })),
    )),
  ];
  const send = (url: string, expectStatus: number, durationMs: number) =>
    load.send({
      url,
      path: PATH,
      body: REQUEST_BODY,
      apiKeys: [],
      connections: CONNECTIONS,
      until: { durationMs },
      expectStatus,
    });

  await send(ours, 402, plan.warmUpMs);
  const lines: ComparedLine[] = [];
  for (const { name, url, expectStatus, goal } of opponents) {
    await send(url, expectStatus, plan.warmUpMs);
    const found = await alternate(
      plan.rounds,
      () => send(ours, 402, plan.roundMs),
      () => send(url, expectStatus, plan.roundMs),
    );
    const compared = (pick: 'perSecond' | 'p99Ms') =>
      compare(
        found.ours.map((result) => result[pick]),
        found.opponent.map((result) => result[pick]),
      );
    const measured = `${name}, ${CONNECTIONS} connections`;
    lines.push(
      { part: 'f', measured, unit: 'requests/s', ...compared('perSecond'), goal },
      { part: 'f', measured: `${measured}, p99`, unit: 'ms', ...compared('p99Ms'), goal: null },
    );
  }
  const headerBytes = Object.entries(challenge.headers).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(`${name}: ${value}\r\n`),
    0,
  );
  const size = `${headerBytes} bytes of headers, but for those of the connection, and a body of ${Buffer.byteLength(challenge.body)}`;
  return { lines, notes: [`(f) our 402 has ${size}`] };
}

/** The whole 402, for an opponent that only has to send it. */
async function challengeOf(url: string) {
  const challenge = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: REQUEST_BODY,
  });
  const hopByHop = new Set(['connection', 'keep-alive', 'date', 'content-length', 'transfer-encoding']);
  const headers = Object.fromEntries([...challenge.headers].filter(([name]) => !hopByHop.has(name)));
  return { status: challenge.status, headers, body: await challenge.text() };
}
