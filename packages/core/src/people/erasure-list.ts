/** The list of erased persons that outlasts the database: a file of digests, from which a restored database is put right. */
import { createHmac } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { StartError } from '@farebox/process/start-error';
import { z } from 'zod';
import type { Secret } from '../secrets/secrets.ts';

export interface ListedErasure {
  id: string;
  /** The version of the secret that its digest was made with. */
  secretId: string;
  /** HMAC-SHA-256 of the address, in hex. */
  digest: string;
}

export interface ErasureList {
  /** Where it is. */
  readonly path: string;
  /** Adds an erasure, unless it stands there. It is on the disk when this returns. */
  add(erasure: ListedErasure & { at: string }): void;
  /** @returns none where there is no file yet */
  read(): ListedErasure[];
}

const line = z.object({
  id: z.uuid(),
  secretId: z.string().regex(/^[0-9a-f]{16}$/),
  digest: z.string().regex(/^[0-9a-f]{64}$/),
});

/** HMAC-SHA-256 of an address in lower case, in hex. */
export function digestOf({ value }: Secret, email: string): string {
  return createHmac('sha256', value)
    .update(JSON.stringify(['erased person', email]))
    .digest('hex');
}

/** Opens the list at a path, whose folder is made with the first erasure. */
export function erasureListAt(path: string): ErasureList {
  const list: ErasureList = {
    path,
    add(erasure) {
      if (list.read().some(({ id }) => id === erasure.id)) return;
      mkdirSync(dirname(path), { recursive: true });
      // A line without its end was cut off while it was written, and is written again.
      const text = textOf(path);
      if (text !== '' && !text.endsWith('\n')) truncateSync(path, Buffer.byteLength(wholeLinesOf(text)));
      const descriptor = openSync(path, 'a', 0o600);
      try {
        writeSync(descriptor, `${JSON.stringify(erasure)}\n`);
        fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
    },
    read: () =>
      wholeLinesOf(textOf(path))
        .split('\n')
        .map((text, index) => ({ text, where: `${path}, line ${index + 1}` }))
        .filter(({ text }) => text.trim() !== '')
        .map(readLine),
  };
  return list;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

const wholeLinesOf = (text: string) => text.slice(0, text.lastIndexOf('\n') + 1);

function readLine({ text, where }: { text: string; where: string }): ListedErasure {
  try {
    return line.parse(JSON.parse(text));
  } catch {
    throw new StartError(`${where}: is no line of a list of erasures`);
  }
}
