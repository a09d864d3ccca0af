/**
 * JSON that no honest client sends, the same in every run: what a value can do to whoever turns it into text or a number,
 * looks a name up by it, or takes it for a list. And the places that it can be put in.
 */

/** As text, because an object's literal cannot have a field of the name `__proto__`. */
const HOSTILE: readonly unknown[] = JSON.parse(`[
  null, true, -1, 1e308, "", "__proto__", "constructor",
  [], [[]], [null], {},
  {"toString": ""}, {"valueOf": "", "toString": ""}, {"toString": null, "valueOf": {}},
  {"toJSON": ""}, {"then": ""}, {"length": 4294967296}, {"length": -1},
  {"constructor": {"prototype": null}}, {"__proto__": {"toString": ""}}, {"__proto__": null}
]`);

/** Of each kind one: for the many fields of services, which read them all alike. */
const FEW: readonly unknown[] = JSON.parse(
  '[null, true, -1, "__proto__", [], {"toString": ""}, {"length": -1}, {"__proto__": {"toString": ""}}]',
);

/** What is put where an honest client puts `good`: also the good value itself, where it does not belong. */
export function hostileFor(good: unknown, values = HOSTILE): readonly unknown[] {
  return good === undefined ? values : [...values, [good], { toString: good }];
}

/** As `hostileFor`, of each kind one. */
export const fewHostileFor: typeof hostileFor = (good) => hostileFor(good, FEW);

export type Path = readonly string[];

/** Every place in a value, itself left out, as the names that lead there; an entry of a list by its number. */
export function pathsOf(value: unknown, path: Path = []): Path[] {
  const here = path.length === 0 ? [] : [path];
  if (typeof value !== 'object' || value === null) return here;
  return [...here, ...Object.entries(value).flatMap(([name, inner]) => pathsOf(inner, [...path, name]))];
}

/** What stands at a place. */
function valueAt(value: unknown, [name, ...rest]: Path): unknown {
  if (name === undefined) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  return valueAt((value as Record<string, unknown>)[name], rest);
}

/** The same with something else at a place; what leads there is made where it is not. */
export function withPath(value: unknown, [name, ...rest]: Path, put: unknown): unknown {
  if (name === undefined) return put;
  if (/^\d+$/.test(name)) {
    const list: unknown[] = Array.isArray(value) ? [...value] : [];
    list[Number(name)] = withPath(list[Number(name)], rest, put);
    return list;
  }
  const fields = typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  return { ...fields, [name]: withPath((fields as Record<string, unknown>)[name], rest, put) };
}

/** Each of these places of a value with each hostile value in it. */
export function* spoiled(
  good: unknown,
  paths: Iterable<Path> = pathsOf(good),
  valuesFor = hostileFor,
): Generator<{ path: Path; put: unknown; value: unknown }> {
  for (const path of paths)
    for (const put of valuesFor(valueAt(good, path))) yield { path, put, value: withPath(good, path, put) };
}

/** A few at a time: a server takes no hundred connections for a test. */
export async function eachOf<Each>(
  all: Iterable<Each>,
  ask: (each: Each) => Promise<unknown>,
): Promise<void> {
  const left = all[Symbol.iterator]();
  const worker = async () => {
    for (let next = left.next(); next.done !== true; next = left.next()) await ask(next.value);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}
