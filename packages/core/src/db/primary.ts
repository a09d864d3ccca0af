/**
 * Which of several PostgreSQL servers takes writes now. One address has no choice; with more, each is asked three times a
 * second while anybody is connected, so that a promotion is noticed within a second.
 */

import { randomInt } from 'node:crypto';

/** Where PostgreSQL listens. */
export type Endpoint = { host: string; port: number } | { path: string };

/** The server that connections lead to. */
export interface Target {
  /** Where to connect. Rejects when no server takes writes within the time that a connection may take. */
  next(): Promise<Endpoint>;
  /** Notes a socket that was opened. @param drop breaks it off @returns to be called when it has closed */
  opened(endpoint: Endpoint, drop: (why: Error) => void): () => void;
}

/** A server's word about itself. */
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

/** Servers of which any will do: each connection leads to the next one, so that one that is away is passed by. */
export function anyHost(endpoints: readonly Endpoint[]): Target {
  let next = randomInt(endpoints.length);
  return {
    async next() {
      next = (next + 1) % endpoints.length;
      const endpoint = endpoints[next];
      if (endpoint === undefined) throw new NoPrimary();
      return endpoint;
    },
    opened: () => () => {},
  };
}

/** The failure when no server takes writes. */
class NoPrimary extends Error {
  /** The system's name for a server that is not there. */
  readonly code = 'ECONNREFUSED';

  constructor() {
    super('none of the hosts in DATABASE_URL takes writes');
    this.name = 'NoPrimary';
  }
}

/** A connection leads to a server that another one has replaced. */
class Replaced extends Error {
  /** The system's name for a connection that the other side has ended. */
  readonly code = 'ECONNRESET';

  constructor() {
    super('another host in DATABASE_URL takes the writes now');
    this.name = 'Replaced';
  }
}

/** A host, and what is known of it. */
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
  const finder = new PrimaryFinder(hosts, waitMs);
  return { next: () => finder.next(), opened: (endpoint, drop) => finder.opened(endpoint, drop) };
}

class PrimaryFinder implements Target {
  readonly #hosts: readonly Asked[];
  readonly #waitMs: number;
  readonly #open = new Map<object, { endpoint: Endpoint; drop(why: Error): void }>();
  readonly #waiting = new Set<(endpoint: Endpoint) => void>();
  #primary: Asked | null = null;
  #latestTimeline = 0;

  constructor(hosts: readonly Host[], waitMs: number) {
    this.#waitMs = waitMs;
    this.#hosts = hosts.map(
      (host): Asked => ({
        ...host,
        standing: null,
        isHeard: false,
        doubts: 0,
        isAsking: false,
        timer: undefined,
      }),
    );
  }

  next(): Promise<Endpoint> {
    if (this.#primary !== null) return Promise.resolve(this.#primary.endpoint);
    return new Promise((resolve, reject) => {
      const go = (endpoint: Endpoint) => {
        clearTimeout(timer);
        this.#waiting.delete(go);
        resolve(endpoint);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(go);
        reject(new NoPrimary());
      }, this.#waitMs);
      this.#waiting.add(go);
      for (const host of this.#hosts) void this.#ask(host);
    });
  }

  opened(endpoint: Endpoint, drop: (why: Error) => void): () => void {
    const socket = {};
    this.#open.set(socket, { endpoint, drop });
    // It was chosen a moment ago: meanwhile another may have taken its place.
    if (this.#primary !== null && this.#primary.endpoint !== endpoint)
      setImmediate(() => drop(new Replaced()));
    return () => {
      this.#open.delete(socket);
      if (this.#isNeeded) this.#doubt(endpoint);
      else this.#rest();
    };
  }

  get #isNeeded(): boolean {
    return this.#open.size > 0 || this.#waiting.size > 0;
  }

  /** The host that was promoted last of those that take writes; null while there is none. */
  #best(): Asked | null {
    let best: Asked | null = null;
    let bestTimeline = this.#latestTimeline;
    // The one of now comes first: another as good, or the same under a second name, is no reason to move.
    for (const host of this.#primary === null ? this.#hosts : [this.#primary, ...this.#hosts]) {
      const timeline = host.standing?.timeline ?? null;
      if (timeline === null || timeline < bestTimeline) continue;
      if (best !== null && timeline === bestTimeline) continue;
      best = host;
      bestTimeline = timeline;
    }
    return best;
  }

  #reconsider(): void {
    // The first to answer may be one that was replaced.
    if (!this.#hosts.every(({ isHeard }) => isHeard)) return;
    const best = this.#best();
    this.#primary = best;
    if (best === null) return;
    this.#latestTimeline = best.standing?.timeline ?? this.#latestTimeline;
    for (const { endpoint, drop } of [...this.#open.values()])
      if (endpoint !== best.endpoint) drop(new Replaced());
    for (const go of [...this.#waiting]) go(best.endpoint);
  }

  async #ask(host: Asked): Promise<void> {
    if (host.isAsking) return;
    clearTimeout(host.timer);
    host.isAsking = true;
    const { doubts } = host;
    const standing = await host.ask().catch(() => null);
    if (doubts === host.doubts) {
      host.standing = standing;
      host.isHeard = true;
    }
    this.#reconsider();
    // Those who have waited for the answer open their sockets first.
    await new Promise((resolve) => setImmediate(resolve));
    host.isAsking = false;
    if (!this.#isNeeded) return this.#rest();
    if (doubts !== host.doubts) return this.#ask(host);
    host.timer = setTimeout(() => void this.#ask(host), ASKED_AGAIN_AFTER_MS).unref();
  }

  /** Forgets what was heard while nobody is connected, nor wants to be: the next one asks anew. */
  #rest(): void {
    for (const host of this.#hosts) {
      host.standing = null;
      host.isHeard = false;
      host.doubts += 1;
      if (host.isAsking) continue;
      clearTimeout(host.timer);
      host.hangUp();
    }
    this.#primary = null;
  }

  #doubt(endpoint: Endpoint): void {
    const host = this.#hosts.find((each) => each.endpoint === endpoint);
    if (host === undefined) return;
    host.standing = null;
    host.doubts += 1;
    this.#reconsider();
    void this.#ask(host);
  }
}
