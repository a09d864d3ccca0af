/** The names that are closest in spelling to what somebody wrote. */

const MOST_CHARACTERS = 80;

/** Best first, at most so many of them. One that holds what was written comes before others. */
export function nearest(written: string, names: readonly string[], most: number): string[] {
  return names
    .map((name) => ({
      name,
      distance: editDistance(written.slice(0, MOST_CHARACTERS), name) - (name.includes(written) ? 5 : 0),
    }))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, most)
    .map(({ name }) => name);
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitution, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
