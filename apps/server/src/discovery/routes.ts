import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '../http/problem.ts';
import { agentInstructionsDocument } from './agent-instructions.ts';
import { capabilitiesDocument } from './capabilities.ts';
import { catalogDocument } from './catalog.ts';
import { type DiscoveryContext, fingerprintOf } from './context.ts';
import { openapiDocument } from './openapi.ts';
import { pageRoutes, sendPage } from './pages.ts';
import { appendVary, type Published, publish, publishJson, sendPublished } from './published.ts';
import { recipeDocument } from './recipe.ts';
import { llmsText, robotsText } from './text-documents.ts';
import { welcomeDocument } from './welcome.ts';

const DOCUMENT_SECONDS = 60;
const CATALOG_SECONDS = 300;

interface PublishedDocument {
  paths: readonly string[];
  maxAgeSeconds: number;
  render(context: DiscoveryContext): Published;
}

const plainText = (text: string) => publish('text/plain; charset=utf-8', text);

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
    render: (context) => publishJson(catalogDocument(context)),
  },
  {
    paths: ['/api/auth/capabilities'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => publishJson(capabilitiesDocument(context)),
  },
  {
    paths: ['/.well-known/agent-instructions.json'],
    maxAgeSeconds: DOCUMENT_SECONDS,
    render: (context) => publishJson(agentInstructionsDocument(context)),
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
];

/**
 * Serves every published document and the pages for people. Documents are rendered when asked for and kept until
 * the availability of a service changes.
 */
export function discoveryRoutes(app: FastifyInstance, context: DiscoveryContext): void {
  const current = rememberedWhile(() => fingerprintOf(context));
  const services = new Map(context.services.map((service) => [service.path, service]));

  for (const document of DOCUMENTS) {
    const name = document.paths[0] ?? '';
    for (const path of document.paths) {
      app.get(path, (request, reply) =>
        sendPublished(
          request,
          reply,
          current(name, () => document.render(context)),
          document.maxAgeSeconds,
        ),
      );
    }
  }

  for (const path of ['/x402/recipes/:service', '/api/x402/recipes/:service']) {
    app.get<{ Params: { service: string } }>(path, (request, reply) => {
      const service = services.get(request.params.service);
      if (service === undefined) throw notFound('There is no such service.', ['/x402/catalog']);
      const recipe = current(`recipe:${service.path}`, () => publishJson(recipeDocument(service, context)));
      return sendPublished(request, reply, recipe, DOCUMENT_SECONDS);
    });
  }

  app.get('/.well-known/*', () => {
    throw notFound('There is no such document.', knownPaths(context));
  });

  app.get('/', (request, reply) => {
    appendVary(reply, 'Accept');
    reply.header('link', LINKS);
    if (wantsHtml(request)) return sendPage(request, reply, 'index.html');
    const welcome = current('welcome', () => publishJson(welcomeDocument(context)));
    return sendPublished(request, reply, welcome, DOCUMENT_SECONDS);
  });

  pageRoutes(app, (path) => services.has(path));
}

/** Where a program that lands on `/` may read on (RFC 8631). */
const LINKS = [
  '</openapi.json>; rel="service-desc"; type="application/json"',
  '</docs>; rel="service-doc"; type="text/html"',
  '</llms.txt>; rel="help"; type="text/plain"',
].join(', ');

/** A browser names `text/html`; a client that accepts anything, or does not say, gets JSON. */
function wantsHtml(request: FastifyRequest): boolean {
  return /\btext\/html\b/i.test(request.headers.accept ?? '');
}

/** What a caller who guessed an address may read instead: the documents here and all below `/.well-known/`. */
function knownPaths(context: DiscoveryContext): string[] {
  const here = DOCUMENTS.flatMap(({ paths }) => paths.slice(0, 1));
  const wellKnown = context.routes
    .filter(({ method, path }) => method === 'GET' && path.startsWith('/.well-known/') && !path.includes('*'))
    .map(({ path }) => path);
  return [...new Set([...here, ...wellKnown])];
}

function notFound(message: string, paths: readonly string[]): Problem {
  return new Problem(404, 'NOT_FOUND', message, {
    details: { knownPaths: paths },
    headers: { 'cache-control': 'no-store' },
  });
}

/** Keeps what was made under a name for as long as the fingerprint stays the same, then forgets all of it. */
function rememberedWhile(fingerprint: () => string) {
  let madeFor: string | null = null;
  const made = new Map<string, Published>();
  return (name: string, make: () => Published): Published => {
    const now = fingerprint();
    if (now !== madeFor) {
      made.clear();
      madeFor = now;
    }
    const known = made.get(name);
    if (known !== undefined) return known;
    const fresh = make();
    made.set(name, fresh);
    return fresh;
  };
}
