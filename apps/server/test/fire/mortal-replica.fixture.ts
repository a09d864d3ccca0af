/** A replica that can lose the database under a statement, and die between any two steps of a call. */
import { connectPools, type Database } from '../../src/db/connection.ts';
import type { Service } from '../../src/services/define.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

/**
 * What befalls the next statement of a group commit, or the next that takes a price. `lost`: the connection breaks,
 * before the statement reached the database or after it was committed and before its reply. `dies`: the process does.
 */
export interface Blow {
  falls: 'lost before' | 'lost after' | 'dies before' | 'dies after';
  on: 'anything' | 'capture';
}

interface Life {
  server: TestServer;
  dead: boolean;
}

export interface MortalReplica {
  /** The server of this life; after a death that of the next one. */
  server(): Promise<TestServer>;
  /** The next statements meet these, one each. */
  strike(blows: readonly Blow[]): void;
  /** Blows that wait for a statement. */
  readonly pending: number;
  /** Counts blows that have hit, and deaths. */
  readonly troubles: number;
  /** Counts deaths. */
  readonly deaths: number;
  forgetBlows(): void;
  /** `kill -9`: no statement is sent any more, every connection breaks; another process takes its place. */
  die(): void;
  /** A round of the reconciler; ends early when the replica dies over it. */
  reconcile(): Promise<void>;
  close(): Promise<void>;
}

/** Of a statement's values: the column of outcomes names a call that was answered. */
function isCapture(value: unknown): boolean {
  return typeof value === 'string' && /^\{.*"answered"/.test(value);
}

/** A dead process answers nothing. */
const NEVER = new Promise<never>(() => {});

export async function startMortalReplica(options: {
  databaseUrl: string;
  services: readonly Service[];
  environment?: Record<string, string>;
  nowMs: () => number;
}): Promise<MortalReplica> {
  const pools = connectPools(options.databaseUrl, 6);
  const closing: Promise<void>[] = [];
  let blows: Blow[] = [];
  let troubles = 0;
  let deaths = 0;
  let reconciling: Promise<void> = Promise.resolve();

  async function begin(): Promise<Life> {
    const life: Omit<Life, 'server'> = { dead: false };
    const server = await startTestServer({
      pools: { ...pools, commits: struck(pools.commits, life) },
      services: options.services,
      nowMs: options.nowMs,
      ...(options.environment === undefined ? {} : { environment: options.environment }),
    });
    return Object.assign(life, { server });
  }

  function struck(commits: Database, life: Pick<Life, 'dead'>): Database {
    return new Proxy(commits, {
      apply: (target, self, args: unknown[]) =>
        underFire(() => Reflect.apply(target, self, args), args.some(isCapture), life),
    });
  }

  async function underFire<T>(
    send: () => Promise<T>,
    captures: boolean,
    life: Pick<Life, 'dead'>,
  ): Promise<T> {
    if (life.dead) return NEVER;
    const blow = blows[0]?.on === 'capture' && !captures ? undefined : blows.shift()?.falls;
    if (blow !== undefined) troubles += 1;
    if (blow === 'dies before') die();
    if (blow === 'lost before') throw new Error('the connection broke before the statement was sent');
    if (life.dead) return NEVER;
    try {
      const result = await send();
      if (blow === 'dies after') die();
      if (blow === 'lost after') throw new Error('the connection broke before the reply came');
      return result;
    } finally {
      if (life.dead) await NEVER;
    }
  }

  let current = begin();
  let alive = await current;

  function die(): void {
    const { server } = alive;
    if (alive.dead) return;
    alive.dead = true;
    troubles += 1;
    deaths += 1;
    server.app.http.server.closeAllConnections();
    // Not the whole app: it would wait for what it owes, which the dead do not pay.
    closing.push(server.app.http.close());
    reconciling = Promise.resolve();
    current = begin().then((life) => {
      alive = life;
      return life;
    });
  }

  return {
    server: async () => (await current).server,
    strike(more) {
      blows.push(...more);
    },
    get pending() {
      return blows.length;
    },
    get troubles() {
      return troubles;
    },
    get deaths() {
      return deaths;
    },
    forgetBlows() {
      blows = [];
    },
    die,
    reconcile() {
      // As in the product, one round at a time.
      const round = reconciling.then(async () => {
        const { server } = await current;
        const diedBefore = deaths;
        const troublesBefore = troubles;
        const work = server.app.reconciler.run().then(
          () => true,
          (error: unknown) => {
            if (troubles === troublesBefore) throw error;
            return true;
          },
        );
        // Whoever dies over its work leaves it as it is.
        let ended = false;
        void work.then(
          () => {
            ended = true;
          },
          () => {
            ended = true;
          },
        );
        while (!ended && deaths === diedBefore) await new Promise((resolve) => setTimeout(resolve, 1));
        if (ended) await work;
      });
      reconciling = round.catch(() => {});
      return round;
    },
    async close() {
      const { server } = await current;
      await Promise.all([...closing, server.close()]);
      await Promise.all([pools.sql.end({ timeout: 1 }), pools.commits.end({ timeout: 1 })]);
    },
  };
}
