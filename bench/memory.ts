/** (e) the memory of a whole `npm start`, including npm and the database. */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../packages/process/src/free-port.ts';
import { makeKeys, ROOT, serverEnvironment } from './farebox.ts';
import type { Load } from './load.ts';
import type { MemoryLine } from './report.ts';
import type { Resources } from './resources.ts';

const CALLS = 1_000;
const CONNECTIONS = 16;
const READY_TIMEOUT_MS = 120_000;

/** @returns a line for each program, with the processes of the same program added up; none where there is no /proc */
export async function measureMemory(resources: Resources, load: Load): Promise<MemoryLine[]> {
  if (process.platform !== 'linux') return [];
  const dataDir = resources.folder();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  // Its own process group, so that all of it can be ended at once, as Ctrl-C in a terminal does.
  const npm = spawn('npm', ['start'], {
    cwd: ROOT,
    env: serverEnvironment(dataDir, port),
    stdio: 'ignore',
    detached: true,
  });
  const { pid } = npm;
  if (pid === undefined) throw new Error('npm did not start');
  let ended = false;
  npm.on('exit', () => {
    ended = true;
  });
  resources.defer(async () => {
    if (!ended) process.kill(-pid, 'SIGINT');
    while (processTree(pid).length > 0) await sleep(50);
  });
  await becomesReady(url, () => ended);
  const apiKeys = await makeKeys(dataDir, 1);
  await load.send({
    url,
    path: '/x402/ping',
    body: '{}',
    apiKeys,
    connections: CONNECTIONS,
    until: { amount: CALLS },
    expectStatus: 200,
  });
  const lines = new Map<string, MemoryLine>();
  for (const each of processTree(pid)) {
    const line = lines.get(each.program) ?? { process: each.program, rssMb: 0, pssMb: 0 };
    line.rssMb += each.rssMb;
    line.pssMb += each.pssMb;
    lines.set(each.program, line);
  }
  return [...lines.values()];
}

async function becomesReady(url: string, ended: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    const ready = await fetch(`${url}/health/ready`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ready) return;
    if (ended() || performance.now() > deadlineMs) throw new Error('npm start did not become ready');
    await sleep(100);
  }
}

interface ProcessMemory {
  program: string;
  rssMb: number;
  pssMb: number;
}

/** A process and everything it started, as /proc tells it; a process that ends meanwhile is left out. */
function processTree(root: number): ProcessMemory[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const status = /^\d+$/.test(name) ? contentOf(`/proc/${name}/status`) : '';
    const parent = /^PPid:\s+(\d+)$/m.exec(status)?.[1];
    if (parent !== undefined) parents.set(Number(name), Number(parent));
  }
  const belongs = (pid: number): boolean => {
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = parents.get(at)) {
      if (at === root) return true;
    }
    return false;
  };
  return [...parents.keys()].filter(belongs).flatMap((pid) => {
    const memory = contentOf(`/proc/${pid}/smaps_rollup`);
    const kilobytes = (field: string) =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(memory)?.[1]);
    const rssKb = kilobytes('Rss');
    if (Number.isNaN(rssKb)) return [];
    return [{ program: programOf(pid), rssMb: rssKb / 1_024, pssMb: kilobytes('Pss') / 1_024 }];
  });
}

function programOf(pid: number): string {
  const command = contentOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');
  if (/\bpostgres\b/.test(command)) return 'postgres';
  const [program] = /\bbootstrap\.mjs\b|\b(?:start|main)\.[jt]s\b/.exec(command) ?? ['npm and its shell'];
  return program;
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
