import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { defineService, type Service } from '../../service/define.ts';
import type { SourceHealth } from '../../service/sources.ts';
import { catalogLines } from './catalog-lines.ts';

const blocks: Service = {
  ...defineService({
    path: 'blocks',
    name: 'Blocks',
    tag: 'Chains',
    priceUsd: '0.01',
    summary: 'Tells the newest block.',
    keywords: 'block',
    input: z.object({}),
    output: z.object({}),
    example: {},
    run: () => Promise.reject(new Error('it is not run')),
  }),
  needs: [['ethereum', 'base']],
  requires: ['wallet'],
};

/** Sources and a capability that a test turns off and on. */
function stage() {
  const now = {
    down: new Set<string>(),
    configured: true,
    unable: null as string | null,
    services: [blocks],
  };
  let decided = 0;
  const catalog = catalogLines({
    services: () => now.services,
    health(name): SourceHealth {
      const state = now.down.has(name) ? 'down' : 'up';
      return { name, state, reason: null, retryAfterMs: 0, lastSuccessAtMs: null, lastFailureAtMs: null };
    },
    standing: () => ({ configured: now.configured, setBy: 'WALLET', unable: now.unable }),
  });
  const line = () => {
    const before = seen;
    seen = catalog();
    if (seen !== before) decided += 1;
    return seen[0];
  };
  let seen: ReturnType<typeof catalog> | undefined;
  return { now, line, decided: () => decided };
}

test('the list is the same one while nothing that decided it changes', () => {
  const { line, decided } = stage();
  const first = line();
  assert.deepEqual(
    [first?.path, first?.priceUsd, first?.available, first?.chains, first?.aliasOf],
    ['blocks', '0.01', true, ['ethereum', 'base'], null],
  );
  assert.equal(line(), first);
  assert.equal(decided(), 1);
});

test('it follows each source, each capability and what is sold', () => {
  const { now, line } = stage();
  const first = line();
  now.down.add('base');
  assert.deepEqual([line()?.available, line()?.chains], [true, ['ethereum']]);
  now.down.add('ethereum');
  assert.deepEqual([line()?.available, line()?.chains], [false, []]);
  assert.equal(first?.available, true, 'what was handed out does not change');
  now.down.clear();
  assert.deepEqual(line(), first);
  now.unable = 'its key has no gas';
  assert.equal(line()?.available, false);
  now.unable = null;
  assert.equal(line()?.available, true);
  now.configured = false;
  assert.equal(line()?.available, false);
  now.configured = true;
  assert.equal(line()?.available, true);
  now.services = [];
  assert.equal(line(), undefined);
});

test('a source that decided nothing the last time is asked about once it does', () => {
  const { now, line } = stage();
  now.down.add('ethereum');
  now.configured = false;
  assert.equal(line()?.available, false, 'without the capability no source is asked about');
  now.configured = true;
  assert.deepEqual([line()?.available, line()?.chains], [true, ['base']]);
  now.down.add('base');
  assert.equal(line()?.available, false);
});
