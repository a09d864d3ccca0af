/**
 * Whether something answers within a time. Many who ask at once share one question, so that a part that is silent is not asked
 * more and more.
 *
 * @param ask rejects when the part is not well
 */
export function createProbe(ask: () => Promise<unknown>, withinMs: number): () => Promise<boolean> {
  let asking: Promise<boolean> | null = null;
  return async () => {
    asking ??= ask()
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        asking = null;
      });
    const late = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => late.resolve(false), withinMs);
    try {
      return await Promise.race([asking, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
}
