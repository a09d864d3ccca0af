import { freshKey, writtenKey } from '@farebox/core/custody/fresh-key';
import { chainName } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { CHAINS, type ChainName } from '@farebox/core/words/chain-names';
import { z } from 'zod';
import { evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import { SOLANA_USDC_MINT } from '../../upstreams/adapters/solana.ts';
import { defineService } from '../define.ts';

const ANSWER_NOTE =
  'No wallet is kept here. An answer that can be asked for again with the same payment is stored for that, encrypted, and then deleted.';

export default defineService({
  path: 'instant-agent-wallet',
  name: 'Instant Agent Wallet',
  tag: 'Execution',
  priceUsd: '1.00',
  featured: true,
  summary:
    'A fresh wallet at once: address and private key, made for this answer. This server keeps no wallet.',
  keywords:
    'generate create new fresh disposable throwaway wallet keypair key pair private seed address burner ephemeral account self custody offline',
  input: z.object({
    chain: chainName
      .default('base')
      .describe('Chain that the wallet is for, such as "base"; base unless given'),
  }),
  output: z.object({
    walletAddress: z.string().describe('Address of the new wallet'),
    address: z.string().describe('The same as walletAddress'),
    chain: z.enum(CHAINS).describe('The chain, by name'),
    chainId: z.number().int().nullable().describe('EIP-155 id; null on Solana'),
    privateKey: z.string().describe('0x and 64 hex digits; on Solana base58 of 64 bytes'),
    createdAt: z.string().describe('ISO 8601'),
    ephemeral: z.literal(true).describe('No wallet is kept here'),
    fundingInstructions: z
      .object({
        asset: z.literal('USDC').describe('What to send'),
        contract: z.string().describe("The token's address on this chain"),
        to: z.string().describe('Where to send it'),
      })
      .describe('How to put money on it'),
    warning: z.string().describe('What to mind with the key'),
  }),
  example: { chain: 'base' },
  aliases: { network: 'chain', blockchain: 'chain', chainId: 'chain' },
  secretAnswer: true,
  async run({ chain }, { nowMs }) {
    const key = freshKey(chain === 'solana' ? 'solana' : 'evm');
    return answer(
      {
        walletAddress: key.address,
        address: key.address,
        chain,
        chainId: chain === 'solana' ? null : evmChainFacts(chain).chainId,
        privateKey: writtenKey(key),
        createdAt: new Date(nowMs()).toISOString(),
        ephemeral: true as const,
        fundingInstructions: { asset: 'USDC' as const, contract: usdcOn(chain), to: key.address },
        warning:
          'Save the private key now: it is not kept here, and what is sent to the address is lost without it.',
      },
      {
        method: `A key from the system’s random generator on ${chain === 'solana' ? 'ed25519' : 'secp256k1'}.`,
        notes: [ANSWER_NOTE, ...notesOn(chain)],
      },
    );
  },
});

function notesOn(chain: ChainName): string[] {
  if (chain === 'solana') return [];
  const notes = ['The same key and address work on every EVM chain; only the USDC contract differs.'];
  if (chain === 'bsc') notes.push('USDC on bsc is a bridged token with 18 decimals, not issued by Circle.');
  return notes;
}

function usdcOn(chain: ChainName): string {
  return chain === 'solana' ? SOLANA_USDC_MINT : evmChainFacts(chain).usdc;
}
