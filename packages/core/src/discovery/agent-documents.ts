/**
 * Documents that crawlers, directories and other kinds of agents look for at their own addresses. All of them state
 * what the catalog states.
 */
import type { Service } from '../service/define.ts';
import { outputSchemaOf } from '../service/json-schema.ts';
import { toolSchemaOf } from '../service/tool-schema.ts';
import { legalUrlOf, NO_LEGAL } from '../words/legal.ts';
import { agentCardDocument, servesA2a } from './a2a-documents.ts';
import { CALL_ERRORS, CHARGING_RULE, REPEAT_RULE } from './call-errors.ts';
import { capabilitiesDocument } from './capabilities.ts';
import { DAY_MS, type DiscoveryContext, dayOf, priceRange, serves, shopOf } from './context.ts';
import { coreAt, servesMcp } from './mcp-documents.ts';
import { CORE_PART, operationIdOf, sellsByName } from './openapi.ts';
import { walletRules } from './pay-by-wallet.ts';
import { paymentInformation } from './payment-manifest.ts';
import { recipeDocument } from './recipe.ts';
import { llmsText } from './text-documents.ts';

const DESCRIPTION = 'Single HTTP calls for software agents, paid one by one, with no account.';
/** Shorter than the year that RFC 9116 allows, so that the contact expires if nobody maintains the server. */
const CONTACT_DAYS = 180;

/** `/.well-known/api-catalog`: what describes the API, as a set of links. RFC 9727 */
export function apiCatalogDocument(context: DiscoveryContext) {
  const { baseUrl } = context;
  return {
    linkset: [
      {
        anchor: `${baseUrl}/`,
        'service-desc': [{ href: `${baseUrl}/openapi.json`, type: 'application/json' }],
        'service-doc': [{ href: `${baseUrl}/docs`, type: 'text/html' }],
        'service-meta': [
          { href: `${baseUrl}/x402/catalog`, type: 'application/json' },
          { href: `${baseUrl}/.well-known/agent-instructions.json`, type: 'application/json' },
          ...(servesA2a(context)
            ? [{ href: `${baseUrl}/.well-known/agent-card.json`, type: 'application/json' }]
            : []),
        ],
        status: [{ href: `${baseUrl}/health/ready`, type: 'application/json' }],
      },
    ],
  };
}

/** `/.well-known/ai-plugin.json`: the manifest that plug-in hosts of the first generation read. */
export function aiPluginDocument(context: DiscoveryContext) {
  const { product, baseUrl, shop } = context;
  return {
    schema_version: 'v1',
    name_for_human: shop.name,
    name_for_model: product.replaceAll(/\W/g, '_').toLowerCase(),
    description_for_human: DESCRIPTION,
    description_for_model: `${DESCRIPTION} ${CHARGING_RULE} Send an API key in X-API-KEY; ${baseUrl}/llms.txt tells how to get one.`,
    auth: { type: 'none' },
    // Hosts of plug-ins take 30 operations at most.
    api: { type: 'openapi', url: `${baseUrl}${sellsByName(context) ? CORE_PART : '/openapi.json'}` },
    logo_url: shop.logoUrl ?? `${baseUrl}/favicon.svg`,
    contact_email: shop.contactEmail,
    legal_info_url: legalUrlOf(shop.legal ?? NO_LEGAL, 'terms', baseUrl) ?? `${baseUrl}/docs`,
  };
}

/** `/.well-known/agents.json`: each service as a flow of one step. */
export function agentsDocument(context: DiscoveryContext) {
  return {
    agentsJson: '0.1.0',
    info: { title: context.shop.name, version: context.version, description: DESCRIPTION },
    sources: [{ id: 'openapi', path: '/openapi.json' }],
    flows: context.services.map((service) => ({
      id: service.path,
      title: service.name,
      description: `${service.summary} Costs ${service.priceUsd} USD a call.`,
      actions: [{ id: service.path, sourceId: 'openapi', operationId: operationIdOf(service.path) }],
      links: [],
      fields: { parameters: [], responses: { success: { type: 'object' } } },
    })),
  };
}

/**
 * `/.well-known/agent.json`: services as skills, with schemas and prices, for readers of the older family; and where A2A is
 * served, the card as clients of A2A 0.2 look for it there.
 */
export function agentDocument(context: DiscoveryContext) {
  const { version, baseUrl, limits } = context;
  const card = cardOfThisAddress(context);
  const ofCard = new Map(card?.skills.map((skill) => [skill.id, skill]));
  return {
    ...card,
    ...shopOf(context),
    version,
    description: DESCRIPTION,
    url: card === null ? `${baseUrl}/` : `${baseUrl}/a2a`,
    skills: context.services.map((service) => ({
      ...ofCard.get(service.path),
      id: service.path,
      name: service.name,
      description: service.summary,
      tags: [service.tag],
      endpoint: `${baseUrl}/x402/${service.path}`,
      method: 'POST',
      pricing: { amount: service.priceUsd, currency: 'USD', unit: 'call' },
      available: context.availability(service).available,
      // In the form of a tool: it may be handed to a model as it stands.
      inputSchema: toolSchemaOf(service),
      outputSchema: outputSchemaOf(service),
    })),
    rateLimits: { requestsPerMinute: limits.requestsPerMinute },
    errors: CALL_ERRORS,
  };
}

/** The last version of A2A whose clients ask for their card at `/.well-known/agent.json`. */
const A2A_OF_THIS_ADDRESS = '0.2.6';

/** The card as A2A 0.2 has it: without signatures, which it does not know and which are of another document. */
function cardOfThisAddress(context: DiscoveryContext) {
  const signed = agentCardDocument(context, '');
  if (signed === null) return null;
  const { signatures: _, ...card } = signed;
  return { ...card, protocolVersion: A2A_OF_THIS_ADDRESS };
}

/** `/.well-known/awi.json`: where an agent starts, and what it can do. */
export function agentWebInterfaceDocument(context: DiscoveryContext) {
  const { product, version, baseUrl } = context;
  const range = priceRange(context.services);
  return {
    version: '1',
    id: product.toLowerCase(),
    name: context.shop.name,
    description: DESCRIPTION,
    canonicalUrl: `${baseUrl}/`,
    version_platform: version,
    entrypoints: {
      openapi: `${baseUrl}/openapi.json`,
      catalog: `${baseUrl}/x402/catalog`,
      llms: `${baseUrl}/llms.txt`,
      ...(servesMcp(context) ? { mcp: coreAt(baseUrl) } : {}),
      ...(servesA2a(context)
        ? { a2a: `${baseUrl}/a2a`, agentCard: `${baseUrl}/.well-known/agent-card.json` }
        : {}),
    },
    capabilities: context.services.map((service) => ({
      id: service.path,
      name: service.name,
      description: service.summary,
      endpoint: `${baseUrl}/x402/${service.path}`,
      price: { amount: service.priceUsd, currency: 'USD' },
      available: context.availability(service).available,
    })),
    authentication: {
      modes: capabilitiesDocument(context).authModes.map(({ mode, header }) => ({ mode, header })),
      onboarding: `${baseUrl}/.well-known/agent-instructions.json`,
    },
    pricing: {
      model: 'per call',
      currency: 'USD',
      range: range === null ? null : { minUsd: range.minUsd, maxUsd: range.maxUsd },
      settlementChains: context.rails.x402?.networks.map(({ network }) => network) ?? [],
      rule: CHARGING_RULE,
    },
  };
}

/** `/.well-known/agent-registration.json`: the registration of ERC-8004. https://eips.ethereum.org/EIPS/eip-8004 */
export function agentRegistrationDocument(context: DiscoveryContext) {
  const { baseUrl, shop } = context;
  return {
    type: 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1',
    name: shop.name,
    description: DESCRIPTION,
    image: shop.logoUrl ?? `${baseUrl}/favicon.svg`,
    services: [
      { name: 'web', endpoint: `${baseUrl}/` },
      { name: 'OpenAPI', endpoint: `${baseUrl}/openapi.json` },
      ...(servesMcp(context) ? [{ name: 'MCP', endpoint: coreAt(baseUrl), version: '2025-11-25' }] : []),
      ...(servesA2a(context)
        ? [{ name: 'A2A', endpoint: `${baseUrl}/.well-known/agent-card.json`, version: '1.0' }]
        : []),
    ],
    x402Support: context.rails.x402 !== null,
    active: context.services.some((service) => context.availability(service).available),
    // Nobody has registered this server. An operator who registers it names the registration in a file of their own.
    registrations: [],
    supportedTrust: [],
  };
}

/** `/x402/payment-docs`: how to pay from a wallet, for programs. Null while no chain takes payments. */
export function paymentDocsDocument(context: DiscoveryContext) {
  const { x402 } = context.rails;
  if (x402 === null) return null;
  const { baseUrl } = context;
  return {
    title: 'Paying by x402',
    ...paymentInformation(x402),
    networks: x402.networks,
    steps: [
      'Send the request without a payment: the answer is 402, with the terms in PAYMENT-REQUIRED and in the body.',
      'Choose one of accepts[], and sign it with an x402 client.',
      'Send the same request with the payment in PAYMENT-SIGNATURE (X-PAYMENT for version 1).',
      'Read the answer and its receipt in PAYMENT-RESPONSE. After a 503 or a lost connection send the same payment again.',
    ],
    rules: walletRules(context),
    charging: CHARGING_RULE,
    repeating: REPEAT_RULE,
    errors: CALL_ERRORS,
    links: {
      manifest: `${baseUrl}/x402/payment-manifest.json`,
      catalog: `${baseUrl}/x402/catalog`,
      instructions: `${baseUrl}/.well-known/agent-instructions.json`,
    },
  };
}

/**
 * `/.well-known/security.txt`: whom to tell about a vulnerability. RFC 9116. Null while the operator has set no
 * address.
 */
export function securityText(context: DiscoveryContext): string | null {
  const { baseUrl } = context;
  const { contactEmail } = context.shop;
  if (contactEmail === null) return null;
  const expires = new Date((dayOf(context) + CONTACT_DAYS) * DAY_MS).toISOString();
  return [
    `Contact: mailto:${contactEmail}`,
    `Expires: ${expires}`,
    'Preferred-Languages: en',
    `Canonical: ${baseUrl}/.well-known/security.txt`,
    '',
  ].join('\n');
}

/** `/sitemap.xml`: the pages for people. */
export function sitemapXml(context: DiscoveryContext): string {
  const pages = ['/', '/docs', ...context.services.map(({ path }) => `/docs/${path}`)].filter(
    (path) =>
      serves(context, 'GET', path) || (path.startsWith('/docs/') && serves(context, 'GET', '/docs/:service')),
  );
  const urls = pages.map((path) => `  <url><loc>${escaped(context.baseUrl + path)}</loc></url>`);
  return `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${urls.join('\n')}\n</urlset>\n`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

/** `/llms-full.txt`: the overview, and every service with its input and answer. */
export function llmsFullText(context: DiscoveryContext): string {
  return `${llmsText(context)}\n${context.services.map((service) => sectionOf(service, context)).join('\n')}`;
}

function sectionOf(service: Service, context: DiscoveryContext): string {
  const { endpoint, priceUsd, example, inputSchema } = recipeDocument(service, context);
  return [
    `## ${service.name}`,
    '',
    `${service.summary} \`POST ${endpoint}\`, ${priceUsd} USD a call.`,
    '',
    `Input: \`${JSON.stringify(inputSchema)}\``,
    '',
    `Example: \`${JSON.stringify(example)}\``,
    '',
  ].join('\n');
}
