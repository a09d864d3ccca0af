import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hashOf, PostingsBuilder } from './name-postings.ts';

const holding = (postings: ReturnType<PostingsBuilder['build']>, key: string) => {
  const found = new Set<number>();
  postings.into(found, key);
  return [...found].sort((a, b) => a - b);
};

describe('which names have a key', () => {
  it('is known of every key, over as many as lists have, and of no other', () => {
    const builder = new PostingsBuilder();
    for (let name = 0; name < 5_000; name++) {
      builder.add(hashOf(`own ${name}`), name);
      builder.add(hashOf(`hundred ${name % 50}`), name);
    }
    const postings = builder.build();
    for (const name of [0, 1, 1_023, 1_024, 4_999])
      assert.deepEqual(holding(postings, `own ${name}`), [name]);
    const ofSeven = Array.from({ length: 100 }, (_, at) => at * 50 + 7);
    assert.deepEqual(holding(postings, 'hundred 7'), ofSeven);
    assert.deepEqual(holding(postings, 'own 5000'), []);
  });

  it('is nothing of an empty list, and one of a name that has a key twice', () => {
    assert.deepEqual(holding(new PostingsBuilder().build(), 'a'), []);
    const builder = new PostingsBuilder();
    builder.add(hashOf('a'), 0);
    builder.add(hashOf('a'), 0);
    assert.deepEqual(holding(builder.build(), 'a'), [0]);
  });

  it('is told apart by hashes with the published value of FNV-1a before their last mix', () => {
    // FNV-1a of "a" is e40c292c; mixed by hand.
    let hash = 0xe40c292c;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    assert.equal(hashOf('a'), (hash ^ (hash >>> 16)) >>> 0);
  });
});
