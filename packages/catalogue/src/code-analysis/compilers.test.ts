/** The fetching of compilers, with a registry that answers when a test says so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCompilers } from './compilers.ts';

const never = new AbortController().signal;
const away = () => false;

test('fetches once for all who ask, and not again', async () => {
  let fetches = 0;
  const fetched = Promise.withResolvers<void>();
  const compilers = createCompilers(
    () => {
      fetches++;
      return fetched.promise;
    },
    () => fetches === 2,
  );
  const asked = [compilers(never), compilers(never)];
  fetched.resolve();
  assert.deepEqual(await Promise.all(asked), ['here', 'here']);
  assert.equal(fetches, 1);
});

test('says that it fetches when that takes longer than an audit waits, and goes on fetching', async () => {
  const fetched = Promise.withResolvers<void>();
  let fetches = 0;
  let here = false;
  const compilers = createCompilers(
    () => {
      fetches++;
      return fetched.promise;
    },
    () => here,
    1,
  );
  assert.equal(await compilers(never), 'fetching');
  assert.equal(await compilers(never), 'fetching');
  assert.equal(fetches, 1);
  here = true;
  fetched.resolve();
  assert.equal(await compilers(never), 'here');
});

test('asks the registry again a minute after a failure, and not sooner', async () => {
  let fetches = 0;
  const compilers = createCompilers(async () => {
    fetches++;
    throw new Error('the registry is away');
  }, away);
  assert.equal(await compilers(never, 0), 'away');
  assert.equal(await compilers(never, 59_999), 'away');
  assert.equal(fetches, 1);
  assert.equal(await compilers(never, 60_000), 'away');
  assert.equal(fetches, 2);
});

test('lets a caller leave who no longer waits', async () => {
  const caller = new AbortController();
  const compilers = createCompilers(() => new Promise(() => {}), away);
  const asked = compilers(caller.signal);
  caller.abort(new Error('gone'));
  await assert.rejects(asked, /gone/);
});
