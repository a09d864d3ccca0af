/** The server as a process of its own, as its package starts it: `npm test` bundles it once, and names the program. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { programOf } from '../programs.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';

const WORDS_CHARACTERS = 200_000;
const LAST_WORDS_CHARACTERS = 4_000;
/** Between our look for a free port and its start another process may take it. */
const PORTS_TRIED = 5;
const MAIN = programOf('main');

export interface ServerProcess {
  url: string;
  process: ChildProcess;
  /** The last of what it wrote to its standard error. */
  words(): string;
  /** Keeps all that it writes to its standard error from now on. @returns what it has written since */
  listen(): () => string;
  /** Sends a signal and waits for the end. @returns the exit code; null when the signal ended it */
  end(signal: 'SIGINT' | 'SIGKILL' | 'SIGTERM'): Promise<number | null>;
}

/**
 * Starts it and waits until it listens.
 *
 * @param spawned told of the process at once
 * @param program another version's, unless it is this one's
 * @throws with its last words when it does not come up
 */
export async function startServerProcess(
  environment: Record<string, string>,
  spawned: (child: ChildProcess) => void = () => {},
  program: string = MAIN,
): Promise<ServerProcess> {
  for (let tried = 1; ; tried++) {
    try {
      return await start(environment, spawned, program);
    } catch (error) {
      const isTaken = error instanceof Error && /port \d+ on \S+ is taken/.test(error.message);
      if (!isTaken || environment.PORT !== undefined || tried === PORTS_TRIED) throw error;
    }
  }
}

async function start(
  environment: Record<string, string>,
  spawned: (child: ChildProcess) => void,
  program: string,
): Promise<ServerProcess> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
    env: {
      ...SURROUNDINGS,
      HOST: '127.0.0.1',
      PORT: String(await freePort()),
      FAREBOX_SECRET: 'a-secret-of-the-tests-and-of-nothing-else',
      LOG_LEVEL: 'error',
      // Nobody balances here.
      DRAIN_DELAY_MS: '0',
      // However quick the machine is, a caller without a pause stays within its minute.
      RATE_LIMIT_PER_ADDRESS: '100000000',
      // By default trials come evenly over the day, so a test that takes several would pass or fail by the hour.
      TRIAL_BUDGET_USD_PER_DAY: 'none',
      FREE_CHAIN_READS_PER_MINUTE: '100000000',
      RATE_LIMIT_PER_KEY: '100000000',
      ...environment,
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  spawned(child);
  let words = '';
  child.stderr?.on('data', (bytes) => {
    words = `${words}${bytes}`.slice(-WORDS_CHARACTERS);
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.on('message', (message: { ready?: boolean; baseUrl?: string }) => resolve(message.baseUrl ?? ''));
    child.on('close', (code) =>
      reject(new Error(`the server ended with ${code}:\n${words.slice(-LAST_WORDS_CHARACTERS)}`)),
    );
    child.on('error', reject);
  });
  return {
    url,
    process: child,
    words: () => words,
    listen() {
      let said = '';
      child.stderr?.on('data', (bytes) => {
        said += bytes;
      });
      return () => said;
    },
    async end(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      const exit = once(child, 'exit');
      child.kill(signal);
      const [code]: (number | null)[] = await exit;
      return code ?? null;
    },
  };
}
