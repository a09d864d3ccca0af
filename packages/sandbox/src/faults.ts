/** Faults on order, by which tests make a part of the sandbox fail. They exist only in the sandbox. */

const MAX_FAULTS = 100;

export interface Faults<Fault> {
  /** Orders faults, to strike after those ordered before: all of them, or none with the reason. */
  order(...bodies: readonly unknown[]): readonly Fault[] | string;
  list(): readonly Fault[];
  clear(): void;
  /** The first ordered fault that is due; it then counts as having struck once more. Null without one. */
  take(isDue: (fault: Fault, place: number) => boolean): Fault | null;
  /** As `take`, all of them at once. */
  takeAll(isDue: (fault: Fault) => boolean): Fault[];
}

/**
 * Opens an empty list of faults; faults are not kept over a restart.
 *
 * @param counter the field of a fault that says how often it strikes yet; it is dropped with its last time
 * @param read one fault as it was ordered, or what is wrong with the order
 */
export function openFaults<Counter extends string, Fault extends Record<Counter, number>>(
  counter: Counter,
  read: (body: unknown) => Fault | string,
): Faults<Fault> {
  let faults: Fault[] = [];

  function strike(due: readonly Fault[]): void {
    for (const fault of due) fault[counter] = (fault[counter] - 1) as Fault[Counter];
    faults = faults.filter((fault) => fault[counter] > 0);
  }

  return {
    order(...bodies) {
      const ordered: Fault[] = [];
      for (const body of bodies) {
        const fault = read(body);
        if (typeof fault === 'string') return fault;
        ordered.push(fault);
      }
      if (faults.length + ordered.length > MAX_FAULTS) return `at most ${MAX_FAULTS} faults`;
      faults.push(...ordered);
      return ordered;
    },
    list: () => [...faults],
    clear() {
      faults = [];
    },
    take(isDue) {
      const fault = faults.find(isDue);
      if (fault === undefined) return null;
      strike([fault]);
      return fault;
    },
    takeAll(isDue) {
      const due = faults.filter((fault) => isDue(fault));
      strike(due);
      return due;
    },
  };
}

/** The fields of an order; none for what is no object. */
export function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  return typeof body === 'object' && body !== null ? { ...body } : {};
}

export function isIntegerIn(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
}
