/** The machine that a run was made on. */
import { availableParallelism, cpus, totalmem } from 'node:os';
import { connectDatabase } from '../packages/core/src/db/connection.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { createResources } from './resources.ts';

export async function describeMachine(): Promise<Record<string, string>> {
  return {
    cores: String(availableParallelism()),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    Node: process.versions.node,
    PostgreSQL: await postgresVersion(),
    system: `${process.platform} ${process.arch}`,
  };
}

async function postgresVersion(): Promise<string> {
  const resources = createResources();
  try {
    const embedded = await startEmbeddedPostgres(resources.folder());
    resources.defer(() => embedded.stop());
    const sql = connectDatabase(embedded.url, 1);
    resources.defer(() => sql.end({ timeout: 5 }));
    const [row] = await sql<{ server_version: string }[]>`show server_version`;
    return row?.server_version ?? 'unknown';
  } finally {
    await resources.release();
  }
}
