import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StartError } from '../../process/src/start-error.ts';
import { openParts } from './parts.ts';

/** A part that begins when it is told to, and says in a list when it is stopped. */
function partOf(name: string, stopped: string[]) {
  const { promise, resolve, reject } = Promise.withResolvers<{ url: string; stop(): Promise<void> }>();
  const stop = async () => void stopped.push(name);
  return { begun: () => promise, begins: () => resolve({ url: `http://${name}`, stop }), fails: reject };
}

test('parts begin at the same time, are told in the order of their names, and stop in the reverse of their beginning', async () => {
  const stopped: string[] = [];
  const [slow, quick] = [partOf('slow', stopped), partOf('quick', stopped)];
  const parts = openParts();
  const first = parts.begin('slow', 'one', slow.begun);
  // The second needs the first, and the third neither: it is there before them.
  const second = parts.begin('second', 'two', async () => {
    const { url } = await first;
    return { url: `${url}/2`, stop: async () => void stopped.push('second') };
  });
  const third = parts.begin('quick', 'three', quick.begun);
  quick.begins();
  assert.equal((await third).url, 'http://quick');
  slow.begins();
  assert.equal((await second).url, 'http://slow/2');
  assert.deepEqual(await parts.allBegun(), [
    { name: 'slow', url: 'http://slow', standsFor: 'one' },
    { name: 'second', url: 'http://slow/2', standsFor: 'two' },
    { name: 'quick', url: 'http://quick', standsFor: 'three' },
  ]);
  await parts.stop();
  assert.deepEqual(stopped, ['second', 'slow', 'quick']);
  await parts.stop();
  assert.equal(stopped.length, 3, 'once');
});

test('when one does not begin, the others are stopped, that too which was still beginning', async () => {
  const stopped: string[] = [];
  const [late, bad] = [partOf('late', stopped), partOf('bad', stopped)];
  const parts = openParts();
  const beginning = parts.begin('late', '', late.begun);
  const failing = parts.begin('bad', '', bad.begun);
  const needing = parts.begin('needing', '', async () => failing);
  void parts.begin('at once', '', () => {
    throw new StartError('told as it is');
  });
  bad.fails(new Error('no port'));
  const all = parts.allBegun();
  await assert.rejects(failing, (error: Error) => error instanceof StartError);
  late.begins();
  await beginning;
  await assert.rejects(needing, /the sandbox's bad did not start: no port$/);
  await assert.rejects(all, /^Error: the sandbox's bad did not start: no port$/);
  assert.deepEqual(stopped, ['late']);
});
