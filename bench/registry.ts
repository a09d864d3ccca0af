/** (q) what the registry at its full size costs: the start and the memory of a server with every service, against one with ping alone. */
import { join } from 'node:path';
import { freePort } from '../packages/process/src/free-port.ts';
import { startProgram } from './answering-process.ts';
import { ROOT, serverEnvironment } from './farebox.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const METRICS_TOKEN = 'of-the-benchmark-alone';
/** Where everything that is sold stands. Each is read as often as a crawler and its readers would in an hour. */
const DOCUMENTS = ['/openapi.json', '/x402/catalog', '/llms.txt', '/docs'];
const READS = 20;

interface Started {
  startMs: number;
  residentMb: number;
  /** All documents once, over one connection. */
  documentsMs: number;
  bytes: number;
}

export async function measureRegistry(
  resources: Resources,
  { rounds }: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const folders = { everything: resources.folder(), ping: resources.folder() };
  const start = async (services: keyof typeof folders): Promise<Started> => {
    const environment = {
      ...serverEnvironment(folders[services], await freePort()),
      METRICS_TOKEN,
      LOG_LEVEL: 'error',
      ...(services === 'ping' ? { SERVICES: 'ping' } : {}),
    };
    const startedAtMs = performance.now();
    const { first, stop } = await startProgram<{ baseUrl: string }>(
      resources,
      join(ROOT, 'apps/shop/src/main.ts'),
      { environment },
    );
    const startMs = performance.now() - startedAtMs;
    const { baseUrl } = first;
    await read(baseUrl);
    const readAtMs = performance.now();
    let bytes = 0;
    for (let nth = 0; nth < READS; nth++) bytes = await read(baseUrl);
    const documentsMs = (performance.now() - readAtMs) / READS;
    const residentMb = await residentMbOf(baseUrl);
    await stop();
    return { startMs, residentMb, documentsMs, bytes };
  };
  // The first start on a folder makes the database.
  for (const services of ['everything', 'ping'] as const) await start(services);
  const found = await alternate(
    rounds,
    () => start('everything'),
    () => start('ping'),
  );
  const line = (
    measured: string,
    unit: ComparedLine['unit'],
    pick: Exclude<keyof Started, 'bytes'>,
  ): ComparedLine => ({
    part: 'q',
    measured,
    unit,
    goal: null,
    ...compare(
      found.ours.map((each) => each[pick]),
      found.opponent.map((each) => each[pick]),
    ),
  });
  return {
    lines: [
      line('start of main.ts until it listens', 'ms', 'startMs'),
      line('memory of main.ts when its documents have been read', 'MB', 'residentMb'),
      line(`${DOCUMENTS.length} documents, one after the other`, 'ms', 'documentsMs'),
    ],
    notes: [
      `(q) ${DOCUMENTS.join(', ')} have ${found.ours[0]?.bytes} bytes with everything, unpacked, and ${found.opponent[0]?.bytes} with ping`,
    ],
  };
}

/** @returns how many bytes the documents have, unpacked */
async function read(baseUrl: string): Promise<number> {
  let bytes = 0;
  for (const path of DOCUMENTS) {
    const response = await fetch(baseUrl + path);
    if (!response.ok) throw new Error(`(q) ${path} answered ${response.status}`);
    bytes += (await response.arrayBuffer()).byteLength;
  }
  return bytes;
}

async function residentMbOf(baseUrl: string): Promise<number> {
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
  const text = await (await fetch(`${baseUrl}/metrics`, { headers })).text();
  const [, told] = /^process_resident_memory_bytes (\S+)/m.exec(text) ?? [];
  if (told === undefined) throw new Error('the server does not tell its memory');
  return Number(told) / 2 ** 20;
}
