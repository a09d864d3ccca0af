/** How a part shows figures to an operator: in a registry of its own, which `operations/` joins with those of the others. */
import { Gauge, type Registry } from 'prom-client';

export const MICROS_IN_USD = 1_000_000;

/**
 * A figure that is asked for when it is read.
 *
 * @param ask one that fails, such as of a silent database, is left out: the other figures are wanted then
 */
export function askedGauge(
  registry: Registry,
  name: string,
  help: string,
  ask: () => number | Promise<number>,
): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      const value = await Promise.resolve()
        .then(ask)
        .catch(() => null);
      if (value === null) this.reset();
      else this.set(value);
    },
  });
}
