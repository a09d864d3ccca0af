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
  /** What other servers sell through this one, each at an address of its own; none unless given. */
  readonly elsewhere?: readonly SoldElsewhere[];
}

/** A service that another server answers and sells through this one. */
export interface SoldElsewhere {
  readonly service: Service;
  /** The public address of that server, without a slash at its end. */
  readonly baseUrl: string;
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
  /** Those among them that were sold here. */
  readonly here: readonly Service[];
  readonly replacedAtMs: number;
}

/** The table that is in force, and what of earlier ones still counts. */
export class Shelf implements Stock {
  readonly #nowMs: () => number;
  #look: (() => Promise<void>) | null = null;
  /** The newest first. */
  #earlier: readonly Earlier[] = [];
  #stock: Stock;
  #byPath: ReadonlyMap<string, Service>;
  /** The same with what is sold elsewhere. */
  #all: ReadonlyMap<string, Service>;
  #gone: readonly Service[] = [];

  constructor(stock: Stock, nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#stock = stock;
    this.#byPath = byPath(stock.services);
    this.#all = byPath(allOf(stock));
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

  get elsewhere(): readonly SoldElsewhere[] {
    return this.#stock.elsewhere ?? [];
  }

  /** Services that were sold here and are no more: what was bought is still given again. */
  get soldBefore(): readonly Service[] {
    return this.#gone;
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
    const next = byPath(allOf(stock));
    const changed = [...this.#all].filter(([path, service]) => next.get(path) !== service);
    const wasHere = (path: string) => this.#byPath.has(path);
    if (changed.length > 0) {
      const here = changed.flatMap(([path, service]) => (wasHere(path) ? [service] : []));
      const earlier = { services: new Map(changed), here, replacedAtMs };
      this.#earlier = [earlier, ...this.#earlier].slice(0, MOST_EARLIER);
    }
    const last = byPath(this.#earlier.toReversed().flatMap(({ here }) => here));
    this.#gone = [...last.values()].filter(({ path }) => !next.has(path));
    this.#stock = stock;
    this.#byPath = byPath(stock.services);
    this.#all = next;
  }

  /** Has others told how to look for a newer table. */
  lookBy(look: () => Promise<void>): void {
    this.#look = look;
  }

  /** Looks whether another process has put a newer table in force, and has it in force here too. */
  async look(): Promise<void> {
    await this.#look?.();
  }

  /**
   * Looks whether another process has put a newer table in force, which a price may be of that is not known here.
   *
   * @returns the service as it is sold by that table; null: as before, or no more
   */
  async newer(service: Service): Promise<Service | null> {
    await this.look();
    const now = this.#all.get(service.path);
    return now === undefined || now === service ? null : now;
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
    return this.#gone.find((service) => service.path === path);
  }
}

function byPath(services: readonly Service[]): ReadonlyMap<string, Service> {
  return new Map(services.map((service) => [service.path, service]));
}

function allOf({ services, elsewhere = [] }: Stock): readonly Service[] {
  return [...services, ...elsewhere.map(({ service }) => service)];
}
