import { parseAbi } from 'viem';

/**
 * The part of the ERC-8004 identity registry (an ERC-721) that is used here.
 * https://github.com/erc-8004/erc-8004-contracts
 */
export const registryAbi = parseAbi([
  'function register(string agentURI) returns (uint256 agentId)',
  'function transferFrom(address from, address to, uint256 tokenId)',
  'event Registered(uint256 indexed agentId, string agentURI, address indexed owner)',
]);

/** The same address on all its main networks. */
export const ERC8004_IDENTITY_REGISTRY = '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432';
