/**
 * The mailbox's pages: the list of mails, and one mail as text. The contents of a mail are shown and never executed.
 */
import { escapeHtml, framedPage, type Page } from '../page-frame.ts';
import type { KeptMail } from './mails.ts';

const FRAME = {
  part: 'mailbox',
  notice: 'Mail ends here, whoever it is addressed to. None of it leaves this machine.',
  wide: true,
};

/** The list, the newest first. */
export function listPage(mails: readonly KeptMail[]): Page {
  const lines = mails.map(
    ({ id, to, subject, receivedAt }) =>
      `<li><a href="/mails/${id}">${subject === '' ? '(no subject)' : escapeHtml(subject)}` +
      `<span class="soft">to ${escapeHtml(to.join(', '))}, ${timeOf(receivedAt)}</span></a></li>`,
  );
  const body =
    '<h1>Mailbox</h1>' +
    (lines.length === 0
      ? '<p>Nothing has arrived. Reload this page to look again.</p>'
      : `<p class="soft">${lines.length === 1 ? '1 mail' : `${lines.length} mails`}, the newest first.</p>` +
        `<ul class="mails">${lines.join('')}</ul>`);
  return framedPage({ ...FRAME, title: 'Mailbox', body });
}

/** One mail. */
export function mailPage(mail: KeptMail): Page {
  const fact = (name: string, value: string) => `<dt>${name}</dt><dd>${escapeHtml(value)}</dd>`;
  const headers = mail.headers.map(({ name, value }) => fact(escapeHtml(name), value));
  const body =
    '<p><a href="/">All mails</a></p>' +
    `<h1>${mail.subject === '' ? '(no subject)' : escapeHtml(mail.subject)}</h1><dl>` +
    fact('From', mail.from) +
    fact('To', mail.to.join(', ')) +
    `<dt>Arrived</dt><dd>${timeOf(mail.receivedAt)}</dd></dl>` +
    `<pre>${escapeHtml(mail.text)}</pre>` +
    `<details><summary>Its headers, ${mail.sizeBytes} bytes in all</summary><dl>${headers.join('')}</dl></details>`;
  return framedPage({ ...FRAME, title: mail.subject || 'Mail', body });
}

/** What is shown when there is no such mail, or no such page. */
export function missingPage(): Page {
  const body = '<h1>There is no such mail</h1><p>Only the newest are kept. <a href="/">All mails</a></p>';
  return framedPage({ ...FRAME, title: 'No such mail', body });
}

function timeOf(iso: string): string {
  return `<time datetime="${iso}">${iso.slice(0, 19).replace('T', ' ')} UTC</time>`;
}
