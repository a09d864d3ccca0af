import { SANDBOX_NOTICE } from '../http/sandbox-notice.ts';
import { NEW_CUSTOMER_CAP } from '../keys/credit-tiers.ts';
import { boundsWords } from '../service/bounds-words.ts';
import { servesA2a } from './a2a-documents.ts';
import { CHARGING_RULE, DRY_RUN_RULE, PROBLEM_RULE } from './call-errors.ts';
import {
  type DiscoveryContext,
  firstService,
  SOLANA_YIELD_MANIFEST,
  serves,
  YIELD_MANIFEST,
} from './context.ts';
import { servesMcp } from './mcp-documents.ts';
import { CORE_PART, openapiParts, sellsByName } from './openapi.ts';
import { addressWords, priceWords } from './own-address.ts';

import {
  firstServiceByMpp,
  mppCommandOf,
  mppEndpointOf,
  mppMethodsOf,
  mppRules,
  soldByMpp,
} from './pay-by-mpp.ts';
import { firstServiceByWallet, walletProgramOf, walletRules } from './pay-by-wallet.ts';
import { curlOf } from './recipe.ts';

/** `/llms.txt`: the site for readers of text, in the form of llmstxt.org. */
export function llmsText(context: DiscoveryContext): string {
  const { baseUrl, shop, trial } = context;
  const first = firstService(context);
  const link = linkAt(baseUrl);
  const tags = Map.groupBy(context.services, ({ tag }) => tag);
  const lines = [
    `# ${shop.name}`,
    '',
    `> Single HTTP calls for software agents, paid one by one, with no account. ${CHARGING_RULE} Every answer names its sources; an unknown value is null, never made up.`,
    ...(shop.contactEmail === null ? [] : ['>', `> Contact: ${shop.contactEmail}`]),
    ...(context.sandbox ? ['>', `> **Sandbox.** ${SANDBOX_NOTICE}`] : []),
    '',
    '## Buy a first call',
    '',
    ...(trial === null
      ? []
      : [
          `1. \`GET ${baseUrl}/api/m2m/credits/trial\` gives a key with ${trial.creditsUsd} USD for ${trial.lifetimeDays} days, shown once.`,
        ]),
    ...(first === null
      ? ['Nothing is for sale at the moment.']
      : [
          `${trial === null ? '1' : '2'}. Send the key with any call:`,
          '',
          '```sh',
          curlOf(first, context),
          '```',
          '',
          `Try it first: ${DRY_RUN_RULE} ${PROBLEM_RULE}`,
        ]),
    '',
    ...byCard(context),
    ...byWallet(context),
    ...byMpp(context),
    '## Documents',
    '',
    ...links(context),
  ];
  for (const [tag, services] of tags) {
    lines.push('', `## ${tag}`, '');
    for (const service of services) {
      const { available } = context.availability(service);
      const state = available ? '' : ' Not for sale at the moment.';
      lines.push(
        link(
          service.name,
          `/x402/recipes/${service.path}`,
          `${priceWords(service)} USD. ${service.summary}${boundsWords(service)}${addressWords(service, context)}${state}`,
        ),
      );
    }
  }
  return `${lines.join('\n')}\n`;
}

/** The parts of OpenAPI by their addresses. */
function partsOf(context: DiscoveryContext): string {
  const addresses = [...openapiParts(context).keys()].map((part) => `/openapi/${part}.json`);
  return `the same in parts of less than 74 KB: ${addresses.join(', ')}`;
}

/** The section about buying credit by card; empty while cards are not charged. */
function byCard(context: DiscoveryContext): string[] {
  if (!context.cardCheckout) return [];
  const amounts = context.tiers.map(({ amountUsd }) => amountUsd).join(', ');
  return [
    '## Or buy credit by card',
    '',
    `- \`POST ${context.baseUrl}/api/m2m/credits/checkout/session\` with \`amountUsd\` (${amounts}) answers a page on which a person pays.`,
    `- \`POST ${context.baseUrl}/api/m2m/credits/purchase\` charges a card without a person. ${NEW_CUSTOMER_CAP.rule}`,
    '',
  ];
}

/** Where to read on. */
function links(context: DiscoveryContext): string[] {
  const { baseUrl } = context;
  const link = linkAt(baseUrl);
  return [
    link('Catalog', '/x402/catalog', 'every service with price and availability now'),
    link('OpenAPI', '/openapi.json', 'every operation with schemas and examples'),
    link('OpenAPI by tag', '/openapi/free.json', partsOf(context)),
    ...(sellsByName(context)
      ? [
          link(
            'OpenAPI for hosts that take few operations',
            CORE_PART,
            'search, keys, and `POST /api/call {service, input}`, which buys any service by its name',
          ),
        ]
      : []),
    link('Agent instructions', '/.well-known/agent-instructions.json', 'numbered steps to a first answer'),
    link('Capabilities', '/api/auth/capabilities', 'the ways to pay that work now'),
    ...(context.rails.x402 === null
      ? []
      : [link('Payment manifest', '/x402/payment-manifest.json', 'to whom a wallet pays, and how much')]),
    ...(context.rails.mpp === null
      ? []
      : [
          link('MPP catalog', '/mpp/catalog', 'what the Machine Payments Protocol buys, with amounts'),
          link('MPP manifest', '/.well-known/mpp.json', 'its methods, realm and services'),
        ]),
    ...(servesMcp(context)
      ? [
          `- MCP: \`${baseUrl}/mcp?toolset=core\` has search and call_service, in few tokens; at \`${baseUrl}/mcp\` every service is a tool. Set caps on a key before a model has it (PATCH /api/keys/me)`,
          link('MCP tools', '/mcp/services', 'each service with its tool and input'),
        ]
      : []),
    ...(servesA2a(context)
      ? [
          link(
            'A2A agent card',
            '/.well-known/agent-card.json',
            'every service is a skill, in A2A 0.3 and 1.0',
          ),
        ]
      : []),
    ...(serves(context, 'GET', YIELD_MANIFEST)
      ? [link('Yield', YIELD_MANIFEST, 'a vault of USDC on Base: rates, and transactions to sign')]
      : []),
    ...(serves(context, 'GET', SOLANA_YIELD_MANIFEST)
      ? [link('Yield on Solana', SOLANA_YIELD_MANIFEST, 'lending of USDC: rates, and transactions to sign')]
      : []),
    link('In full', '/llms-full.txt', 'every service with its input'),
    link('Documentation', '/docs', 'the same for people, with a form that sends a call'),
    ...(serves(context, 'GET', '/api/keys/me')
      ? [link('Keys', '/keys', 'for people: what a key holds and has spent')]
      : []),
  ];
}

/** A line of a list of links. */
function linkAt(baseUrl: string) {
  return (title: string, path: string, note: string) => `- [${title}](${baseUrl}${path}): ${note}`;
}

/** The section about paying from a wallet; empty while no chain takes payments. */
function byWallet(context: DiscoveryContext): string[] {
  const { x402 } = context.rails;
  if (x402 === null) return [];
  const first = firstServiceByWallet(context);
  const program = first === null ? null : walletProgramOf(first, context);
  return [
    '## Or pay from a wallet',
    '',
    `USDC by x402, version 2 or 1, on ${x402.networks.map(({ name }) => name).join(', ')}. No key, no account, no gas.`,
    '',
    ...(program === null ? [] : ['```js', program, '```', '']),
    ...Object.values(walletRules(context)).map((rule) => `- ${rule}`),
    '',
  ];
}

/** The section about paying by MPP; empty while MPP is off. */
function byMpp(context: DiscoveryContext): string[] {
  if (context.rails.mpp === null) return [];
  const first = firstServiceByMpp(context);
  const tokens = mppMethodsOf(context).map(
    ({ method, symbol, currency, network }) => `${method} (${symbol ?? currency} on ${network})`,
  );
  return [
    '## Or pay by the Machine Payments Protocol',
    '',
    `At the addresses below /mpp/, by ${tokens.join(' or ')}:`,
    '',
    ...soldByMpp(context).map(
      (service) => `- \`POST ${mppEndpointOf(service, context)}\`: ${service.priceUsd} USD`,
    ),
    '',
    ...(first === null ? [] : ['```sh', mppCommandOf(first, context) ?? '', '```', '']),
    ...Object.values(mppRules(context)).map((rule) => `- ${rule}`),
    '',
  ];
}

/** `/robots.txt`: anybody may read the documents. What is sold, or belongs to a key, is not a page. */
export function robotsText(context: DiscoveryContext): string {
  return [
    'User-agent: *',
    'Allow: /x402/catalog',
    'Allow: /api/x402/catalog',
    'Allow: /x402/recipes/',
    ...(context.rails.x402 === null ? [] : ['Allow: /x402/payment-manifest.json']),
    'Allow: /api/auth/capabilities',
    'Disallow: /x402/',
    ...(context.rails.mpp === null ? [] : ['Allow: /mpp/catalog', 'Disallow: /mpp/']),
    'Disallow: /api/',
    'Disallow: /keys',
    '',
    `Sitemap: ${context.baseUrl}/sitemap.xml`,
    '',
  ].join('\n');
}
