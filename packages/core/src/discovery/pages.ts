import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LOGO_PATH, logoUrlOf, type Shop } from '../shop.ts';
import type { Route } from './context.ts';
import { asMarkup, framed, SITE_LINKS } from './page-frame.ts';
import { type Published, publish, sendPublished } from './published.ts';

const WEB_FOLDER = join(import.meta.dirname, '../../web');
const PAGE_SECONDS = 60;

const HTML = 'text/html; charset=utf-8';
const TYPES: Readonly<Record<string, string>> = {
  '.html': HTML,
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * Every file that may be served, with its type: the files that were in the folder at the start. A request never becomes
 * a file name.
 */
const FILES: ReadonlyMap<string, string> = new Map(
  readdirSync(WEB_FOLDER).flatMap((name) => {
    const type = TYPES[extname(name)];
    return type === undefined ? [] : [[name, type] as const];
  }),
);

/**
 * Scripts and styles are loaded from this server alone. Forms are sent by script alone, so that a key never becomes
 * part of an address. No page of ours may be framed by another site.
 */
const POLICY =
  "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
const PAGE_HEADERS = {
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
};
/** Headers by which an operator's picture may do nothing when it is opened by itself. */
const PICTURE_HEADERS = {
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
};

/** A logo on another server is the only thing that a page loads from elsewhere. */
function pageHeadersOf({ logo }: Shop): Record<string, string> {
  if (logo?.kind !== 'url') return PAGE_HEADERS;
  return {
    ...PAGE_HEADERS,
    'content-security-policy': `${POLICY}; img-src 'self' ${new URL(logo.url).origin}`,
  };
}

const LOST_PAGE = 'lost.html';
/** The placeholder for a suggestion in that page's file. */
const SUGGESTION = '<!--suggestion-->';

function suggested(path: string): string {
  const shown = asMarkup(path);
  return `<p class="lead">Did you mean <a href="${shown}">${shown}</a>?</p>`;
}

/** The pages for people, each read once. */
export interface Pages {
  /** Those of the whole app, filled as they are registered: the bar of a page links to what is served. */
  routes: Route[];
  send(request: FastifyRequest, reply: FastifyReply, name: string): FastifyReply;
  /** Sends the page for somebody whose address leads nowhere. @param meant the address that was probably meant */
  sendLost(reply: FastifyReply, meant: string | null): FastifyReply;
  /** Sends the shop's logo; null when it is not a file. */
  sendLogo: ((request: FastifyRequest, reply: FastifyReply) => FastifyReply) | null;
}

/**
 * @param about.sandbox adds a ribbon at the top of every page
 * @param about.shop its name and logo appear in the bar at the top
 */
export function openPages({ sandbox, shop }: { sandbox: boolean; shop: Shop }): Pages {
  const routes: Route[] = [];
  const files = new Map<string, Published>();
  const isServed = (path: string) => routes.some((route) => route.method === 'GET' && route.path === path);
  const headers = pageHeadersOf(shop);
  const logo = shop.logo?.kind === 'file' ? publish(shop.logo.contentType, shop.logo.bytes) : null;
  // A page asks the server that it was loaded from for the logo, whichever address that is.
  const named = { ...shop, logoUrl: logoUrlOf(shop, '') };

  function fileOf(name: string): Published {
    const known = files.get(name);
    if (known !== undefined) return known;
    const type = FILES.get(name);
    if (type === undefined) throw new Error(`there is no page ${name}`);
    const content = readFileSync(join(WEB_FOLDER, name), 'utf8');
    const links = SITE_LINKS.filter(({ href }) => isServed(href));
    const read = publish(
      type,
      type === HTML ? framed(content, { name, links, sandbox, shop: named }) : content,
    );
    files.set(name, read);
    return read;
  }

  return {
    routes,
    send(request, reply, name) {
      reply.headers(headers);
      return sendPublished(request, reply, fileOf(name), PAGE_SECONDS);
    },
    sendLost(reply, meant) {
      const suggestion = meant === null ? '' : suggested(meant);
      const page = fileOf(LOST_PAGE)
        .body.toString()
        .replace(SUGGESTION, () => suggestion);
      reply.headers({ ...headers, 'x-content-type-options': 'nosniff', 'content-type': HTML });
      return reply.send(page);
    },
    sendLogo:
      logo === null
        ? null
        : (request, reply) => sendPublished(request, reply.headers(PICTURE_HEADERS), logo, PAGE_SECONDS),
  };
}

/** Serves the pages of the parts. @param assets files by their addresses */
export function assetRoutes(
  app: FastifyInstance,
  pages: Pages,
  assets: Readonly<Record<string, string>>,
): void {
  for (const [path, file] of Object.entries(assets))
    app.get(path, (request, reply) => pages.send(request, reply, file));
}

/**
 * Serves the documentation, and what every page loads.
 *
 * @param isService whether a path names a service, for the status of a deep link
 */
export function pageRoutes(app: FastifyInstance, pages: Pages, isService: (path: string) => boolean): void {
  app.get('/docs', (request, reply) => pages.send(request, reply, 'docs.html'));
  app.get<{ Params: { service: string } }>('/docs/:service', (request, reply) => {
    if (!isService(request.params.service)) reply.code(404);
    return pages.send(request, reply, 'docs.html');
  });
  const { sendLogo } = pages;
  if (sendLogo !== null) app.get(LOGO_PATH, (request, reply) => sendLogo(request, reply));
  app.get('/favicon.svg', (request, reply) => pages.send(request, reply, 'favicon.svg'));
  app.get('/favicon.ico', (request, reply) => pages.send(request, reply, 'favicon.svg'));
  for (const [name, type] of FILES) {
    if (type !== HTML) app.get(`/assets/${name}`, (request, reply) => pages.send(request, reply, name));
  }
}
