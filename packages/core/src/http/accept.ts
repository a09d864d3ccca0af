/** Reads what a caller says in `Accept` about the form of an answer (RFC 9110, 12.5.1). */

/**
 * Whether an answer is wanted in a type: the type is named as it is, and plain JSON is not wanted more. A wildcard asks for
 * nothing.
 *
 * @param type in lower case
 */
export function wantsType(accept: string | undefined, type: string): boolean {
  if (accept === undefined || !accept.toLowerCase().includes(type)) return false;
  const ranges = accept.toLowerCase().split(',').map(rangeOf);
  const weightOf = (name: string) => ranges.find((range) => range.type === name)?.weight;
  const wanted = weightOf(type) ?? 0;
  const json = weightOf('application/json') ?? weightOf('application/*') ?? weightOf('*/*') ?? 0;
  return wanted > 0 && wanted >= json;
}

/** Whether an answer is wanted as Markdown rather than as a page: it is named, and `text/html` is not wanted more. */
export function wantsMarkdown(accept: string | undefined): boolean {
  if (!wantsType(accept, 'text/markdown')) return false;
  const ranges = (accept ?? '').toLowerCase().split(',').map(rangeOf);
  const weightOf = (name: string) => ranges.find(({ type }) => type === name)?.weight ?? 0;
  return weightOf('text/markdown') >= weightOf('text/html');
}

/** Whether a browser asks: it names `text/html`. A client that accepts anything, or does not say, gets JSON. */
export function wantsPage(accept: string | undefined): boolean {
  return wantsType(accept, 'text/html');
}

/** One entry of `Accept`. A weight that is none counts as nothing. */
function rangeOf(entry: string): { type: string; weight: number } {
  const [type = '', ...parameters] = entry.split(';').map((each) => each.trim());
  const weight = parameters.find((each) => each.startsWith('q='))?.slice(2);
  if (weight === undefined) return { type, weight: 1 };
  return { type, weight: /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0 };
}
