/** Two servers on one folder: the second is refused by one line, and the first sells on. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ServerProcess, startServerProcess } from '../fire/server-process.fixture.ts';

test('the second start on a folder is refused, and the mark of a dead process stands in nobody’s way', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-two-starts-'));
  const started: ServerProcess[] = [];
  t.after(async () => {
    for (const each of started) await each.end('SIGTERM');
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const start = async () => {
    const server = await startServerProcess({ FAREBOX_DATA_DIR: folder, SERVICES: 'ping' });
    started.push(server);
    return server;
  };
  const first = await start();
  const mark = readFileSync(join(folder, 'server.pid'), 'utf8');
  await assert.rejects(start(), (error: Error) => {
    assert.match(error.message, /^the server ended with 2:/);
    assert.match(
      error.message,
      new RegExp(`another server \\(pid ${mark}\\) runs on .*; set FAREBOX_DATA_DIR`),
    );
    return true;
  });
  assert.equal((await fetch(`${first.url}/health/ready`)).status, 200);
  assert.equal(readFileSync(join(folder, 'server.pid'), 'utf8'), mark, 'the mark is the first one’s still');
  assert.equal(await first.end('SIGTERM'), 0);
  writeFileSync(join(folder, 'server.pid'), mark);
  const third = await start();
  assert.equal((await fetch(`${third.url}/health/ready`)).status, 200);
});
