import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Owed, Part } from '../part.ts';
import { owedBy } from './owed.ts';

/** A part that owes so many times, each line named. */
const owing = (name: string, total: number): Pick<Part, 'owes'> => ({
  owes: async ({ skip, most }) => ({
    owed: Array.from({ length: total }, (_, index) => ({ to: `${name}${index}` }) as Owed).slice(
      skip,
      skip + most,
    ),
    total,
  }),
});

test('what several parts owe is paged as one list, each line once', async () => {
  const parts = [owing('a', 130), {}, owing('b', 90)];
  const seen: string[] = [];
  for (let skip = 0; skip < 220; ) {
    const { owed, total } = await owedBy(parts, { skip });
    assert.equal(total, 220);
    assert(owed.length > 0 && owed.length <= 100);
    seen.push(...owed.map(({ to }) => to));
    skip += owed.length;
  }
  assert.deepEqual([seen.length, new Set(seen).size, seen[0], seen.at(-1)], [220, 220, 'a0', 'b89']);
  assert.deepEqual((await owedBy(parts, { skip: 220 })).owed, []);
});
