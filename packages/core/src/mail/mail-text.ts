/** Bounds what may stand in a mail, whoever's words it repeats: nothing that breaks out of its line, and no secret. */
import { z } from 'zod';

/** RFC 5321 (4.5.3.1.3) leaves 254 characters for an address between its brackets. */
const address = z.email().max(254);
const MAX_SUBJECT_CHARACTERS = 200;
const MAX_TEXT_CHARACTERS = 20_000;
/** An API key or a wallet's secret, but not the prefix that is shown of one; and tokens in addresses. */
const SECRETS = /(\bfbx_(?:live|wallet)_[0-9a-f]{3})[0-9a-f]+|([?&](?:session|token)=)[^\s&]+/gi;

/** Whether it is one address and nothing besides. */
export function isMailAddress(text: string): boolean {
  return address.safeParse(text).success;
}

/** One line: control characters and marks that turn or hide text become a blank, secrets an ellipsis. */
export function subjectLine(text: string): string {
  const line = withoutSecrets(text).replace(/[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
  return line.trim().slice(0, MAX_SUBJECT_CHARACTERS).toWellFormed();
}

/** Plain text: of the control characters only line feed and tab stay, secrets become an ellipsis. */
export function bodyText(text: string): string {
  const plain = withoutSecrets(text)
    .replace(/\r\n?/g, '\n')
    .replace(/[^\P{Cc}\n\t]/gu, '');
  return plain.slice(0, MAX_TEXT_CHARACTERS).toWellFormed();
}

function withoutSecrets(text: string): string {
  return text.replace(SECRETS, '$1$2…');
}
