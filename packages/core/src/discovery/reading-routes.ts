/** Serves what can be read without a script: the catalog, services, guides and codes of errors, as pages and as Markdown. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { wantsMarkdown } from '../http/accept.ts';
import { Problem } from '../http/problem.ts';
import type { Service } from '../service/define.ts';
import { catalogMain, readCatalogView } from './catalog-page.ts';
import type { DiscoveryContext } from './context.ts';
import type { Guides } from './guides.ts';
import { htmlOf } from './markdown.ts';
import { priceWords } from './own-address.ts';
import { asMarkup } from './page-frame.ts';
import { type Pages, PICTURE_HEADERS } from './pages.ts';
import { PRICING_PAGE, pricingText } from './pricing-text.ts';
import { appendVary, type Published, publish, sendPublished } from './published.ts';
import {
  CATALOG_PAGE,
  catalogText,
  ERRORS_PAGE,
  errorText,
  GUIDES_PAGE,
  guidesText,
  guideText,
  linkOfGuide,
  overviewText,
  type Readable,
  serviceText,
} from './readable.ts';

const PAGE_SECONDS = 60;
const MARKDOWN = 'text/markdown; charset=utf-8';

interface Reading {
  context: DiscoveryContext;
  pages: Pages;
  /** Keeps what was made under a name until something on sale changes. */
  current(name: string, make: () => Published): Published;
}

/** The routes of everything that can be read. */
export function readingRoutes(app: FastifyInstance, reading: Reading): void {
  const { context } = reading;
  const { guides, groups } = reading.pages;
  // Asked for each request: other services may be sold meanwhile.
  const serviceAt = (path: string) => context.services.find((service) => service.path === path);

  both(app, reading, CATALOG_PAGE, {
    text: () => catalogText(context, groups),
    page: ({ query }) => {
      const view = readCatalogView(query, { context, groups });
      const make = () => catalogPage(reading, view);
      return Object.keys(Object(query)).length === 0 ? reading.current('page:catalog', make) : make();
    },
  });
  both(app, reading, PRICING_PAGE, {
    text: () => pricingText(context, groups),
    page: () =>
      reading.current('page:pricing', () => {
        const text = pricingText(context, groups);
        return reading.pages.made({ ...text, main: articleOf(text, guides), name: 'pricing' });
      }),
  });
  both(app, reading, '/docs', {
    text: () => overviewText(context, guides),
    page: () => reading.current('page:docs', () => docsPage(reading, null)),
  });
  both(app, reading, '/docs/:service', {
    text: ({ name }) => {
      const service = serviceAt(name);
      return service === undefined ? null : serviceText(service, context, guides);
    },
    page: ({ name }) => {
      const service = serviceAt(name) ?? null;
      return reading.current(`page:${service?.path ?? 'no service'}`, () => docsPage(reading, service));
    },
  });
  if (guides.list.length > 0) guideRoutes(app, reading);
}

/** The guides and the codes of errors, which stay as they are. */
function guideRoutes(app: FastifyInstance, reading: Reading): void {
  const { guides } = reading.pages;
  const byName = new Map(guides.list.map((guide) => [guide.name, guide]));
  const texts: Readonly<Record<string, (name: string) => Readable | null>> = {
    [GUIDES_PAGE]: () => guidesText(guides),
    [`${GUIDES_PAGE}/:guide`]: (name) => {
      const guide = byName.get(name);
      return guide === undefined ? null : guideText(guide);
    },
    [ERRORS_PAGE]: () => {
      const guide = byName.get('errors');
      return guide === undefined ? null : guideText(guide);
    },
    [`${ERRORS_PAGE}/:code`]: (name) => {
      const error = guides.errors.get(name);
      return error === undefined ? null : errorText(error, guides);
    },
  };
  const made = new Map<string, Published>();
  for (const [route, textOf] of Object.entries(texts))
    both(app, reading, route, {
      text: ({ name }) => textOf(name),
      page: ({ name }) => {
        const text = textOf(name);
        if (text === null) return null;
        const known = made.get(text.path) ?? reading.pages.made({ ...text, main: articleOf(text, guides) });
        made.set(text.path, known);
        return known;
      },
    });
  for (const [file, bytes] of guides.pictures) {
    const picture = publish('image/svg+xml', bytes);
    app.get(`/docs/images/${file}`, (request, reply) =>
      sendPublished(request, reply.headers(PICTURE_HEADERS), picture, PAGE_SECONDS),
    );
  }
}

interface Asked {
  /** The last part of the address, without the ending that asks for Markdown. */
  name: string;
  query: unknown;
}

/** Serves something as a page, and as Markdown to who asks for it in `Accept` or by `.md`. */
function both(
  app: FastifyInstance,
  reading: Reading,
  route: string,
  forms: { text(asked: Asked): Readable | null; page(asked: Asked): Published | null },
): void {
  const answer = (request: FastifyRequest, reply: FastifyReply, isText: boolean) => {
    const [last = ''] = Object.values(Object(request.params)).map(String);
    const name = last.replace(/\.md$/, '');
    const asked = { name, query: request.query };
    if (!isText && last === name && !wantsMarkdown(request.headers.accept)) {
      const page = forms.page(asked);
      if (page === null) throw nothing();
      appendVary(reply, 'Accept');
      if (route === '/docs/:service' && forms.text(asked) === null) reply.code(404);
      return send(request, reply, reading, page);
    }
    const text = forms.text(asked);
    if (text === null) throw nothing();
    appendVary(reply, 'Accept');
    const make = () => publish(MARKDOWN, text.markdown);
    return sendPublished(request, reply, reading.current(`text:${text.path}`, make), PAGE_SECONDS);
  };
  app.get(route, (request, reply) => answer(request, reply, false));
  if (!route.includes(':')) app.get(`${route}.md`, (request, reply) => answer(request, reply, true));
}

function nothing(): Problem {
  return new Problem(404, 'NOT_FOUND', 'There is no such document.', {
    details: { knownPaths: [CATALOG_PAGE, GUIDES_PAGE, ERRORS_PAGE] },
    headers: { 'cache-control': 'no-store' },
  });
}

function send(request: FastifyRequest, reply: FastifyReply, { pages }: Reading, page: Published) {
  return sendPublished(request, reply.headers({ ...pages.headers }), page, PAGE_SECONDS);
}

function catalogPage({ context, pages }: Reading, view: Parameters<typeof catalogMain>[1]): Published {
  const { groups } = pages;
  const { path, title, description } = catalogText(context, groups);
  const main = catalogMain({ context, groups }, view);
  return pages.made({ path, title, description, main, name: 'services', script: 'services.js' });
}

/** The page of one service, or of how calls work, with the list of services beside it. @param service null: the overview */
function docsPage({ context, pages }: Reading, service: Service | null): Published {
  const { guides } = pages;
  const readOn = readOnOf(guides);
  const common = { '<!--list-->': listOf(context, service), '<!--guides-->': readOn };
  if (service === null) {
    const { path, title, description } = overviewText(context, guides);
    const places = { ...common, '<!--detail-->': '' };
    return pages.filled({ file: 'docs.html', path, title, description, places });
  }
  const text = serviceText(service, context, guides);
  const { path, title, description } = text;
  const detail = `<a class="back" href="${CATALOG_PAGE}">← All services</a>\n${articleOf(text, guides).replace('<h1 ', () => `<h1 data-service="${asMarkup(service.path)}" `)}`;
  const places = { ...common, '<!--detail-->': detail };
  return pages.filled({ file: 'docs.html', path, title, description, view: 'service', places });
}

/** Leads to the parts of the guides, and to the codes of errors. */
function readOnOf({ list }: Guides): string {
  if (list.length === 0) return '';
  const parts = [...new Set(list.map(({ part }) => part))].filter((part) => part !== null);
  const links = parts.map(
    (part) => `<a href="${GUIDES_PAGE}#${asMarkup(part.toLowerCase())}">${asMarkup(part)}</a>`,
  );
  const within = links.length === 0 ? '' : `: ${links.join(' · ')}`;
  return `<p>Read on in the <a href="${GUIDES_PAGE}">guides</a>${within}. Or look up an <a href="${ERRORS_PAGE}">error code</a>.</p>`;
}

/** The list of services as the page's script draws it: those for sale, and the one that the page is about. */
function listOf(context: DiscoveryContext, current: Service | null): string {
  return [...Map.groupBy(context.services, ({ tag }) => tag)]
    .map(([tag, services]) => {
      const isShown = (service: Service) => context.availability(service).available || service === current;
      const shown = services.filter(isShown).length;
      const items = services.map((service) => {
        const { available } = context.availability(service);
        const state = available ? '' : '<span class="badge warn">unavailable</span>';
        return `<li${isShown(service) ? '' : ' hidden'}><a href="/docs/${asMarkup(service.path)}" data-link=""${available ? '' : ' class="resting"'}><span class="name">${asMarkup(service.name)}${state}</span><span class="price">$${asMarkup(priceWords(service))}</span><span class="about">${asMarkup(service.summary)}</span></a></li>`;
      });
      return `<section class="group" aria-label="${asMarkup(tag)}"${shown === 0 ? ' hidden' : ''}><h2>${asMarkup(tag)} <span class="faint">${shown}</span></h2><ul>${items.join('\n')}</ul></section>`;
    })
    .join('\n');
}

function articleOf({ markdown }: Readable, guides: Guides): string {
  return htmlOf(markdown, (href) => linkOfGuide(href, guides));
}
