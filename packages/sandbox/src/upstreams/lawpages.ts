/** A mirror of official pages of laws: any page of any host, below the host's name. */
import type { FastifyInstance } from 'fastify';

const CHARACTERS: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** The pages never change: the sandbox passes no laws. */
export function lawpages(app: FastifyInstance): void {
  app.get<{ Params: { host: string } }>('/:host/*', (request, reply) => {
    const page = request.url.slice(request.url.indexOf(request.params.host)).replace(/[&<>"]/g, escaped);
    const paragraphs = Array.from(
      { length: 5 },
      (_, at) => `<p>${at + 1}. Nobody is bound by this paragraph, which the sandbox wrote for ${page}.</p>`,
    );
    return reply
      .type('text/html; charset=utf-8')
      .send(
        `<!DOCTYPE html>\n<html lang="en"><head><title>A law of the sandbox</title></head><body><nav>Home</nav><main><h1>A law of the sandbox</h1>${paragraphs.join('')}</main><footer>The sandbox</footer></body></html>\n`,
      );
  });
}

function escaped(character: string): string {
  return CHARACTERS[character] ?? character;
}
