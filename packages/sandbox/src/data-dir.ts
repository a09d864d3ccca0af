import { resolve } from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The folder that `npm start` keeps its state in. */
export function dataDirOf(environment: Environment): string {
  return resolve(environment.FAREBOX_DATA_DIR || '.farebox');
}
