/**
 * The wait for whatever is being written, on a database that is spread over servers. Each server numbers its transactions by itself, and
 * one of several servers may have ended on the first while it is only prepared on the second, for as long as a crash lasts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Transaction } from '../db/connection.ts';

/** Most transactions are over in a moment; who waits for the others may ask again. */
const ENDED_WITHIN_MS = 10_000;
const LOOK_AGAIN_MS = 100;
/** How many prepared transactions are named at most. */
const NAMED = 5;

/** Something may still be written that was begun before. */
export class StillWriting extends Error {}

/**
 * Waits until all that was being written when it was called is committed or rolled back, on every server. What is prepared counts as being
 * written.
 *
 * @throws StillWriting when it takes too long, or a server does not answer
 */
export async function writersEnded(sql: Database): Promise<void> {
  const untilMs = performance.now() + ENDED_WITHIN_MS;
  // Twice: whoever was writing on one server at the first mark may begin on another after it. Once they have ended on the first, they
  // have begun wherever they ever will, and what is left of them is prepared.
  for (let round = 0; round < 2; round += 1) {
    const marks = await askServers(sql, 'select pg_current_xact_id()');
    for (;;) {
      const oldest = await askServers(sql, 'select pg_snapshot_xmin(pg_current_snapshot())');
      const open = [...marks].filter(([server, mark]) => BigInt(oldest.get(server) ?? 0) < BigInt(mark));
      if (open.length === 0) break;
      if (performance.now() >= untilMs)
        throw new StillWriting(
          await sayWho(
            sql,
            open.map(([server]) => server),
          ),
        );
      await sleep(LOOK_AGAIN_MS);
    }
  }
}

/**
 * Waits until what is prepared on any server when it was called is committed or rolled back.
 *
 * @throws StillWriting when it takes too long, or a server does not answer
 */
export async function preparedEnded(on: Database | Transaction, withinMs = ENDED_WITHIN_MS): Promise<void> {
  const untilMs = performance.now() + withinMs;
  const prepared = async () => {
    const told = await askServers(
      on,
      `select coalesce(string_agg(gid, ' '), '') from pg_prepared_xacts where database = current_database()`,
    );
    return new Set([...told.values()].flatMap((gids) => gids.split(' ')).filter((gid) => gid !== ''));
  };
  const first = await prepared();
  for (let now = first; ; now = await prepared()) {
    const left = [...first].filter((gid) => now.has(gid));
    if (left.length === 0) return;
    if (performance.now() >= untilMs)
      throw new StillWriting(`prepared is still ${left.slice(0, NAMED).join(', ')}`);
    await sleep(LOOK_AGAIN_MS);
  }
}

/**
 * Asks each server that holds a part of the database.
 *
 * @returns what it told, by its address
 * @throws StillWriting when one does not answer: nobody knows what it does
 */
async function askServers(sql: Database | Transaction, query: string): Promise<Map<string, string>> {
  const rows = await sql.unsafe<{ server: string; answered: boolean; told: string | null }[]>(`
    select n.nodename || ':' || n.nodeport as server, coalesce(r.success, false) as answered, r.result as told
    from pg_dist_node n left join run_command_on_all_nodes($$${query}$$) r using (nodeid)
    where n.noderole = 'primary'`);
  const silent = rows.flatMap(({ server, answered, told }) => (answered && told !== null ? [] : server));
  if (silent.length > 0) throw new StillWriting(`${silent.join(', ')} does not answer`);
  return new Map(rows.map(({ server, told }) => [server, told ?? '']));
}

async function sayWho(sql: Database, servers: readonly string[]): Promise<string> {
  const prepared = await askServers(
    sql,
    `select coalesce(string_agg(gid, ', '), '') from (select gid from pg_prepared_xacts order by prepared limit ${NAMED}) oldest`,
  );
  return servers
    .map((server) => {
      const gids = prepared.get(server) ?? '';
      return `a transaction of ${server} has not ended${gids === '' ? '' : `; prepared are there ${gids}`}`;
    })
    .join('; ');
}
