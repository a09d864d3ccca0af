/** A map that keeps only the entries used last, so that memory stays bounded. */
export class Recent<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /**
   * The value of a key, made now if it is not there. `make` may write the new value over `spent`, the one that has
   * to go for it (undefined while there is room); it must not ask this map for anything.
   */
  get(key: Key, make: (spent: Value | undefined) => Value): Value {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, known);
      return known;
    }
    const oldest = this.#entries.size < this.#capacity ? undefined : this.#entries.entries().next().value;
    if (oldest !== undefined) this.#entries.delete(oldest[0]);
    const made = make(oldest?.[1]);
    this.#entries.set(key, made);
    return made;
  }
}
