/**
 * A copy of the embedded PostgreSQL while it serves: what `pg_basebackup` does, by the server's own functions, because the
 * package that carries the server has no such program. Started on the copy, PostgreSQL reads back its log and is then
 * as it was in one moment. https://www.postgresql.org/docs/18/continuous-archiving.html#BACKUP-LOWLEVEL-BASE-BACKUP
 */
import { chmodSync, chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { copyFile, open, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { runningEmbeddedPostgres } from './embedded-postgres.ts';
import { StartError } from './start-error.ts';

/** While a moment lasts nothing new may begin that moves money: callers wait for it, or come back. */
const MONEY_BEGINS_IN = ['calls', 'settlements', 'card_orders'];
const LOCK_TIMEOUT_MS = 10_000;
const COPIED_AT_ONCE = 8;
/** What belongs to the process that runs, or is made anew at every start. */
const LEFT_OUT = new Set(['postmaster.pid', 'postmaster.opts', 'pg_internal.init']);
const LEFT_EMPTY = new Set([
  ...['pg_wal', 'pg_replslot', 'pg_dynshmem', 'pg_notify', 'pg_serial', 'pg_snapshots', 'pg_stat_tmp'],
  ...['pg_subtrans', 'pgsql_tmp'],
]);

/**
 * Copies the database of a folder, whether it runs or not.
 *
 * @param directory as `startEmbeddedPostgres` takes it
 * @param target a folder; `postgres/` below it becomes the copy
 * @param atTheMoment run when the copy's moment has come, and before anything new that moves money can begin
 * @throws StartError when there is none, or when it runs in a way that cannot be copied
 */
export async function copyEmbeddedPostgres(
  directory: string,
  target: string,
  atTheMoment: () => Promise<void>,
): Promise<void> {
  const from = join(directory, 'postgres');
  const to = join(target, 'postgres');
  if (!existsSync(join(from, 'data', 'PG_VERSION')))
    throw new StartError(`there is no embedded database below ${directory}`);
  const running = await runningEmbeddedPostgres(directory);
  makeFolder(from, to);
  await copyInto(join(from, 'password'), join(to, 'password'));
  const data = { from: join(from, 'data'), to: join(to, 'data') };
  if (running === null) {
    await copyFolder(data.from, data.to, () => false);
    await atTheMoment();
    if ((await runningEmbeddedPostgres(directory)) !== null)
      throw new StartError('the database was started while it was copied; do it again');
    return;
  }
  // A slot and a backup belong to the session that began them, and end with it.
  const sql = postgres(running, { max: 2, max_lifetime: null, onnotice: () => {} });
  const session = await sql.reserve();
  try {
    const [{ wal_level: level } = {}] = await session<{ wal_level: string }[]>`show wal_level`;
    if (level === 'minimal')
      throw new StartError('the database was started by an earlier version; restart the server once');
    // Keeps what is logged from now on until it has been copied.
    await session`select pg_create_physical_replication_slot(${`farebox_backup_${process.pid}`}, true, true)`;
    const [begun] = await session<{ first: string }[]>`
      select pg_walfile_name(pg_backup_start('farebox', true)) as first`;
    await copyFolder(data.from, data.to, (folder) => LEFT_EMPTY.has(folder));
    const last = await sql.begin(async (locking) => {
      await locking.unsafe(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
      await locking.unsafe(`lock table ${MONEY_BEGINS_IN.join(', ')} in exclusive mode`);
      const [ended] = await session<{ labelfile: string; spcmapfile: string; last: string }[]>`
        select labelfile, spcmapfile, pg_walfile_name(lsn) as last from pg_backup_stop(false)`;
      if (ended === undefined) throw new Error('the end of the backup was not told');
      await writeInto(join(data.to, 'backup_label'), ended.labelfile, data.to);
      if (ended.spcmapfile.trim() !== '')
        throw new StartError('the database has tablespaces of its own, which are not copied');
      await atTheMoment();
      return ended.last;
    });
    await copyLog(join(data.from, 'pg_wal'), join(data.to, 'pg_wal'), begun?.first ?? '', last);
  } finally {
    session.release();
    await sql.end({ timeout: 2 });
  }
}

/** Copies the segments of the log from the first to the last, both with their names of 24 hex digits. */
async function copyLog(from: string, to: string, first: string, last: string): Promise<void> {
  const names = (await readdir(from)).filter((name) => /^[0-9A-F]{24}$/.test(name)).sort();
  const needed = names.filter((name) => name >= first && name <= last);
  if (needed[0] !== first || needed.at(-1) !== last)
    throw new Error(`the log from ${first} to ${last} is not all there any more`);
  for (const name of needed) await copyInto(join(from, name), join(to, name));
}

/** Copies what a running server may change, remove or add meanwhile: its log makes up for that. */
async function copyFolder(from: string, to: string, leftEmpty: (folder: string) => boolean): Promise<void> {
  const files: { from: string; to: string }[] = [];
  async function list(source: string, target: string): Promise<void> {
    makeFolder(source, target);
    for (const entry of await readdir(source, { withFileTypes: true })) {
      const path = { from: join(source, entry.name), to: join(target, entry.name) };
      if (entry.isDirectory()) {
        if (leftEmpty(entry.name)) makeEmptied(path.from, path.to, entry.name);
        else await list(path.from, path.to);
      } else if (entry.isFile() && !LEFT_OUT.has(entry.name)) files.push(path);
    }
  }
  await list(from, to);
  const next = files.values();
  const copyThem = async () => {
    for (const file of next) await copyInto(file.from, file.to, { mayBeGone: true });
  };
  await Promise.all(Array.from({ length: COPIED_AT_ONCE }, copyThem));
}

function makeEmptied(from: string, to: string, name: string): void {
  makeFolder(from, to);
  // PostgreSQL makes no folder anew that it was born with.
  if (name === 'pg_wal')
    for (const inner of ['archive_status', 'summaries'])
      if (existsSync(join(from, inner))) makeFolder(join(from, inner), join(to, inner));
}

function makeFolder(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  likeIts(from, to);
}

/** Its owner and rights: PostgreSQL opens no folder that others may read, and may run as somebody else than we. */
function likeIts(from: string, to: string): void {
  const { mode, uid, gid } = statSync(from);
  chmodSync(to, mode & 0o7777);
  if (process.getuid?.() === 0) chownSync(to, uid, gid);
}

async function copyInto(from: string, to: string, { mayBeGone = false } = {}): Promise<void> {
  try {
    await copyFile(from, to);
    likeIts(from, to);
  } catch (error) {
    if (mayBeGone && (error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  await onDisk(to);
}

async function writeInto(file: string, text: string, like: string): Promise<void> {
  await writeFile(file, text, { mode: 0o600 });
  const { uid, gid } = statSync(like);
  if (process.getuid?.() === 0) chownSync(file, uid, gid);
  await onDisk(file);
}

async function onDisk(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
