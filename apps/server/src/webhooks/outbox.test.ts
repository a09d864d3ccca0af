/** The outbox against a real database and receivers on real sockets; the clock is the tests' own. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Webhook as Verifier } from 'standardwebhooks';
import { openTestDatabase, type TestDatabase } from '../../test/database.fixture.ts';
import { type Arrived, type Receiver, startReceiver } from '../../test/webhooks.fixture.ts';
import { createKeys } from '../keys/keys.ts';
import { grantKey } from '../keys/trial.ts';
import { createLedger } from '../ledger/ledger.ts';
import type { Mail } from '../mail/mailer.ts';
import { createAnswerSeal } from '../paid-call/sealed-answer.ts';
import { secretsOf } from '../secrets/secrets.ts';
import { createOutbox, type Outbox, type OutboxReport } from './outbox.ts';
import { createSender, type Sender } from './send.ts';
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
let accountId: bigint;
let nowMs = START_MS;
let reports: OutboxReport[] = [];
let mails: Mail[] = [];
const closing: (() => Promise<unknown>)[] = [];

before(async () => {
  database = await openTestDatabase();
  receiver = await startReceiver();
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
    ...{ sender: sender ?? own, seal, baseUrl: 'https://farebox.test', nowMs: () => nowMs },
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
    ...{
      url: receiver.url + path,
      events: ['refund.made'],
      lowBelowMicros: null,
      email: 'owner@example.org',
    },
  });
  assert(made !== null);
  return { id: made.webhook.id, secret: made.secret };
}

const tell = (outbox: Outbox, nth: number, account = accountId) =>
  outbox.tell(database.sql, account, 'refund.made', { nth });

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
      await outbox.tell(transaction, accountId, 'refund.made', { nth: 0 });
      throw new Error('undone');
    }),
  );
  await outbox.tell(database.sql, accountId, 'balance.low', { not: 'wanted' });
  await tell(outbox, 1);
  await tell(outbox, 9, await newAccount());
  // The library looks at the clock of the machine.
  nowMs = Date.now();
  await sendAll(outbox);
  const [arrived, ...others] = receiver.arrived;
  assert(arrived !== undefined && others.length === 0, String(others.length));
  assert.deepEqual(arrived.message, {
    ...{ type: 'refund.made', timestamp: new Date(START_MS).toISOString(), data: { nth: 1 } },
  });
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
  assert(second !== null && second !== secret);
  await tell(outbox, 1);
  await sendAll(outbox);
  nowMs += HOUR_MS;
  await tell(outbox, 2);
  await sendAll(outbox);
  const third = await webhooks.rotate(accountId, id, 0);
  assert(third !== null);
  await tell(outbox, 3);
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

/** Whose signatures a message has, whatever the time is. */
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
      ...{ seal: createAnswerSeal(secrets), currentId: secrets.current.id, nowMs: () => nowMs },
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
    update webhooks set before_until = ${new Date(nowMs + HOUR_MS)},
      sealed_secret_before = ${createAnswerSeal(lost).seal(`webhook:${id}`, secret)} where id = ${id}`;
  const outbox = replica();
  await tell(outbox, 1);
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
  await tell(outbox, 1);
  await tell(outbox, 2);
  const count = async () => (await database.sql`select count(*)::int as n from webhook_deliveries`)[0]?.n;
  assert.equal(await count(), 1_500);
  nowMs += DAY_MS;
  await tell(outbox, 3);
  assert.equal(await count(), 1_501);
});

test('a webhook that is being deleted makes nobody wait who tells of something, nor fail', async () => {
  const outbox = replica();
  const { id } = await register('/in');
  await database.sql.begin(async (deleting) => {
    await deleting`delete from webhooks where id = ${id}`;
    await database.sql.begin(async (telling) => {
      await telling`set local lock_timeout = '5s'`;
      await outbox.tell(telling, accountId, 'refund.made', { nth: 1 });
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
    await tell(outbox, 1);
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
  assert.equal((await outbox.list(id))[0]?.lastResult, '204');
});

test('what fails is sent again later and later with the same id, ten times in all, and can be asked for anew', async () => {
  const outbox = replica();
  const { id } = await register('/down');
  receiver.answers.set('/down', 500);
  await tell(outbox, 1);
  await sendAll(outbox);
  // A success in between, so that it is not switched off.
  const answerOnce = async () => {
    receiver.answers.delete('/down');
    const [waiting] = await outbox.list(id);
    await outbox.test(id);
    await sendAll(outbox);
    receiver.answers.set('/down', 500);
    return waiting;
  };
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
  nowMs += MINUTE_MS;
  await answerOnce();
  for (const pauseMs of [20 * HOUR_MS, 24 * HOUR_MS]) {
    nowMs += pauseMs;
    await sendAll(outbox);
  }
  const [, delivery] = await outbox.list(id);
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
  assert.equal((await outbox.list(id)).find((each) => each.id === delivery.id)?.lastResult, '204');
});

test('a receiver that takes nothing for three days is switched off, with a mail; one that is gone at once', async () => {
  const outbox = replica();
  const { id } = await register('/down');
  const { id: goneId } = await register('/gone');
  receiver.answers.set('/down', 503);
  receiver.answers.set('/gone', 410);
  await tell(outbox, 1);
  await sendAll(outbox);
  assert.equal((await webhooks.find(accountId, goneId))?.disabledBecause, 'gone');
  for (let hours = 0; hours < 80; hours += 1) {
    nowMs += HOUR_MS;
    if (hours % 20 === 0) await tell(outbox, hours);
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
  await tell(outbox, 99);
  nowMs += DAY_MS;
  await sendAll(outbox);
  assert.equal(receiver.arrived.length, seen, 'nothing more is sent there');
  const waiting = await database.sql`select 1 from webhook_deliveries where next_at is not null`;
  assert.equal(waiting.length, 0);

  receiver.answers.delete('/down');
  await webhooks.switchTo(accountId, id, true);
  await tell(outbox, 100);
  await sendAll(outbox);
  assert.equal(receiver.arrived.at(-1)?.message.data.nth, 100);
});

test('two replicas at once send each message once, and each receiver one at a time', async () => {
  const [one, two] = [replica(), replica()];
  for (const path of ['/a', '/b', '/c']) await register(path);
  for (let nth = 1; nth <= 15; nth += 1) await tell(one, nth);
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
  await tell(outbox, 1);
  await outbox.send();
  await until('the silent ones to be asked', () => receiver.arrived.length === 5);
  for (let nth = 1; nth <= 20; nth += 1) await tell(outbox, nth, other);
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
  await tell(other, 1);
  await dying.send();
  await until('the first copy', () => receiver.arrived.length === 1);
  assert.equal(await other.send(), 0, 'it is leased');
  nowMs += MINUTE_MS;
  await sendAll(other);
  assert.equal(receiver.arrived.length, 2);
  assert.equal(receiver.arrived[0]?.id, receiver.arrived[1]?.id);
  const [delivery] = await other.list(id);
  assert.deepEqual([delivery?.attempts, delivery?.lastResult], [2, '204']);
  await real.close();

  // One whose every attempt was cut short is not sent for ever.
  await tell(other, 2);
  await database.sql`update webhook_deliveries set attempts = 10 where next_at is not null`;
  await sendAll(other);
  assert.equal((await other.list(id))[0]?.lastResult, 'no attempt ended');
});

test('who comes back too late changes nothing; what was taken, was taken', async () => {
  const { id } = await register('/in');
  const first = Promise.withResolvers<{ outcome: 'failed'; result: string }>();
  const late = replica({ send: () => first.promise });
  const other = replica();
  await tell(other, 1);
  await late.send();
  nowMs += MINUTE_MS;
  await sendAll(other);
  first.resolve({ outcome: 'failed', result: 'timeout' });
  await late.idle();
  const [delivery] = await other.list(id);
  assert.deepEqual([delivery?.attempts, delivery?.lastResult, delivery?.nextAt], [2, '204', null]);
  assert.equal((await webhooks.find(accountId, id))?.failingSince, null);
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
  await tell(outbox, 1);
  assert.equal(await outbox.test(id), null);
  const [waiting] = await database.sql`select count(*)::int as n from webhook_deliveries`;
  assert.equal(waiting?.n, 1_000);
  nowMs += 30 * DAY_MS;
  assert.equal(await outbox.forget(), 0);
  nowMs += 1;
  assert.equal(await outbox.forget(), 1_000);

  await database.sql`update api_keys set status = 'revoked' where account_id = ${String(accountId)}`;
  await tell(outbox, 2);
  assert.equal((await outbox.list(id)).length, 0);
});
