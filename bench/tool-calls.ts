/** (n) a paid tool call of MCP against the same call over HTTP, in the same process; and what `tools/list` costs. */
import { makeKeys, startFarebox } from './farebox.ts';
import type { Load } from './load.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const CONNECTIONS = [1, 64];
/** MCP may cost something of its own: parsing the message, and a server of the protocol's library for each request. */
const GOAL = { atLeast: 0.6 };
const GOAL_CPU_MS = 2;
const GOAL_PAGE_BYTES = 64_000;
const INPUT = { message: 'hello' };
const PRICE_MICROS = 250_000n;
const METRICS_TOKEN = 'of-the-benchmark-alone';

const message = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
const ACCEPT = 'application/json, text/event-stream';
const CALL = message('tools/call', { name: 'ping', arguments: INPUT });

export async function measureToolCalls(
  resources: Resources,
  load: Load,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const dataDir = resources.folder();
  const url = await startFarebox(resources, dataDir, { METRICS_TOKEN });
  const apiKeys = await makeKeys(dataDir, 1);
  const ways = {
    tool: { path: '/mcp', body: CALL, accept: ACCEPT },
    http: { path: '/x402/ping', body: JSON.stringify(INPUT) },
  };
  let sold = 0n;
  const send = async (way: keyof typeof ways, connections: number, durationMs: number) => {
    const order = { url, apiKeys, connections, until: { durationMs }, expectStatus: 200 };
    const result = await load.send({ ...ways[way], ...order });
    sold += BigInt(result.requests);
    return result;
  };
  const spentBefore = await spentMicros(url, apiKeys[0] ?? '');
  const lines: ComparedLine[] = [];
  for (const way of ['tool', 'http'] as const) await send(way, 64, plan.warmUpMs);
  for (const connections of CONNECTIONS) {
    const found = await alternate(
      plan.rounds,
      () => send('tool', connections, plan.roundMs),
      () => send('http', connections, plan.roundMs),
    );
    const measured = `${connections} connection${connections === 1 ? '' : 's'}`;
    const compared = (pick: 'perSecond' | 'p99Ms') =>
      compare(
        found.ours.map((result) => result[pick]),
        found.opponent.map((result) => result[pick]),
      );
    lines.push(
      { part: 'n', measured, unit: 'requests/s', ...compared('perSecond'), goal: GOAL },
      { part: 'n', measured: `${measured}, p99`, unit: 'ms', ...compared('p99Ms'), goal: null },
    );
  }
  // A tool call that fails also answers 200, so the amount charged shows whether the calls were sold.
  const spent = (await spentMicros(url, apiKeys[0] ?? '')) - spentBefore;
  if (spent < sold * PRICE_MICROS)
    throw new Error(`(n) counted ${sold} calls, and ${spent} micro-USD were spent`);
  return { lines, notes: [await measureList(url, load, plan)] };
}

async function spentMicros(url: string, apiKey: string): Promise<bigint> {
  const response = await fetch(`${url}/api/keys/me`, { headers: { 'x-api-key': apiKey } });
  const { balanceUsd }: { balanceUsd: string } = JSON.parse(await response.text());
  const [whole = '', fraction = ''] = balanceUsd.split('.');
  return -(BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0')));
}

/** The pages of `tools/list`, and the processor time of the server for one of them. */
async function measureList(url: string, load: Load, plan: Plan): Promise<string> {
  let cursor: string | undefined;
  let pages = 0;
  let largest = 0;
  let cpuMs = 0;
  do {
    const body = message('tools/list', cursor === undefined ? {} : { cursor });
    const headers = { 'content-type': 'application/json', accept: ACCEPT };
    const text = await (await fetch(`${url}/mcp`, { method: 'POST', headers, body })).text();
    largest = Math.max(largest, Buffer.byteLength(text));
    const [, data = ''] = /^data: (.*)$/m.exec(text) ?? [];
    const order = { url, path: '/mcp', body, accept: ACCEPT, apiKeys: [], connections: 1, expectStatus: 200 };
    await load.send({ ...order, until: { durationMs: plan.warmUpMs } });
    const before = await cpuSeconds(url);
    const { requests } = await load.send({ ...order, until: { durationMs: plan.roundMs } });
    cpuMs = Math.max(cpuMs, (((await cpuSeconds(url)) - before) * 1_000) / requests);
    cursor = JSON.parse(data).result.nextCursor;
    pages += 1;
  } while (cursor !== undefined);
  const met = (value: number, goal: number) => (value < goal ? 'met' : 'not met');
  return `(n) tools/list has ${pages} pages; the largest has ${largest} bytes (goal < ${GOAL_PAGE_BYTES}, ${met(largest, GOAL_PAGE_BYTES)}) and the dearest costs ${cpuMs.toFixed(2)} ms of the server's processor time (goal < ${GOAL_CPU_MS}, ${met(cpuMs, GOAL_CPU_MS)})`;
}

async function cpuSeconds(url: string): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
  const [, seconds] = /^process_cpu_seconds_total (\S+)/m.exec(await response.text()) ?? [];
  if (seconds === undefined) throw new Error('the server does not tell its processor time');
  return Number(seconds);
}
