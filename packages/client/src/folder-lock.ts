/** A lock in a folder, which goes with the process that holds it. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, readlink, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isRecord, parsed } from './json.ts';

const WAIT_MS = 30_000;
const PAUSE_MS = 5;
/** Work with the store takes some milliseconds: a lock of another machine that is so old belongs to a process that has died. */
const DEAD_ELSEWHERE_MS = 20_000;
/** A process of this machine that lives may be suspended for hours, and go on. After a day its number may be another one's. */
const DEAD_HERE_MS = 24 * 3_600_000;
const LOCK = 'lock';

/** The process that holds a lock, as it stands in its file. */
interface Holder {
  token: string;
  /** The machine, or the container in it, within which `pid` names a process. */
  host: string;
  pid: number;
  /** When the process began, in the words of Linux; empty elsewhere. A number is given again to another process. */
  began: string;
}

async function hostOf(): Promise<string> {
  return `${hostname()} ${await readlink('/proc/self/ns/pid').catch(() => '')}`;
}

/** @returns empty where it is not known */
async function beginOf(pid: number): Promise<string> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name of the program, which stands in parentheses, may have spaces.
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

/**
 * Runs work while no other process runs work in this folder.
 *
 * @param folder made if it is not there
 * @throws Error when another process holds the folder for too long, or its files cannot be made
 */
export async function holding<T>(folder: string, work: () => Promise<T>): Promise<T> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { pid } = process;
  const [host, began] = await Promise.all([hostOf(), beginOf(pid)]);
  const holder = { token: randomUUID(), host, pid, began };
  const giveUpAtMs = performance.now() + WAIT_MS;
  while (!(await isTaken(folder, holder))) {
    if (await removeDead(folder, host)) continue;
    if (performance.now() > giveUpAtMs) throw new Error('the store is used by another process for too long');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  try {
    return await work();
  } finally {
    await remove(folder, holder.token);
  }
}

async function isTaken(folder: string, holder: Holder): Promise<boolean> {
  const path = join(folder, LOCK);
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, 'wx', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  try {
    await file.writeFile(JSON.stringify(holder));
  } catch (error) {
    // On a full disk it would stand there without a holder.
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  return true;
}

/** Removes the lock of a process that has died, and what it left half written. @returns whether it did */
async function removeDead(folder: string, here: string): Promise<boolean> {
  const path = join(folder, LOCK);
  const [text, taken] = await Promise.all([
    readFile(path, 'utf8').catch(() => null),
    stat(path).catch(() => null),
  ]);
  // Released meanwhile.
  if (text === null || taken === null) return true;
  const said = parsed(text);
  const { token = '', host = '', pid = 0, began = '' } = (isRecord(said) ? said : {}) as Partial<Holder>;
  const ageMs = Date.now() - taken.mtimeMs;
  const isDead =
    host === here ? !(await isAlive(pid, began)) || ageMs > DEAD_HERE_MS : ageMs > DEAD_ELSEWHERE_MS;
  if (!isDead) return false;
  await remove(folder, token, async () => {
    // While its lock stands nobody else writes here.
    for (const name of await readdir(folder))
      if (name.endsWith('.new')) await rm(join(folder, name), { force: true });
  });
  return true;
}

/** Whether a process of this machine lives, which may not be asked about and lives all the same. */
async function isAlive(pid: number, began: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  const begins = began === '' ? '' : await beginOf(pid);
  return begins === '' || begins === began;
}

/**
 * Removes the lock if it is still that of this holder. Two may want to: several processes that find it dead, or its holder who was
 * thought to be. Only the one that makes the mark of this holder does, so that nobody removes the lock that came after it.
 */
async function remove(folder: string, token: string, before = async () => {}): Promise<void> {
  const mark = join(folder, `lock-of-${/^[\w-]{1,60}$/.test(token) ? token : 'nobody'}.going`);
  const isOurs = await open(mark, 'wx', 0o600).then(
    (file) => file.close().then(() => true),
    // Without room for the mark the lock would stand for ever: then it goes without.
    (error: NodeJS.ErrnoException) => error.code !== 'EEXIST',
  );
  if (!isOurs) {
    const made = await stat(mark).catch(() => null);
    if (made !== null && Date.now() - made.mtimeMs > DEAD_ELSEWHERE_MS) await rm(mark, { force: true });
    return;
  }
  const path = join(folder, LOCK);
  const said = parsed(await readFile(path, 'utf8').catch(() => ''));
  const holder = isRecord(said) && typeof said.token === 'string' ? said.token : '';
  if (holder === token) {
    await before();
    await rm(path, { force: true });
  }
  await rm(mark, { force: true });
}
