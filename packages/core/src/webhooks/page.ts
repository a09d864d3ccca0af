/** Long lists in pages. A cursor names the last row of a page by its time and id, so rows that are added shift nothing. */
import type { Database } from '../db/connection.ts';

/** The form of a cursor: microseconds since 1970, and the row's id. */
export const CURSOR = /^\d{1,16}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface Page<Row> {
  rows: Row[];
  /** Where the next page begins; null: this is the last one. */
  next: string | null;
}

/** @param rows one more than fit on the page, if there are more */
export function pageOf<Row extends { cursor: string }>(rows: readonly Row[], limit: number): Page<Row> {
  const shown = rows.slice(0, limit);
  return { rows: shown, next: rows.length > limit ? (shown.at(-1)?.cursor ?? null) : null };
}

/** The cursor of a row with `created_at` and `id`. */
export function cursorOf(sql: Database) {
  return sql`(extract(epoch from created_at) * 1000000)::bigint || '-' || id`;
}

/** The place that a cursor names, to be compared with `(created_at, id)`. @param cursor of the form `CURSOR` */
export function placeOf(sql: Database, cursor: string) {
  const [micros = '', ...id] = cursor.split('-');
  return sql`(timestamptz 'epoch' + ${micros}::text::bigint * interval '1 microsecond', ${id.join('-')}::text::uuid)`;
}
