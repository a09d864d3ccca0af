import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  BASELINE,
  beforeBaseline,
  changedSince,
  isBeforeBaseline,
  needsBaseline,
} from './before-baseline.ts';
import { type Database, databaseMs, type Transaction } from './connection.ts';
import { bringSqlTexts } from './functions.ts';
import { type MigrationStep, migrationSteps } from './migration-steps.ts';
import { inTurn, inTurnBySteps } from './turns.ts';
import { makeWeeks, weeksAround } from './weeks.ts';

const FOLDER = join(import.meta.dirname, 'migrations');

/**
 * Brings the schema up to date: runs every `migrations/*.sql` that has not run, in order of name, each in a transaction or, if
 * it says so, in steps. A database that is older than the baseline has that noted as done. Then it brings the current text of every function and makes the weeks of calls that begin soon. Replicas
 * that start together take turns.
 *
 * @param folder where the migrations are
 * @returns the names of the migrations that ran now
 * @throws StartError when a file that has run was changed since (an applied migration is history: write a new one), when the
 *   database is so old that it needs a version in between, or when its user may not make the changes
 */
export async function migrate(sql: Database, folder: string = FOLDER): Promise<string[]> {
  const ran: string[] = [];
  const applied = await inTurn(sql, appliedIn);
  for (const name of readdirSync(folder).sort()) {
    const text = readFileSync(join(folder, name), 'utf8');
    const checksum = checksumOf(text);
    // What has run stays so: there is no need to wait for a turn to see that again.
    if (applied.get(name) === checksum) continue;
    const steps = migrationSteps(name, text);
    const migration = { name, text, checksum };
    const ranNow =
      steps === null
        ? await inTurn(sql, (transaction) => run(transaction, migration))
        : await runSteps(sql, migration, steps);
    if (ranNow) ran.push(name);
  }
  await bringSqlTexts(sql);
  const nowMs = await databaseMs(sql);
  if (nowMs !== null) await inTurn(sql, (transaction) => makeWeeks(transaction, weeksAround(nowMs)));
  return ran;
}

/** The checksums of what has run, by name. */
async function appliedIn(transaction: Transaction): Promise<ReadonlyMap<string, string>> {
  await transaction`
    create table if not exists schema_migrations (
      name text primary key, checksum text not null, applied_at timestamptz not null default now()
    )`;
  return checksumsIn(transaction);
}

async function checksumsIn(sql: Database | Transaction): Promise<ReadonlyMap<string, string>> {
  const rows = await sql<{ name: string; checksum: string }[]>`select name, checksum from schema_migrations`;
  return new Map(rows.map(({ name, checksum }) => [name, checksum]));
}

/** How the schema of a database differs from that of this version. */
export interface SchemaStanding {
  /** Migrations of this version that have not run. */
  missing: readonly string[];
  /** Migrations that ran, and are not those of this version. */
  other: readonly string[];
  /** Migrations that only an older version has, and that have to run before this version's. */
  tooOldFor: readonly string[];
}

/** Compares the schema with this version's, and changes nothing. @returns null when there are no tables of ours */
export async function readSchema(sql: Database): Promise<SchemaStanding | null> {
  const [table] = await sql<{ found: boolean }[]>`
    select to_regclass('schema_migrations') is not null as found`;
  if (table?.found !== true) return null;
  const ran = await checksumsIn(sql);
  const ours = new Map(
    readdirSync(FOLDER).map((name) => [name, checksumOf(readFileSync(join(FOLDER, name), 'utf8'))]),
  );
  return {
    missing: [...ours.keys()].filter((name) => !ran.has(name)).sort(),
    other: [...ran]
      .flatMap(([name, checksum]) =>
        ours.get(name) === checksum || isBeforeBaseline(name, checksum) ? [] : name,
      )
      .sort(),
    tooOldFor: beforeBaseline(ran).missing,
  };
}

const checksumOf = (text: string) => createHash('sha256').update(text).digest('hex');

interface Migration {
  name: string;
  text: string;
  checksum: string;
}

/**
 * Runs a migration in steps, and notes it after the last of them.
 *
 * @returns whether it ran now
 */
async function runSteps(
  sql: Database,
  migration: Migration,
  steps: readonly MigrationStep[],
): Promise<boolean> {
  return inTurnBySteps(sql, async (run) => {
    const [known] = await run(`select checksum from schema_migrations where name = '${migration.name}'`);
    if (known !== undefined) {
      refuseChanged(migration, known.checksum);
      return false;
    }
    for (const { inBatches, statement } of steps) {
      let changed: number;
      do changed = (await run(statement)).count;
      while (inBatches && changed > 0);
    }
    await run(
      `insert into schema_migrations (name, checksum) values ('${migration.name}', '${migration.checksum}')`,
    );
    return true;
  });
}

/** @throws StartError when what ran was another text */
function refuseChanged({ name, checksum }: Migration, ran: string): void {
  if (ran !== checksum) throw changedSince(name);
}

/** @returns whether it ran now. Its locks go with its own commit: what another one takes long for waits for none of it. */
async function run(transaction: Transaction, migration: Migration): Promise<boolean> {
  const { name, text, checksum } = migration;
  // Another process may have run it while this one waited for its turn.
  const [known] = await transaction<{ checksum: string }[]>`
    select checksum from schema_migrations where name = ${name}`;
  if (known !== undefined) {
    refuseChanged(migration, known.checksum);
    return false;
  }
  const runs = name !== BASELINE || needsBaseline(await checksumsIn(transaction));
  if (runs) await transaction.unsafe(text);
  await transaction`insert into schema_migrations (name, checksum) values (${name}, ${checksum})`;
  return runs;
}
