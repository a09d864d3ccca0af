/** The files in a chain's folder: the saved state, and a note of the processes that run the chain. */
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

/** The state as the node dumps it: JSON, compressed with gzip to a ninth of its size. */
const STATE = 'state.json.gz';
/** The node reads uncompressed JSON; this copy exists only while the node starts. */
const UNPACKED = 'state.json';
const RUNNING = 'running.json';
/** How many of the newest blocks are kept even if they are empty: clients that look back look at these. */
const EMPTY_BLOCKS = 256;

/** Replaces the saved state. After a crash at any point, the folder holds either the whole old state or the whole new one. */
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
 * Removes the blocks without transactions from a dumped state, except for the newest blocks. A node that makes a block
 * every few seconds has hardly any other blocks after some hours.
 *
 * @param packed JSON, compressed with gzip, as is the result
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

/** Deletes the file that `unpackState` wrote. */
export function forgetUnpacked(stateDir: string): void {
  rmSync(join(stateDir, UNPACKED), { force: true });
}

/** The processes that run a chain on a folder. */
export interface Running {
  keeperPid: number;
  /** null until the node listens. */
  node: { pid: number; url: string } | null;
}

/** The processes that run a chain on this folder, or ran it when they were killed; null after an orderly end. */
export function runningOn(stateDir: string): Running | null {
  const file = join(stateDir, RUNNING);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
}

/** Notes the processes that run a chain on this folder; null deletes the note. */
export function noteRunning(stateDir: string, running: Running | null): void {
  const file = join(stateDir, RUNNING);
  if (running === null) {
    rmSync(file, { force: true });
    return;
  }
  writeFileSync(`${file}.new`, JSON.stringify(running));
  renameSync(`${file}.new`, file);
}
