/** Everything that is sold now, as one table that never changes, and how another one takes its place. */
import { firstCallOf } from './choose.ts';
import type { Service } from './define.ts';

/** A table of what is sold. */
export interface Stock {
  /** In catalog order. */
  readonly services: readonly Service[];
  /** Their categories, in the order of the catalog, and what each holds. */
  readonly tags: Readonly<Record<string, string>>;
  /** Paths of services that there are and that are not sold here. */
  readonly leftOut: readonly string[];
}

/**
 * How long a price is honoured that a 402 may have named: as long as the longest challenge lives, and a minute for replicas that
 * follow later.
 */
const HONOURED_MS = 6 * 60_000;
/** The number of earlier tables of which it is remembered what they sold otherwise. */
const MOST_EARLIER = 20;

/** The services of an earlier table that are sold otherwise now, or no more. */
interface Earlier {
  readonly services: ReadonlyMap<string, Service>;
  readonly replacedAtMs: number;
}

/** The table that is in force, and what of earlier ones still counts. */
export class Shelf implements Stock {
  readonly #nowMs: () => number;
  /** The newest first. */
  #earlier: readonly Earlier[] = [];
  #stock: Stock;
  #byPath: ReadonlyMap<string, Service>;

  constructor(stock: Stock, nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#stock = stock;
    this.#byPath = byPath(stock);
  }

  /** The same list as long as the same table is in force. */
  get services(): readonly Service[] {
    return this.#stock.services;
  }

  get tags(): Stock['tags'] {
    return this.#stock.tags;
  }

  get leftOut(): readonly string[] {
    return this.#stock.leftOut;
  }

  /** The call that somebody with a new key is shown. */
  get firstCall(): { readonly path: string; readonly body: Readonly<Record<string, unknown>> } {
    return firstCallOf(this.services);
  }

  /** The service that is sold by this path. */
  find(path: string): Service | undefined {
    return this.#byPath.get(path);
  }

  /**
   * Puts another table in force, in one step. A call that has begun keeps the service that it began with.
   *
   * @param replacedAtMs when the table before it ceased to be in force; now unless given
   */
  put(stock: Stock, replacedAtMs = this.#nowMs()): void {
    const next = byPath(stock);
    const changed = [...this.#byPath].filter(([path, service]) => next.get(path) !== service);
    if (changed.length > 0)
      this.#earlier = [{ services: new Map(changed), replacedAtMs }, ...this.#earlier].slice(0, MOST_EARLIER);
    this.#stock = stock;
    this.#byPath = next;
  }

  /** The same service as it was sold while challenges were made that can still be paid; the newest first. */
  honoured({ path }: Pick<Service, 'path'>): readonly Service[] {
    const sinceMs = this.#nowMs() - HONOURED_MS;
    return this.#earlier.flatMap(({ services, replacedAtMs }) =>
      replacedAtMs > sinceMs ? (services.get(path) ?? []) : [],
    );
  }

  /** The service that was sold by this path and is no more; undefined while one is sold, or none was. */
  gone(path: string): Service | undefined {
    if (this.#byPath.has(path)) return undefined;
    return this.#earlier.find(({ services }) => services.has(path))?.services.get(path);
  }
}

function byPath({ services }: Stock): ReadonlyMap<string, Service> {
  return new Map(services.map((service) => [service.path, service]));
}
