/** The mailbox over real SMTP, spoken by hand, and over HTTP: what it keeps, what it shows, and its faults. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { type Mailbox, startMailbox } from './mailbox.ts';
import type { KeptMail } from './mails.ts';

let folder: string;
let mailbox: Mailbox;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-mailbox-'));
  mailbox = await startMailbox({ stateDir: folder });
});
after(async () => {
  await mailbox.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  await fetch(`${mailbox.url}/__control/mails`, { method: 'DELETE' });
});

/** Says all lines, each after the answer to the one before, and returns the answers. */
async function say(lines: readonly string[]): Promise<string[]> {
  const { hostname, port } = new URL(mailbox.smtpUrl);
  const socket = connect(Number(port), hostname);
  const answers: string[] = [];
  const left = [...lines];
  let heard = '';
  socket.on('data', (chunk) => {
    heard += chunk;
    if (!/^\d{3} .*\r\n$/m.test(heard)) return;
    answers.push(heard.trim());
    heard = '';
    const next = left.shift();
    if (next === undefined) socket.end();
    else socket.write(`${next}\r\n`);
  });
  await once(socket, 'close');
  return answers;
}

function mailTo(to: string, content: readonly string[]): string[] {
  return [
    'EHLO tester',
    'MAIL FROM:<sender@example.com>',
    `RCPT TO:<${to}>`,
    'DATA',
    [...content, '.'].join('\r\n'),
  ];
}

async function kept(): Promise<KeptMail[]> {
  const { mails }: { mails: KeptMail[] } = JSON.parse(await textOf('/__control/mails'));
  return mails;
}

async function textOf(path: string): Promise<string> {
  const reply = await fetch(mailbox.url + path);
  assert.equal(reply.headers.get('x-farebox-sandbox'), 'mailbox');
  return await reply.text();
}

async function order(fault: object): Promise<number> {
  const reply = await fetch(`${mailbox.url}/__control/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(fault),
  });
  return reply.status;
}

test('a mail is kept as it came, and shown as text on a page that can load and run nothing', async () => {
  const answers = await say(
    mailTo('reader@example.org', [
      'From: Somebody <else@example.com>',
      'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe_=3Cscript=3Ealert(1)=3C/script=3E?=',
      'Message-ID: <one@example.com>',
      'Date: Wed, 04 Mar 2026 05:06:07 +0000',
      'X-Mark: "><img src=x>',
      'Content-Type: text/html; charset=utf-8',
      '',
      '<b>bold</b> &lt;img src=x onerror=alert(1)&gt;',
    ]),
  );
  assert.match(answers[0] ?? '', /^220 .*sandbox mailbox/);
  assert.match(answers.at(-1) ?? '', /^250 OK: kept by the sandbox/);

  const [mail, ...others] = await kept();
  assert(mail !== undefined && others.length === 0);
  assert.equal(mail.from, 'sender@example.com', 'who the server was told sends it');
  assert.deepEqual(mail.to, ['reader@example.org']);
  assert.equal(mail.subject, 'Grüße <script>alert(1)</script>');
  assert.equal(mail.messageId, '<one@example.com>');
  assert.equal(mail.date, '2026-03-04T05:06:07.000Z');

  const list = await textOf('/');
  assert(list.includes(`href="/mails/${mail.id}"`) && list.includes('reader@example.org'));
  const reply = await fetch(`${mailbox.url}/mails/${mail.id}`);
  const page = await reply.text();
  for (const html of [list, page]) {
    assert(html.includes('Grüße &lt;script&gt;alert(1)&lt;/script&gt;'));
    assert(!/<(?:script|img|b)\b/.test(html), html);
    assert(html.includes('<html lang="en">') && html.includes('width=device-width'));
  }
  assert(page.includes('else@example.com'), 'its own From stands among its headers');
  const style = /<style>(.*)<\/style>/s.exec(page)?.[1] ?? '';
  const policy = reply.headers.get('content-security-policy') ?? '';
  const hash = createHash('sha256').update(style).digest('base64');
  assert(policy.includes("default-src 'none'") && policy.includes(`style-src 'sha256-${hash}'`), policy);
  assert(!policy.includes('script-src'));
  assert.equal((await fetch(`${mailbox.url}/mails/999999999`)).status, 404);
});

test('the newest 200 are kept, through a restart too, and what is too large is not', async () => {
  const dialogue = (number: number) =>
    mailTo('reader@example.org', [`Subject: ${number}`, '', 'text']).slice(1);
  for (let number = 1; number <= 203; number += 29) {
    const some = Array.from({ length: Math.min(29, 204 - number) }, (_, index) => dialogue(number + index));
    await say(['EHLO tester', ...some.flat()]);
  }
  const before = await kept();
  assert.deepEqual(
    before.map(({ subject }) => Number(subject)),
    Array.from({ length: 200 }, (_, index) => 203 - index),
  );
  assert.equal(readdirSync(folder).length, 200);
  await mailbox.stop();
  mailbox = await startMailbox({ stateDir: folder });
  assert.deepEqual(await kept(), before);
  assert.equal((await say(dialogueOf(204))).length, 6);
  assert.deepEqual(
    (await kept()).map(({ subject }) => subject).slice(0, 2),
    ['204', '203'],
    'it goes on where it was',
  );

  const large = await say(mailTo('reader@example.org', ['Subject: large', '', 'x'.repeat(300_000)]));
  assert.match(large.at(-1) ?? '', /^552 /);
  const nested = Array.from({ length: 30 }, (_, depth) => [
    `Content-Type: multipart/mixed; boundary=b${depth}`,
    '',
    `--b${depth}`,
  ]);
  assert.match((await say(mailTo('reader@example.org', nested.flat()))).at(-1) ?? '', /^554 Sandbox/);
  assert.equal((await kept()).length, 200);

  function dialogueOf(number: number): string[] {
    return ['EHLO tester', ...dialogue(number)];
  }
});

test('faults strike in the order in which they were ordered', async () => {
  const mail = mailTo('reader@example.org', ['Subject: it', '', 'text']);
  assert.equal(await order({ fault: 'no-such' }), 400);
  assert.equal(await order({ fault: 'refuse-for-now', times: 0 }), 400);
  for (const fault of ['refuse-for-now', 'drop-after-data', 'refuse-for-good']) {
    assert.equal(await order({ fault }), 201);
  }
  assert.match((await say(mail.slice(0, 3))).at(-1) ?? '', /^451 Sandbox/);
  assert.equal((await kept()).length, 0);
  assert.match((await say(mail)).at(-1) ?? '', /^354 /, 'nothing is said after the mail');
  assert.equal((await kept()).length, 1);
  assert.match((await say(mail.slice(0, 3))).at(-1) ?? '', /^550 Sandbox/);
  assert.match((await say(mail)).at(-1) ?? '', /^250 OK/);
  assert.equal((await kept()).length, 2);
});
