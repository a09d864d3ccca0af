/** What a chain keeps in its folder: the saved state, and who runs on it. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

/** As the node dumps it: JSON, packed to a ninth of its size. */
const STATE = 'state.json.gz';
/** The node reads plain JSON; this copy is there only while it starts. */
const UNPACKED = 'state.json';
const KEEPER = 'keeper.pid';

/** Replaces the saved state: after a crash at any point the folder holds the old one or the new one, whole. */
export function saveState(stateDir: string, packed: Buffer): void {
  const fresh = join(stateDir, `${STATE}.new`);
  const file = openSync(fresh, 'w');
  try {
    writeSync(file, packed);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(fresh, join(stateDir, STATE));
}

/** Makes the saved state readable for the node. Returns the file's path, or null when nothing was saved yet. */
export function unpackState(stateDir: string): string | null {
  const packed = join(stateDir, STATE);
  if (!existsSync(packed)) return null;
  const unpacked = join(stateDir, UNPACKED);
  writeFileSync(unpacked, gunzipSync(readFileSync(packed)));
  return unpacked;
}

/** Takes away what `unpackState` made. */
export function forgetUnpacked(stateDir: string): void {
  rmSync(join(stateDir, UNPACKED), { force: true });
}

/** The process that runs a chain on this folder, or did when it was killed; null after an orderly end. */
export function keeperOf(stateDir: string): number | null {
  const file = join(stateDir, KEEPER);
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) : null;
}

/** Notes who runs a chain on this folder; null when it has ended. */
export function noteKeeper(stateDir: string, pid: number | null): void {
  const file = join(stateDir, KEEPER);
  if (pid === null) rmSync(file, { force: true });
  else writeFileSync(file, String(pid));
}
