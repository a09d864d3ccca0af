/** A mail server for tests that takes mail from whoever logs in with one of its passwords, and counts by which. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

export interface LockedMailServer {
  port: number;
  /** The passwords that it takes. */
  readonly accepted: Set<string>;
  /** How many mails came by each. */
  readonly mailsBy: Map<string, number>;
  stop(): Promise<void>;
}

export async function startLockedMailServer(user: string): Promise<LockedMailServer> {
  const accepted = new Set<string>();
  const mailsBy = new Map<string, number>();
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    allowInsecureAuth: true,
    logger: false,
    onAuth({ username, password }, _session, answer) {
      if (username === user && accepted.has(password ?? '')) answer(null, { user: password ?? '' });
      else answer(new Error('no such login'));
    },
    onData(stream, session, answer) {
      stream.resume();
      stream.on('end', () => {
        const password = String(session.user);
        mailsBy.set(password, (mailsBy.get(password) ?? 0) + 1);
        answer(null, 'taken');
      });
    },
  });
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  return {
    port: (listening.address() as AddressInfo).port,
    accepted,
    mailsBy,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
