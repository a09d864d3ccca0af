/** Reads the built double of the lending program, and the manifest that says from what it was built. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const HERE = import.meta.dirname;
export const SOURCE_DIR = join(HERE, 'program');
export const PROGRAM_FILE = join(HERE, 'program.so');
export const MANIFEST_FILE = join(HERE, 'manifest.json');

export interface Manifest {
  /** SHA-256 of `program.so`, hex. */
  programSha256: string;
  /** SHA-256 of everything that the built file depends on, except the compiler; hex. */
  sourceSha256: string;
  compiler: string;
}

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(MANIFEST_FILE, 'utf8'));
}

export function readProgram(): Buffer {
  return readFileSync(PROGRAM_FILE);
}

/** SHA-256 of the C files, of the numbers that they are compiled with, and of the code that compiles and links them; hex. */
export function sourceSha256(): string {
  const files = readdirSync(SOURCE_DIR).map((name) => join('program', name));
  const hash = createHash('sha256');
  for (const file of [...files, 'layout.ts', 'compile.ts', 'link.ts'].toSorted())
    hash.update(`${file}\0`).update(readFileSync(join(HERE, file)));
  return hash.digest('hex');
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
