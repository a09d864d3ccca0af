/** The outbox against a real database and receivers on real sockets; the clock is the tests' own. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Webhook as Verifier } from 'standardwebhooks';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { type Arrived, type Receiver, startReceiver } from '../../../../apps/shop/test/webhooks.fixture.ts';
import { createKeys } from '../keys/keys.ts';
import { grantKey } from '../keys/trial.ts';
import { createLedger } from '../ledger/ledger.ts';
import type { Mail } from '../mail/mailer.ts';
import { createAnswerSeal } from '../paid-call/sealed-answer.ts';
import { secretsOf } from '../secrets/secrets.ts';
import type { CourierReport } from './courier.ts';
import { createEventLog, type EventLog } from './event-log.ts';
import { missedToday } from './missed.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import { createSender, type Sender, type Sent } from './send.ts';
import { createWebhooks, type Webhooks } from './webhooks.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const PATIENCE_MS = 60_000;
const START_MS = Date.UTC(2026, 2, 4, 5, 6, 7);
const SECRETS = secretsOf(['a-secret-of-the-tests-and-of-nothing-else']);
const seal = createAnswerSeal(SECRETS);

let database: TestDatabase;
let receiver: Receiver;
let webhooks: Webhooks;
let log: EventLog;
let accountId: bigint;
let nowMs = START_MS;
let reports: CourierReport[] = [];
let mails: Mail[] = [];
const closing: (() => Promise<unknown>)[] = [];

before(async () => {
  database = await openTestDatabase();
  receiver = await startReceiver();
  log = createEventLog(database.sql, () => nowMs, 30);
  webhooks = createWebhooks(database.sql, { seal, currentId: SECRETS.current.id, nowMs: () => nowMs });
});
after(async () => {
  await receiver.stop();
  await database.close();
});
beforeEach(async () => {
  nowMs = START_MS;
  reports = [];
  mails = [];
  receiver.arrived.splice(0);
  receiver.answers.clear();
  await database.sql`delete from webhooks`;
  await database.sql`delete from account_events`;
  accountId = await newAccount();
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function newAccount(): Promise<bigint> {
  const { sql } = database;
  const clock = () => nowMs;
  const parts = { sql, keys: createKeys(sql, clock), ledger: createLedger(database, clock), nowMs: clock };
  const { apiKey } = await grantKey(parts, { amountMicros: 1_000_000n, label: 'test', note: 'test' });
  const known = await parts.keys.find(apiKey);
  assert(known !== null);
  return known.accountId;
}

/** A replica. */
function replica(sender: Pick<Sender, 'send'> | null = null): Outbox {
  const own = createSender({ allowPrivate: true, userAgent: 'test', timeoutMs: 20_000 });
  const outbox = createOutbox(database.sql, {
    sender: sender ?? own,
    seal,
    baseUrl: 'https://farebox.test',
    retentionDays: 30,
    nowMs: () => nowMs,
    mailer: {
      // The same id is one mail.
      enqueue: async (_, mail) => void (mails.some(({ id }) => id === mail.id) || mails.push(mail)),
    },
    report: (report) => void reports.push(report),
  });
  closing.push(async () => {
    // Whoever is asked now is not waited for.
    await own.close();
    if (sender === null) await outbox.close();
  });
  return outbox;
}

async function register(path: string, account = accountId): Promise<{ id: string; secret: string }> {
  const made = await webhooks.create(account, {
    url: receiver.url + path,
    events: ['refund.made'],
    lowBelowMicros: null,
    email: 'owner@example.org',
  });
  assert(made !== null);
  return { id: made.webhook.id, secret: made.secret };
}

const tell = (nth: number, account = accountId) => log.add(database.sql, account, 'refund.made', { nth });
/** Tells of money, as the triggers do. */
const tellOfMoney = (nth: number) => database.sql`
  insert into account_events (account_id, type, data, about_money, created_at)
  values (${String(accountId)}, 'refund.made', ${JSON.stringify({ nth })}::text::jsonb, true, ${new Date(nowMs)})`;
const listOf = async (outbox: Outbox, id: string) => (await outbox.list(id)).rows;

/** Sends until nothing is due. */
async function sendAll(...outboxes: Outbox[]): Promise<void> {
  for (;;) {
    const begun = await Promise.all(outboxes.map((each) => each.send()));
    await Promise.all(outboxes.map((each) => each.idle()));
    if (begun.every((each) => each === 0)) return;
  }
}

async function until(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = Date.now() + PATIENCE_MS;
  while (!(await look())) {
    assert(Date.now() < endMs, `still waiting for ${what}`);
    await pause(10);
  }
}

test('an event is told in the commit of what it tells, once, and signed so that its receiver can verify it', async () => {
  const outbox = replica();
  const { id, secret } = await register('/in');
  await assert.rejects(
    database.sql.begin(async (transaction) => {
      await log.add(transaction, accountId, 'refund.made', { nth: 0 });
      throw new Error('undone');
    }),
  );
  await log.add(database.sql, accountId, 'balance.low', { not: 'wanted' });
  await tell(1);
  await tell(9, await newAccount());
  // The library looks at the clock of the machine.
  nowMs = Date.now();
  await sendAll(outbox);
  const [arrived, ...others] = receiver.arrived;
  assert(arrived !== undefined && others.length === 0, String(others.length));
  const { eventId, ...message } = arrived.message;
  assert.deepEqual(message, {
    type: 'refund.made',
    timestamp: new Date(START_MS).toISOString(),
    data: { nth: 1 },
  });
  assert.deepEqual(
    (await log.list(accountId, { order: 'newest', before: null }, 10)).rows.map((each) => each.id),
    [eventId],
  );
  new Verifier(secret).verify(arrived.body, arrived.headers as Record<string, string>);
  assert.throws(() =>
    new Verifier(secret).verify(`${arrived.body} `, arrived.headers as Record<string, string>),
  );
  assert.equal(arrived.headers['content-type'], 'application/json');
  const [row] = await database.sql`select * from webhooks where id = ${id}`;
  const stored = Object.values(row ?? {}).join();
  assert(stored.includes(id) && !stored.includes(secret.slice(6)));
});

test('a new secret signs at once, and the old one for as long as was asked', async () => {
  const outbox = replica();
  const { id, secret } = await register('/in');
  const second = await webhooks.rotate(accountId, id, HOUR_MS);
  assert(typeof second === 'string' && second !== secret);
  await tell(1);
  await sendAll(outbox);
  nowMs += HOUR_MS;
  await tell(2);
  await sendAll(outbox);
  const third = await webhooks.rotate(accountId, id, 0);
  assert(typeof third === 'string');
  await tell(3);
  await sendAll(outbox);
  assert.deepEqual(
    receiver.arrived.map((each) => signersOf(each, [secret, second, third])),
    [
      [true, true, false],
      [false, true, false],
      [false, false, true],
    ],
  );
});

test('a secret that was promised a week signs for a week, however often it is replaced', async () => {
  const outbox = replica();
  const { id, secret } = await register('/in');
  const untils: string[][] = [];
  const rotate = async (overlapMs: number): Promise<string> => {
    const made = await webhooks.rotate(accountId, id, overlapMs);
    assert(typeof made === 'string');
    const now = await webhooks.find(accountId, id);
    untils.push([now?.beforeUntil, ...(now?.formerUntil ?? [])].map((at) => at?.toISOString() ?? 'none'));
    return made;
  };
  const second = await rotate(7 * DAY_MS);
  const third = await rotate(HOUR_MS);
  const fourth = await rotate(0);
  const inMs = (ms: number) => new Date(START_MS + ms).toISOString();
  assert.deepEqual(untils, [
    [inMs(7 * DAY_MS), inMs(7 * DAY_MS)],
    [inMs(HOUR_MS), inMs(HOUR_MS), inMs(7 * DAY_MS)],
    ['none', inMs(HOUR_MS), inMs(7 * DAY_MS)],
  ]);
  // A new version of the server's secret changes nothing about it.
  const newer = secretsOf(['a-new-secret-of-the-server-for-tests', SECRETS.current.value]);
  const parts = { seal: createAnswerSeal(newer), currentId: newer.current.id, nowMs: () => nowMs };
  await createWebhooks(database.sql, parts).reseal();
  const back = secretsOf([SECRETS.current.value, newer.current.value]);
  const again = { seal: createAnswerSeal(back), currentId: back.current.id, nowMs: () => nowMs };
  await createWebhooks(database.sql, again).reseal();
  for (const [nth, atMs] of [0, HOUR_MS, 7 * DAY_MS - 1, 7 * DAY_MS].entries()) {
    nowMs = START_MS + atMs;
    await tell(nth);
    await sendAll(outbox);
  }
  assert.deepEqual(
    receiver.arrived.map((each) => signersOf(each, [secret, second, third, fourth])),
    [
      [true, true, false, true],
      [true, false, false, true],
      [true, false, false, true],
      [false, false, false, true],
    ],
  );
});

test('five old secrets may sign at a time; one more rotation ends none of them, also of two at once', async () => {
  const { id } = await register('/in');
  for (let nth = 1; nth <= 4; nth += 1)
    assert.equal(typeof (await webhooks.rotate(accountId, id, nth * HOUR_MS)), 'string');
  const both = await Promise.all([1, 2].map(() => webhooks.rotate(accountId, id, DAY_MS)));
  const refused = { freeAt: new Date(START_MS + HOUR_MS) };
  assert.deepEqual(
    both.filter((each) => typeof each !== 'string'),
    [refused],
  );
  assert.equal((await webhooks.find(accountId, id))?.formerUntil.length, 5);
  // Without an overlap it adds none, so it is always possible.
  assert.equal(typeof (await webhooks.rotate(accountId, id, 0)), 'string');
  assert.equal((await webhooks.find(accountId, id))?.formerUntil.length, 5);
  assert.deepEqual(await webhooks.rotate(accountId, id, DAY_MS), refused);
  nowMs += HOUR_MS;
  assert.equal(typeof (await webhooks.rotate(accountId, id, DAY_MS)), 'string');
});

/** Tells which of the secrets signed a message, whatever the time is. */
function signersOf({ id, headers, body }: Arrived, secrets: readonly string[]): boolean[] {
  const signatures = String(headers['webhook-signature']).split(' ');
  const at = new Date(Number(headers['webhook-timestamp']) * SECOND_MS);
  return secrets.map((secret) => signatures.includes(new Verifier(secret).sign(id, at, body)));
}

test('a secret is sealed again under a new version of the server’s secret, and one that is lost switches off', async () => {
  const { id, secret } = await register('/in');
  const both = secretsOf(['a-new-secret-of-the-server-for-tests', SECRETS.current.value]);
  const under = (secrets: ReturnType<typeof secretsOf>) =>
    createWebhooks(database.sql, {
      seal: createAnswerSeal(secrets),
      currentId: secrets.current.id,
      nowMs: () => nowMs,
    });
  await under(both).reseal();
  await under(both).reseal();
  const later = secretsOf([both.current.value]);
  await under(later).reseal();
  const [row] = await database.sql<
    { sealed_secret: string }[]
  >`select sealed_secret from webhooks where id = ${id}`;
  assert(row !== undefined);
  assert.equal(createAnswerSeal(later).open(`webhook:${id}`, row.sealed_secret), secret);
  assert.throws(() => createAnswerSeal(later).open('webhook:of-another', row.sealed_secret));

  await under(secretsOf(['a-secret-that-knows-of-nothing-here'])).reseal();
  assert.equal((await webhooks.find(accountId, id))?.disabledBecause, 'secret_lost');
  const again = await webhooks.rotate(accountId, id, HOUR_MS);
  assert(again !== null);
  assert.equal((await webhooks.find(accountId, id))?.disabledAt, null);
});

test('a secret that is lost is noted on a webhook that is off too, and one of before takes nothing with it', async () => {
  const { id: offId } = await register('/off');
  await webhooks.switchTo(accountId, offId, false);
  const lost = secretsOf(['a-secret-that-knows-of-nothing-here']);
  const { id, secret } = await register('/in');
  const parts = { seal: createAnswerSeal(lost), currentId: lost.current.id, nowMs: () => nowMs };
  await database.sql`
    update webhooks set former_secrets = ${JSON.stringify([
      {
        until: new Date(nowMs + HOUR_MS).toISOString(),
        sealed: createAnswerSeal(lost).seal(`webhook:${id}`, secret),
      },
    ])}::text::jsonb where id = ${id}`;
  const outbox = replica();
  await tell(1);
  await sendAll(outbox);
  assert.equal(receiver.at('/in').length, 1, 'signed by the secret that opens');
  await webhooks.reseal();
  assert.deepEqual((await webhooks.find(accountId, id))?.disabledAt, null);

  await createWebhooks(database.sql, parts).reseal();
  assert.equal((await webhooks.find(accountId, offId))?.disabledBecause, 'secret_lost');
  assert.equal((await webhooks.find(accountId, id))?.disabledBecause, 'secret_lost');
});

test('who switches on again and again what answers 410 gets one mail a day', async () => {
  const outbox = replica();
  receiver.answers.set('/gone', 410);
  const { id } = await register('/gone');
  for (let round = 1; round <= 3; round += 1) {
    assert.notEqual(await outbox.test(id), null);
    nowMs += SECOND_MS;
    await sendAll(outbox);
    assert.equal((await webhooks.find(accountId, id))?.disabledBecause, 'gone');
    await webhooks.switchTo(accountId, id, true);
  }
  assert.equal(mails.length, 1);
  nowMs += DAY_MS;
  await outbox.test(id);
  await sendAll(outbox);
  assert.equal(mails.length, 2);
});

test('what is written for a webhook in a day is bounded, trials before events', async () => {
  const outbox = replica();
  const { id } = await register('/in');
  const written = (count: number) => database.sql`
    insert into webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, delivered_at)
    select gen_random_uuid(), ${id}, 'refund.made', '{}', ${new Date(nowMs)}, ${new Date(nowMs)}, ${new Date(nowMs)}
    from generate_series(1, ${count})`;
  await written(499);
  assert.notEqual(await outbox.test(id), null);
  assert.equal(await outbox.test(id), null);
  await written(999);
  await tell(1);
  await tell(2);
  const count = async () => (await database.sql`select count(*)::int as n from webhook_deliveries`)[0]?.n;
  assert.equal(await count(), 1_500);
  nowMs += DAY_MS;
  await tell(3);
  assert.equal(await count(), 1_501);
});

test('a webhook that is being deleted makes nobody wait who tells of something, nor fail', async () => {
  const { id } = await register('/in');
  await database.sql.begin(async (deleting) => {
    await deleting`delete from webhooks where id = ${id}`;
    await database.sql.begin(async (telling) => {
      await telling`set local lock_timeout = '5s'`;
      await log.add(telling, accountId, 'refund.made', { nth: 1 });
    });
  });
  assert.equal(await webhooks.find(accountId, id), null);
});

test('a courier whose note fails says so, and the message is sent again', async () => {
  const { id } = await register('/in');
  const { sql } = database;
  await sql.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
    create trigger refused before update of delivered_at on webhook_deliveries for each row execute function refuse()`);
  const outbox = replica();
  try {
    await tell(1);
    await sendAll(outbox);
  } finally {
    await sql.unsafe('drop trigger refused on webhook_deliveries; drop function refuse()');
  }
  assert.deepEqual(
    reports.map(({ outcome, webhookId, result }) => [outcome, webhookId, result]),
    [['unnoted', id, 'P0001']],
  );
  nowMs += MINUTE_MS;
  await sendAll(outbox);
  assert.equal(receiver.arrived.length, 2);
  assert.equal((await listOf(outbox, id))[0]?.lastResult, '204');
});

test('what fails is sent again later and later with the same id, ten times in all, and can be asked for anew', async () => {
  // Test messages are taken all the while, so that it is not switched off.
  const real = createSender({ allowPrivate: true, userAgent: 'test' });
  closing.push(() => real.close());
  const outbox = replica({
    send: async (message, at) =>
      JSON.parse(message.body).type === 'webhook.test'
        ? { outcome: 'taken', result: '204' }
        : real.send(message, at),
  });
  const { id } = await register('/down');
  receiver.answers.set('/down', 500);
  await tell(1);
  await sendAll(outbox);
  for (const pauseMs of [
    ...[5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS, 14 * HOUR_MS],
  ]) {
    const seen = receiver.arrived.length;
    nowMs += pauseMs - 1;
    await sendAll(outbox);
    assert.equal(receiver.arrived.length, seen, `nothing before ${pauseMs} ms`);
    nowMs += 1;
    await sendAll(outbox);
    assert.equal(receiver.arrived.length, seen + 1, `again after ${pauseMs} ms`);
  }
  // The receiver takes another message: what waits is tried at once, and then after its own pauses again.
  nowMs += MINUTE_MS;
  const seen = receiver.arrived.length;
  await outbox.test(id);
  await sendAll(outbox);
  assert.equal(receiver.arrived.length, seen + 1);
  nowMs += 24 * HOUR_MS;
  await sendAll(outbox);
  const [, delivery] = await listOf(outbox, id);
  assert.deepEqual(
    [delivery?.attempts, delivery?.nextAt, delivery?.lastResult, delivery?.givenUpAt !== null],
    [10, null, '500', true],
  );
  const ids = new Set(
    receiver.arrived.filter(({ message }) => message.type === 'refund.made').map((each) => each.id),
  );
  assert.deepEqual([...ids], [delivery?.id]);
  assert.equal(reports.filter(({ outcome }) => outcome === 'given-up').length, 1);

  receiver.answers.delete('/down');
  nowMs += HOUR_MS;
  assert(delivery !== undefined);
  assert.equal(await outbox.resend(id, delivery.id), true);
  assert.equal(await outbox.resend(id, delivery.id), false, 'it waits already');
  await sendAll(outbox);
  assert.equal(receiver.arrived.at(-1)?.id, delivery.id);
  assert.equal((await listOf(outbox, id)).find((each) => each.id === delivery.id)?.lastResult, '204');
});

test('a receiver that takes nothing for three days is switched off, with a mail; one that is gone at once', async () => {
  const outbox = replica();
  const { id } = await register('/down');
  const { id: goneId } = await register('/gone');
  receiver.answers.set('/down', 503);
  receiver.answers.set('/gone', 410);
  await tell(1);
  await sendAll(outbox);
  assert.equal((await webhooks.find(accountId, goneId))?.disabledBecause, 'gone');
  for (let hours = 0; hours < 80; hours += 1) {
    nowMs += HOUR_MS;
    if (hours % 20 === 0) await tell(hours);
    await sendAll(outbox);
    if ((await webhooks.find(accountId, id))?.disabledAt !== null) break;
  }
  const off = await webhooks.find(accountId, id);
  assert.equal(off?.disabledBecause, 'failing');
  assert(nowMs - START_MS >= 3 * DAY_MS && nowMs - START_MS < 4 * DAY_MS);
  assert.deepEqual(
    mails.map(({ to }) => to),
    ['owner@example.org', 'owner@example.org'],
  );
  assert(mails.every(({ text }) => !text.includes('/down') && text.includes('127.0.0.1')));
  const seen = receiver.arrived.length;
  await tell(99);
  nowMs += DAY_MS;
  await sendAll(outbox);
  assert.equal(receiver.arrived.length, seen, 'nothing more is sent there');
  const waiting = await database.sql`select 1 from webhook_deliveries where next_at is not null`;
  assert.equal(waiting.length, 0);

  receiver.answers.delete('/down');
  await webhooks.switchTo(accountId, id, true);
  await tell(100);
  await sendAll(outbox);
  assert.equal(receiver.arrived.at(-1)?.message.data.nth, 100);
});

test('two replicas at once send each message once', async () => {
  const [one, two] = [replica(), replica()];
  for (const path of ['/a', '/b', '/c']) await register(path);
  for (let nth = 1; nth <= 15; nth += 1) await tell(nth);
  await sendAll(one, two);
  for (const path of ['/a', '/b', '/c']) {
    const numbers = receiver.at(path).map(({ message }) => message.data.nth);
    assert.deepEqual(
      numbers.sort((x, y) => x - y),
      Array.from({ length: 15 }, (_, at) => at + 1),
      path,
    );
  }
  assert.equal(new Set(receiver.arrived.map((each) => each.id)).size, 45);
});

test('receivers that never answer keep no other waiting', async () => {
  const outbox = replica();
  for (let nth = 1; nth <= 5; nth += 1) {
    await register(`/silent${nth}`);
    receiver.answers.set(`/silent${nth}`, 'silent');
  }
  const other = await newAccount();
  await register('/awake', other);
  await tell(1);
  await outbox.send();
  await until('the silent ones to be asked', () => receiver.arrived.length === 5);
  for (let nth = 1; nth <= 20; nth += 1) await tell(nth, other);
  await outbox.send();
  await until('the other to get all', () => receiver.at('/awake').length === 20);
  assert.equal(
    receiver.open() - 5 <= 1 && receiver.arrived.length,
    25,
    'the silent ones are still being waited for',
  );
});

test('a process that dies between sending and noting: another sends it again, with the same id', async () => {
  const { id } = await register('/in');
  const real = createSender({ allowPrivate: true, userAgent: 'test' });
  const { promise: neverNoted } = Promise.withResolvers<never>();
  const dying = replica({
    async send(message, at) {
      await real.send(message, at);
      return neverNoted;
    },
  });
  const other = replica();
  await tell(1);
  await dying.send();
  await until('the first copy', () => receiver.arrived.length === 1);
  assert.equal(await other.send(), 0, 'it is leased');
  nowMs += MINUTE_MS;
  await sendAll(other);
  assert.equal(receiver.arrived.length, 2);
  assert.equal(receiver.arrived[0]?.id, receiver.arrived[1]?.id);
  const [delivery] = await listOf(other, id);
  assert.deepEqual([delivery?.attempts, delivery?.lastResult], [2, '204']);
  await real.close();

  // One whose every attempt was cut short is not sent for ever.
  await tell(2);
  await database.sql`update webhook_deliveries set attempts = 10 where next_at is not null`;
  await sendAll(other);
  assert.equal((await listOf(other, id))[0]?.lastResult, 'no attempt ended');
});

test('who comes back too late changes nothing; what was taken, was taken', async () => {
  const { id } = await register('/in');
  const first = Promise.withResolvers<{ outcome: 'failed'; result: string }>();
  const late = replica({ send: () => first.promise });
  const other = replica();
  await tell(1);
  await late.send();
  nowMs += MINUTE_MS;
  await sendAll(other);
  first.resolve({ outcome: 'failed', result: 'timeout' });
  await late.idle();
  const [delivery] = await listOf(other, id);
  assert.deepEqual([delivery?.attempts, delivery?.lastResult, delivery?.nextAt], [2, '204', null]);
  assert.equal((await webhooks.find(accountId, id))?.failingSince, null);
});

test('a copy that arrived after its lease is noted, and leaves the webhook to whoever has it now', async () => {
  const { id } = await register('/in');
  const [first, second] = [Promise.withResolvers<Sent>(), Promise.withResolvers<Sent>()];
  const late = replica({ send: () => first.promise });
  const other = replica({ send: () => second.promise });
  await tell(1);
  await late.send();
  nowMs += MINUTE_MS;
  await other.send();
  nowMs += 1;
  await tell(2);
  first.resolve({ outcome: 'taken', result: '204' });
  await late.idle();
  const states = async () =>
    (await listOf(other, id)).map(({ attempts, lastResult, deliveredAt }) => [
      attempts,
      lastResult,
      deliveredAt !== null,
    ]);
  const [waiting, arrived] = [[0, null, false] as const, [2, '204', true] as const];
  assert.deepEqual(await states(), [waiting, arrived]);
  second.resolve({ outcome: 'failed', result: '500' });
  await other.idle();
  assert.deepEqual(await states(), [waiting, arrived], 'what has arrived is not sent again');
});

test('what is given up while it is being sent, because its webhook is switched off, does not wait again', async () => {
  const { id } = await register('/in');
  const answer = Promise.withResolvers<{ outcome: 'failed'; result: string }>();
  const outbox = replica({ send: () => answer.promise });
  for (let nth = 1; nth <= 10; nth += 1) await tell(nth);
  await outbox.send();
  await webhooks.switchTo(accountId, id, false);
  answer.resolve({ outcome: 'failed', result: 'timeout' });
  await outbox.idle();
  const deliveries = await listOf(outbox, id);
  assert.equal(deliveries.length, 10);
  assert.deepEqual(
    deliveries.filter(({ nextAt, givenUpAt }) => nextAt !== null || givenUpAt === null),
    [],
  );
  // Whoever switches it on again has not asked for what was given up.
  await webhooks.switchTo(accountId, id, true);
  nowMs += DAY_MS;
  await sendAll(replica());
  assert.deepEqual(receiver.arrived, []);
});

test('what waits is bounded, what is old is forgotten, and nothing is told once no key is left', async () => {
  const outbox = replica();
  const { id } = await register('/in');
  await database.sql`
    insert into webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, next_at)
    select gen_random_uuid(), ${id}, 'refund.made', '{}', ${new Date(nowMs)}, ${new Date(nowMs)}, ${new Date(nowMs + DAY_MS)}
    from generate_series(1, 1000)`;
  const [old] = await database.sql<{ id: string }[]>`
    insert into webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, delivered_at)
    values (gen_random_uuid(), ${id}, 'refund.made', '{}', ${new Date(nowMs)}, ${new Date(nowMs)}, ${new Date(nowMs)})
    returning id`;
  assert.equal(await outbox.resend(id, String(old?.id)), false, 'enough wait');
  await database.sql`delete from webhook_deliveries where id = ${String(old?.id)}`;
  await tell(1);
  assert.equal(await outbox.test(id), null);
  const [waiting] = await database.sql`select count(*)::int as n from webhook_deliveries`;
  assert.equal(waiting?.n, 1_000);
  nowMs += 30 * DAY_MS;
  assert.equal(await outbox.forget(), 0);
  nowMs += 1;
  assert.equal(await outbox.forget(), 1_000);

  await database.sql`update api_keys set status = 'revoked' where account_id = ${String(accountId)}`;
  await tell(2);
  assert.equal((await listOf(outbox, id)).length, 0);
});

/** Fills a webhook's queue at once, with deliveries that are due too late to be sent today. */
const fill = (id: string, count: number) => database.sql`
  insert into webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, next_at)
  select gen_random_uuid(), ${id}, 'refund.made', '{}', ${new Date(nowMs - 2 * DAY_MS)}, ${new Date(nowMs)}, ${new Date(nowMs + DAY_MS)}
  from generate_series(1, ${count})`;

test('what finds no room in a full queue, or a webhook that is off, is in the log, counted, and can be recovered once', async () => {
  const outbox = replica();
  const { id } = await register('/in');
  const other = await register('/other');
  const missed = async () => (await webhooks.find(accountId, id))?.missed;
  await fill(id, 999);
  for (let nth = 1; nth <= 3; nth += 1) await tellOfMoney(nth);
  assert.equal(await missed(), 2);
  assert.equal((await webhooks.find(accountId, other.id))?.missed, 0);
  assert.equal(await missedToday(database.sql, nowMs), 2);
  assert.equal(await missedToday(database.sql, nowMs + DAY_MS + MINUTE_MS), 0, 'a day later');
  assert.deepEqual(await outbox.recover(id, START_MS), { missed: 0, givenUp: 0, more: true }, 'no room yet');
  await database.sql`delete from webhook_deliveries where webhook_id = ${id} and event_id is null`;
  await webhooks.switchTo(accountId, id, false);
  assert.equal(await outbox.recover(id, START_MS), null, 'it is off');
  await tell(4);
  await webhooks.switchTo(accountId, id, true);
  assert.equal(await missed(), 3);
  nowMs += MINUTE_MS;
  assert.deepEqual(
    await outbox.recover(id, nowMs),
    { missed: 0, givenUp: 0, more: false },
    'nothing since now',
  );
  const [one, two] = await Promise.all([outbox.recover(id, START_MS), replica().recover(id, START_MS)]);
  assert.deepEqual(
    [(one?.missed ?? 0) + (two?.missed ?? 0), (one?.givenUp ?? 0) + (two?.givenUp ?? 0)],
    [3, 1],
    'the first was given up when the webhook was switched off',
  );
  assert.equal(await missed(), 0);
  await sendAll(outbox);
  const numbers = receiver.at('/in').map(({ message }) => message.data.nth);
  assert.deepEqual(
    numbers.sort((x, y) => x - y),
    [1, 2, 3, 4],
  );
  assert.deepEqual(
    receiver
      .at('/in')
      .map(({ message }) => message.eventId)
      .sort(),
    (await log.list(accountId, { order: 'newest', before: null }, 10)).rows.map((each) => each.id).sort(),
  );
});

test('the day of a webhook keeps room for money, and the log of an account is bounded for all else', async () => {
  const { id } = await register('/in');
  const written = (count: number) => database.sql`
    insert into webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, delivered_at)
    select gen_random_uuid(), ${id}, 'refund.made', '{}', ${new Date(nowMs)}, ${new Date(nowMs)}, ${new Date(nowMs)}
    from generate_series(1, ${count})`;
  await written(1_500);
  await tell(1);
  assert.equal((await webhooks.find(accountId, id))?.missed, 1);
  await tellOfMoney(2);
  assert.equal((await webhooks.find(accountId, id))?.missed, 1);
  await written(500);
  await tellOfMoney(3);
  assert.equal((await webhooks.find(accountId, id))?.missed, 2);

  await database.sql`
    insert into account_events (account_id, type, data, about_money, created_at)
    select ${String(accountId)}, 'answer.ready', '{}', false, ${new Date(nowMs)} from generate_series(1, 1999)`;
  const count = async () =>
    (
      await database.sql`select count(*)::int as n from account_events where account_id = ${String(accountId)}`
    )[0]?.n;
  const before = await count();
  await tell(4);
  assert.equal(await count(), before, 'the log of the day is full');
  await tellOfMoney(5);
  assert.equal(await count(), before + 1);
  nowMs += 30 * DAY_MS;
  assert.equal(await log.forget(), 0);
  nowMs += 1;
  assert.equal(await log.forget(), before + 1);
});

test('the log is read from either end in pages, and forward never past what may still be committed', async () => {
  await register('/in');
  for (let nth = 1; nth <= 5; nth += 1) {
    nowMs += SECOND_MS;
    await tell(nth);
  }
  const nths = (rows: readonly { data: object }[]) => rows.map(({ data }) => (data as { nth: number }).nth);
  const first = await log.list(accountId, { order: 'newest', before: null }, 2);
  assert.deepEqual(nths(first.rows), [5, 4]);
  assert(first.next !== null);
  const rest = await log.list(accountId, { order: 'newest', before: first.next }, 3);
  assert.deepEqual([nths(rest.rows), rest.next], [[3, 2, 1], null]);

  nowMs = START_MS + 3 * SECOND_MS + 30 * SECOND_MS;
  const settled = await log.list(accountId, { order: 'oldest', sinceMs: START_MS }, 1);
  assert.deepEqual(nths(settled.rows), [1]);
  assert(settled.next !== null);
  const on = await log.list(accountId, { order: 'oldest', after: settled.next }, 10);
  assert.deepEqual([nths(on.rows), on.next], [[2], null], 'the third is thirty seconds old, and no older');
  nowMs += MINUTE_MS;
  assert.deepEqual(
    nths((await log.list(accountId, { order: 'oldest', sinceMs: START_MS }, 10)).rows),
    [1, 2, 3, 4, 5],
  );
  assert.deepEqual((await log.list(await newAccount(), { order: 'newest', before: null }, 10)).rows, []);
});

test('when a receiver is back, all that waits goes out at once', async () => {
  const outbox = replica();
  await register('/down');
  receiver.answers.set('/down', 500);
  for (let nth = 1; nth <= 40; nth += 1) await tell(nth);
  for (let round = 0; round < 60; round += 1) {
    await sendAll(outbox);
    nowMs += MINUTE_MS;
  }
  receiver.answers.delete('/down');
  receiver.arrived.splice(0);
  await sendAll(outbox);
  const numbers = receiver.arrived.map(({ message }) => message.data.nth);
  assert.deepEqual(
    numbers.sort((x, y) => x - y),
    Array.from({ length: 40 }, (_, at) => at + 1),
  );
});

test('a receiver that answers gets several messages at once, one that has failed a single one', async () => {
  const outbox = replica();
  await register('/slow');
  receiver.answers.set('/slow', 'silent');
  for (let nth = 1; nth <= 20; nth += 1) await tell(nth);
  await outbox.send();
  await until('eight to be asked at once', () => receiver.open() === 8);
  receiver.answers.set('/slow', 500);
  receiver.letGo('/slow', 500);
  await outbox.idle();
  assert.equal(receiver.arrived.length, 8, 'none of the others was sent after a failure');
  const [rows] = await database.sql`
    select count(*)::int as n from webhook_deliveries where attempts = 0 and next_at <= ${new Date(nowMs)}`;
  assert.equal(rows?.n, 12, 'they wait as if nobody had claimed them');
  nowMs += 5 * SECOND_MS;
  await outbox.send();
  await outbox.idle();
  assert.equal(receiver.arrived.length, 9);
});

test('a message that its receiver always refuses keeps no other from it', async () => {
  const outbox = replica({
    send: async ({ body }) =>
      JSON.parse(body).data.nth === 1
        ? { outcome: 'failed', result: '400' }
        : { outcome: 'taken', result: '204' },
  });
  const { id } = await register('/picky');
  for (let nth = 1; nth <= 30; nth += 1) await tell(nth);
  for (let round = 0; round < 40; round += 1) {
    await sendAll(outbox);
    nowMs += 5 * SECOND_MS;
  }
  const listed = await listOf(outbox, id);
  assert.equal(listed.filter(({ deliveredAt }) => deliveredAt !== null).length, 29);
  assert.equal((await webhooks.find(accountId, id))?.disabledAt, null);
});

test('an address that is changed is asked at once; who hears of more begins to count then', async () => {
  const outbox = replica();
  const { id, secret } = await register('/old');
  receiver.answers.set('/old', 500);
  await tell(1);
  await sendAll(outbox);
  assert.equal(receiver.at('/old').length, 1);
  await webhooks.change(accountId, id, { url: `${receiver.url}/new` });
  await sendAll(outbox);
  const [arrived] = receiver.at('/new');
  assert(arrived !== undefined);
  assert.deepEqual(signersOf(arrived, [secret]), [true]);
  nowMs += SECOND_MS;
  await webhooks.change(await newAccount(), id, { url: `${receiver.url}/thief` });
  assert.equal((await webhooks.find(accountId, id))?.url, `${receiver.url}/new`);

  await log.add(database.sql, accountId, 'answer.ready', {});
  const logged = async () =>
    (await log.list(accountId, { order: 'newest', before: null }, 10)).rows.map(({ type }) => type);
  assert.deepEqual(await logged(), ['refund.made'], 'nobody wanted to hear of it');
  await webhooks.change(accountId, id, { events: ['refund.made', 'answer.ready'] });
  await log.add(database.sql, accountId, 'answer.ready', {});
  assert.deepEqual(await logged(), ['answer.ready', 'refund.made']);
  assert.equal((await webhooks.find(accountId, id))?.missed, 0);
});
