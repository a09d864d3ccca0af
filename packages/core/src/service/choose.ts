/** Which of the existing services an operator sells. */
import { nearest } from '../words/nearest.ts';
import type { Service } from './define.ts';

type Named = Pick<Service, 'path' | 'tag'>;

/** Text in the form of folders and paths: lower-case words with dashes between them. */
function dashed(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9*]+/g, '-')
    .replace(/^-|-$/g, '');
}

/**
 * Chooses services by names (`token-price`), tags (`Banking`) and patterns (`earthdata-*`). An entry that begins with
 * `!` excludes what it matches. The other entries select what is sold; without any of them everything is.
 *
 * @param entries empty: everything is sold
 * @returns `sold` in the order of `services`, and the paths of the others; `problems`: a line for each wrong entry
 */
export function chooseServices<S extends Named>(
  services: readonly S[],
  entries: readonly string[],
): { sold: readonly S[]; leftOut: readonly string[]; problems: readonly string[] } {
  const problems: string[] = [];
  const wanted = new Set<S>();
  const unwanted = new Set<S>();
  for (const entry of entries) {
    const written = entry.replace(/^!\s*/, '');
    const fitting = services.filter((service) => fits(service, written));
    if (fitting.length === 0) problems.push(misspelt(written, services));
    for (const service of fitting) (entry.startsWith('!') ? unwanted : wanted).add(service);
  }
  const isSold = (service: S) => (wanted.size === 0 || wanted.has(service)) && !unwanted.has(service);
  const sold = services.filter(isSold);
  if (sold.length === 0 && problems.length === 0) problems.push('leaves nothing to sell');
  const leftOut = services.filter((service) => !isSold(service)).map(({ path }) => path);
  return { sold, leftOut, problems };
}

/** The call that somebody with a new key should make first: the service made for it, or the cheapest. */
export function firstCallOf(services: readonly Pick<Service, 'path' | 'priceUsd' | 'example'>[]) {
  const [cheapest] = services.toSorted((a, b) => Number(a.priceUsd) - Number(b.priceUsd));
  const first = services.find(({ path }) => path === 'first-call') ?? cheapest;
  return { path: first?.path ?? 'first-call', body: first?.example ?? {} };
}

function fits({ path, tag }: Named, written: string): boolean {
  const name = dashed(written);
  if (!name.includes('*')) return name === path || name === dashed(tag);
  // Apart from its stars a name consists of letters, digits and dashes.
  return new RegExp(`^${name.replaceAll('*', '.*')}$`).test(path);
}

function misspelt(written: string, services: readonly Named[]): string {
  const names = [...new Set(services.flatMap(({ path, tag }) => [path, dashed(tag)]))];
  const near = nearest(dashed(written), names, 3).join(', ');
  return `"${written}" is no service, no tag and no pattern that fits one. The nearest names are ${near}`;
}
