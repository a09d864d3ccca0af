import { StartError } from './start-error.ts';

/** The command was called wrongly: its usage is shown. */
export class UsageError extends Error {}

/** Runs a command to its exit code: 2 with a line for what its caller can put right, 1 with a stack for the rest. */
export async function runCommand(usage: string, command: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await command();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (error instanceof UsageError || code.startsWith('ERR_PARSE_ARGS')) {
      process.stderr.write(`${error instanceof Error ? error.message : ''}\nusage: ${usage}\n`);
      process.exitCode = 2;
    } else if (error instanceof StartError) {
      process.stderr.write(`farebox: ${error.message}\n`);
      process.exitCode = 2;
    } else throw error;
  }
}
