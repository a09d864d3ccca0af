/** The agent card, which A2A agents read before they send a message. It is rendered while `/a2a` is served. */
import { X402_EXTENSIONS } from '../a2a/extensions.ts';
import { sandboxFields } from '../http/sandbox-notice.ts';
import { aboutTool } from '../service/tool-words.ts';
import { CHARGING_RULE } from './call-errors.ts';
import { CARD_KEYS_PATH, withoutEmpty } from './card-signature.ts';
import { type DiscoveryContext, serves } from './context.ts';

const DESCRIPTION =
  'Single calls of many services for agents, paid one by one, with no account. A message chooses a skill by a data part {"skill":"…","input":{…}}.';
const MODES = ['application/json', 'text/plain'];
const API_KEY = 'A key that holds prepaid credit. Not needed to pay from a wallet.';

export function servesA2a(context: DiscoveryContext): boolean {
  return serves(context, 'POST', '/a2a');
}

/** The version of the card that a reader gets. A reader that names no version gets the older one. */
export function cardVersionOf(sent: string | undefined): string {
  return /^\s*1(\.|\s*$)/.test(sent ?? '') ? '1.0' : '';
}

/** `/.well-known/jwks.json`: the keys by which the card is signed. Null while A2A is off. */
export function cardKeysDocument(context: DiscoveryContext) {
  return servesA2a(context) ? { keys: context.cardSigner.keys } : null;
}

/**
 * `/.well-known/agent-card.json`. Null while A2A is off.
 *
 * @param version 1.0, or empty for 0.3 with the addresses of both
 */
export function agentCardDocument(context: DiscoveryContext, version: string) {
  if (!servesA2a(context)) return null;
  const { baseUrl, shop } = context;
  const url = `${baseUrl}/a2a`;
  const common = {
    name: shop.name,
    description: `${DESCRIPTION} ${CHARGING_RULE}`,
    version: context.version,
    provider: { organization: shop.name, url: `${baseUrl}/` },
    documentationUrl: `${baseUrl}/docs`,
    iconUrl: shop.logoUrl ?? `${baseUrl}/favicon.svg`,
    capabilities: capabilitiesOf(context),
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: skillsOf(context),
    supportedInterfaces: interfacesAt(url),
  };
  if (version === '1.0') {
    const securitySchemes = {
      apiKey: { apiKeySecurityScheme: { location: 'header', name: 'X-API-KEY', description: API_KEY } },
      bearerKey: { httpAuthSecurityScheme: { scheme: 'Bearer', description: API_KEY } },
    };
    const card = {
      ...common,
      securitySchemes,
      // By no more than it takes: what is empty is not signed, so it is not said either.
      securityRequirements: [{ schemes: { apiKey: {} } }, { schemes: { bearerKey: {} } }, {}],
    };
    return signed(context, card, [card, common]);
  }
  const card = {
    ...common,
    protocolVersion: '0.3.0',
    url,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [
      { url, transport: 'JSONRPC' },
      { url, transport: 'HTTP+JSON' },
    ],
    securitySchemes: {
      apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY', description: API_KEY },
      bearerKey: { type: 'http', scheme: 'Bearer', description: API_KEY },
    },
    security: [{ apiKey: [] }, { bearerKey: [] }, {}],
  };
  return signed(context, card, [common]);
}

/**
 * A card with a signature for each reading of it: first as it is published, which is the form of the specification.
 *
 * @param readings what the published SDKs sign and verify in place of it, whichever its version: the fields that 1.0 has,
 * without what is empty. The one for JavaScript (1.3.0) loses the security schemes before it verifies what its client fetched.
 */
function signed<Card extends object>(context: DiscoveryContext, card: Card, readings: readonly object[]) {
  const published = { ...sandboxFields(context.sandbox), ...card };
  const forms = [published, ...readings.map((each) => withoutEmpty(each) ?? {})];
  const signatures = context.cardSigner.sign(forms, `${context.baseUrl}${CARD_KEYS_PATH}`);
  return { ...published, signatures };
}

/** Over HTTP and JSON the same addresses serve both versions; a client of 0.3 adds the `/v1` to the address by itself. */
function interfacesAt(url: string) {
  return [
    { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: `${url}/v1`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    { url, protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
  ];
}

function capabilitiesOf(context: DiscoveryContext) {
  const { x402 } = context.rails;
  const params = {
    x402Version: 2,
    networks: x402?.networks.map(({ network }) => network) ?? [],
    pricesUsd: Object.fromEntries(context.services.map(({ path, priceUsd }) => [path, priceUsd])),
  };
  const description = 'A skill can be paid for from a wallet by x402 instead of with a key.';
  const [first, ...others] = X402_EXTENSIONS;
  // Neither is required, and no list is empty: a card states no defaults, for which its signature has two forms.
  const extensions = [{ uri: first, description, params }, ...others.map((uri) => ({ uri, description }))];
  return {
    streaming: true,
    pushNotifications: false,
    extendedAgentCard: false,
    ...(x402 === null ? {} : { extensions }),
  };
}

function skillsOf(context: DiscoveryContext) {
  return context.services.map((service) => {
    const { path, name, tag, example, mediaType } = service;
    const availability = context.availability(service);
    const { available } = availability;
    return {
      id: path,
      name,
      description: aboutTool(service, availability),
      tags: [tag, ...(available ? [] : ['not for sale now'])],
      examples: [JSON.stringify({ skill: path, input: example })],
      inputModes: ['application/json'],
      outputModes: [mediaType],
    };
  });
}
