/** Whether the database takes writes: one whose disk is full, or that is a standby, answers every question and keeps nothing. */
import postgres from 'postgres';

export interface Writing {
  /** Whether a write was refused for a reason that holds for all of them, and none has worked since. */
  readonly isRefused: boolean;
  /** A statement failed. */
  failed(error: unknown): void;
  /** A commit of calls was made: writes of any size work. */
  worked(): void;
  /** A heartbeat was written. That needs no new space on the disk, so it only shows that the server is no standby. */
  beat(): void;
}

/** After this the next writes may show whether it is over: with no calls nobody would find out. */
const REFUSED_FOR_MS = 10_000;
/** disk_full, system errors such as io_error, corrupted files, and read_only_sql_transaction. https://www.postgresql.org/docs/current/errcodes-appendix.html */
const TAKES_NO_WRITES = /^(53100|58...|XX00[12]|25006)$/;
const IS_STANDBY = '25006';

export function createWriting(stopwatchMs: () => number = () => performance.now()): Writing {
  let refusedAtMs = Number.NEGATIVE_INFINITY;
  let refusedBy = '';
  const worked = () => {
    refusedAtMs = Number.NEGATIVE_INFINITY;
  };
  return {
    get isRefused() {
      return stopwatchMs() - refusedAtMs < REFUSED_FOR_MS;
    },
    failed(error) {
      if (!(error instanceof postgres.PostgresError) || !TAKES_NO_WRITES.test(error.code)) return;
      refusedAtMs = stopwatchMs();
      refusedBy = error.code;
    },
    worked,
    beat() {
      if (refusedBy === IS_STANDBY) worked();
    },
  };
}
