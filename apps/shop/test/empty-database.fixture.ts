import { randomBytes } from 'node:crypto';
import type { TestDatabase } from './database.fixture.ts';

/**
 * Makes a database without any table on the server of another one.
 *
 * @param closing given how to drop it, to be run once nobody needs it
 * @returns its address
 */
export async function makeEmptyDatabase(
  server: Pick<TestDatabase, 'sql' | 'url'>,
  closing: (drop: () => Promise<unknown>) => void,
): Promise<string> {
  const name = `farebox_test_${randomBytes(6).toString('hex')}`;
  await server.sql.unsafe(`create database ${name}`);
  closing(() => server.sql.unsafe(`drop database ${name} with (force)`));
  const address = new URL(server.url);
  address.pathname = `/${name}`;
  return address.toString();
}
