/**
 * `npm run backup -- <folder>`: copies everything that this installation keeps, while it runs: the embedded database as
 * of one moment and, for a sandbox, its chains, cards and mail as of the same moment, so that the books of the copy
 * prove. `npm run restore` makes an installation from it.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { copyEmbeddedPostgres } from '../../process/src/postgres-copy.ts';
import { runCommand, UsageError } from '../../process/src/run-command.ts';
import { StartError } from '../../process/src/start-error.ts';
import { BACKUP_MARK } from './backup-mark.ts';
import { copyTree } from './copy-tree.ts';
import { dataDirOf } from './data-dir.ts';

const USAGE = 'npm run backup -- <new folder>';
/** Files that describe the running processes, which are not copied. */
const OF_THE_PROCESSES = ['server.pid', 'world.json', 'running.json', 'state.json'];

await runCommand(USAGE, async () => {
  const [named, ...more] = process.argv.slice(2);
  if (named === undefined || more.length > 0) throw new UsageError('name one folder that does not exist yet');
  if (process.env.DATABASE_URL || process.env.DATABASE_URL_FILE)
    throw new StartError(
      'the database is the one of DATABASE_URL: back it up with its own tools, such as pg_dump, pg_basebackup or the snapshots of whoever runs it. Beside it only the variables are to be kept, secrets above all',
    );
  const dataDir = dataDirOf(process.env);
  const target = resolve(named);
  if (existsSync(target) && readdirSync(target).length > 0)
    throw new StartError(`${target} is not empty; name a folder that does not exist yet`);
  if (!relative(dataDir, target).startsWith('..'))
    throw new StartError(`${target} lies within ${dataDir}; name one elsewhere`);
  // Until it is complete it has another name, so that half a copy is never mistaken for a backup.
  const unfinished = join(dirname(target), `.${basename(target)}.unfinished`);
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true, mode: 0o700 });
  try {
    const startedAtMs = performance.now();
    let heldMs = 0;
    await copyEmbeddedPostgres(dataDir, unfinished, async () => {
      const heldSinceMs = performance.now();
      await copyRest(dataDir, unfinished);
      heldMs = performance.now() - heldSinceMs;
    });
    writeFileSync(
      join(unfinished, BACKUP_MARK),
      JSON.stringify({ format: 1, finishedAt: new Date().toISOString() }),
    );
    rmSync(target, { recursive: true, force: true });
    renameSync(unfinished, target);
    const seconds = (ms: number) => (ms / 1_000).toFixed(1);
    process.stdout.write(
      `Copied ${dataDir} to ${target} in ${seconds(performance.now() - startedAtMs)} s, for ${seconds(heldMs)} s of which new calls waited.\nIt holds keys and secrets: keep it as you keep those. npm run restore -- ${target} makes an installation of it.\n`,
    );
    return 0;
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    throw error;
  }
});

/** Copies everything except the database, which is copied by itself. In production no code of the sandbox is loaded. */
async function copyRest(dataDir: string, to: string): Promise<void> {
  const world = process.env.FAREBOX_MODE === 'production' ? null : await import('./saving.ts');
  await world?.saveSolana(process.env);
  for (const name of readdirSync(dataDir)) {
    if (name === 'postgres' || OF_THE_PROCESSES.includes(name)) continue;
    copyTree(
      join(dataDir, name),
      join(to, name),
      (each) => !OF_THE_PROCESSES.includes(each) && !each.endsWith('.new'),
    );
  }
  await world?.copyEvmChains(dataDir, to);
}
