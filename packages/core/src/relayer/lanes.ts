/**
 * Works on items side by side, in their order. One that fails or never ends keeps no other one from its turn, and at the
 * end of the time none is begun any more.
 *
 * @param bounds.atOnce how many are worked on at once
 * @param bounds.untilMs by `performance.now()`
 * @returns why some failed, in the order in which they did
 */
export async function inLanes<Item>(
  items: readonly Item[],
  bounds: { atOnce: number; untilMs: number },
  work: (item: Item) => Promise<unknown>,
): Promise<unknown[]> {
  const failures: unknown[] = [];
  const left = items.values();
  await Promise.all(
    Array.from({ length: bounds.atOnce }, async () => {
      for (const item of left) {
        if (performance.now() >= bounds.untilMs) return;
        await work(item).catch((error: unknown) => void failures.push(error));
      }
    }),
  );
  return failures;
}
