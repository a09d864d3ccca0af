/** The times in which something could not be used, kept in the database for all replicas. */
import type { Database } from '../db/connection.ts';

/** The longest that a spell is shown after its end, and then kept. */
export const KEPT_DAYS = 90;
/** Rows of one page. */
export const MOST_SHOWN = 100;
/** Nobody has found it so for so long: it has ended. Longer than a replica takes between two looks. */
const OVER_AFTER_MS = 180_000;
const DAY_MS = 86_400_000;
const FORGOTTEN_AT_ONCE = 1_000;
/** The component that stands for the server as a whole. */
export const SERVER = 'server';

/** A time in which something could not be used. */
export interface Spell {
  /** `server`, or a kind and a name: `service:ping`, `rail:x402`, `chain:eip155:8453`. */
  component: string;
  beganAtMs: number;
  /** Null while it lasts. */
  endedAtMs: number | null;
}

/** Spells, the latest first, and how many there are. */
export interface Spells {
  spells: readonly Spell[];
  total: number;
}

/**
 * Notes what a replica finds unusable now. Several replicas may look at once: a spell begins when the first of them finds it, and
 * ends when none has found it for three minutes.
 *
 * @param down names of components, each once
 */
export async function noteDown(sql: Database, down: readonly string[], nowMs: number): Promise<void> {
  const now = at(nowMs);
  const over = at(nowMs - OVER_AFTER_MS);
  // No server has looked for so long: none ran, or none had its database.
  await sql`
    with last as (select looked_at from status_looks for update),
    noted as (
      insert into status_looks (one, looked_at) values (true, ${now})
      on conflict (one) do update set looked_at = greatest(status_looks.looked_at, excluded.looked_at)
    )
    insert into status_spells (component, began_at, seen_at, ended_at)
    select ${SERVER}, looked_at, ${now}, ${now} from last where looked_at < ${over}
    on conflict do nothing`;
  await sql`update status_spells set ended_at = seen_at where ended_at is null and seen_at < ${over}`;
  if (down.length === 0) return;
  await sql`
    insert into status_spells (component, began_at, seen_at)
    select component, ${now}, ${now} from unnest(${[...down]}::text[]) as component
    order by component
    on conflict (component) where ended_at is null
    do update set seen_at = greatest(status_spells.seen_at, excluded.seen_at)`;
}

/**
 * Reads those that lasted at any time in the last 90 days.
 *
 * @param known the components to tell of: what is no longer there is nobody's business
 */
export async function readSpells(sql: Database, known: readonly string[], nowMs: number): Promise<Spells> {
  const since = at(nowMs - KEPT_DAYS * DAY_MS);
  const rows = await sql<{ component: string; began_at: Date; ended_at: Date | null; total: number }[]>`
    select component, began_at, ended_at, (count(*) over ())::int as total
    from status_spells
    where (ended_at is null or ended_at >= ${since}) and component = any(${[...known]}::text[])
    order by began_at desc, component
    limit ${MOST_SHOWN}`;
  return {
    total: rows[0]?.total ?? 0,
    spells: rows.map(({ component, began_at, ended_at }) => ({
      component,
      beganAtMs: began_at.getTime(),
      endedAtMs: ended_at?.getTime() ?? null,
    })),
  };
}

/** Deletes those that ended more than 90 days ago, a bounded number. @returns how many */
export async function forgetSpells(sql: Database, nowMs: number): Promise<number> {
  const before = at(nowMs - KEPT_DAYS * DAY_MS);
  const { count } = await sql`
    delete from status_spells where (component, began_at) in (
      select component, began_at from status_spells
      where ended_at < ${before}
      limit ${FORGOTTEN_AT_ONCE} for update skip locked)`;
  return count;
}

function at(ms: number): string {
  return new Date(ms).toISOString();
}
