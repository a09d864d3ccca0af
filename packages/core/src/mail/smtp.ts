/** The way to the mail server: one mail, one connection, one answer. Its library is loaded with the first mail. */

import { createRequire } from 'node:module';
import { StartError } from '@farebox/process/start-error';

export interface SmtpSettings {
  /** `smtp://[user:password@]host[:port]`, or `smtps://` for TLS from the start. */
  smtpUrl(): string;
  /** The sender of the mails. */
  from: { name: string; address: string };
  /** How long one mail may take, from the connection to the last answer. */
  timeoutMs: number;
}

/** A mail for the mail server. */
export interface Letter {
  id: string;
  to: string;
  subject: string;
  text: string;
  writtenAt: Date;
}

/**
 * The outcome of a mail. `reason` is of our own words and the server's codes: what servers say repeats addresses.
 * - accepted: the mail server has it.
 * - refused: the mail server will not have this mail, however often it is asked.
 * - failed: not sent now, or the outcome is unknown.
 */
export type Delivery = { kind: 'accepted' } | { kind: 'refused' | 'failed'; reason: string };

/** Commands whose permanent refusal is about this mail. One of the sender or the login is the operator's to mend. */
const ABOUT_THIS_MAIL = ['RCPT TO', 'DATA'];
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * Opens the way to a mail server; nothing is sent or looked up yet. Where the server offers STARTTLS it is used, and a
 * password is sent over TLS only, unless the server is on this machine.
 *
 * @throws StartError when the address of the server cannot be read
 */
export function connectSmtp(settings: SmtpSettings): { send(letter: Letter): Promise<Delivery> } {
  const sender = settings.from;
  const domain = sender.address.slice(sender.address.lastIndexOf('@') + 1);
  // An address that cannot be read is told at the start.
  connectionOf(settings);
  let known: { url: string; transport: ReturnType<typeof transportTo> } | null = null;
  const transport = () => {
    // The password may be another one by now.
    const url = settings.smtpUrl();
    if (url !== known?.url) known = { url, transport: transportTo(settings) };
    return known.transport;
  };

  return {
    async send({ id, to, subject, text, writtenAt }) {
      const signal = AbortSignal.timeout(settings.timeoutMs);
      try {
        await transport().sendMail({
          from: sender,
          // As an object: a text would be read as a list of addresses.
          to: { name: '', address: to },
          envelope: { from: sender.address, to: [to] },
          subject,
          text,
          date: writtenAt,
          // The same for every attempt, so that who gets it twice can tell (RFC 5322, 3.6.4).
          messageId: `<${id}@${domain}>`,
          // So that no machine answers it (RFC 3834).
          headers: { 'Auto-Submitted': 'auto-generated' },
          xMailer: false,
          disableFileAccess: true,
          disableUrlAccess: true,
          signal,
        });
        return { kind: 'accepted' };
      } catch (error) {
        return signal.aborted ? { kind: 'failed', reason: 'timeout' } : failureOf(error);
      }
    },
  };
}

function transportTo(settings: SmtpSettings) {
  const { createTransport }: typeof import('nodemailer') = createRequire(import.meta.url)('nodemailer');
  return createTransport(connectionOf(settings));
}

function connectionOf(settings: SmtpSettings) {
  const { timeoutMs } = settings;
  const smtpUrl = settings.smtpUrl();
  const url = URL.canParse(smtpUrl) ? new URL(smtpUrl) : null;
  if (url === null || !/^smtps?:$/.test(url.protocol) || url.hostname === '') {
    throw new StartError('SMTP_URL: must be smtp://user:password@host:port, or smtps://');
  }
  const { protocol, hostname, port, username, password } = url;
  const secure = protocol === 'smtps:';
  const auth =
    username === ''
      ? {}
      : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } };
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || (secure ? 465 : 587),
    secure,
    ...auth,
    requireTLS: !secure && username !== '' && !LOOPBACK.test(hostname),
    dnsTimeout: timeoutMs,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    socketCloseTimeout: 0,
  };
}

function failureOf(error: unknown): Delivery {
  const facts = new Map<string, unknown>(error instanceof Error ? Object.entries(error) : []);
  const code = facts.get('code');
  const command = facts.get('command');
  const reply = facts.get('responseCode');
  const reason = [code, command, reply].filter((fact) => fact !== undefined && fact !== false).join(' ');
  const permanent = typeof reply === 'number' && reply >= 500 && reply <= 599;
  const aboutThisMail = typeof command === 'string' && ABOUT_THIS_MAIL.includes(command);
  return { kind: permanent && aboutThisMail ? 'refused' : 'failed', reason: reason || 'unknown' };
}
