/** The world of the command line: everything that it reads and writes, so that tests can give another one. */
export interface Io {
  environment: Readonly<Record<string, string | undefined>>;
  /** The folder of this person's settings and purchases. */
  home: string;
  out(text: string): void;
  error(text: string): void;
  /** Writes over the line that a person looks at while they wait. */
  progress(text: string): void;
  /** Whether a person sits there: only then is somebody asked. */
  isTerminal: boolean;
  /** Reads all of the standard input. */
  read(): Promise<string>;
  /** Asks the person. @returns the line that they typed */
  ask(question: string): Promise<string>;
  signal: AbortSignal;
}

/** The command was called wrongly. */
export class UsageError extends Error {}

/** How a command ends. A script can tell from it whether anything was paid. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  /** Refused before anything was paid: a limit, a person, too little money. */
  notPaid: 3,
  notFound: 4,
  /** The service failed, and nothing was charged. */
  notCharged: 5,
  /** Not known whether it was charged: the same command again is answered by the same payment. */
  unknown: 6,
  interrupted: 130,
} as const;
