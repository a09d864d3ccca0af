/** Files of readings that were sold: made beside the event loop, and kept for whoever knows their address. */
import { createHash, randomBytes } from 'node:crypto';
import type { Database } from '@farebox/core/db/connection';
import { openThread, ThreadError } from '@farebox/core/threads/thread';
import { ServiceFailure } from '@farebox/core/words/failure';
import type { ReadingsExport } from '../services/reported-devices.ts';
import { type FileTask, MEDIA_TYPES } from './readings-format.ts';

const EXPORT_HOURS = 24;
const BOUNDS = { timeoutMs: 10_000, maxWaiting: 20, maxMemoryMb: 256 };
/** The largest file; the most readings that one call may ask for stay below it. */
const MAX_FILE_BYTES = 32_000_000;

export interface Exports {
  /** @throws ServiceFailure 503 while too many are being made */
  make(task: FileTask): Promise<ReadingsExport>;
  /** Null when there is none, or not any more. */
  find(id: string): Promise<{ mediaType: string; fileName: string; content: Buffer } | null>;
  /** @returns how many have expired */
  dropExpired(): Promise<number>;
  close(): Promise<void>;
}

export function createExports(
  sql: Database,
  { nowMs, baseUrl }: { nowMs(): number; baseUrl: string },
): Exports {
  const now = () => new Date(nowMs()).toISOString();
  const thread = openThread<FileTask, Uint8Array>(
    new URL('./readings-file-program.ts', import.meta.url),
    BOUNDS,
  );
  return {
    async make(task) {
      const content = await thread.run(task).catch((error: unknown) => {
        if (!(error instanceof ThreadError) || error.trouble === 'failed') throw error;
        const message = 'Too many files are being made. Try again shortly.';
        throw new ServiceFailure({ status: 503, code: 'BUSY', message, retryAfterMs: 5_000, cause: error });
      });
      if (content.length > MAX_FILE_BYTES) throw new Error(`a file of ${content.length} bytes`);
      // Whoever knows it may fetch it: it is in the answer that was paid for, and cannot be guessed.
      const exportId = randomBytes(16).toString('hex');
      const expiresAtMs = nowMs() + EXPORT_HOURS * 3_600_000;
      const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
      await sql`
        insert into device_exports (id, media_type, file_name, content, expires_at)
        values (${exportId}, ${MEDIA_TYPES[task.format]}, ${`${task.deviceId}.${task.format}`}, ${bytes},
                ${new Date(expiresAtMs).toISOString()})`;
      return {
        exportId,
        downloadUrl: `${baseUrl}/api/device-exports/${exportId}`,
        sizeBytes: bytes.length,
        sha256: createHash('sha256').update(bytes).digest('hex'),
        expiresAtMs,
      };
    },

    async find(id) {
      const [row] = await sql<{ media_type: string; file_name: string; content: Buffer }[]>`
        select media_type, file_name, content from device_exports where id = ${id} and expires_at > ${now()}`;
      return row === undefined
        ? null
        : { mediaType: row.media_type, fileName: row.file_name, content: row.content };
    },

    async dropExpired() {
      const { count } = await sql`delete from device_exports where expires_at <= ${now()}`;
      return count;
    },

    close: () => thread.close(),
  };
}
