import { collectDefaultMetrics, Registry } from 'prom-client';

export interface Metrics {
  /** The text that Prometheus reads. */
  render(): Promise<string>;
  readonly contentType: string;
}

/**
 * What the process and the parts show, as one.
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
