/**
 * The registration file of ERC-8004: what an identity's URI leads to. Here the URI is the file itself, in base64, so
 * that it needs no host and can be read from the chain alone. https://eips.ethereum.org/EIPS/eip-8004
 */
const FILE_TYPE = 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1';
const URI_PREFIX = 'data:application/json;base64,';

/** Each 32 bytes of the URI are a storage slot on chain, about 22,000 gas. */
export const MAX_AGENT_URI_BYTES = 4_096;

export interface AgentDescription {
  agentId: string;
  agentName: string;
  description?: string | undefined;
  image?: string | undefined;
  capabilities: readonly string[];
  services: readonly { name: string; endpoint: string; version?: string | undefined }[];
  x402Support?: boolean | undefined;
}

/**
 * The file. What the caller did not say is left out, except that `description` is a must of the standard.
 * `registrations` is empty: the identity's number is not known before it is registered.
 */
export function registrationFile(agent: AgentDescription) {
  return {
    type: FILE_TYPE,
    name: agent.agentName,
    description: agent.description ?? `Agent ${agent.agentId}`,
    ...(agent.image === undefined ? {} : { image: agent.image }),
    services: agent.services,
    ...(agent.x402Support === undefined ? {} : { x402Support: agent.x402Support }),
    active: true,
    registrations: [],
    // Not of the standard, which lets a file have more: what the registering party calls the agent, and what it can do.
    externalId: agent.agentId,
    capabilities: agent.capabilities,
  };
}

/** The file as a `data:` URI. */
export function agentUriOf(file: ReturnType<typeof registrationFile>): string {
  return URI_PREFIX + Buffer.from(JSON.stringify(file)).toString('base64');
}
