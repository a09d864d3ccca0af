import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { wantsPage } from '../http/accept.ts';
import { notSoldHere, Problem } from '../http/problem.ts';
import { sandboxFields } from '../http/sandbox-notice.ts';
import { agentCardDocument, cardKeysDocument, cardVersionOf } from './a2a-documents.ts';
import {
  agentDocument,
  agentRegistrationDocument,
  agentsDocument,
  agentWebInterfaceDocument,
  aiPluginDocument,
  apiCatalogDocument,
  llmsFullText,
  paymentDocsDocument,
  securityText,
  sitemapXml,
} from './agent-documents.ts';
import { agentInstructionsDocument } from './agent-instructions.ts';
import { capabilitiesDocument } from './capabilities.ts';
import { CARD_KEYS_PATH } from './card-signature.ts';
import { catalogDocument } from './catalog.ts';
import { catalogSearchDocument, readCatalogSearch } from './catalog-search.ts';
import { type DiscoveryContext, fingerprintOf } from './context.ts';
import { HOME_TITLE, homeMain } from './home-page.ts';
import { mcpDocument, mcpIntegrationDocument, mcpServerDocument, webToolsDocument } from './mcp-documents.ts';
import { mppCatalogDocument } from './mpp-catalog.ts';
import { openapiDocument, openapiPart, openapiParts } from './openapi.ts';
import { type Pages, pageRoutes } from './pages.ts';
import { paymentManifestDocument } from './payment-manifest.ts';
import { appendVary, type Published, publish, publishJson, publishOnce, sendPublished } from './published.ts';
import { readingRoutes } from './reading-routes.ts';
import { recipeDocument } from './recipe.ts';
import { llmsText, robotsText } from './text-documents.ts';
import { welcomeDocument } from './welcome.ts';
import { mppDocument } from './well-known-mpp.ts';
import { x402Document, x402ResourcesDocument } from './well-known-x402.ts';

const DOCUMENT_SECONDS = 60;
const CATALOG_SECONDS = 300;

interface PublishedDocument {
  /** The first path is the document's name. */
  paths: readonly [string, ...string[]];
  maxAgeSeconds: number;
  /** The document has several variants, selected by a header of the request. */
  ways?: { header: string; of(sent: string | undefined): string };
  /** The document that a request's query asks for instead; it is made anew each time. Null: the usual one */
  asked?(context: DiscoveryContext, query: unknown): Published | null;
  /** @param way the variant; empty for the usual one @returns null when there is nothing to publish now */
  render(context: DiscoveryContext, way: string): Published | null;
}

const plainText = (text: string) => publish('text/plain; charset=utf-8', text);
/** A document that begins by stating whether its money is real. */
const json = (context: DiscoveryContext, document: object) =>
  publishJson({ ...sandboxFields(context.sandbox), ...document });
const jsonIfAny = (context: DiscoveryContext, document: object | null) =>
  document === null ? null : json(context, document);

/** Every document with a fixed address. */
const DOCUMENTS: readonly PublishedDocument[] = [
  {
    paths: ['/openapi.json'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => publishJson(openapiDocument(context)),
  },
  {
    paths: ['/x402/catalog', '/api/x402/catalog'],
    maxAgeSeconds: CATALOG_SECONDS,
    asked(context, query) {
      const search = readCatalogSearch(query);
      if (search === null) return null;
      return publishOnce({ ...sandboxFields(context.sandbox), ...catalogSearchDocument(context, search) });
    },
    render: (context) => json(context, catalogDocument(context)),
  },
  {
    paths: ['/api/auth/capabilities'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => json(context, capabilitiesDocument(context)),
  },
  {
    paths: ['/x402/payment-manifest.json'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => jsonIfAny(context, paymentManifestDocument(context)),
  },
  {
    paths: ['/.well-known/x402'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => jsonIfAny(context, x402ResourcesDocument(context)),
  },
  {
    paths: ['/.well-known/x402.json'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => jsonIfAny(context, x402Document(context)),
  },
  {
    paths: ['/mpp/catalog'],
    maxAgeSeconds: CATALOG_SECONDS,
    render: (context) => jsonIfAny(context, mppCatalogDocument(context)),
  },
  {
    paths: ['/.well-known/mpp.json'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => jsonIfAny(context, mppDocument(context)),
  },
  {
    paths: ['/.well-known/agent-instructions.json'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => json(context, agentInstructionsDocument(context)),
  },
  {
    paths: ['/llms.txt'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => plainText(llmsText(context)),
  },
  {
    paths: ['/robots.txt'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => plainText(robotsText(context)),
  },
  {
    paths: ['/llms-full.txt'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => plainText(llmsFullText(context)),
  },
  {
    paths: ['/sitemap.xml'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => publish('application/xml; charset=utf-8', sitemapXml(context)),
  },
  {
    paths: ['/.well-known/security.txt'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render(context) {
      const text = securityText(context);
      return text === null ? null : plainText(text);
    },
  },
  {
    paths: ['/.well-known/api-catalog'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => publish('application/linkset+json', JSON.stringify(apiCatalogDocument(context))),
  },
  {
    paths: ['/.well-known/agent-card.json'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    ways: { header: 'A2A-Version', of: cardVersionOf },
    render: (context, version) => jsonIfAny(context, agentCardDocument(context, version)),
  },
  {
    paths: [CARD_KEYS_PATH],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render(context) {
      const document = cardKeysDocument(context);
      return document === null ? null : publish('application/jwk-set+json', JSON.stringify(document));
    },
  },
  ...(
    [
      [['/x402/payment-docs'], paymentDocsDocument],
      [['/.well-known/ai-plugin.json'], aiPluginDocument],
      [['/.well-known/agents.json'], agentsDocument],
      [['/.well-known/agent.json'], agentDocument],
      [['/.well-known/awi.json'], agentWebInterfaceDocument],
      [['/.well-known/agent-registration.json'], agentRegistrationDocument],
      [['/.well-known/mcp.json', '/.well-known/mcp/server-card.json'], mcpDocument],
      [['/server.json'], mcpServerDocument],
      [['/mcp/services', '/.well-known/mcp-integration.json'], mcpIntegrationDocument],
      [['/.well-known/webmcp.json'], webToolsDocument],
    ] as const
  ).map(
    ([paths, document]): PublishedDocument => ({
      paths,
      maxAgeSeconds: DOCUMENT_SECONDS,
      render: (context) => jsonIfAny(context, document(context)),
    }),
  ),
];

/**
 * Serves every published document and the pages for people. Documents are rendered on request, and kept until other services are
 * sold or the availability of one changes.
 */
export function discoveryRoutes(app: FastifyInstance, pages: Pages, context: DiscoveryContext): void {
  const current = rememberedWhile(context);

  function send(
    request: FastifyRequest,
    reply: FastifyReply,
    name: string,
    maxAgeSeconds: number,
    make: () => Published | null,
  ): FastifyReply {
    const published = current(name, make);
    if (published === null) {
      throw notFound('This document is about something that this server does not offer now.', known());
    }
    return sendPublished(request, reply, published, maxAgeSeconds);
  }

  /** Suggestions for a 404: the documents that exist here now, and everything below `/.well-known/`. */
  function known(): string[] {
    const here = DOCUMENTS.map(({ paths: [path], render }) => ({ path, render }));
    const gone = here.filter(({ path, render }) => current(path, () => render(context, '')) === null);
    const wellKnown = context.routes
      .filter(({ method, path }) => method === 'GET' && /^\/\.well-known\/[^*]+$/.test(path))
      .map(({ path }) => path);
    const all = new Set([...here.map(({ path }) => path), ...wellKnown]);
    for (const { path } of gone) all.delete(path);
    return [...all];
  }

  for (const { paths, maxAgeSeconds, ways, asked, render } of DOCUMENTS) {
    const answer = (request: FastifyRequest, reply: FastifyReply) => {
      const found = asked?.(context, request.query) ?? null;
      if (found !== null) return sendPublished(request, reply, found, maxAgeSeconds);
      if (ways !== undefined) appendVary(reply, ways.header);
      const way = ways?.of(request.headers[ways.header.toLowerCase()]?.toString()) ?? '';
      return send(request, reply, paths[0] + way, maxAgeSeconds, () => render(context, way));
    };
    const isTold = () => current(paths[0], () => render(context, '')) !== null;
    for (const path of paths) app.get(path, { config: { isTold } }, answer);
  }

  partRoutes(app, context, send);

  app.get('/.well-known/*', () => {
    throw notFound('There is no such document.', known());
  });

  app.get('/', (request, reply) => {
    appendVary(reply, 'Accept');
    reply.header('link', LINKS);
    if (wantsPage(request.headers.accept)) {
      reply.headers({ ...pages.headers });
      return send(request, reply, 'page:home', DOCUMENT_SECONDS, () => homePage(context, pages));
    }
    return send(request, reply, 'welcome', DOCUMENT_SECONDS, () => json(context, welcomeDocument(context)));
  });

  pageRoutes(app, pages);
  readingRoutes(app, { context, pages, current: (name, make) => current(name, make) ?? make() });
}

function homePage(context: DiscoveryContext, pages: Pages): Published {
  return pages.made({
    path: '/',
    title: HOME_TITLE,
    description: 'Buy single HTTP calls with prepaid credits or a wallet. Charged only when answered.',
    main: homeMain(context, pages.groups, pages.guides),
    script: 'home.js',
    look: 'home',
    asText: false,
  });
}

/** Serves what has one document for each tag or service. */
function partRoutes(
  app: FastifyInstance,
  context: DiscoveryContext,
  send: (
    request: FastifyRequest,
    reply: FastifyReply,
    name: string,
    maxAgeSeconds: number,
    make: () => Published | null,
  ) => FastifyReply,
): void {
  const serviceAt = (asked: string) => context.services.find(({ path }) => path === asked);
  app.get<{ Params: { part: string } }>('/openapi/:part', (request, reply) => {
    const tag = openapiTag(context, request.params.part);
    const make = () => publishJson(openapiPart(context, tag));
    return send(request, reply, `openapi:${tag}`, DOCUMENT_SECONDS, make);
  });

  for (const path of ['/x402/recipes/:service', '/api/x402/recipes/:service']) {
    app.get<{ Params: { service: string } }>(path, (request, reply) => {
      const service = serviceAt(request.params.service);
      if (service === undefined) throw noRecipe(context, request.params.service);
      const make = () => json(context, recipeDocument(service, context));
      return send(request, reply, `recipe:${service.path}`, DOCUMENT_SECONDS, make);
    });
  }
}

/** The tag of a part of OpenAPI. @throws Problem 404 when there is none */
function openapiTag(context: DiscoveryContext, part: string): string {
  const parts = openapiParts(context);
  const tag = parts.get(part.replace(/\.json$/, ''));
  if (tag !== undefined) return tag;
  const known = [...parts.keys()].map((each) => `/openapi/${each}.json`);
  throw notFound('OpenAPI has no such part.', ['/openapi.json', ...known]);
}

function noRecipe({ leftOut }: DiscoveryContext, path: string): Problem {
  if (leftOut.includes(path)) return notSoldHere(path, { catalog: '/x402/catalog' });
  return notFound('There is no such service.', ['/x402/catalog']);
}

/** Where a program that lands on `/` may read on (RFC 8631). */
const LINKS = [
  '</openapi.json>; rel="service-desc"; type="application/json"',
  '</docs>; rel="service-doc"; type="text/html"',
  '</llms.txt>; rel="help"; type="text/plain"',
  '</.well-known/api-catalog>; rel="api-catalog"; type="application/linkset+json"',
].join(', ');

function notFound(message: string, paths: readonly string[]): Problem {
  return new Problem(404, 'NOT_FOUND', message, {
    details: { knownPaths: paths },
    headers: { 'cache-control': 'no-store' },
  });
}

/** Keeps what was made under a name as long as the same table of services is sold and in the same state, then drops all of it. */
function rememberedWhile(context: DiscoveryContext) {
  let madeFor: { services: DiscoveryContext['services']; fingerprint: string } | null = null;
  const made = new Map<string, Published | null>();
  return (name: string, make: () => Published | null): Published | null => {
    const { services } = context;
    const fingerprint = fingerprintOf(context);
    if (madeFor?.services !== services || madeFor.fingerprint !== fingerprint) {
      made.clear();
      madeFor = { services, fingerprint };
    }
    const known = made.get(name);
    if (known !== undefined) return known;
    const fresh = make();
    made.set(name, fresh);
    return fresh;
  };
}
