/** The routes in force, and those that were before: other routes take their place at any time, whole. */
import type { FastifyRequest } from 'fastify';
import type { OpenRoute, OpenRoutes } from './open-routes.ts';

/** Of so many earlier tables it is known which routes they had. */
const MOST_EARLIER = 20;

export class LiveRoutes {
  #now: OpenRoutes;
  /** The newest first. */
  #earlier: readonly OpenRoutes[] = [];
  #refuses: (next: OpenRoutes) => string | null = () => null;
  /** Those whose calls have not all ended. */
  readonly #retiring = new Set<Promise<void>>();

  constructor(routes: OpenRoutes) {
    this.#now = routes;
  }

  get now(): OpenRoutes {
    return this.#now;
  }

  /** Has other routes looked at before they are in force. */
  hold(refuses: (next: OpenRoutes) => string | null): void {
    this.#refuses = refuses;
  }

  /** Why these routes cannot be in force here; null: they can. */
  refuses(next: OpenRoutes): string | null {
    return this.#refuses(next);
  }

  /** Puts other routes in force, in one step. Connections that they do not need are closed once their calls have ended. */
  put(next: OpenRoutes): void {
    const before = this.#now;
    this.#earlier = [before, ...this.#earlier].slice(0, MOST_EARLIER);
    this.#now = next;
    const retired: Promise<void> = before.retire(next).finally(() => this.#retiring.delete(retired));
    this.#retiring.add(retired);
  }

  /** The route that was sold at an address and is no more; null: there was none. */
  gone({ method, url }: Pick<FastifyRequest, 'method' | 'url'>): OpenRoute | null {
    for (const { table } of this.#earlier) {
      const found = table.match(method, url);
      if (found !== null && 'route' in found && found.route.service !== null) return found.route;
    }
    return null;
  }

  /** Lets calls end, and closes all connections. */
  async close(): Promise<void> {
    await Promise.all([this.#now.close(), ...this.#retiring]);
  }
}
