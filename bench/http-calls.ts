/** (a) the paid call and (b) the 402, each against a bare route that answers what the paid call answers. */
import { join } from 'node:path';
import { startProgram } from './answering-process.ts';
import { makeKeys, startFarebox } from './farebox.ts';
import type { Load, LoadOrder } from './load.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const PATH = '/x402/ping';
const BODY = JSON.stringify({ message: 'hello' });
const CONNECTIONS = [1, 16, 64];
/** The load for which the goals are set. (f) compares a 402 with a route that sends as many bytes. */
const GOAL_CONNECTIONS = 64;
const GOALS = { a: { perSecond: 0.3, p99: 3 }, b: null };

type HttpPart = keyof typeof GOALS;

export async function measureHttpCalls(
  resources: Resources,
  load: Load,
  plan: Plan,
  parts: readonly HttpPart[],
): Promise<ComparedLine[]> {
  const dataDir = resources.folder();
  const url = await startFarebox(resources, dataDir);
  const apiKeys = await makeKeys(dataDir, 1);
  const answer = await fetch(url + PATH, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': apiKeys[0] ?? '' },
    body: BODY,
  });
  if (!answer.ok) throw new Error(`the paid call answered ${answer.status}: ${await answer.text()}`);
  const bare = await startProgram<{ url: string }>(resources, join(import.meta.dirname, 'bare-program.ts'), {
    environment: { ...process.env, BENCH_ANSWER: await answer.text() },
  });

  const requests: Record<HttpPart | 'bare', Pick<LoadOrder, 'url' | 'apiKeys' | 'expectStatus'>> = {
    a: { url, apiKeys, expectStatus: 200 },
    b: { url, apiKeys: [], expectStatus: 402 },
    // The bare route gets a key too, so that both sides receive the same request.
    bare: { url: bare.first.url, apiKeys, expectStatus: 200 },
  };
  const send = (who: HttpPart | 'bare', connections: number, durationMs: number) =>
    load.send({ path: PATH, body: BODY, ...requests[who], connections, until: { durationMs } });

  const lines: ComparedLine[] = [];
  for (const part of parts) {
    for (const who of [part, 'bare'] as const) await send(who, GOAL_CONNECTIONS, plan.warmUpMs);
    for (const connections of CONNECTIONS) {
      const found = await alternate(
        plan.rounds,
        () => send(part, connections, plan.roundMs),
        () => send('bare', connections, plan.roundMs),
      );
      const goal = connections === GOAL_CONNECTIONS ? GOALS[part] : null;
      const measured = `${connections} connection${connections === 1 ? '' : 's'}`;
      const compared = (pick: 'perSecond' | 'p50Ms' | 'p99Ms') =>
        compare(
          found.ours.map((result) => result[pick]),
          found.opponent.map((result) => result[pick]),
        );
      lines.push(
        {
          part,
          measured,
          unit: 'requests/s',
          ...compared('perSecond'),
          goal: goal && { atLeast: goal.perSecond },
        },
        { part, measured: `${measured}, p50`, unit: 'ms', ...compared('p50Ms'), goal: null },
        {
          part,
          measured: `${measured}, p99`,
          unit: 'ms',
          ...compared('p99Ms'),
          goal: goal && { below: goal.p99 },
        },
      );
    }
  }
  await bare.stop();
  return lines;
}
