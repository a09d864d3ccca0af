/** Fields that an operator sees of a key, wherever it is shown. */
import type { KeyStatus } from '../keys/keys.ts';

export interface FreezeRow {
  cause: string;
  note: string | null;
  /** Text where the database made JSON of it. */
  created_at: string | Date;
}

export function asFreeze({ cause, note, created_at: at }: FreezeRow): Record<string, unknown> {
  return { cause, note, since: new Date(at).toISOString() };
}

/** A key's status, as it is now. */
export function statusOf(
  { status, expires_at: expiresAt }: { status: KeyStatus; expires_at: Date | null },
  nowMs: number,
): KeyStatus | 'expired' {
  return status !== 'revoked' && expiresAt !== null && expiresAt.getTime() <= nowMs ? 'expired' : status;
}
