/** `npm run restore -- <backup>`: makes the folder of an installation of what `npm run backup` has copied. */
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { RESTORED_MARK } from '../../process/src/restored-mark.ts';
import { runCommand, UsageError } from '../../process/src/run-command.ts';
import { StartError } from '../../process/src/start-error.ts';
import { BACKUP_MARK } from './backup-mark.ts';
import { copyTree } from './copy-tree.ts';
import { dataDirOf } from './data-dir.ts';

await runCommand('npm run restore -- <backup>', async () => {
  const [named, ...more] = process.argv.slice(2);
  if (named === undefined || more.length > 0) throw new UsageError('name the folder of one backup');
  const backup = resolve(named);
  if (!existsSync(join(backup, BACKUP_MARK)))
    throw new StartError(`${backup} is not a backup, or not a whole one`);
  const dataDir = dataDirOf(process.env);
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0)
    throw new StartError(`${dataDir} is not empty; move it away, or name another one by FAREBOX_DATA_DIR`);
  const unfinished = `${dataDir}.restoring`;
  rmSync(unfinished, { recursive: true, force: true });
  copyTree(backup, unfinished, (name) => name !== BACKUP_MARK);
  // The server sees it at its start and sells nothing until `npm run recover` has found what was sold since.
  writeFileSync(join(unfinished, RESTORED_MARK), JSON.stringify({ from: backup }), { mode: 0o600 });
  rmSync(dataDir, { recursive: true, force: true });
  renameSync(unfinished, dataDir);
  process.stdout.write(
    `${dataDir} is as it was in the moment of ${backup}. Start it with the same variables; never run it beside the original. It sells nothing until npm run recover has found what was sold since.\n`,
  );
  return 0;
});
