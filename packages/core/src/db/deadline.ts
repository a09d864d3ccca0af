import postgres from 'postgres';

/** No answer within the deadline. The statement may have run, or may still run later. */
export class DatabaseSilent extends Error {
  /** As the system names it, so that it is told from an answer of PostgreSQL's. */
  readonly code = 'ETIMEDOUT';

  constructor(deadlineMs: number) {
    super(`the database did not answer within ${deadlineMs / 1_000} s`);
    this.name = 'DatabaseSilent';
  }
}

/** Asked within a transaction whose connection is gone. The server has rolled it back. */
class TransactionLost extends Error {
  /** As the system names it. */
  readonly code = 'ECONNRESET';

  constructor() {
    super('the transaction lost its connection');
    this.name = 'TransactionLost';
  }
}

const EMPTY_STATEMENT = Object.freeze(Object.assign(['select 1'], { raw: ['select 1'] }));
/** A timer that fires so late tells of a process that was held up. */
const HELD_UP_MS = 250;

/** The driver's query, as far as it is used here (postgres.js 3.4.9, `query.js`; held by a test). */
interface DriverQuery {
  handle(): Promise<void>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** The connection that it was written to; null while it waits for one. */
  state: unknown;
  strings: readonly string[];
  args: readonly unknown[];
}

/** Does work, and goes on in the next turn: by then everybody knows of a connection that closed while it ended. */
async function heardOut(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } finally {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Lets an empty statement run in place of a query that still waits for a connection, and whose caller is gone. */
function runNothing(query: DriverQuery): void {
  query.strings = EMPTY_STATEMENT;
  query.args = [];
}

type Call = (...args: unknown[]) => unknown;

/** A transaction on a connection that is gone: the driver must be asked nothing more about it. */
interface Life {
  isOver: boolean;
  /** Ends it. */
  end(error: unknown): void;
}

/**
 * Gives every query of a pool a deadline of our own, in transactions too: the driver waits for as long as TCP does, and
 * loses a query now and then. A transaction has the deadline for its begin, for each query and for its commit.
 *
 * A transaction whose connection is lost is not rolled back by us, since the server does that: the driver writes a
 * rollback to the socket that is no longer there, and takes the process down (postgres.js 3.4.9, `nextWrite`).
 *
 * @param pool the driver's
 * @param options.late told when a deadline has passed, with the time when the query was given (`performance.now()`)
 * @param options.ended told of every query that ends: why it failed, or null
 */
export function withDeadline<Sql extends object>(
  pool: Sql,
  options: { deadlineMs: number; late(sinceMs: number): void; ended(error: unknown): void },
): Sql {
  const { deadlineMs } = options;

  /** Runs `over` at the deadline unless the returned function is called first. */
  function arm(over: () => void): () => void {
    const sinceMs = performance.now();
    let isOff = false;
    let timer = setTimeout(() => fire(sinceMs + deadlineMs), deadlineMs);
    function fire(dueAtMs: number): void {
      // A process that was held up itself must not blame the database: what has come meanwhile is still to be read.
      const heldUpMs = performance.now() - dueAtMs;
      if (heldUpMs > HELD_UP_MS) {
        const graceMs = Math.min(heldUpMs, deadlineMs);
        timer = setTimeout(fire, graceMs, performance.now() + graceMs);
        return;
      }
      setImmediate(() => {
        if (isOff) return;
        over();
        options.late(sinceMs);
      });
    }
    return () => {
      isOff = true;
      clearTimeout(timer);
    };
  }

  function guard(query: DriverQuery, life: Life | null): DriverQuery {
    // A piece of another query is made by the same function, and never handled by itself.
    const handle = query.handle.bind(query);
    let isArmed = false;
    query.handle = async () => {
      if (isArmed) return handle();
      isArmed = true;
      const { resolve, reject } = query;
      if (life?.isOver) return reject.call(query, new TransactionLost());
      const fail = (error: unknown) => {
        if (life !== null && isEndOfConnection(error)) life.end(error);
        reject.call(query, error);
      };
      const disarm = arm(() => {
        fail(new DatabaseSilent(deadlineMs));
        if (query.state === null) runNothing(query);
      });
      query.resolve = (value) => {
        disarm();
        options.ended(null);
        resolve.call(query, value);
      };
      query.reject = (error) => {
        disarm();
        options.ended(error);
        fail(error);
      };
      return handle();
    };
    return query;
  }

  async function begin(driverBegin: Call, args: unknown[]): Promise<unknown> {
    const work = args.pop() as Call;
    const lost = Promise.withResolvers<never>();
    const life: Life = {
      isOver: false,
      end(error) {
        life.isOver = true;
        lost.reject(error);
      },
    };
    const over = () => life.end(new DatabaseSilent(deadlineMs));
    let disarm = arm(over);
    /** The driver waits for this promise, so it does nothing further. */
    const never = new Promise<never>(() => {});
    const done = driverBegin(...args, async (transaction: object) => {
      disarm();
      // It still had its turn, and has done nothing: this one can be rolled back.
      if (life.isOver) throw new DatabaseSilent(deadlineMs);
      try {
        const result = await heardOut(() => work(guardSql(transaction, life)));
        if (life.isOver) return never;
        disarm = arm(over);
        return result;
      } catch (error) {
        if (!life.isOver) throw error;
        lost.reject(error);
        return never;
      }
    }) as Promise<unknown>;
    done.catch((error: unknown) => {
      if (isEndOfConnection(error)) life.isOver = true;
    });
    lost.promise.catch(() => {});
    try {
      return await Promise.race([done, lost.promise]);
    } finally {
      disarm();
    }
  }

  function guardSql<T extends object>(sql: T, life: Life | null): T {
    const guarded = (made: unknown) => (isQuery(made) ? guard(made, life) : made);
    return new Proxy(sql, {
      apply: (target, self, args) => guarded(Reflect.apply(target as unknown as Call, self, args)),
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        if (name === 'unsafe') return (...args: unknown[]) => guarded(value.apply(target, args));
        if (name === 'begin') return (...args: unknown[]) => begin(value.bind(target) as Call, args);
        return value;
      },
    });
  }

  return guardSql(pool, null);
}

function isQuery(made: unknown): made is DriverQuery {
  return made instanceof Promise && 'handle' in made && 'state' in made && 'strings' in made;
}

/** Whether the connection behind this error is unusable: its session ended, or the server does not answer. */
function isEndOfConnection(error: unknown): boolean {
  if (error instanceof postgres.PostgresError)
    return error.severity === 'FATAL' || /^(57P|08|25P03)/.test(error.code);
  return (
    error instanceof Error && 'code' in error && /^(CONNECT|ECONN|EPIPE|ETIMEDOUT)/.test(String(error.code))
  );
}
