/** Looks at the database: its version, whether it keeps what it confirms, its schema, and whether it has room for all processes. */

import { LAST_COMMIT_BEFORE } from '@farebox/core/db/before-baseline';
import type { Database } from '@farebox/core/db/connection';
import { readSchema } from '@farebox/core/db/migrate';
import { countReplicas } from '@farebox/core/db/replicas';
import { SETTINGS_REMEDY, settingsLost } from '@farebox/core/db/session-settings';
import { inWords, openRecoveryIn } from '@farebox/core/recovery/lineage';
import { type Finding, findingsOf, type Look } from './finding.ts';

const OLDEST_VERSION = 15;
/** Connections of a process beside `DATABASE_MAX_CONNECTIONS`: proofs of the books and migrations. */
const PATIENT_CONNECTIONS = 2;

interface Facts {
  version: number;
  fsync: string;
  commits: string;
  standby: boolean;
  most: number;
  reserved: number;
  open: number;
}

const says = findingsOf('database');

export function lookAtDatabase(parts: {
  /** Null: the embedded one does not run. */
  sql: Database | null;
  isEmbedded: boolean;
  maxConnections: number;
}): Look {
  const { sql, isEmbedded, maxConnections } = parts;
  return {
    step: 'database',
    async look() {
      if (sql === null)
        return says.mend(
          'the embedded database does not run',
          'Start the server: the database runs with it.',
        );
      const lost = await settingsLost(sql);
      if (lost !== null) return says.mend(lost, SETTINGS_REMEDY);
      const facts = await readFacts(sql);
      const schema = await schemaOf(sql);
      const replicas = schema.verdict === 'fine' ? await countReplicas(sql) : 0;
      const found = [versionOf(facts), keptOf(facts), schema, roomOf(facts, maxConnections, replicas)];
      if (schema.verdict === 'fine') found.push(...(await newnessOf(sql)));
      return isEmbedded
        ? [...found, says.note('it is the embedded one, for one machine and one server process')]
        : found;
    },
  };
}

function versionOf({ version, standby }: Facts): Finding {
  if (version < OLDEST_VERSION)
    return says.mend(`PostgreSQL ${version} is too old`, `Use PostgreSQL ${OLDEST_VERSION} or newer.`);
  if (standby) return says.mend('it is a standby and takes no writes', 'Name the primary in DATABASE_URL.');
  return says.fine(`PostgreSQL ${version}`);
}

function keptOf({ fsync, commits }: Facts): Finding {
  return fsync === 'on' && commits !== 'off'
    ? says.fine('what it confirms is on disk')
    : says.mend(
        `fsync is ${fsync} and synchronous_commit ${commits}: an answer could be sold whose price a crash forgets`,
        'Set both to on.',
      );
}

function roomOf({ most, reserved, open }: Facts, maxConnections: number, replicas: number): Finding {
  const processes = Math.max(1, replicas);
  const needed = processes * (maxConnections + PATIENT_CONNECTIONS);
  const told = `${processes} ${processes === 1 ? 'process' : 'processes'} may open ${needed} connections of ${most - reserved} (${open} are open)`;
  return needed <= most - reserved
    ? says.fine(told)
    : says.mend(
        told,
        `Set max_connections to ${needed + reserved} or more, or DATABASE_MAX_CONNECTIONS lower.`,
      );
}

/** Whether it is as new as the world around it. */
async function newnessOf(on: Database): Promise<Finding[]> {
  const recovery = await openRecoveryIn(on);
  return recovery === null
    ? []
    : [says.mend(inWords(recovery), 'Run npm run recover, and then again with --apply --by NAME.')];
}

async function schemaOf(on: Database): Promise<Finding> {
  const standing = await readSchema(on);
  if (standing === null)
    return says.mend('it has no tables of ours', 'Start the server once: it makes them.');
  const { missing, other, tooOldFor } = standing;
  if (tooOldFor.length > 0)
    return says.mend(
      `an older version made it, and ${tooOldFor.length} migrations of that version are missing`,
      `Start commit ${LAST_COMMIT_BEFORE} of Farebox on it once, and then this version.`,
    );
  if (other.length > 0)
    return says.mend(
      `its schema is of another version (${other.slice(0, 3).join(', ')})`,
      'Use the version of Farebox that made it, or a newer one.',
    );
  return missing.length > 0
    ? says.mend(
        `${missing.length} migrations of this version have not run`,
        'Start this version of the server.',
      )
    : says.fine('its schema is that of this version');
}

async function readFacts(sql: Database): Promise<Facts> {
  const [row] = await sql<Facts[]>`
    select current_setting('server_version_num')::int / 10000 as version,
           current_setting('fsync') as fsync,
           current_setting('synchronous_commit') as commits,
           pg_is_in_recovery() as standby,
           current_setting('max_connections')::int as most,
           current_setting('superuser_reserved_connections')::int as reserved,
           (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as open`;
  if (row === undefined) throw new Error('the database says nothing of itself');
  return row;
}
