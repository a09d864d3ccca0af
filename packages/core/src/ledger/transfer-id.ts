import { createHash, randomFillSync } from 'node:crypto';

/** Randomness is fetched for many ids at once: asking the system for sixteen bytes costs more than all the rest. */
const POOL_BYTES = 16 * 256;
const pool = Buffer.alloc(POOL_BYTES);
let poolAt = POOL_BYTES;

/**
 * A new id that sorts by time (UUID version 7, RFC 9562): rows made together lie together, however many there are.
 *
 * @param nowMs milliseconds since 1970
 */
export function newTransferId(nowMs: number): string {
  return format(newIdBytes(nowMs));
}

/**
 * A new id of a call and its transfers, which names the bucket of its account: by the last three digits of its fourth group, which
 * are random in other ids. What counts is the bucket that stands in the row.
 *
 * @param nowMs milliseconds since 1970
 */
export function newCallId(nowMs: number, bucket: number): string {
  const bytes = newIdBytes(nowMs);
  bytes.writeUInt16BE((bytes.readUInt16BE(8) & 0xf000) | bucket, 8);
  return format(bytes);
}

/** The bucket that an id of a call names: a hint, which one from before there were buckets gives by chance. */
export function bucketNamedByCall(callId: string): number {
  return Number.parseInt(callId.slice(20, 23), 16);
}

function newIdBytes(nowMs: number): Buffer {
  if (poolAt === POOL_BYTES) {
    randomFillSync(pool);
    poolAt = 0;
  }
  const bytes = pool.subarray(poolAt, poolAt + 16);
  poolAt += 16;
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return bytes;
}

/**
 * The id that follows from a cause (UUID version 8, RFC 9562): whoever acts on the same cause, and however often,
 * arrives at the same transfer.
 */
export function transferIdFor(cause: string): string {
  const bytes = createHash('sha256').update(cause).digest().subarray(0, 16);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return format(bytes);
}

function format(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
