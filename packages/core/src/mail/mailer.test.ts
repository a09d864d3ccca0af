/** The outbox against a real database and the sandbox's mailbox over real SMTP; the clock is the tests' own. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { StartError } from '../../../process/src/start-error.ts';
import { type Mailbox, startMailbox } from '../../../sandbox/src/mailbox/mailbox.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import { isMailAddress } from './mail-text.ts';
import { createMailer, type Mail, type Mailer, type MailReport } from './mailer.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const START_MS = Date.UTC(2026, 2, 4, 5, 6, 7);
const SIGNATURE = '-- \nFarebox\nhttps://farebox.test';
const FROM = { name: 'Farebox', address: 'farebox@example.com' };

let database: TestDatabase;
let mailbox: Mailbox;
let nowMs = START_MS;
let reports: MailReport[] = [];
const mailers: Mailer[] = [];
before(async () => {
  database = await openTestDatabase();
  mailbox = await startMailbox({ stateDir: null });
});
after(async () => {
  await mailbox.stop();
  await database.close();
});
beforeEach(async () => {
  nowMs = START_MS;
  reports = [];
  await database.sql`truncate mails`;
  for (const path of ['mails', 'faults'])
    await fetch(`${mailbox.url}/__control/${path}`, { method: 'DELETE' });
});
afterEach(async () => {
  for (const mailer of mailers.splice(0)) await mailer.close();
  // Whatever happened: no report, and so no log line, holds an address.
  assert(!JSON.stringify(reports).includes('@'), JSON.stringify(reports));
});

/** A replica. */
function replica(timeoutMs = 10_000, smtpUrl = mailbox.smtpUrl): Mailer {
  const mailer = createMailer(database.sql, {
    smtp: { smtpUrl: () => smtpUrl, from: FROM, timeoutMs },
    signature: SIGNATURE,
    retentionDays: 30,
    nowMs: () => nowMs,
    report: (report) => void reports.push(report),
  });
  mailers.push(mailer);
  return mailer;
}

function mailFor(cause: string, more: Partial<Mail> = {}): Mail {
  const id = transferIdFor(`mail of ${cause}`);
  return { id, to: 'owner@example.org', subject: `About ${cause}`, text: `It was ${cause}.`, ...more };
}

const enqueue = (mailer: Mailer, mail: Mail) =>
  database.sql.begin((transaction) => mailer.enqueue(transaction, mail));

interface Arrived {
  from: string;
  to: string[];
  subject: string;
  messageId: string;
  date: string;
  text: string;
  headers: { name: string; value: string }[];
}

async function arrived(): Promise<Arrived[]> {
  const { mails }: { mails: Arrived[] } = JSON.parse(
    await (await fetch(`${mailbox.url}/__control/mails`)).text(),
  );
  return mails;
}

async function order(fault: string, times = 1): Promise<void> {
  const reply = await fetch(`${mailbox.url}/__control/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ fault, times }),
  });
  assert.equal(reply.status, 201);
}

const outcomes = () => reports.map(({ outcome }) => outcome);

test('a mail goes out once what it tells of is committed, once for a cause, as it was written', async () => {
  const mailer = replica();
  const undone = database.sql.begin(async (transaction) => {
    await mailer.enqueue(transaction, mailFor('a recharge'));
    throw new Error('undone');
  });
  await assert.rejects(undone, /undone/);
  assert.equal(await mailer.send(), 0);

  const text = `${'Grüße: '.repeat(40)}\n.\nFrom here on\n`;
  const mail = mailFor('a recharge', { subject: 'Nachgefüllt: 10 USD', text });
  await Promise.all([enqueue(mailer, mail), enqueue(replica(), mail)]);
  await enqueue(replica(), { ...mail, subject: 'the same cause in other words' });
  nowMs += 5 * MINUTE_MS;
  assert.equal(await mailer.send(), 1);
  assert.equal(await mailer.send(), 0);
  const [sent, ...others] = await arrived();
  assert(sent !== undefined && others.length === 0);
  assert.deepEqual([sent.from, sent.to], ['farebox@example.com', ['owner@example.org']]);
  assert.equal(sent.subject, 'Nachgefüllt: 10 USD');
  assert.equal(sent.text.trimEnd(), `${text}\n${SIGNATURE}`);
  assert.equal(sent.messageId, `<${mail.id}@example.com>`);
  assert.equal(sent.date, '2026-03-04T05:06:07.000Z', 'when it happened, not when it was sent');
  const header = (name: string) => sent.headers.find((one) => one.name === name)?.value;
  assert.equal(header('From'), 'Farebox <farebox@example.com>');
  assert.equal(header('Auto-Submitted'), 'auto-generated');
  assert.match(header('Content-Type') ?? '', /^text\/plain/);
  assert.deepEqual(reports, [{ outcome: 'sent', id: mail.id, attempts: 1 }]);
});

test('two replicas at once send each mail once', async () => {
  const [one, two] = [replica(), replica()];
  for (let number = 1; number <= 40; number += 1) await enqueue(one, mailFor(`number ${number}`));
  const [byOne, byTwo] = await Promise.all([one.send(), two.send()]);
  assert.equal(byOne + byTwo, 40);
  const ids = (await arrived()).map(({ messageId }) => messageId);
  assert.equal(ids.length, 40);
  assert.equal(new Set(ids).size, 40);
});

test('what is refused for now is tried again later and later, eight times in all, and then given up', async () => {
  const mailer = replica();
  const { id, ...rest } = mailFor('a dispute');
  await enqueue(mailer, { id, ...rest });
  await order('refuse-for-now', 8);
  assert.equal(await mailer.send(), 0);
  for (const minutes of [1, 3, 9, 27, 81, 243, 360]) {
    const seen = reports.length;
    nowMs += minutes * MINUTE_MS - 1;
    await mailer.send();
    assert.equal(reports.length, seen, `nothing before ${minutes} minutes`);
    nowMs += 1;
    await mailer.send();
    assert.equal(reports.length, seen + 1, `again after ${minutes} minutes`);
  }
  assert.deepEqual(outcomes(), [...Array(7).fill('failed'), 'given-up']);
  assert.deepEqual(reports.at(-1), {
    outcome: 'given-up',
    id,
    attempts: 8,
    reason: 'EENVELOPE RCPT TO 451',
  });
  nowMs += DAY_MS;
  assert.equal(await mailer.send(), 0);
  assert.equal(reports.length, 8);

  await enqueue(mailer, mailFor('another'));
  await order('refuse-for-now');
  await mailer.send();
  nowMs += MINUTE_MS;
  assert.equal(await mailer.send(), 1, 'what is taken the second time is sent');
});

test('what is refused for good is given up at once; a mail server that is not there is waited for', async () => {
  const mailer = replica();
  await enqueue(mailer, mailFor('a refund'));
  await order('refuse-for-good');
  assert.equal(await mailer.send(), 0);
  assert.deepEqual(outcomes(), ['given-up']);

  const gone = await startMailbox({ stateDir: null });
  await gone.stop();
  await enqueue(mailer, mailFor('an outage'));
  assert.equal(await replica(10_000, gone.smtpUrl).send(), 0);
  assert.deepEqual(outcomes(), ['given-up', 'failed']);
  nowMs += MINUTE_MS;
  assert.equal(await mailer.send(), 1);
});

test('a reply that is lost means a second copy, which can be told; a server that never answers is left', async () => {
  const mailer = replica(400);
  const { id, ...rest } = mailFor('a freeze');
  await enqueue(mailer, { id, ...rest });
  await order('drop-after-data');
  assert.equal(await mailer.send(), 0, 'nobody can say that it was sent');
  nowMs += MINUTE_MS;
  await order('never-answer');
  assert.equal(await mailer.send(), 0);
  assert.equal(reports.at(-1)?.reason, 'timeout');
  nowMs += 3 * MINUTE_MS;
  assert.equal(await mailer.send(), 1);
  assert.deepEqual(
    (await arrived()).map(({ messageId, date }) => [messageId, date]),
    Array(2).fill([`<${id}@example.com>`, '2026-03-04T05:06:07.000Z']),
  );
});

test('a mail server that takes a mail and says no: it is given up, and no second copy is sent', async () => {
  const mailer = replica();
  const { id, ...rest } = mailFor('a server that says no');
  await enqueue(mailer, { id, ...rest });
  await order('refuse-after-data');
  assert.equal(await mailer.send(), 0);
  assert.equal(reports.at(-1)?.outcome, 'given-up');
  nowMs += 60 * MINUTE_MS;
  assert.equal(await mailer.send(), 0);
  assert.deepEqual(
    (await arrived()).map(({ messageId }) => messageId),
    [`<${id}@example.com>`],
  );
});

test('who is at a mail has it to themselves for a while; who comes back too late changes nothing', async () => {
  const [stuck, other] = [replica(1_500), replica()];
  const { id, ...rest } = mailFor('a slow server');
  await enqueue(other, { id, ...rest });
  await order('never-answer');
  const hanging = stuck.send();
  for (let claimed = 0; claimed === 0; await pause(5)) {
    const [row] = await database.sql<{ attempts: number }[]>`select attempts from mails`;
    claimed = row?.attempts ?? 0;
  }
  assert.equal(await other.send(), 0);
  nowMs += 2 * MINUTE_MS + 1_500;
  assert.equal(await other.send(), 1, 'what was claimed by somebody who died is sent');
  assert.equal(await hanging, 0);
  const [row] = await database.sql`
    select attempts, next_at, sent_at is not null as sent, given_up_at from mails where id = ${id}`;
  assert.deepEqual({ ...row }, { attempts: 2, next_at: null, sent: true, given_up_at: null });
  assert.equal((await arrived()).length, 1);

  // One whose every attempt was cut short by a crash is not tried for ever.
  await enqueue(other, mailFor('a crash'));
  await database.sql`update mails set attempts = 8 where sent_at is null`;
  assert.equal(await other.send(), 0);
  assert.equal(reports.at(-1)?.outcome, 'given-up');
});

test('nothing that is put into a mail becomes another header, another recipient or a secret told', async () => {
  const mailer = replica();
  const key = `fbx_live_${'0123456789abcdef'.repeat(4)}`;
  const notAddresses = [
    ...['', 'owner', 'a@b', 'owner@example.org\r\nBcc: victim@example.net', 'owner@example.org\nX: y'],
    ...['owner@example.org, victim@example.net', 'Owner <owner@example.org>', 'owner@example.org\u0000'],
    ...['"a b"@example.org', '<owner@example.org>', ' owner@example.org', 'owner@example.org> SIZE=1'],
    `${'x'.repeat(250)}@example.org`,
  ];
  for (const [index, to] of notAddresses.entries()) {
    assert.equal(isMailAddress(to), false, to);
    await enqueue(mailer, mailFor(`case ${index}`, { to }));
  }
  assert.equal(await mailer.send(), 0);
  assert.equal((await database.sql`select 1 from mails`).length, 0);
  assert.equal(reports.length, notAddresses.length);

  const breaks = ['\r\n', '\n', '\r', '\0', '\u2028', '\v', '\x85'];
  await enqueue(
    mailer,
    mailFor('everything at once', {
      to: "o'hara+tag@example.org",
      subject: `Key${breaks.map((each) => `${each}Bcc: v@example.net`).join('')} \u202eesrever ${key} =?utf-8?q?x=0D=0ABcc:_v@example.net?= ${'long '.repeat(100)}`,
      text: `Key ${key} (shown as ${key.slice(0, 12)}), https://farebox.test/done?token=s3cret&a=1\0\r\n.\r\nQUIT\r\n\ud800`,
    }),
  );
  assert.equal(await mailer.send(), 1);
  const [mail] = await arrived();
  assert(mail !== undefined);
  assert.deepEqual(mail.to, ["o'hara+tag@example.org"]);
  assert.deepEqual(mail.headers.map(({ name }) => name.toLowerCase()).sort(), [
    ...['auto-submitted', 'content-transfer-encoding', 'content-type', 'date', 'from', 'message-id'],
    ...['mime-version', 'subject', 'to'],
  ]);
  assert.match(mail.subject, /^Key( Bcc: v@example\.net){7} esrever fbx_live_012… =\?utf-8\?q\?x/);
  assert(!/[\p{Cc}\u202e]/u.test(mail.subject) && mail.subject.length <= 200);
  assert.equal(
    mail.text.trimEnd(),
    'Key fbx_live_012… (shown as fbx_live_012), https://farebox.test/done?token=…&a=1\n.\nQUIT\n\ufffd\n' +
      SIGNATURE,
  );
  assert(!JSON.stringify(mail).includes('3456789abcdef'));
});

test('without a mail server nothing is written down; what is old is forgotten', async () => {
  const silent = createMailer(database.sql, {
    smtp: null,
    signature: SIGNATURE,
    retentionDays: 30,
    nowMs: () => nowMs,
    report: (report) => void reports.push(report),
  });
  await enqueue(silent, mailFor('nothing'));
  assert.equal(await silent.send(), 0);
  assert.equal((await database.sql`select 1 from mails`).length, 0);

  const mailer = replica();
  await enqueue(mailer, mailFor('the first'));
  await mailer.send();
  nowMs += DAY_MS;
  await enqueue(mailer, mailFor('the second'));
  nowMs += 29 * DAY_MS;
  assert.equal(await silent.forget(), 0);
  nowMs += 1;
  assert.equal(await silent.forget(), 1);
  await mailer.close();
  assert.equal(await mailer.send(), 0, 'nothing begins after the end');
  assert.equal((await database.sql`select 1 from mails where sent_at is null`).length, 1);
});

test('the address of a server is read, or said to be wrong', () => {
  for (const smtpUrl of ['https://example.com', 'mail.example.com:25']) {
    const smtp = { smtpUrl: () => smtpUrl, from: FROM, timeoutMs: 1 };
    const parts = { smtp, signature: '', retentionDays: 30, nowMs: Date.now, report() {} };
    assert.throws(() => createMailer(database.sql, parts), StartError);
  }
});
