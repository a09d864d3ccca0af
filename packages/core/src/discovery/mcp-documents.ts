/** The documents that MCP clients, their registries and browsers read before they connect. They are rendered while `/mcp` is served. */
import { sandboxMark } from '../http/sandbox-notice.ts';
import { toolNameOf } from '../service/tool-name.ts';
import { toolSchemaOf } from '../service/tool-schema.ts';
import { aboutTool, titleOf } from '../service/tool-words.ts';
import { untrustedInErrorsOf, untrustedPathsOf } from '../service/untrusted.ts';
import { CHARGING_RULE } from './call-errors.ts';
import { trialOf } from './capabilities.ts';
import { type DiscoveryContext, serves, shopOf } from './context.ts';

/** The newest protocol version of each line that `/mcp` speaks. */
const PROTOCOL_VERSIONS = ['2025-11-25', '2026-07-28'];
const SERVER_SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
/** The longest description that the registry of MCP servers accepts. */
const MAX_DESCRIPTION = 100;
const DESCRIPTION = 'Single calls of many services for agents, paid one by one, with no account.';

/** The address that clients are recommended: the free tools, and the one that buys any service, in few tokens. */
export const coreAt = (baseUrl: string) => `${baseUrl}/mcp?toolset=core`;

export function servesMcp(context: DiscoveryContext): boolean {
  return serves(context, 'POST', '/mcp');
}

/**
 * `/.well-known/mcp.json` and `/.well-known/mcp/server-card.json`: where the server is and how to pay there. Neither is
 * a standard yet; both use the names of the draft. Null while MCP is off.
 */
export function mcpDocument(context: DiscoveryContext) {
  if (!servesMcp(context)) return null;
  const { product, version, baseUrl } = context;
  return {
    ...shopOf(context),
    version,
    description: `${DESCRIPTION} ${CHARGING_RULE}`,
    serverInfo: { name: product.toLowerCase(), title: product, version },
    protocolVersion: PROTOCOL_VERSIONS[0],
    protocolVersions: PROTOCOL_VERSIONS,
    transport: { type: 'streamable-http', endpoint: '/mcp?toolset=core', url: coreAt(baseUrl) },
    allTools: `${baseUrl}/mcp`,
    capabilities: { tools: {}, resources: {}, prompts: {} },
    authentication: waysToPay(context),
    tools: context.services.length,
    documentation: `${baseUrl}/docs`,
  };
}

/** `/server.json`: an entry of the registry of MCP servers. Null while MCP is off. */
export function mcpServerDocument(context: DiscoveryContext) {
  if (!servesMcp(context)) return null;
  const { product, version, baseUrl } = context;
  return {
    $schema: SERVER_SCHEMA,
    name: `${reverseOf(new URL(baseUrl).hostname)}/${product.toLowerCase()}`,
    title: context.shop.name,
    description: DESCRIPTION.slice(0, MAX_DESCRIPTION),
    version,
    websiteUrl: `${baseUrl}/`,
    remotes: [
      {
        type: 'streamable-http',
        url: coreAt(baseUrl),
        headers: [
          {
            name: 'X-API-KEY',
            description:
              'A key that holds prepaid credit. Not needed for free tools, nor to pay from a wallet.',
            isRequired: false,
            isSecret: true,
          },
        ],
      },
    ],
  };
}

/** `/mcp/services` and `/.well-known/mcp-integration.json`: each service with its tool. Null while MCP is off. */
export function mcpIntegrationDocument(context: DiscoveryContext) {
  if (!servesMcp(context)) return null;
  const { version, baseUrl, shop } = context;
  return {
    title: `${shop.name} over MCP`,
    version,
    audience: 'agents and those who build them',
    summary: CHARGING_RULE,
    paths: {
      pathA: { title: 'Connect an MCP client', url: coreAt(baseUrl), transport: 'streamable-http' },
      pathB: { title: 'Call the services over HTTP', url: `${baseUrl}/x402/catalog` },
    },
    payment: waysToPay(context),
    serviceDiscovery: {
      catalog: `${baseUrl}/x402/catalog`,
      mcpServices: `${baseUrl}/mcp/services`,
      openapi: `${baseUrl}/openapi.json`,
    },
    mcpServiceMap: context.services.map((service) => ({
      ...sandboxMark(context.sandbox),
      mcpTool: toolNameOf(service),
      serviceId: service.path,
      endpoint: `${baseUrl}/x402/${service.path}`,
      method: 'POST',
      priceUsd: service.priceUsd,
      available: context.availability(service).available,
      inputSchema: toolSchemaOf(service),
    })),
  };
}

/**
 * `/.well-known/webmcp.json`: the tools that our pages offer to a browser with agent support, and the MCP server behind
 * them.
 */
export function webToolsDocument(context: DiscoveryContext) {
  if (!servesMcp(context)) return null;
  const { product, version, baseUrl, shop } = context;
  return {
    schemaVersion: '1',
    name: shop.name,
    description: DESCRIPTION,
    version,
    provider: { name: shop.name, url: `${baseUrl}/` },
    mcpServers: {
      [product.toLowerCase()]: {
        type: 'http',
        url: coreAt(baseUrl),
        description: DESCRIPTION,
        authentication: waysToPay(context),
      },
    },
    protocols: ['mcp', 'x402', ...(context.rails.mpp === null ? [] : ['mpp'])],
    openapi: `${baseUrl}/openapi.json`,
    tools: context.services.map((service) => ({
      name: toolNameOf(service),
      title: titleOf(service),
      serviceName: service.name,
      description: aboutTool(service, context.availability(service)),
      inputSchema: toolSchemaOf(service),
      annotations: { readOnlyHint: false, destructiveHint: false },
      endpoint: `${baseUrl}/x402/${service.path}`,
      priceUsd: service.priceUsd,
      untrusted: untrustedPathsOf(service),
      untrustedInErrors: untrustedInErrorsOf(service),
    })),
  };
}

/** How a tool call is paid for. */
function waysToPay(context: DiscoveryContext) {
  const { x402, mpp } = context.rails;
  return {
    required: false,
    apiKey: { header: 'X-API-KEY', freeTrial: trialOf(context) },
    x402:
      x402 === null ? null : { meta: 'x402/payment', networks: x402.networks.map(({ network }) => network) },
    mpp:
      mpp === null
        ? null
        : { meta: 'org.paymentauth/credential', methods: mpp.methods.map(({ method }) => method) },
  };
}

/** A host name in reverse order, as the registry names servers. */
function reverseOf(host: string): string {
  return /^[\d.]+$|:/.test(host) ? 'local' : host.split('.').reverse().join('.');
}
