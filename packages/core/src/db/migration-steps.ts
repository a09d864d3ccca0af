/**
 * Migrations in steps: those that would hold up writers as one transaction. Each step is one statement with a commit of its own,
 * so an index can be built beside writers, and a backfill goes in batches.
 *
 * Such a file begins with the line `-- In steps.`, and each statement follows a line of its own:
 *
 * - `-- Step.` runs the statement once.
 * - `-- Batches.` runs it again and again until it changes no row: it changes a bounded number each time.
 *
 * A process may die between two steps, and then all of them run again from the first: each must be one that may.
 */
import { StartError } from '@farebox/process/start-error';

const HEAD = '-- In steps.';
const MARK = /^-- (Step|Batches)\.$/m;

/** One statement of a migration in steps. */
export interface MigrationStep {
  /** Whether it is run until it changes nothing. */
  inBatches: boolean;
  statement: string;
}

/**
 * Reads a migration in steps.
 *
 * @param text of the file
 * @returns null for a migration that is one transaction
 * @throws StartError when there is text that belongs to no step
 */
export function migrationSteps(name: string, text: string): MigrationStep[] | null {
  if (!text.startsWith(`${HEAD}\n`)) return null;
  const [before = '', ...parts] = text.slice(HEAD.length).split(MARK);
  const steps: MigrationStep[] = [];
  for (let part = 0; part < parts.length; part += 2)
    steps.push({ inBatches: parts[part] === 'Batches', statement: (parts[part + 1] ?? '').trim() });
  if (before.replace(/^\s*--.*$/gm, '').trim() !== '' || steps.some(({ statement }) => statement === ''))
    throw new StartError(`migration ${name} has a statement without a step, or a step without a statement`);
  return steps;
}
