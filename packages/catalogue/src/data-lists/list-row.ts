/** The record of a published list, and whether it may be used. */
import { type DataListName, definitionOf } from './definitions.ts';

export interface ListRow {
  name: DataListName;
  published_at: Date | null;
  confirmed_at: Date | null;
  sha256: Buffer | null;
  parties: number | null;
  failures: number;
  failure: string | null;
}

/** Why a list must not be used; null when it may. */
export function tooOld(name: DataListName, row: ListRow | undefined, nowMs: number): string | null {
  if (row?.published_at == null || row.confirmed_at === null) return 'not fetched yet';
  const { confirmedWithinMs, publishedWithinMs } = definitionOf(name);
  const days = (ms: number) => Math.floor(ms / 86_400_000);
  const confirmedMs = nowMs - row.confirmed_at.getTime();
  if (confirmedMs > confirmedWithinMs) {
    return `the copy here was last confirmed ${days(confirmedMs)} days ago, and may be ${days(confirmedWithinMs)} days old`;
  }
  const publishedMs = nowMs - row.published_at.getTime();
  if (publishedMs > publishedWithinMs) {
    return `it was published ${days(publishedMs)} days ago, and may be ${days(publishedWithinMs)} days old`;
  }
  return null;
}
