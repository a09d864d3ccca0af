/**
 * Which names have a key, for very many keys of which most belong to one name: two numbers each, and no text. Keys are
 * told apart by 32 bits of a hash, so a name may very rarely be found by a key of another. Pure.
 */

/** Keys that are in one bucket, on average. */
const KEYS_A_BUCKET = 4;

/** Collects keys with the names that have them, and puts them in order once. */
export class PostingsBuilder {
  #hashes = new Uint32Array(1_024);
  #names = new Uint32Array(1_024);
  #count = 0;

  add(hash: number, name: number): void {
    if (this.#count === this.#hashes.length) {
      this.#hashes = grown(this.#hashes);
      this.#names = grown(this.#names);
    }
    this.#hashes[this.#count] = hash;
    this.#names[this.#count] = name;
    this.#count += 1;
  }

  /** By counting, so that it takes as long as there are keys. */
  build(): Postings {
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(1, this.#count / KEYS_A_BUCKET)));
    const starts = new Uint32Array(buckets + 1);
    for (let at = 0; at < this.#count; at++) {
      const bucket = (this.#hashes[at] ?? 0) & (buckets - 1);
      starts[bucket + 1] = (starts[bucket + 1] ?? 0) + 1;
    }
    for (let bucket = 0; bucket < buckets; bucket++)
      starts[bucket + 1] = (starts[bucket + 1] ?? 0) + (starts[bucket] ?? 0);
    const next = starts.slice(0, buckets);
    const hashes = new Uint32Array(this.#count);
    const names = new Uint32Array(this.#count);
    for (let at = 0; at < this.#count; at++) {
      const hash = this.#hashes[at] ?? 0;
      const place = next[hash & (buckets - 1)] ?? 0;
      next[hash & (buckets - 1)] = place + 1;
      hashes[place] = hash;
      names[place] = this.#names[at] ?? 0;
    }
    return new Postings(starts, hashes, names);
  }
}

/** Names by the hashes of their keys. */
export class Postings {
  readonly #starts: Uint32Array;
  readonly #hashes: Uint32Array;
  readonly #names: Uint32Array;

  constructor(starts: Uint32Array, hashes: Uint32Array, names: Uint32Array) {
    this.#starts = starts;
    this.#hashes = hashes;
    this.#names = names;
  }

  /** Adds the names that have a key to those already found. */
  into(found: Set<number>, key: string): void {
    const hash = hashOf(key);
    const bucket = hash & (this.#starts.length - 2);
    const end = this.#starts[bucket + 1] ?? 0;
    for (let at = this.#starts[bucket] ?? 0; at < end; at++) {
      if (this.#hashes[at] === hash) found.add(this.#names[at] ?? 0);
    }
  }
}

/** FNV-1a over the units of a text, with the last mix of MurmurHash3, which spreads it over the low bits. */
export function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** The same numbers in an array with room for half as many more. */
export function grown(numbers: Uint32Array): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(Math.ceil(numbers.length * 1.5));
  larger.set(numbers);
  return larger;
}
