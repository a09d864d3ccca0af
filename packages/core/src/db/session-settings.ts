/**
 * The settings that each session with PostgreSQL begins with: how long it waits for a statement and for a lock, and how it plans. What
 * stands in between and shares sessions among clients refuses them, or drops them in silence, and a batch of charges would then wait for
 * ever behind somebody's lock.
 */
import { StartError } from '@farebox/process/start-error';
import type { Database } from './connection.ts';

/** Words in which PostgreSQL has a setting as it was asked for. What an address asks for itself, such as `10s`, it may have in others. */
const SAME_WORDS = new Set<unknown>(['off', 'UTC']);
/** How a pooler of connections says it. */
const REFUSED = /^unsupported startup parameter(?:: (\w+))?/;
/** What an operator does about it. */
export const SETTINGS_REMEDY =
  'Name PostgreSQL itself in DATABASE_URL: each process keeps its own connections, DATABASE_MAX_CONNECTIONS and two more.';

/**
 * Looks whether PostgreSQL has the settings that a pool asks for.
 *
 * @returns what keeps them from it, in words; null: nothing does
 * @throws the database's error
 */
export async function settingsLost(pool: Database): Promise<string | null> {
  const wanted = Object.entries(pool.options.connection).filter(
    ([, value]) => typeof value === 'number' || SAME_WORDS.has(value),
  );
  const names = wanted.map(([name]) => name);
  let rows: { name: string; setting: string }[];
  try {
    rows = await pool<{ name: string; setting: string }[]>`
      select name, setting from pg_settings where name = any(${names})`;
  } catch (error) {
    const [refused, name] = REFUSED.exec(error instanceof Error ? error.message : '') ?? [];
    if (refused === undefined) throw error;
    return `what stands before PostgreSQL refuses the settings of a session: ${name ?? 'one of them'}`;
  }
  const found = new Map(rows.map(({ name, setting }) => [name, setting]));
  const dropped = wanted.filter(([name, value]) => found.get(name) !== String(value)).map(([name]) => name);
  return dropped.length === 0
    ? null
    : `what stands before PostgreSQL drops settings of a session: ${dropped.join(', ')}`;
}

/** Makes sure that PostgreSQL has the settings that a pool asks for. @throws StartError when it has not; the database's error */
export async function assertSettingsPass(pool: Database): Promise<void> {
  const lost = await settingsLost(pool);
  if (lost !== null) throw new StartError(`${lost}. ${SETTINGS_REMEDY}`);
}
