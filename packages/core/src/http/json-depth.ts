/** Whether a value is nested deeper than so many levels. It looks no further, and calls itself never. */
export function isDeeperThan(value: unknown, most: number): boolean {
  let depth = 0;
  let level: unknown[] = [value];
  while (level.length > 0 && depth <= most) {
    depth += 1;
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
  }
  return depth > most;
}
