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
import { gunzipSync, gzipSync } from 'node:zlib';

/** As the node dumps it: JSON, packed to a ninth of its size. */
const STATE = 'state.json.gz';
/** The node reads plain JSON; this copy is there only while it starts. */
const UNPACKED = 'state.json';
const RUNNING = 'running.json';
/** So many of the newest blocks are kept although they are empty: who looks back looks at these. */
const EMPTY_BLOCKS = 256;

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

/**
 * A state, packed as the node dumps it, without the blocks that nothing happened in, but for the newest. A node that
 * makes a block every few seconds has little else after some hours.
 */
export function withoutEmptyBlocks(packed: Buffer): Buffer {
  const state: {
    best_block_number: number;
    blocks: { header: { number: string }; transactions: unknown[] }[];
  } = JSON.parse(gunzipSync(packed).toString());
  const oldest = state.best_block_number - EMPTY_BLOCKS;
  state.blocks = state.blocks.filter(
    ({ header, transactions }) => Number(header.number) > oldest || transactions.length > 0,
  );
  return gzipSync(JSON.stringify(state));
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

/** Who runs a chain on this folder. */
export interface Running {
  keeperPid: number;
  /** Once it listens. */
  node: { pid: number; url: string } | null;
}

/** Who runs a chain on this folder, or did when it was killed; null after an orderly end. */
export function runningOn(stateDir: string): Running | null {
  const file = join(stateDir, RUNNING);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
}

/** Notes who runs a chain on this folder; null when it has ended. */
export function noteRunning(stateDir: string, running: Running | null): void {
  const file = join(stateDir, RUNNING);
  if (running === null) {
    rmSync(file, { force: true });
    return;
  }
  writeFileSync(`${file}.new`, JSON.stringify(running));
  renameSync(`${file}.new`, file);
}
