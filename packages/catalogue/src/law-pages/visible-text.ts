/** The text of a page as its reader sees it. */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** A piece of a page is read at a time, and other work of the process goes on in between. */
const PIECE_CHARACTERS = 64 * 1024;
/** A page with less text is drawn by a script, or is not the page that was meant. */
const LEAST_CHARACTERS = 200;
/** A page says within its first characters that it is one. */
const HEAD_CHARACTERS = 8_192;
/** The parser's work for each element grows with the depth. Real pages stay below a hundred. */
const MOST_DEPTH = 500;

/** Elements whose content nobody sees, and those that surround the text on every page of a site. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...['head', 'script', 'style', 'noscript', 'template', 'svg', 'iframe', 'object', 'canvas'],
  ...['nav', 'header', 'footer', 'aside', 'button', 'select', 'dialog', 'textarea'],
]);

/** A reply that is no page with a text. The message is ours: it has no word of the page. */
export class NoVisibleText extends Error {}

/**
 * The SHA-256 of what a reader sees of a page: the text of `main` where there is enough of it, otherwise that of the whole page,
 * without menus, headers and footers. White space does not count, so a page that is only set anew has the same hash.
 *
 * @param bytes HTML in UTF-8, or else in one byte a character
 * @throws NoVisibleText when it is no HTML, or has next to no text
 */
export async function visibleTextHash(bytes: Buffer): Promise<Buffer> {
  const html = decoded(bytes);
  if (!/<(!doctype html|html|body)\b/i.test(html.slice(0, HEAD_CHARACTERS)))
    throw new NoVisibleText('it is no page of HTML');
  const { all, main } = await textsOf(html);
  const text = main.length >= LEAST_CHARACTERS ? main : all;
  if (text.length < LEAST_CHARACTERS)
    throw new NoVisibleText(`it has ${text.length} characters of text: a script may draw the rest`);
  return createHash('sha256').update(text.normalize('NFC')).digest();
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return bytes.toString('latin1');
  }
}

/** The visible text of all of a page and of its `main`, without white space. */
async function textsOf(html: string): Promise<{ all: string; main: string }> {
  // Loaded when the first page is read: a server that starts does without it.
  const { Parser } = await import('htmlparser2');
  const all: string[] = [];
  const main: string[] = [];
  let depth = 0;
  /** The depth of the outermost element that is left out, or that is `main`; null: outside of any. */
  let hiddenFrom: number | null = null;
  let mainFrom: number | null = null;
  const parser = new Parser({
    onopentag(name, { hidden, role, 'aria-hidden': ariaHidden }) {
      depth += 1;
      if (depth > MOST_DEPTH) throw new NoVisibleText(`its elements nest deeper than ${MOST_DEPTH}`);
      const isHidden = LEFT_OUT.has(name) || hidden !== undefined || ariaHidden === 'true';
      if (isHidden) hiddenFrom ??= depth;
      if (name === 'main' || role === 'main') mainFrom ??= depth;
    },
    onclosetag() {
      if (hiddenFrom === depth) hiddenFrom = null;
      if (mainFrom === depth) mainFrom = null;
      depth -= 1;
    },
    ontext(piece) {
      if (hiddenFrom !== null) return;
      const text = piece.replace(/\s+/g, '');
      all.push(text);
      if (mainFrom !== null) main.push(text);
    },
  });
  for (let at = 0; at < html.length; at += PIECE_CHARACTERS) {
    parser.write(html.slice(at, at + PIECE_CHARACTERS));
    await nextTurn();
  }
  parser.end();
  return { all: all.join(''), main: main.join('') };
}
