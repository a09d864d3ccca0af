/** (t) the paid call of a server that traces one call in a hundred, against the same without traces. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeKeys, startFarebox } from './farebox.ts';
import type { Load } from './load.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const GOAL = { atLeast: 0.9 };
const SAMPLED = '0.01';
const CALLERS = 200;
const CONNECTIONS = [1, 64];
/** Longer than spans wait for others. */
const SENT_WITHIN_MS = 20_000;

/** A collector that takes whatever is sent to it, and counts the spans. */
async function startCollector(resources: Resources): Promise<{ url: string; spans(): number }> {
  let spans = 0;
  const server = createServer(async (request, reply) => {
    spans += (await text(request)).split('"spanId"').length - 1;
    reply.setHeader('content-type', 'application/json');
    reply.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  resources.defer(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans: () => spans };
}

/** Waits for a batch of spans to be sent. @throws when none comes: then nothing was traced, and the ratio says nothing */
async function spansOnceSent(collector: { spans(): number }): Promise<number> {
  const until = Date.now() + SENT_WITHIN_MS;
  while (collector.spans() === 0 && Date.now() < until) await sleep(100);
  if (collector.spans() === 0) throw new Error('no span reached the collector: nothing was traced');
  return collector.spans();
}

/**
 * Measures both in alternating rounds, with one connection and with many: for a minute, with the full plan.
 *
 * @throws when no span reaches the collector
 */
export async function measureTraces(
  resources: Resources,
  load: Load,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const collector = await startCollector(resources);
  const [traced, plain] = [resources.folder(), resources.folder()];
  const settings = { TRACES_OTLP_ENDPOINT: collector.url, TRACES_SAMPLED: SAMPLED };
  const servers = {
    traced: {
      url: await startFarebox(resources, traced, settings),
      apiKeys: await makeKeys(traced, CALLERS),
    },
    plain: { url: await startFarebox(resources, plain), apiKeys: await makeKeys(plain, CALLERS) },
  };
  const send = (which: keyof typeof servers, connections: number, durationMs: number) =>
    load.send({
      ...servers[which],
      path: '/x402/ping',
      body: '{}',
      connections,
      until: { durationMs },
      expectStatus: 200,
    });
  const lines: ComparedLine[] = [];
  for (const which of ['traced', 'plain'] as const) await send(which, 64, plan.warmUpMs);
  for (const connections of CONNECTIONS) {
    const found = await alternate(
      plan.rounds,
      () => send('traced', connections, plan.roundMs),
      () => send('plain', connections, plan.roundMs),
    );
    lines.push({
      part: 't',
      measured: `1 in 100 traced, ${connections} connection${connections === 1 ? '' : 's'}`,
      unit: 'requests/s',
      ...compare(
        found.ours.map(({ perSecond }) => perSecond),
        found.opponent.map(({ perSecond }) => perSecond),
      ),
      goal: GOAL,
    });
  }
  const spans = await spansOnceSent(collector);
  return { lines, notes: [`(t) the collector got ${spans.toLocaleString('en')} spans`] };
}
