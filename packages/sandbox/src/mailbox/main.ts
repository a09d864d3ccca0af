/**
 * Runs the mailbox as a process of its own. From the environment: MAILBOX_SMTP_PORT (4025 if absent), MAILBOX_HTTP_PORT
 * (4024 if absent), MAILBOX_STATE_DIR (nothing is kept if absent).
 */
import { startMailbox } from './mailbox.ts';

const DEFAULT_SMTP_PORT = 4025;
const DEFAULT_HTTP_PORT = 4024;

const { MAILBOX_SMTP_PORT, MAILBOX_HTTP_PORT, MAILBOX_STATE_DIR } = process.env;
const mailbox = await startMailbox({
  stateDir: MAILBOX_STATE_DIR || null,
  smtpPort: Number(MAILBOX_SMTP_PORT || DEFAULT_SMTP_PORT),
  httpPort: Number(MAILBOX_HTTP_PORT || DEFAULT_HTTP_PORT),
});
process.stdout.write(`sandbox mailbox at ${mailbox.url}, mail to ${mailbox.smtpUrl}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void mailbox.stop().finally(() => process.exit(0)));
}
