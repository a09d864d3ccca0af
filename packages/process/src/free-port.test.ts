/** A port that was found free stays so until it is used. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from './free-port.ts';

const execute = promisify(execFile);
const AT_ONCE = 4;
const EACH = 400;

test('no two calls in several processes at once get the same port', async () => {
  const program = `
    const { freePort } = await import(${JSON.stringify(join(import.meta.dirname, 'free-port.ts'))});
    const ports = [];
    for (let count = 0; count < ${EACH}; count++) ports.push(await freePort());
    console.log(JSON.stringify(ports));
    process.stdin.resume();
  `;
  const asked = Array.from({ length: AT_ONCE }, () =>
    execute(process.execPath, [
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
      '-e',
      program,
    ]),
  );
  // Each holds its ports until all have theirs: a process that ended has none.
  const lines = await Promise.all(
    asked.map(
      ({ child }) =>
        new Promise<string>((resolve, reject) => {
          let said = '';
          child.stdout?.on('data', (chunk) => {
            said += chunk;
            if (said.endsWith('\n')) resolve(said);
          });
          child.once('exit', () => reject(new Error(`ended after ${said}`)));
        }),
    ),
  );
  for (const { child } of asked) child.stdin?.end();
  await Promise.all(asked);
  const ports = lines.flatMap((line): number[] => JSON.parse(line));
  assert.equal(ports.length, AT_ONCE * EACH);
  assert.equal(new Set(ports).size, ports.length);
});

test('it is none of those that systems give to outgoing connections', async () => {
  const port = await freePort();
  assert(port >= 20_000 && port < 32_768, `${port}`);
});
