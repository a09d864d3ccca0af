/**
 * The sandbox's mail server. It accepts every mail, delivers none, and shows them on a page. Tests read them as JSON
 * below /__control, and order faults there.
 */
import type { Socket } from 'node:net';
import Fastify, { type FastifyReply } from 'fastify';
import { SMTPServer } from 'smtp-server';
import type { Page } from '../page-frame.ts';
import { openMailFaults } from './faults.ts';
import { listPage, mailPage, missingPage } from './mailbox-page.ts';
import { openMails } from './mails.ts';

/** Every reply carries this header, so that sandbox replies can always be recognized. */
const SANDBOX_HEADER = 'x-farebox-sandbox';
const SANDBOX_PART = 'mailbox';
const HOST = '127.0.0.1';
const MAX_MAIL_BYTES = 256 * 1024;
const MAX_RECIPIENTS = 20;
const MAX_CLIENTS = 64;
const IDLE_TIMEOUT_MS = 60_000;
const MAX_BODY_BYTES = 16 * 1024;
const REQUEST_TIMEOUT_MS = 10_000;

export interface MailboxOptions {
  /** Where mails are kept; null: nowhere, for tests. */
  stateDir: string | null;
  /** Absent or 0: the system chooses. */
  smtpPort?: number;
  /** Absent or 0: the system chooses. */
  httpPort?: number;
}

export interface Mailbox {
  /** The page. */
  url: string;
  /** The mail server. */
  smtpUrl: string;
  stop(): Promise<void>;
}

/**
 * Starts the mailbox on 127.0.0.1.
 * @throws Error when a port is taken, or a saved mail cannot be read
 */
export async function startMailbox(options: MailboxOptions): Promise<Mailbox> {
  const mails = openMails(options.stateDir);
  const faults = openMailFaults();
  const sockets = new Set<Socket>();

  const smtp = new SMTPServer({
    name: 'sandbox.invalid',
    banner: 'sandbox mailbox: mail ends here',
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    size: MAX_MAIL_BYTES,
    maxRecipients: MAX_RECIPIENTS,
    maxClients: MAX_CLIENTS,
    socketTimeout: IDLE_TIMEOUT_MS,
    logger: false,
    onRcptTo(_address, _session, answer) {
      const fault = faults.take('recipient');
      if (fault === null) answer();
      else if (fault === 'refuse-for-now') answer(replyOf(451, 'Sandbox: not now, as ordered'));
      else if (fault === 'refuse-for-good') answer(replyOf(550, 'Sandbox: no such mailbox, as ordered'));
    },
    onData(stream, { envelope, remotePort }, answer) {
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => {
        if (!stream.sizeExceeded) parts.push(part);
      });
      stream.on('end', () => {
        if (stream.sizeExceeded) return answer(replyOf(552, `Sandbox: more than ${MAX_MAIL_BYTES} bytes`));
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        const to = envelope.rcptTo.map(({ address }) => address);
        mails.add(Buffer.concat(parts), { from, to }).then(
          ({ id }) => {
            const fault = faults.take('data');
            if (fault === null) return answer(null, `OK: kept by the sandbox as ${id}`);
            if (fault === 'refuse-after-data')
              return answer(replyOf(554, 'Sandbox: kept and refused, as ordered'));
            for (const socket of sockets) if (socket.remotePort === remotePort) socket.destroy();
          },
          () => answer(replyOf(554, 'Sandbox: that cannot be read as a mail, or not be kept')),
        );
      });
    },
  });
  smtp.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });

  const app = Fastify({
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    requestTimeout: REQUEST_TIMEOUT_MS,
  });
  const show = (reply: FastifyReply, { html, headers }: Page, status = 200) =>
    reply.code(status).headers(headers).send(html);
  app.addHook('onRequest', async (_request, reply) => {
    reply.header(SANDBOX_HEADER, SANDBOX_PART);
  });
  app.setNotFoundHandler((_request, reply) => show(reply, missingPage(), 404));
  app.get('/', (_request, reply) => show(reply, listPage(mails.all())));
  app.get<{ Params: { id: string } }>('/mails/:id', ({ params: { id } }, reply) => {
    const mail = mails.find(id);
    return mail === null ? show(reply, missingPage(), 404) : show(reply, mailPage(mail));
  });
  app.get('/__control/health', () => ({ status: 'ok' }));
  app.get('/__control/mails', () => ({ mails: mails.all() }));
  app.delete('/__control/mails', async () => {
    await mails.clear();
    return { mails: [] };
  });
  app.get('/__control/faults', () => ({ faults: faults.list() }));
  app.post('/__control/faults', ({ body }, reply) => {
    const fault = faults.order(body);
    if (typeof fault === 'string') return reply.code(400).send({ error: fault });
    return reply.code(201).send({ faults: faults.list() });
  });
  app.delete('/__control/faults', () => {
    faults.clear();
    return { faults: [] };
  });

  async function stopSmtp(): Promise<void> {
    const closed = new Promise<void>((resolve) => smtp.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  const smtpPort = await listen(smtp, options.smtpPort ?? 0);
  try {
    const url = await app.listen({ host: HOST, port: options.httpPort ?? 0 });
    return {
      url,
      smtpUrl: `smtp://${HOST}:${smtpPort}`,
      async stop() {
        await Promise.all([app.close(), stopSmtp()]);
      },
    };
  } catch (error) {
    await stopSmtp();
    throw error;
  }
}

async function listen(smtp: SMTPServer, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    smtp.once('error', reject);
    smtp.listen(port, HOST, () => {
      smtp.off('error', reject);
      // A connection that broke does not affect any other.
      smtp.on('error', () => undefined);
      resolve();
    });
  });
  const address = smtp.server.address();
  if (address === null || typeof address === 'string') throw new Error('the mailbox has no port');
  return address.port;
}

function replyOf(responseCode: number, message: string): Error & { responseCode: number } {
  return Object.assign(new Error(message), { responseCode });
}
