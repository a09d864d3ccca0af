/** Files of archives in Parquet, which common tools read: written and read in groups of rows, so that memory does not grow with them. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';

type Type = 'bigint' | 'integer' | 'boolean' | 'text' | 'uuid' | 'bytes' | 'time';

/** A column of a file. A time is in microseconds since 1970 (UTC). */
export interface ArchiveColumn {
  name: string;
  type: Type;
  nullable: boolean;
}

/** A row: values by column. `time` and `bigint` are bigints, `uuid` is in lower case, `bytes` are a Uint8Array. */
export type ArchiveRow = Readonly<Record<string, unknown>>;

const ELEMENTS = {
  bigint: { type: 'INT64' },
  integer: { type: 'INT32' },
  boolean: { type: 'BOOLEAN' },
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  uuid: { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } },
  bytes: { type: 'BYTE_ARRAY' },
  time: { type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
} as const;

/** The rows as they were written: times to the microsecond, which a `Date` does not hold. */
const PARSERS = { timestampFromMicroseconds: (micros: bigint) => micros };

/**
 * Writes a file, and does not come back before the disk has it. What is there by the name is written over.
 *
 * @param groups each a group of rows of the file
 * @throws the file system's error, such as ENOSPC
 */
export async function writeArchiveFile(
  path: string,
  columns: readonly ArchiveColumn[],
  groups: AsyncIterable<readonly ArchiveRow[]>,
): Promise<void> {
  const { ByteWriter, ParquetWriter } = await import('hyparquet-writer');
  const file = await open(path, 'w');
  try {
    const bytes = new ByteWriter();
    const flush = async () => {
      await file.writeFile(bytes.getBytes());
      bytes.index = 0;
    };
    const schema = columns.map(({ name, type, nullable }) => ({
      name,
      ...ELEMENTS[type],
      repetition_type: nullable ? ('OPTIONAL' as const) : ('REQUIRED' as const),
    }));
    const writer = new ParquetWriter({
      writer: Object.assign(bytes, { flush }),
      schema: [{ name: 'root', num_children: columns.length }, ...schema],
      createdBy: 'farebox',
    });
    for await (const rows of groups) {
      const columnData = columns.map(({ name }) => ({
        name,
        data: rows.map((row) => row[name] ?? null),
        offsetIndex: false,
      }));
      await writer.write({ columnData, rowGroupSize: Math.max(1, rows.length) });
    }
    await writer.finish();
    await flush();
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Reads a file a group of rows at a time. @throws the file system's error, or that it is no such file */
export async function* readArchiveFile(path: string): AsyncGenerator<ArchiveRow[]> {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import('hyparquet');
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file);
  let rowStart = 0;
  for (const { num_rows: count } of metadata.row_groups) {
    const rowEnd = rowStart + Number(count);
    yield await parquetReadObjects({ file, metadata, rowStart, rowEnd, utf8: false, parsers: PARSERS });
    rowStart = rowEnd;
  }
}

/** SHA-256 of a file. @throws the file system's error */
export async function sha256OfFile(path: string): Promise<Buffer> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest();
}
