/** A replica that can lose the database under a statement, and die between any two steps of a call. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  connectPools,
  type Database,
  endPools,
  type Pools,
} from '../../../../packages/core/src/db/connection.ts';
import type { Service } from '../../../../packages/core/src/service/define.ts';
import { isDatabaseAway } from '../../../../packages/core/src/words/database-away.ts';
import type { OpenRoutes } from '../../../../packages/proxy/src/part.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { Disturbance } from './disturbance.fixture.ts';
import { startWire, type Wire } from './proxy.fixture.ts';

/**
 * A blow to the next statement of a group commit, or the next that takes a price. `lost`: the connection breaks,
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

/** Where a replica runs, and how it reaches its database from there. */
interface Host {
  wire: Wire;
  pools: Pools;
  /** Settles when it is lost. */
  lost: PromiseWithResolvers<void>;
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
  /**
   * Its database says nothing any more, in connections that stay open.
   *
   * @param everybody also in those that it opens from now on
   * @param ms for how long; what was about to connect meanwhile may be told of it for a while after
   */
  freeze(everybody: boolean, ms: number): Promise<void>;
  /**
   * Its host is lost in the middle of a transaction that holds an account: its sockets stay open and nothing comes from
   * them. Another host takes its place.
   *
   * @returns lets the database find out that nobody is there, as TCP does after hours
   */
  loseHost(accountId: bigint): Promise<() => Promise<void>>;
  /** Whether it was hit, or its database was silent, at any time since. */
  watch(): () => boolean;
  /** A round of the reconciler; ends early when the replica dies over it. */
  reconcile(): Promise<void>;
  close(): Promise<void>;
}

/** Tells from a statement's values whether it captures: the column of outcomes names a call that was answered. */
function isCapture(value: unknown): boolean {
  return typeof value === 'string' && /^\{.*"answered"/.test(value);
}

/** How long the server waits for a new connection, and for an answer, at most. */
const CONNECTS_WITHIN_MS = 3_000;
const TOLD_WITHIN_MS = 5_000;

/** Each of them waits for a minute. */
const STARTS_TRIED = 3;

/** A dead process answers nothing. */
const NEVER = new Promise<never>(() => {});

export async function startMortalReplica(options: {
  databaseUrl: string;
  services: readonly Service[];
  environment?: Record<string, string>;
  routes?: () => OpenRoutes;
  nowMs: () => number;
  /** Another disturbance of the reconciler's work. */
  elsewhere?: Disturbance;
}): Promise<MortalReplica> {
  const hosts = new Set<Host>();
  const silence = new Disturbance();
  const elsewhere = options.elsewhere ?? new Disturbance();
  const newHost = async (): Promise<Host> => {
    const wire = await startWire(options.databaseUrl);
    const host = { wire, pools: connectPools(wire.url, 6), lost: Promise.withResolvers<void>() };
    hosts.add(host);
    return host;
  };
  const end = async (gone: Host): Promise<void> => {
    if (!hosts.delete(gone)) return;
    await Promise.all([gone.wire.close(), endPools(gone.pools, 1)]);
  };
  let host = await newHost();
  const closing: Promise<void>[] = [];
  let blows: Blow[] = [];
  let troubles = 0;
  let deaths = 0;
  let reconciling: Promise<void> = Promise.resolve();

  /** A process that cannot start ends, and is started again; one whose host is lost over it, on another host. */
  async function begin(): Promise<Life> {
    for (let tried = 1; ; tried++) {
      const on = host;
      const starting = beginOn(on);
      try {
        const life = await Promise.race([starting, on.lost.promise]);
        if (life !== undefined) return life;
        void starting.then(bury, () => {});
      } catch (error) {
        if (!isDatabaseAway(error) || tried === STARTS_TRIED)
          throw new Error(`a replica could not start, tried ${tried} times`, { cause: error });
      }
    }
  }

  async function beginOn({ pools }: Host): Promise<Life> {
    const life: Omit<Life, 'server'> = { dead: false };
    const server = await startTestServer({
      pools: { ...pools, commits: struck(pools.commits, life) },
      services: options.services,
      nowMs: options.nowMs,
      ...(options.environment === undefined ? {} : { environment: options.environment }),
      ...(options.routes === undefined ? {} : { routes: options.routes }),
    });
    return Object.assign(life, { server });
  }

  function bury(life: Life): void {
    life.dead = true;
    const { http } = life.server.app;
    http.server.closeAllConnections();
    // Not the whole app: it would wait for what it owes, which the dead do not pay.
    closing.push(http.close());
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
    if (alive.dead) return;
    troubles += 1;
    deaths += 1;
    bury(alive);
    reconciling = Promise.resolve();
    current = begin().then((life) => {
      alive = life;
      return life;
    });
  }

  /** Tells of a round of work whether what went wrong with it is what was to go wrong. */
  function watch(): () => boolean {
    const troublesBefore = troubles;
    const wasSilent = silence.watch();
    return () => troubles !== troublesBefore || wasSilent();
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
    async freeze(everybody, ms) {
      const { wire } = host;
      const end = silence.begin();
      wire.freeze(everybody ? 'new ones too' : undefined);
      await sleep(ms);
      // A host that was lost meanwhile stays lost.
      if (host.wire === wire) wire.thaw();
      if (ms > CONNECTS_WITHIN_MS) await sleep(TOLD_WITHIN_MS);
      end();
    },
    async loseHost(accountId) {
      const lost = host;
      const held = Promise.withResolvers<void>();
      lost.pools.sql
        .begin(async (transaction) => {
          await transaction`
            select 1 from ledger_accounts where id = ${String(accountId)} for no key update`;
          held.resolve();
          await NEVER;
        })
        .catch(held.resolve);
      await held.promise;
      if (host === lost) {
        host = await newHost();
        lost.wire.freeze('new ones too');
        lost.lost.resolve();
        die();
      }
      return () => end(lost);
    },
    watch,
    reconcile() {
      // As in the product, one round at a time.
      const round = reconciling.then(async () => {
        const { server } = await current;
        const diedBefore = deaths;
        const [wasHit, wasHitElsewhere] = [watch(), elsewhere.watch()];
        const work = server.app.reconciler.run().then(
          () => true,
          (error: unknown) => {
            if (!wasHit() && !wasHitElsewhere()) throw error;
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
      host.wire.thaw();
      await server.close();
      await Promise.all([...hosts].map(end));
      await Promise.all(closing);
    },
  };
}
