import assert from 'node:assert/strict';
import { test } from 'node:test';
import postgres from 'postgres';
import { DatabaseSilent } from './deadline.ts';
import { createStartPatience } from './start-patience.ts';

const refused = Object.assign(new Error('nobody listens'), { code: 'ECONNREFUSED' });
const answered = (code: string) => Object.assign(new postgres.PostgresError(''), { code });

test('each way in which a database is away, or held, is waited over and told once for all steps', async () => {
  const told: unknown[] = [];
  const patience = createStartPatience({ waits: (error) => told.push(error) });
  const failures = [
    refused,
    new DatabaseSilent(4_000),
    Object.assign(new Error('no name server answers'), { code: 'EAI_AGAIN' }),
    ...['57P03', '55P03', '57014', '25P03'].map(answered),
  ];
  const [first] = failures;
  const step = async () => {
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    return 'done';
  };
  assert.equal(await patience.take(step), 'done');
  failures.push(refused);
  assert.equal(await patience.take(step), 'done');
  assert.deepEqual(told, [first]);
});

test('what waiting does not mend is told at once: a wrong password, a fault of ours', async () => {
  const patience = createStartPatience({ waits: () => assert.fail('it waited') });
  for (const error of [answered('28P01'), answered('3D000'), new TypeError('of ours')]) {
    await assert.rejects(
      patience.take(() => Promise.reject(error)),
      (thrown) => thrown === error,
    );
  }
});

test('a start has one bound for all of its steps', async () => {
  let taken = 0;
  const patience = createStartPatience({ waits: () => {}, withinMs: 0 });
  await assert.rejects(
    patience.take(() => {
      taken += 1;
      return Promise.reject(refused);
    }),
    (thrown) => thrown === refused,
  );
  assert.equal(taken, 1);
});

test('a machine that sleeps for hours has not waited: connections that it cut are opened again', async () => {
  let nowMs = 0;
  let slept = 0;
  const patience = createStartPatience({ waits: () => {}, nowMs: () => nowMs });
  const step = async () => {
    if (slept === 3) return 'done';
    slept += 1;
    nowMs += 3_600_000;
    throw Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
  };
  assert.equal(await patience.take(step), 'done');
});

test('who runs, and is refused by a database for the whole time, is told so in the end', async () => {
  let nowMs = 0;
  let taken = 0;
  const patience = createStartPatience({ waits: () => {}, withinMs: 3_000, nowMs: () => nowMs });
  const step = async () => {
    taken += 1;
    nowMs += 1_500;
    throw refused;
  };
  await assert.rejects(patience.take(step), (thrown) => thrown === refused);
  assert.equal(taken, 2);
});
