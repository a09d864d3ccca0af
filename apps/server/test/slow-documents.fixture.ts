/** A way to a server on which pages arrive piece by piece, and each piece waits until it is let go. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

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
  const front = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch((error: Error) => outgoing.destroy(error));
  });

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { hostname, port } = new URL(targetUrl);
    const asked = request({
      ...{ hostname, port, path: incoming.url, method: incoming.method, agent: false },
      headers: { ...incoming.headers, host: `${hostname}:${port}`, 'accept-encoding': 'identity' },
    });
    asked.end(await buffer(incoming));
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    const { 'content-length': _length, 'transfer-encoding': _encoding, ...headers } = answer.headers;
    const whole = await buffer(answer);
    outgoing.writeHead(answer.statusCode ?? 502, headers);
    if (!String(headers['content-type']).startsWith('text/html')) return void outgoing.end(whole);
    const pieces = whole.toString().split(BLOCK);
    arrived({
      pieces,
      send(index) {
        outgoing.write(`${pieces[index]}<!--${MARK} ${index}-->`);
        if (index === pieces.length - 1) outgoing.end();
      },
    });
  }

  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const address = front.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    /** Settles when the next page is asked for. */
    next: () =>
      new Promise<SlowDocument>((resolve) => {
        arrived = resolve;
      }),
    async close(): Promise<void> {
      front.closeAllConnections();
      front.close();
    },
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
