import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LOGO_PATH, logoUrlOf, type Shop } from '../shop.ts';
import { LEGAL_NAMES, LEGAL_TITLES, type Legal, legalPath, NO_LEGAL } from '../words/legal.ts';
import type { Route } from './context.ts';
import { type Groups, groupsFrom } from './groups.ts';
import { type Guides, NO_GUIDES } from './guides.ts';
import { htmlOf } from './markdown.ts';
import { asMarkup, FOOT_LINKS, framed, KEY_TABS, SITE_LINKS } from './page-frame.ts';
import { type Published, publish, sendPublished } from './published.ts';

const WEB_FOLDER = join(import.meta.dirname, '../../web');
const PAGE_SECONDS = 60;

const HTML = 'text/html; charset=utf-8';
const TYPES: Readonly<Record<string, string>> = {
  '.html': HTML,
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
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
export const PICTURE_HEADERS = {
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

/** Addresses of pages that the bar does not link to. Pages about one purchase have none that stays. */
const OWN_ADDRESSES: Readonly<Record<string, string>> = { 'devices.html': '/devices' };

/** A page whose main part is made, and not read from a file. */
export interface MadePage {
  /** Its address, without a trailing slash; null: it has none that stays. */
  path: string | null;
  title: string;
  description: string;
  /** The contents of `<main>`, as markup. */
  main: string;
  /** The name by which the bar links to it. */
  name?: string;
  /** The file of its script, which it can be read without. */
  script?: string;
  /** The class of its body; that of what is read unless given. */
  look?: string;
  /** False: there is no such page as Markdown. */
  asText?: boolean;
}

/** A page's file with its places filled. */
export interface FilledPage {
  file: string;
  path: string;
  title: string;
  description: string;
  view?: string;
  /** Markup by the text that it replaces in the file. */
  places: Readonly<Record<string, string>>;
}

/** The pages for people, each read once. */
export interface Pages {
  /** Those of the whole app, filled as they are registered: the bar of a page links to what is served. */
  routes: Route[];
  send(request: FastifyRequest, reply: FastifyReply, name: string): FastifyReply;
  /** A page that is made of its main part. */
  made(page: MadePage): Published;
  /** A page's file with its places filled. */
  filled(page: FilledPage): Published;
  /** The documents beside the catalog. */
  guides: Guides;
  /** The groups of the catalog, in their order. */
  groups: Groups;
  /** The operator's own documents. */
  legal: Legal;
  /** The headers of every page. */
  headers: Readonly<Record<string, string>>;
  /** Sends the page for somebody whose address leads nowhere. @param meant the address that was probably meant */
  sendLost(reply: FastifyReply, meant: string | null): FastifyReply;
  /** Sends the shop's logo; null when it is not a file. */
  sendLogo: ((request: FastifyRequest, reply: FastifyReply) => FastifyReply) | null;
}

/**
 * @param about.baseUrl the public address, without a trailing slash
 * @param about.sandbox adds a ribbon at the top of every page
 * @param about.shop its name and logo appear in the bar at the top
 * @param guides what there is to read beside the catalog
 * @param groups the paths of services in the groups of the catalog; a service of none stands under its tag
 */
export function openPages(
  { baseUrl, sandbox, shop }: { baseUrl: string; sandbox: boolean; shop: Shop },
  guides: Guides = NO_GUIDES,
  groups: Readonly<Record<string, readonly string[]>> = {},
): Pages {
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
    const content = readFileSync(join(WEB_FOLDER, name));
    const path = SITE_LINKS.find(({ page }) => page === name)?.href ?? OWN_ADDRESSES[name] ?? null;
    const read = publish(type, type === HTML ? inFrame(content.toString(), { name, path }) : content);
    files.set(name, read);
    return read;
  }

  const inFrame: InFrame = (page, about) => {
    const links = SITE_LINKS.filter(({ href }) => isServed(href));
    const foot = FOOT_LINKS.filter(({ href }) => isServed(href));
    const tabs = KEY_TABS.some(({ page: name }) => name === about.name)
      ? KEY_TABS.filter(({ href }) => isServed(href))
      : [];
    return framed(page, { ...about, links, foot, tabs, baseUrl, sandbox, shop: named });
  };

  return {
    routes,
    headers,
    guides,
    legal: shop.legal ?? NO_LEGAL,
    groups: groupsFrom(groups),
    made: (page) => publish(HTML, madePage(page, inFrame)),
    filled: (page) => publish(HTML, filledPage(page, inFrame)),
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

/** Puts the frame around a page. */
type InFrame = (
  page: string,
  about: { name: string; path: string | null; view?: string; asText?: string },
) => string;

function madePage(
  { path, title, description, main, name = '', script, look = 'reading', asText = true }: MadePage,
  inFrame: InFrame,
): string {
  const loaded = script === undefined ? '' : `<script type="module" src="/assets/${script}"></script>\n`;
  const page = `${headOf(title, description)}${loaded}<body class="${look}">\n<main id="main" tabindex="-1">\n${main}\n</main>`;
  return inFrame(page, { name, path, ...(path === null || !asText ? {} : { asText: `${path}.md` }) });
}

function filledPage({ file, path, title, description, places, view }: FilledPage, inFrame: InFrame): string {
  const page = readFileSync(join(WEB_FOLDER, file), 'utf8').replace(
    /^<title>.*\n<meta name="description".*\n/,
    () => headOf(title, description),
  );
  const shown = view === undefined ? {} : { view };
  const whole = inFrame(page, { name: file, path, asText: `${path}.md`, ...shown });
  return Object.entries(places).reduce((text, [place, markup]) => text.replace(place, () => markup), whole);
}

function headOf(title: string, description: string): string {
  return `<title>${asMarkup(title)} · {{shop}}</title>\n<meta name="description" content="${asMarkup(description)}">\n`;
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

/** Serves the operator's own documents that came as files. */
function legalRoutes(app: FastifyInstance, pages: Pages): void {
  for (const name of LEGAL_NAMES) {
    const document = pages.legal[name];
    if (document?.kind !== 'text') continue;
    const title = LEGAL_TITLES[name];
    const [path, description] = [legalPath(name), `${title} of this shop.`];
    const main = `<article>${htmlOf(document.markdown, () => null)}</article>`;
    const page = pages.made({ path, title, description, main, asText: false });
    app.get(path, (request, reply) =>
      sendPublished(request, reply.headers({ ...pages.headers }), page, PAGE_SECONDS),
    );
  }
}

/** Serves what every page loads. */
export function pageRoutes(app: FastifyInstance, pages: Pages): void {
  legalRoutes(app, pages);
  const { sendLogo } = pages;
  if (sendLogo !== null) app.get(LOGO_PATH, (request, reply) => sendLogo(request, reply));
  app.get('/favicon.svg', (request, reply) => pages.send(request, reply, 'favicon.svg'));
  app.get('/favicon.ico', (request, reply) => pages.send(request, reply, 'favicon.svg'));
  for (const [name, type] of FILES) {
    if (type !== HTML) app.get(`/assets/${name}`, (request, reply) => pages.send(request, reply, name));
  }
}
