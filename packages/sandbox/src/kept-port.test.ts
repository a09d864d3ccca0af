/** A port that was given out stays over restarts, as long as nobody else takes it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { keptPort } from './kept-port.ts';

test('a port stays over restarts, and gives way to whoever has taken it', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-port-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const port = await keptPort(folder, '127.0.0.1');
  assert.match(port, /^[1-9]\d{3,4}$/);
  assert.equal(await keptPort(folder, '127.0.0.1'), port);
  const other = createServer();
  other.listen(Number(port), '127.0.0.1');
  await once(other, 'listening');
  const next = await keptPort(folder, '127.0.0.1');
  assert.notEqual(next, port);
  other.close();
  await once(other, 'close');
  assert.equal(await keptPort(folder, '127.0.0.1'), next, 'it is kept from then on');
});
