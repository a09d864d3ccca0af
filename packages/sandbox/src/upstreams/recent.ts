/** A map that keeps only the most recently used entries, so that its memory is bounded. */
export class Recent<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /**
   * The value of a key; `make` makes it if it is absent. When the map is full, the entry used longest ago is removed. `make`
   * gets the removed value as `spent` and may overwrite it with the new value. `make` must not use this map.
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
