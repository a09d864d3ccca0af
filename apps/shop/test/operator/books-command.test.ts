/** `npm run books` beside the server's own proofs of the books. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { programOf } from '../programs.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';

const COMMAND = programOf('commands/books');

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

function startBooks() {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', COMMAND], {
    env: {
      ...SURROUNDINGS,
      DATABASE_URL: database.url,
      FAREBOX_SECRET: 'a secret of the tests of the books',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk) => (out += chunk));
  child.stderr.on('data', (chunk) => (err += chunk));
  return {
    out: () => out,
    err: () => err,
    ended: once(child, 'close').then(([code]) => code as number | null),
  };
}

test('one proof at a time: the command waits for the end of another, says so, and its verdict is one like any other', async () => {
  // As the job begins one.
  await database.sql`
    update books_proof set number = number + 1, leased_until = clock_timestamp() + interval '10 minutes', started_at = now()`;
  const books = startBooks();
  await until('the command to say that it waits', () =>
    /since \d{4}-.*: waiting for its end\n/.test(books.err()),
  );
  assert.equal(books.out(), '');
  assert.deepEqual([...(await database.sql`select 1 from books_verdicts`)], []);
  await database.sql`update books_proof set leased_until = '-infinity'`;
  assert.equal(await books.ended, 0, books.err());
  assert.match(books.out(), /The books balance\.\n$/);
  const [verdict] = await database.sql<{ balanced: boolean }[]>`select balanced from books_verdicts`;
  assert.equal(verdict?.balanced, true);
});

test('two at once: one after the other', async () => {
  await database.sql`delete from books_verdicts`;
  const both = [startBooks(), startBooks()];
  assert.deepEqual(
    await Promise.all(both.map(({ ended }) => ended)),
    [0, 0],
    both.map(({ err }) => err()).join(),
  );
  const overlapping = await database.sql`
    select 1 from books_verdicts a join books_verdicts b on a.id < b.id and b.started_at < a.ended_at`;
  assert.deepEqual([(await database.sql`select 1 from books_verdicts`).length, overlapping.length], [2, 0]);
});
