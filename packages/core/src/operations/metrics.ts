import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Part } from '../part.ts';

export interface Metrics {
  /** The text that Prometheus reads. */
  render(): Promise<string>;
  readonly contentType: string;
}

/**
 * Joins the metrics of the process and of the parts.
 *
 * @param ofParts the registry of each part that has any
 */
export function joinMetrics(ofParts: () => readonly Registry[]): Metrics {
  const ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess });
  return {
    render: () => Registry.merge([ofProcess, ...ofParts()]).metrics(),
    contentType: ofProcess.contentType,
  };
}

type Queues = NonNullable<Part['queues']>;

/** Shows how much waits in each queue, and for how long. One that cannot be asked is left out: the others are wanted then. */
export function showQueues(registry: Registry, queues: () => Queues): void {
  const gauge = (name: string, help: string, ask: (queue: Queues[number]) => Promise<number>) =>
    new Gauge({
      name,
      help,
      labelNames: ['queue'],
      registers: [registry],
      async collect() {
        const asked = queues();
        const values = await Promise.allSettled(asked.map(ask));
        this.reset();
        for (const [index, { name: queue }] of asked.entries()) {
          const value = values[index];
          if (value?.status === 'fulfilled') this.set({ queue }, value.value);
        }
      },
    });
  gauge('farebox_queue_depth', 'Items of a queue that wait or are being worked, 10,000 at most', (queue) =>
    queue.depth(),
  );
  gauge('farebox_queue_oldest_seconds', 'Since when the oldest of them waits', (queue) =>
    queue.oldestSeconds(),
  );
}
