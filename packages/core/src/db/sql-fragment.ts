/** A statement that is put together from fragments, and still given to the driver as one: its text, and the values in it. */
export interface SqlFragment {
  /** One more than there are values. */
  readonly strings: readonly string[];
  readonly values: readonly Value[];
}

type Value = string | null;

/** A fragment of a statement: text with values, and with fragments. Text that comes from outside is a value, never a fragment. */
export function fragment(
  strings: TemplateStringsArray,
  ...parts: readonly (Value | SqlFragment)[]
): SqlFragment {
  const texts = [strings[0] ?? ''];
  const values: Value[] = [];
  for (const [index, part] of parts.entries()) {
    const next = strings[index + 1] ?? '';
    if (part === null || typeof part === 'string') {
      values.push(part);
      texts.push(next);
      continue;
    }
    const [first = '', ...rest] = part.strings;
    texts[texts.length - 1] += first;
    texts.push(...rest);
    texts[texts.length - 1] += next;
    values.push(...part.values);
  }
  return { strings: texts, values };
}

/** By the texts between the values. Text never comes from outside, so there are as many as the code can put together. */
const templates = new Map<string, TemplateStringsArray>();
/** No text of a statement can hold it. */
const BETWEEN = '\0';

/**
 * As a tag for templates is called: `sql<Row[]>(...templateOf(statement))`.
 *
 * The driver keeps something for each array of texts that it was ever given, and never drops it (postgres.js 3.4.9,
 * `originCache`). A template literal is one array however often it runs, and so is what the same texts make here.
 */
export function templateOf({ strings, values }: SqlFragment): [TemplateStringsArray, ...Value[]] {
  const text = strings.join(BETWEEN);
  let template = templates.get(text);
  if (template === undefined) {
    template = Object.freeze(Object.assign([...strings], { raw: Object.freeze([...strings]) }));
    templates.set(text, template);
  }
  return [template, ...values];
}
