import { collectDefaultMetrics, Registry } from 'prom-client';

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
