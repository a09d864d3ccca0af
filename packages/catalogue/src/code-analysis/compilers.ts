/** The Solidity compilers, and the published contracts that source imports: fetched when an audit needs them for the first time. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fetchedTool, fetchTool } from '@farebox/process/npm-packages';

/** The folder with the lock file that pins them. */
const TOOL = join(import.meta.dirname, '../../tools/compilers');
/** The longest that an audit waits for them. */
const PATIENCE_MS = 20_000;
/** After a failure nobody asks the package registry again for so long. */
const PAUSE_MS = 60_000;

/** `here`; `fetching` when it takes longer than an audit waits; `away` when they could not be fetched. */
export type CompilersState = 'here' | 'fetching' | 'away';

let found: NodeJS.Require | null = null;

/** The `require` that finds them. @throws Error when they have not been fetched */
export function requireCompilers(): NodeJS.Require {
  if (found !== null) return found;
  const folder = fetchedTool(TOOL);
  if (folder === null) throw new Error('the compilers have not been fetched');
  found = createRequire(join(folder, 'package.json'));
  return found;
}

/**
 * Makes a question whether the compilers are here. The first time it fetches them, for all who ask meanwhile; the fetching goes on
 * when those who asked have left.
 *
 * @param fetch fetches them, and throws when that fails
 * @param areHere whether they have been fetched
 */
export function createCompilers(
  fetch: () => Promise<unknown> = () => fetchTool(TOOL),
  areHere: () => boolean = () => fetchedTool(TOOL) !== null,
  patienceMs = PATIENCE_MS,
): (signal: AbortSignal, nowMs?: number) => Promise<CompilersState> {
  let isHere = false;
  let fetching: Promise<CompilersState> | null = null;
  let failedAtMs = Number.NEGATIVE_INFINITY;
  return async (signal, nowMs = performance.now()) => {
    isHere ||= areHere();
    if (isHere) return 'here';
    if (fetching === null) {
      if (nowMs - failedAtMs < PAUSE_MS) return 'away';
      fetching = fetch()
        .then(
          () => 'here' as const,
          (error: unknown) => {
            process.stderr.write(
              `farebox: no compilers for audits: ${error instanceof Error ? error.message : String(error)}\n`,
            );
            failedAtMs = nowMs;
            return 'away' as const;
          },
        )
        .finally(() => {
          fetching = null;
        });
    }
    const given = new AbortController();
    const patience = AbortSignal.any([signal, given.signal]);
    try {
      return await Promise.race([fetching, sleep(patienceMs, 'fetching' as const, { signal: patience })]);
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      given.abort();
    }
  };
}
