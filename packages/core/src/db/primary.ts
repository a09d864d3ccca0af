/**
 * Which of several PostgreSQL servers takes writes now. One address has no choice; with more, each is asked three times a
 * second while anybody is connected, so that a promotion is noticed within a second.
 */
import type { Endpoint } from './socket.ts';

/** Whose connections lead to the server that takes writes. */
export interface Target {
  /** Where to connect. Rejects when no server takes writes within the time that a connection may take. */
  next(): Promise<Endpoint>;
  /** Notes a socket that was opened. @param drop breaks it off @returns to be called when it has closed */
  opened(endpoint: Endpoint, drop: (why: Error) => void): () => void;
}

/** What a server says about itself. */
export interface Standing {
  /** Counts up with each promotion, in every server that follows; null: it takes no writes. */
  timeline: number | null;
}

/** One of the servers, and how it is asked. */
export interface Host {
  endpoint: Endpoint;
  /** Asks, in bounded time. Rejects when there is no answer. */
  ask(): Promise<Standing>;
  /** Ends the connection by which it is asked; the next question opens another. */
  hangUp(): void;
}

/** Between the answer of a server and the next question. */
const ASKED_AGAIN_AFTER_MS = 300;

/** A server that is the only one. */
export function onlyHost(endpoint: Endpoint): Target {
  return { next: async () => endpoint, opened: () => () => {} };
}

/** None of the servers takes writes. */
class NoPrimary extends Error {
  /** As the system names a server that is not there. */
  readonly code = 'ECONNREFUSED';

  constructor() {
    super('none of the hosts in DATABASE_URL takes writes');
    this.name = 'NoPrimary';
  }
}

/** A connection leads to a server that another one has replaced. */
class Replaced extends Error {
  /** As the system names a connection that the other side has ended. */
  readonly code = 'ECONNRESET';

  constructor() {
    super('another host in DATABASE_URL takes the writes now');
    this.name = 'Replaced';
  }
}

interface Asked extends Host {
  standing: Standing | null;
  /** Whether it has answered, or has not in time, since somebody needs to know. */
  isHeard: boolean;
  /** Grows when what was heard may no longer be true: an answer to a question from before is not taken. */
  doubts: number;
  isAsking: boolean;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Finds the server that takes writes, and breaks off connections to one that was replaced. Of two that take writes the one
 * that was promoted last is right, so that all are heard before one is chosen; one that was replaced before is never gone back to while this process lives, for what it
 * would take is lost (a primary that comes back by itself after a crash).
 *
 * @param waitMs how long a connection may wait for a server that takes writes
 */
export function createPrimaryFinder(hosts: readonly Host[], waitMs: number): Target {
  const asked = hosts.map(
    (host): Asked => ({
      ...host,
      standing: null,
      isHeard: false,
      doubts: 0,
      isAsking: false,
      timer: undefined,
    }),
  );
  const open = new Map<object, { endpoint: Endpoint; drop(why: Error): void }>();
  const waiting = new Set<(endpoint: Endpoint) => void>();
  let primary: Asked | null = null;
  let latestTimeline = 0;

  const isNeeded = () => open.size > 0 || waiting.size > 0;

  function reconsider(): void {
    // The first to answer may be one that was replaced.
    if (!asked.every(({ isHeard }) => isHeard)) return;
    let best: Asked | null = null;
    let bestTimeline = latestTimeline;
    // The one of now comes first: another as good, or the same under a second name, is no reason to move.
    for (const host of primary === null ? asked : [primary, ...asked]) {
      const timeline = host.standing?.timeline ?? null;
      if (timeline === null || timeline < bestTimeline) continue;
      if (best !== null && timeline === bestTimeline) continue;
      best = host;
      bestTimeline = timeline;
    }
    primary = best;
    if (best === null) return;
    latestTimeline = bestTimeline;
    for (const { endpoint, drop } of [...open.values()]) if (endpoint !== best.endpoint) drop(new Replaced());
    for (const go of [...waiting]) go(best.endpoint);
  }

  async function ask(host: Asked): Promise<void> {
    if (host.isAsking) return;
    clearTimeout(host.timer);
    host.isAsking = true;
    const { doubts } = host;
    const standing = await host.ask().catch(() => null);
    if (doubts === host.doubts) {
      host.standing = standing;
      host.isHeard = true;
    }
    reconsider();
    // Those who have waited for the answer open their sockets first.
    await new Promise((resolve) => setImmediate(resolve));
    host.isAsking = false;
    if (!isNeeded()) return rest();
    if (doubts !== host.doubts) return ask(host);
    host.timer = setTimeout(() => void ask(host), ASKED_AGAIN_AFTER_MS).unref();
  }

  function askAll(): void {
    for (const host of asked) void ask(host);
  }

  /** Nobody is connected, and nobody wants to be: the next one asks anew. */
  function rest(): void {
    for (const host of asked) {
      host.standing = null;
      host.isHeard = false;
      host.doubts += 1;
      if (host.isAsking) continue;
      clearTimeout(host.timer);
      host.hangUp();
    }
    primary = null;
  }

  function doubt(endpoint: Endpoint): void {
    const host = asked.find((each) => each.endpoint === endpoint);
    if (host === undefined) return;
    host.standing = null;
    host.doubts += 1;
    reconsider();
    void ask(host);
  }

  return {
    next() {
      if (primary !== null) return Promise.resolve(primary.endpoint);
      return new Promise((resolve, reject) => {
        const go = (endpoint: Endpoint) => {
          clearTimeout(timer);
          waiting.delete(go);
          resolve(endpoint);
        };
        const timer = setTimeout(() => {
          waiting.delete(go);
          reject(new NoPrimary());
        }, waitMs);
        waiting.add(go);
        askAll();
      });
    },
    opened(endpoint, drop) {
      const socket = {};
      open.set(socket, { endpoint, drop });
      // It was chosen a moment ago: meanwhile another may have taken its place.
      if (primary !== null && primary.endpoint !== endpoint) setImmediate(() => drop(new Replaced()));
      return () => {
        open.delete(socket);
        if (isNeeded()) doubt(endpoint);
        else rest();
      };
    },
  };
}
