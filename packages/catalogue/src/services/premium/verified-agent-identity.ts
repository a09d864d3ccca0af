import type { Identities, RegisteredIdentity } from '@farebox/core/service/define';
import { agentIdText, nameText as line } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { ServiceFailure, UpstreamUnavailable } from '@farebox/core/words/failure';
import { type Address, BaseError, erc721Abi, type Hex, verifyMessage, zeroAddress } from 'viem';
import { z } from 'zod';
import type { EvmChain } from '../../upstreams/adapters/evm.ts';
import { defineService } from '../define.ts';
import { agentUriOf, MAX_AGENT_URI_BYTES, registrationFile } from '../shared/chain/registration-file.ts';
import { evmAddress } from '../shared/wallet/wallet-address.ts';

// A name of one line, because it is part of a message that is signed, in which a second line would be a second
// statement.

const MAX_CAPABILITIES = 32;
const MAX_SERVICES = 8;
/** Room for the signature of a wallet that is yet to be deployed (ERC-6492). */
const MAX_SIGNATURE_BYTES = 2_048;

/** Clients may send only an address, which is then used as the agent's name. */
function addressAsName(body: Record<string, unknown>): Record<string, unknown> {
  const agentId = body.agentId ?? body.walletAddress;
  const agentName = body.agentName ?? (body.walletAddress === undefined ? undefined : agentId);
  return { ...body, agentId, agentName };
}

/** The statement that the owner of a wallet signs to show that the agent is theirs. */
function statement(agentId: string, wallet: string, registry: string): string {
  return `ERC-8004 agent identity\nagentId: ${agentId}\nwallet: ${wallet}\nregistry: ${registry}`;
}

const input = z
  .object({
    agentId: agentIdText('Your own name for the agent; it can be registered once'),
    agentName: line(100, 'Name in the registration file'),
    capabilities: z
      .array(line(64, 'One capability'))
      .max(MAX_CAPABILITIES)
      .default([])
      .describe(`What the agent can do, in your words; at most ${MAX_CAPABILITIES}`),
    description: line(500, 'What the agent is, for the registration file').optional(),
    image: z
      .url({ protocol: /^(https|ipfs)$/ })
      .max(300)
      .optional()
      .describe('Address of a picture of the agent'),
    services: z
      .array(
        z.object({
          name: line(32, 'Such as web, A2A, MCP, OASF, ENS, DID or email'),
          endpoint: line(300, 'Where the agent is reached'),
          version: line(32, 'Version of the protocol').optional(),
        }),
      )
      .max(MAX_SERVICES)
      .default([])
      .describe(`Where the agent is reached; at most ${MAX_SERVICES}`),
    x402Support: z.boolean().optional().describe('Whether the agent takes x402 payments'),
    walletAddress: evmAddress('Wallet that gets the identity; without it the registrar keeps it')
      .refine((address) => address !== zeroAddress, 'must not be the zero address')
      .optional(),
    signature: z
      .string()
      .regex(/^0x([0-9a-fA-F]{2})+$/, 'must be 0x and hex digits')
      .max(2 + 2 * MAX_SIGNATURE_BYTES)
      .transform((hex): Hex => `0x${hex.slice(2)}`)
      .optional()
      .describe(
        `walletAddress’s signature (EIP-191; smart wallets by ERC-1271 or 6492) of the four lines "${statement('<agentId>', '<walletAddress with checksum>', 'eip155:<chainId>:<registry>')}"`,
      ),
  })
  .refine(({ signature, walletAddress }) => signature === undefined || walletAddress !== undefined, {
    path: ['walletAddress'],
    message: 'is required with a signature',
  })
  .refine((agent) => agentUriOf(registrationFile(agent)).length <= MAX_AGENT_URI_BYTES, {
    path: ['services'],
    message: `the registration file is too long: as a data: URI it may have ${MAX_AGENT_URI_BYTES} bytes. Say less in services, capabilities or description`,
  });

export default defineService({
  path: 'verified-agent-identity',
  name: 'Verified Agent Identity',
  tag: 'Premium',
  priceUsd: '5.00',
  featured: true,
  summary:
    'Registers your agent on the ERC-8004 identity registry, hands the identity to your wallet and gives the transactions.',
  keywords:
    'identity register registration registry erc8004 erc-8004 nft on chain verify verifiable verified prove proof who credential passport reputation agent bot trust others id badge',
  input,
  output: z.object({
    agentId: z.string().describe('Your own name for the agent'),
    agentName: z.string().describe('As asked'),
    status: z.literal('registered').describe('Always registered'),
    tokenId: z.string().describe('The registry’s number of the agent, a uint256; numbers start at 0'),
    owner: z.string().describe('Who holds the identity'),
    transactionHash: z.string().describe('The registration'),
    transferTransactionHash: z.string().nullable().describe('The hand-over to walletAddress'),
    agentURI: z.string().describe('The registration file as a data: URI, as it stands on chain'),
    registrationFile: z.record(z.string(), z.unknown()).describe('What the registry points to'),
    registration: z
      .object({
        standard: z.literal('ERC-8004').describe('The standard'),
        chainId: z.number().int().describe('EIP-155 id of the chain'),
        registry: z.string().describe('Address of the registry'),
        agentRegistry: z.string().describe('The registry as CAIP-10'),
      })
      .describe('Where it is registered'),
    verified: z.boolean().describe('True only if walletAddress’s signature was checked'),
    verifiedStatement: z.string().nullable().describe('What was signed'),
  }),
  example: {
    agentId: 'my-agent',
    agentName: 'My agent',
    capabilities: ['market-data'],
    walletAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  },
  aliases: {
    agentAddress: 'walletAddress',
    wallet: 'walletAddress',
    address: 'walletAddress',
    owner: 'walletAddress',
    name: 'agentName',
    endpoints: 'services',
    proof: 'signature',
  },
  adapt: addressAsName,
  needs: ['base'],
  requires: ['identities'],
  effect: 'write',
  timeoutMs: 25_000,
  async beforeSettling(agent, { identities, upstreams, call }) {
    await signedStatement(agent, upstreams.base, registryIdOf(identities));
    await identities.claim({ callId: call.callId, agentId: agent.agentId });
  },
  async run(agent, { identities, upstreams, call }) {
    const registryId = registryIdOf(identities);
    const signed = await signedStatement(agent, upstreams.base, registryId);
    const file = registrationFile(agent);
    const registered = await identities.register({
      callId: call.callId,
      agentId: agent.agentId,
      agentUri: agentUriOf(file),
      owner: agent.walletAddress ?? null,
    });
    const read = await readBack(upstreams.base, identities, registered);
    const notes = [
      signed === null
        ? 'verified is false: no signature was given, so nobody has shown that walletAddress is theirs.'
        : 'verified: walletAddress signed for this agentId. Nothing else about the agent was checked.',
      'The file lists no registrations, since its number was not known when it was written.',
    ];
    if (agent.walletAddress === undefined) {
      notes.push('No walletAddress was given: the registrar holds the identity.');
    }
    if (read === null)
      notes.push('The identity could not be read back: owner is by the transactions’ own logs.');
    return answer(
      {
        agentId: agent.agentId,
        agentName: agent.agentName,
        status: 'registered' as const,
        tokenId: String(registered.tokenId),
        owner: read?.owner ?? registered.owner,
        transactionHash: registered.registerTransaction,
        transferTransactionHash: registered.transferTransaction,
        agentURI: read?.agentUri ?? registered.agentUri,
        registrationFile: { ...file },
        registration: {
          standard: 'ERC-8004' as const,
          chainId: identities.chainId,
          registry: identities.registry,
          agentRegistry: registryId,
        },
        verified: signed !== null,
        verifiedStatement: signed,
      },
      {
        method:
          'register(agentURI) on the ERC-8004 registry, transferFrom to walletAddress, then ownerOf and tokenURI read back.',
        sources: read === null ? [] : [read.source],
        notes,
      },
    );
  },
});

function registryIdOf({ chainId, registry }: Identities): string {
  return `eip155:${chainId}:${registry}`;
}

/** Reads what the agent's wallet signed; null when there is no signature. @throws ServiceFailure 400 when it is not the wallet's */
async function signedStatement(
  { agentId, walletAddress, signature }: z.output<typeof input>,
  chain: EvmChain,
  registryId: string,
): Promise<string | null> {
  if (signature === undefined || walletAddress === undefined) return null;
  return checkSignature(chain, walletAddress, statement(agentId, walletAddress, registryId), signature);
}

/**
 * The signed statement, once the signature is proven to be the wallet's.
 *
 * @throws ServiceFailure 400 when it is not
 */
async function checkSignature(
  chain: EvmChain,
  wallet: Address,
  message: string,
  signature: Hex,
): Promise<string> {
  const asked = { address: wallet, message, signature };
  // Most wallets are plain keys, which can be checked without a node. Anything that is not such a signature throws.
  const byKey = await verifyMessage(asked).catch(() => false);
  if (byKey || (await chain.client.verifyMessage(asked))) return message;
  throw new ServiceFailure({
    status: 400,
    code: 'SIGNATURE_INVALID',
    message: `This is not the signature of ${wallet} for ${JSON.stringify(message)}.`,
    field: 'signature',
  });
}

/** The identity as it is on the chain; null when it cannot be read now, which does not affect it. */
async function readBack(
  chain: EvmChain,
  { registry }: Identities,
  { tokenId }: RegisteredIdentity,
): Promise<{ owner: Address; agentUri: string; source: Source } | null> {
  const asked = { address: registry, abi: erc721Abi, args: [tokenId] } as const;
  try {
    const [block, owner, agentUri] = await Promise.all([
      chain.client.getBlock(),
      chain.client.readContract({ ...asked, functionName: 'ownerOf' }),
      chain.client.readContract({ ...asked, functionName: 'tokenURI' }),
    ]);
    const at = { blockNumber: block.number, timestampMs: Number(block.timestamp) * 1_000 };
    return { owner, agentUri, source: chain.source(at) };
  } catch (error) {
    // The node is down, or a block behind.
    if (error instanceof UpstreamUnavailable || error instanceof BaseError) return null;
    throw error;
  }
}
