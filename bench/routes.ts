/** (s) routes of somebody else's API that are sold by configuration: what they cost beside the same bytes passed on for nothing. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { freePort } from '../packages/process/src/free-port.ts';
import { startProgram } from './answering-process.ts';
import { makeKeys, ROOT, serverEnvironment, startFarebox } from './farebox.ts';
import type { Load, LoadOrder } from './load.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const BODY = JSON.stringify({ place: 'here' });
const GOAL_CONNECTIONS = 64;
const WARM_UP_CALLS = 2_000;
const LARGE_MB = 256;
const OPEN_STREAMS = 400;
const MANY_ROUTES = 2_000;
const METRICS_TOKEN = 'of-the-benchmark-alone';
const GOALS = { perSecond: 0.6, largeMbPerSecond: 0.9, moreMs: 0.2, streamKb: 200, startMs: 500 };

function configOf(upstream: string): string {
  return `
upstreams: { api: { url: "${upstream}", prefix: "/", concurrency: 1000, breaker: false, timeouts: { idleMs: 300000 } } }
routes:
  "POST /small": { upstream: api, price: "0.001", effect: read }
  "GET /large": { upstream: api, price: "0.001", answer: streamed, maxAnswerBytes: 300000000 }
  "GET /open": { upstream: api, price: "0.001", answer: streamed, stream: { maxOpen: 1000, maxMs: 600000 } }
`;
}

function manyRoutes(count: number): string {
  const routes = Array.from(
    { length: count },
    (_each, index) =>
      `  "GET /v1/things-${index}/:id": { upstream: api, price: "0.01", summary: "Thing ${index}", request: { query: { type: object, properties: { unit: { type: string } } } } }`,
  );
  return `upstreams: { api: { url: "http://127.0.0.1:9", prefix: "/" } }\nroutes:\n${routes.join('\n')}\n`;
}

export async function measureRoutes(
  resources: Resources,
  load: Load,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const upstream = await startProgram<{ url: string }>(
    resources,
    join(import.meta.dirname, 'routes-upstream-program.ts'),
    { environment: process.env },
  );
  const opponent = await startProgram<{ url: string }>(
    resources,
    join(import.meta.dirname, 'routes-opponent-program.ts'),
    { environment: { ...process.env, BENCH_UPSTREAM: upstream.first.url } },
  );
  const dataDir = resources.folder();
  const file = join(resources.folder(), 'farebox.config.yaml');
  writeFileSync(file, configOf(upstream.first.url));
  const url = await startFarebox(resources, dataDir, { FAREBOX_CONFIG: file, METRICS_TOKEN });
  const [apiKey = ''] = await makeKeys(dataDir, 1);
  const sides = { url, opponentUrl: opponent.first.url, apiKey };
  const small = await measureSmall(load, plan, sides);
  const large = await measureLarge(plan, sides);
  const streams = await measureOpenStreams(sides);
  const starts = await measureStarts(resources, plan);
  return {
    lines: [...small.lines, ...large, ...starts.lines],
    notes: [...small.notes, streams, ...starts.notes],
  };
}

interface Sides {
  url: string;
  opponentUrl: string;
  apiKey: string;
}

async function measureSmall(load: Load, plan: Plan, { url, opponentUrl, apiKey }: Sides) {
  const to = (at: string, path: string) => (connections: number, until: LoadOrder['until']) =>
    load.send({ url: at, path, body: BODY, apiKeys: [apiKey], connections, until, expectStatus: 200 });
  const round = { durationMs: plan.roundMs };
  const [paid, passed, ping] = [to(url, '/small'), to(opponentUrl, '/small'), to(url, '/x402/ping')];
  // By number: a server that has just started may answer nothing for a while.
  for (const send of [paid, passed, ping]) await send(GOAL_CONNECTIONS, { amount: WARM_UP_CALLS });
  const many = await alternate(
    plan.rounds,
    () => paid(GOAL_CONNECTIONS, round),
    () => passed(GOAL_CONNECTIONS, round),
  );
  const alone = await alternate(
    plan.rounds,
    async () => (await paid(1, round)).p50Ms,
    async () => (await passed(1, round)).p50Ms + (await ping(1, round)).p50Ms,
  );
  const p50Ms = compare(alone.ours, alone.opponent);
  const more = p50Ms.ours - p50Ms.opponent;
  const lines: ComparedLine[] = [
    {
      part: 's',
      measured: `${GOAL_CONNECTIONS} connections: @fastify/reply-from`,
      unit: 'requests/s',
      goal: { atLeast: GOALS.perSecond },
      ...compare(
        many.ours.map((each) => each.perSecond),
        many.opponent.map((each) => each.perSecond),
      ),
    },
    {
      part: 's',
      measured: '1 connection, p50: reply-from and a paid ping',
      unit: 'ms',
      goal: null,
      ...p50Ms,
    },
  ];
  const verdict = more <= GOALS.moreMs ? 'met' : 'not met';
  return {
    lines,
    notes: [
      `(s) at one connection a paid route takes ${more.toFixed(2)} ms more than reply-from and a paid ping together, p50: at most ${GOALS.moreMs} ${verdict}`,
    ],
  };
}

async function measureLarge(plan: Plan, { url, opponentUrl, apiKey }: Sides): Promise<ComparedLine[]> {
  const download = async (at: string) => {
    const startedAtMs = performance.now();
    const answer = await get(`${at}/large`, apiKey);
    let bytes = 0;
    answer.on('data', (piece: Buffer) => {
      bytes += piece.length;
    });
    await once(answer, 'end');
    if (bytes !== LARGE_MB * 2 ** 20) throw new Error(`(s) ${at} answered ${bytes} bytes`);
    return LARGE_MB / ((performance.now() - startedAtMs) / 1_000);
  };
  for (const at of [url, opponentUrl]) await download(at);
  const found = await alternate(
    plan.rounds,
    () => download(url),
    () => download(opponentUrl),
  );
  return [
    {
      part: 's',
      measured: `${LARGE_MB} MB in one answer: Pool.stream`,
      unit: 'MB/s',
      goal: { atLeast: GOALS.largeMbPerSecond },
      ...compare(found.ours, found.opponent),
    },
  ];
}

async function get(url: string, apiKey: string): Promise<IncomingMessage> {
  const sent = httpRequest(url, { headers: { 'x-api-key': apiKey }, agent: false });
  sent.end();
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve).once('error', reject);
  });
  if (answer.statusCode !== 200) throw new Error(`(s) ${url} answered ${answer.statusCode}`);
  return answer;
}

/** @returns what one stream that is open holds of the server's memory */
async function measureOpenStreams({ url, apiKey }: Sides): Promise<string> {
  const open = async (count: number) => {
    const answers: IncomingMessage[] = [];
    for (let nth = 0; nth < count; nth++) answers.push(await get(`${url}/open`, apiKey));
    await Promise.all(answers.map((answer) => once(answer, 'data')));
    return answers;
  };
  // What is allotted once, for the first ones, is not counted.
  for (const answer of await open(OPEN_STREAMS / 4)) answer.destroy();
  const before = await residentKbOf(url);
  const answers = await open(OPEN_STREAMS);
  const each = ((await residentKbOf(url)) - before) / OPEN_STREAMS;
  for (const answer of answers) answer.destroy();
  const verdict = each <= GOALS.streamKb ? 'met' : 'not met';
  return `(s) an open stream holds ${each.toFixed(0)} kB, of ${OPEN_STREAMS}: at most ${GOALS.streamKb} ${verdict}`;
}

async function residentKbOf(url: string): Promise<number> {
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
  const text = await (await fetch(`${url}/metrics`, { headers })).text();
  const [, told] = /^process_resident_memory_bytes (\S+)/m.exec(text) ?? [];
  if (told === undefined) throw new Error('the server does not tell its memory');
  return Number(told) / 1_000;
}

async function measureStarts(resources: Resources, { rounds }: Plan) {
  const start = (count: number) => {
    const folder = resources.folder();
    const file = join(resources.folder(), 'farebox.config.yaml');
    writeFileSync(file, manyRoutes(count));
    return async () => {
      const startedAtMs = performance.now();
      const { stop } = await startProgram(resources, join(ROOT, 'apps/shop/src/main.ts'), {
        environment: {
          ...serverEnvironment(folder, await freePort()),
          FAREBOX_CONFIG: file,
          LOG_LEVEL: 'error',
        },
      });
      const tookMs = performance.now() - startedAtMs;
      await stop();
      return tookMs;
    };
  };
  const [many, one] = [start(MANY_ROUTES), start(1)];
  // The first start on a folder makes the database.
  for (const each of [many, one]) await each();
  const found = await alternate(rounds, many, one);
  const compared = compare(found.ours, found.opponent);
  const more = compared.ours - compared.opponent;
  const measured = `start with ${MANY_ROUTES.toLocaleString('en')} routes: with one`;
  const verdict = more <= GOALS.startMs ? 'met' : 'not met';
  return {
    lines: [{ part: 's', measured, unit: 'ms', goal: null, ...compared } satisfies ComparedLine],
    notes: [
      `(s) ${MANY_ROUTES.toLocaleString('en')} routes add ${Math.round(more)} ms to the start: at most ${GOALS.startMs} ${verdict}`,
    ],
  };
}
