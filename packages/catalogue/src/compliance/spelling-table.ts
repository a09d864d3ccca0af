/**
 * Reads a table of spellings: "k:g,kk n:n" says that "g" and "kk" stand for "k", and "n" for itself. Pure.
 *
 * A spelling may stand in several rows. "-" is no letter at all, among the meanings.
 */
export function spellingTable(rows: string): ReadonlyMap<string, readonly string[]> {
  const meanings = new Map<string, string[]>();
  for (const row of rows.split(' ')) {
    const [meaning = '', spellings = ''] = row.split(':');
    for (const spelling of spellings.split(',')) {
      meanings.set(spelling, [...(meanings.get(spelling) ?? []), meaning === '-' ? '' : meaning]);
    }
  }
  return meanings;
}
