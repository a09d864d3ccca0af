/** A way to a server on which pages arrive piece by piece, and each piece waits until it is let go. */
import { openForwardingProxy } from '../operator/forwarding-proxy.fixture.ts';

/** Where a piece ends: around the blocks that a page is made of. */
const BLOCK = /(?=<(?:main|section|article|form|nav|dl|h2|footer)\b|<\/(?:form|main|footer)>)|(?<=<footer>)/;
/** Stands at the end of each piece, so that it can be seen that a browser has read as far. */
const MARK = 'a piece ends here';

export interface SlowDocument {
  pieces: readonly string[];
  /** Lets the piece of this index go. */
  send(index: number): void;
}

/** A proxy before a server. What is no page arrives whole. */
export async function openSlowDocuments(targetUrl: string) {
  let arrived: (document: SlowDocument) => void = () => {};
  const { url, close } = await openForwardingProxy(
    targetUrl,
    ({ status, headers: sent, answer, outgoing }) => {
      const { 'content-length': _length, 'transfer-encoding': _encoding, ...headers } = sent;
      outgoing.writeHead(status, headers);
      if (!String(headers['content-type']).startsWith('text/html')) return void outgoing.end(answer);
      const pieces = answer.toString().split(BLOCK);
      arrived({
        pieces,
        send(index) {
          outgoing.write(`${pieces[index]}<!--${MARK} ${index}-->`);
          if (index === pieces.length - 1) outgoing.end();
        },
      });
    },
    { 'accept-encoding': 'identity' },
  );
  return {
    url,
    /** Settles when the next page is asked for. */
    next: () =>
      new Promise<SlowDocument>((resolve) => {
        arrived = resolve;
      }),
    close,
  };
}

/** In the page: whether it was read as far as the end of a piece, and was drawn since. It runs there, so it is text. */
export function drawnUpTo(index: number): string {
  return `new Promise((resolve) => {
    const isThere = () => {
      const comments = document.createTreeWalker(document, NodeFilter.SHOW_COMMENT);
      while (comments.nextNode()) if (comments.currentNode.data === '${MARK} ${index}') return true;
      return false;
    };
    const look = () => requestAnimationFrame(() => (isThere() ? requestAnimationFrame(() => requestAnimationFrame(resolve)) : look()));
    look();
  })`;
}
