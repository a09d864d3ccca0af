import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { openThread } from './thread.ts';

type Asked = { do: 'add' | 'throw' | 'hang' | 'exit'; a?: number; b?: number };
const bounds = { timeoutMs: 10_000, maxWaiting: 2, maxMemoryMb: 64 };
const program = new URL('./thread-program.fixture.ts', import.meta.url);

describe('a thread', () => {
  const thread = openThread<Asked, number>(program, bounds);
  after(() => thread.close());

  it('does tasks one after another, each with its own answer', async () => {
    const sums = await Promise.all([1, 2, 3].map((a) => thread.run({ do: 'add', a, b: 10 })));
    assert.deepEqual(sums, [11, 12, 13]);
  });

  it('refuses what would wait too long, and keeps what it took', async () => {
    const tasks = Array.from({ length: 5 }, (_, a) => thread.run({ do: 'add', a }));
    const settled = await Promise.allSettled(tasks);
    assert.deepEqual(
      settled.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.trouble)),
      [0, 1, 2, 'busy', 'busy'],
    );
  });

  it('tells what the program threw, and goes on', async () => {
    await assert.rejects(thread.run({ do: 'throw' }), { trouble: 'failed', message: 'cannot be added' });
    assert.equal(await thread.run({ do: 'add', a: 2, b: 2 }), 4);
  });

  it('starts another thread after one that died', async () => {
    const [died, next] = await Promise.allSettled([
      thread.run({ do: 'exit' }),
      thread.run({ do: 'add', a: 1 }),
    ]);
    assert.equal(died.status === 'rejected' && died.reason.trouble, 'failed');
    assert.equal(next.status === 'fulfilled' && next.value, 1);
  });

  it('ends a task that takes too long, while this thread goes on', async () => {
    const hasty = openThread<Asked, number>(program, { ...bounds, timeoutMs: 3_000 });
    let ticks = 0;
    const ticking = setInterval(() => {
      ticks += 1;
    }, 10);
    const [late, next] = await Promise.allSettled([
      hasty.run({ do: 'hang' }),
      hasty.run({ do: 'add', a: 7 }),
    ]);
    clearInterval(ticking);
    assert.equal(late.status === 'rejected' && late.reason.trouble, 'timeout');
    assert.equal(next.status === 'fulfilled' && next.value, 7);
    assert(ticks > 10, 'the event loop was free meanwhile');
    await hasty.close();
  });
});
