/** The rate at which a service can answer anew: the budgets of the sources that it asks, shared by all callers. */
import type { Service } from './define.ts';
import type { SourceHealth } from './sources.ts';

export interface Supply {
  /** Answers an hour, at most. Those from a cache are not counted. */
  answersPerHour: number;
  /** The source whose budget that is. */
  source: string;
}

/**
 * The most answers an hour that the scarcest source of a service allows. Of sources of which one is enough the most generous
 * counts, unless the service says what it asks of one of them.
 *
 * @returns null where no budget is known
 */
export function supplyOf(
  { needs, requestsOf = {} }: Pick<Service, 'needs' | 'requestsOf'>,
  health: (name: string) => Pick<SourceHealth, 'requestsPerHour'>,
): Supply | null {
  const bySource = (source: string): Supply[] => {
    const perHour = health(source).requestsPerHour ?? null;
    if (perHour === null) return [];
    return [{ source, answersPerHour: Math.floor(perHour / (requestsOf[source] ?? 1)) }];
  };
  const bounds = Object.keys(requestsOf).flatMap(bySource);
  for (const need of needs) {
    const sources = typeof need === 'string' ? [need] : need;
    if (sources.some((source) => source in requestsOf)) continue;
    const [most] = sources.flatMap(bySource).sort((a, b) => b.answersPerHour - a.answersPerHour);
    if (most !== undefined) bounds.push(most);
  }
  const [scarcest] = bounds.sort((a, b) => a.answersPerHour - b.answersPerHour);
  return scarcest ?? null;
}
