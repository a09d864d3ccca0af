/**
 * Makes something once for all who ask in one turn of the event loop, and anew in the next. For what many calls of one batch ask
 * about, such as which services are for sale.
 */
export function onceATurn<T extends object>(make: () => T): () => T {
  let made: T | null = null;
  return () => {
    if (made === null) {
      made = make();
      setImmediate(() => {
        made = null;
      });
    }
    return made;
  };
}
