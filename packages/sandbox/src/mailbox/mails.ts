/** The mails that the mailbox keeps: the newest 200, each in a file of its own, so that a restart keeps them. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import PostalMime from 'postal-mime';

const MAX_MAILS = 200;
const MAX_HEADERS = 100;
const MAX_HEADER_CHARACTERS = 2_000;
const MAX_TEXT_CHARACTERS = 64_000;
const MAX_HEADER_BYTES = 64 * 1024;
const MAX_NESTING = 20;
const FILE = /^\d{9}\.json$/;

export interface KeptMail {
  /** Grows with every mail. */
  id: string;
  receivedAt: string;
  /** Who the mail server was told sends it, and to whom: the envelope, not what the mail says. */
  from: string;
  to: string[];
  subject: string;
  messageId: string | null;
  /** The mail's own date. */
  date: string | null;
  headers: { name: string; value: string }[];
  /** Its text, or what is readable of its HTML. */
  text: string;
  sizeBytes: number;
}

export interface Mails {
  /** The newest first. */
  all(): readonly KeptMail[];
  find(id: string): KeptMail | null;
  /**
   * Keeps a mail; it is in its file when this resolves.
   * @throws Error when it cannot be read as a mail
   */
  add(raw: Uint8Array, envelope: { from: string; to: string[] }): Promise<KeptMail>;
  clear(): Promise<void>;
}

/**
 * Opens the mails of a folder, or none that are never written when it is null.
 * @throws Error when a file there cannot be read
 */
export function openMails(folder: string | null): Mails {
  if (folder !== null) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const files = folder === null ? [] : readdirSync(folder).filter((name) => FILE.test(name));
  /** The oldest first. */
  let mails: KeptMail[] = files
    .sort()
    .map((name): KeptMail => JSON.parse(readFileSync(join(folder ?? '', name), 'utf8')));
  let last = Number(mails.at(-1)?.id ?? 0);
  const fileOf = (id: string) => (folder === null ? null : join(folder, `${id}.json`));

  async function forget(forgotten: readonly KeptMail[]): Promise<void> {
    mails = mails.filter((mail) => !forgotten.includes(mail));
    for (const { id } of forgotten) {
      const file = fileOf(id);
      if (file !== null) await rm(file, { force: true });
    }
  }

  return {
    all: () => mails.toReversed(),
    find: (id) => mails.find((mail) => mail.id === id) ?? null,
    async add(raw, { from, to }) {
      const parsed = await PostalMime.parse(raw, {
        maxHeadersSize: MAX_HEADER_BYTES,
        maxNestingDepth: MAX_NESTING,
        maxRfc822NestingDepth: 0,
      });
      last += 1;
      const mail: KeptMail = {
        id: String(last).padStart(9, '0'),
        receivedAt: new Date().toISOString(),
        from,
        to,
        subject: (parsed.subject ?? '').slice(0, MAX_HEADER_CHARACTERS),
        messageId: parsed.messageId?.slice(0, MAX_HEADER_CHARACTERS) ?? null,
        date: parsed.date?.slice(0, MAX_HEADER_CHARACTERS) ?? null,
        headers: parsed.headers.slice(0, MAX_HEADERS).map(({ originalKey, value }) => ({
          name: originalKey.slice(0, MAX_HEADER_CHARACTERS),
          value: value.slice(0, MAX_HEADER_CHARACTERS),
        })),
        text: (parsed.text ?? parsed.html ?? '').slice(0, MAX_TEXT_CHARACTERS),
        sizeBytes: raw.byteLength,
      };
      const file = fileOf(mail.id);
      if (file !== null) {
        await writeFile(`${file}.new`, JSON.stringify(mail), { mode: 0o600 });
        await rename(`${file}.new`, file);
      }
      // Another may have been quicker to its file.
      mails = [...mails, mail].sort((a, b) => Number(a.id) - Number(b.id));
      await forget(mails.slice(0, Math.max(0, mails.length - MAX_MAILS)));
      return mail;
    },
    clear: () => forget(mails),
  };
}
