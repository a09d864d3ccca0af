/**
 * One stop stops everything, whoever sends it to whichever process. Real processes, started by npm as a person does.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { stopEmbeddedPostgres } from '../../process/src/embedded-postgres.ts';
import { freePort } from '../../process/src/free-port.ts';
import { isAlive } from '../../process/src/is-alive.mjs';

const ROOT = join(import.meta.dirname, '../../..');
/** The programs of both processes, from the bundle or from the source. */
const START = '/sandbox/src/start.';
const SERVER = '/shop/src/main.';
/** For a whole `npm run start`, on a machine that does much else meanwhile. */
const WITHIN_MS = 180_000;

let folder: string;
const started: ChildProcess[] = [];
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-stop-'));
});
after(async () => {
  // Only those that a failed test left behind.
  for (const child of started) if (child.pid !== undefined) for (const pid of familyOf(child.pid)) end(pid);
  for (const name of readdirSync(folder)) await stopEmbeddedPostgres(join(folder, name));
  rmSync(folder, { recursive: true, force: true });
});

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** A process and all that descend from it, as the system knows them now. */
function familyOf(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It has ended meanwhile.
    }
  }
  const family = [pid];
  for (const member of family)
    for (const [child, parent] of parents) if (parent === member) family.push(child);
  return family;
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + WITHIN_MS;
  while (!(await holds())) {
    assert(performance.now() < deadlineMs, `waited in vain for ${what}`);
    await sleep(50);
  }
}

/** By its own file, whoever started it. */
function postgresOf(dataDir: string): number {
  const file = join(dataDir, 'postgres/data/postmaster.pid');
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : 0;
}

interface Running {
  dataDir: string;
  /** npm itself. */
  npm: number;
  /** Everything that npm's command has started, the database and the chains' nodes with it. */
  all: number[];
  /** The process whose command line has this in it. */
  the(part: string): number;
}

async function start(script: 'start' | 'serve', name: string): Promise<Running> {
  const dataDir = join(folder, name);
  const port = await freePort();
  const env = {
    ...process.env,
    FAREBOX_DATA_DIR: dataDir,
    PORT: String(port),
    FAREBOX_SECRET: '0123456789abcdef'.repeat(4),
  };
  const npm = spawn('npm', ['run', script], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  started.push(npm);
  let printed = '';
  for (const stream of [npm.stdout, npm.stderr]) stream.on('data', (chunk) => (printed += chunk));
  await until(`npm run ${script} to be ready: ${printed}`, async () => {
    assert.equal(npm.exitCode, null, printed);
    const up = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => null);
    return up?.status === 200 && (script === 'serve' || printed.includes('/api/keys/me'));
  });
  const { pid = 0 } = npm;
  const nodes = ['chain', 'tempo'].flatMap((chain) => {
    const file = join(dataDir, chain, 'running.json');
    if (!existsSync(file)) return [];
    const running: { keeperPid: number; node: { pid: number } } = JSON.parse(readFileSync(file, 'utf8'));
    return [running.keeperPid, running.node.pid];
  });
  const all = [...new Set([...familyOf(pid), ...nodes, postgresOf(dataDir)])];
  return {
    dataDir,
    npm: pid,
    all,
    the(part) {
      const found = all.filter((each) => commandOf(each).includes(part)).at(-1);
      assert(found !== undefined, `${part} is none of ${all.map(commandOf).join('; ')}`);
      return found;
    },
  };
}

/**
 * The processes of a family that are still alive. A process that has ended but was not collected yet does not count.
 */
function leftOf({ all }: Running): string[] {
  const ended = (pid: number) => {
    try {
      return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    } catch {
      return true;
    }
  };
  return all.filter((pid) => isAlive(pid) && !ended(pid)).map((pid) => `${pid} ${commandOf(pid)}`);
}

async function everythingEnds(running: Running): Promise<void> {
  await until(`the end of ${leftOf(running).join('; ')}`, () => leftOf(running).length === 0);
  assert.equal(postgresOf(running.dataDir), 0, 'PostgreSQL has ended in order');
}

const linux = process.platform !== 'linux' && 'only Linux tells who descends from whom';

test('npm start: SIGTERM to npm alone, to the server alone, and the death of any of them', {
  skip: linux,
}, async () => {
  const stops: { who: (running: Running) => number; how: NodeJS.Signals }[] = [
    { who: ({ npm }) => npm, how: 'SIGTERM' },
    { who: ({ the }) => the(SERVER), how: 'SIGTERM' },
    { who: ({ the }) => the('bootstrap.mjs'), how: 'SIGKILL' },
    { who: ({ the }) => the(START), how: 'SIGKILL' },
  ];
  for (const { who, how } of stops) {
    const running = await start('start', 'start');
    process.kill(who(running), how);
    await everythingEnds(running);
  }
});

test('npm start: who is killed before anything is ready leaves nothing behind', { skip: linux }, async () => {
  for (const part of [START, SERVER]) {
    const dataDir = join(folder, `early-${part}`);
    const env = { ...process.env, FAREBOX_DATA_DIR: dataDir, PORT: String(await freePort()) };
    const npm = spawn('npm', ['run', 'start'], { cwd: ROOT, env, stdio: 'ignore' });
    started.push(npm);
    const { pid = 0 } = npm;
    const seen = new Set<number>();
    const the = (name: string) => [...seen].find((each) => commandOf(each).includes(name));
    await until(`both of them: ${[...seen].map(commandOf).join('; ')}`, () => {
      for (const each of familyOf(pid)) seen.add(each);
      return the(START) !== undefined && the(SERVER) !== undefined;
    });
    // The server has not been told yet where anything is.
    end(the(part) ?? assert.fail());
    const left = () => leftOf({ dataDir, npm: pid, all: [...seen], the: () => 0 });
    await until('the end of all of them', () => left().length === 0);
    assert.equal(postgresOf(dataDir), 0, 'no database runs');
  }
});

test('npm start: who is ended while the database comes up, before the world is there, leaves nothing behind', {
  skip: linux,
}, async () => {
  const dataDir = join(folder, 'coming-up');
  const ends: { whom: 'all' | typeof START | typeof SERVER; how: NodeJS.Signals }[] = [
    // As Ctrl-C does in a terminal; the database and the chains' keeper are not in that group.
    { whom: 'all', how: 'SIGINT' },
    { whom: START, how: 'SIGKILL' },
    { whom: SERVER, how: 'SIGKILL' },
  ];
  for (const { whom, how } of ends) {
    const env = { ...process.env, FAREBOX_DATA_DIR: dataDir, PORT: String(await freePort()) };
    const npm = spawn('npm', ['run', 'start'], { cwd: ROOT, env, stdio: 'ignore', detached: true });
    started.push(npm);
    const { pid = 0 } = npm;
    const seen = new Set<number>();
    await until('the database to run', () => {
      for (const each of familyOf(pid)) seen.add(each);
      return isAlive(postgresOf(dataDir));
    });
    // The chains are built for as long as that, and on a later start not even they are: the world may be there by now.
    for (const each of familyOf(pid)) seen.add(each);
    if (whom === 'all') process.kill(-pid, how);
    else end([...seen].find((each) => commandOf(each).includes(whom)) ?? assert.fail());
    const left = () => leftOf({ dataDir, npm: pid, all: [...seen], the: () => 0 });
    await until(`the end of ${left().join('; ')}`, () => left().length === 0);
    assert.equal(postgresOf(dataDir), 0, `PostgreSQL has ended in order after ${how} to ${whom}`);
  }
  // What they left is good for a start.
  const running = await start('start', 'coming-up');
  process.kill(running.npm, 'SIGTERM');
  await everythingEnds(running);
});

test('npm run serve: SIGTERM to npm alone; a database that a killed server left ends with the next one', {
  skip: linux,
}, async () => {
  const first = await start('serve', 'serve');
  process.kill(first.npm, 'SIGTERM');
  await everythingEnds(first);

  const killed = await start('serve', 'serve');
  const database = postgresOf(killed.dataDir);
  process.kill(killed.the(SERVER), 'SIGKILL');
  await until('its end', () => !isAlive(killed.npm) || leftOf(killed).length <= 1);
  assert(isAlive(database), 'nobody was there to end it');
  const next = await start('serve', 'serve');
  assert.equal(postgresOf(next.dataDir), database, 'the same one, taken over');
  process.kill(next.npm, 'SIGTERM');
  await everythingEnds(next);
});
