/** A library that is loaded when it is first needed. */

/** Makes something at the first call, and keeps it. A failure is forgotten, so that the next caller tries again. */
export function onceLoaded<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | null = null;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    });
    return made;
  };
}
