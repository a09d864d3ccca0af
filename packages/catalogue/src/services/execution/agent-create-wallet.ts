import type { ManagedWallet } from '@farebox/core/service/define';
import { agentIdText, chainName, nameText, text } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { CHAINS } from '@farebox/core/words/chain-names';
import { ServiceFailure } from '@farebox/core/words/failure';
import { z } from 'zod';
import { defineService } from '../define.ts';

/** Clients that do not know `agentId` send some kind of name. */
function nameAsAgentId(body: Record<string, unknown>): Record<string, unknown> {
  return body.agentId === undefined ? { ...body, agentId: body.agentName ?? body.label } : body;
}

/** Addresses for what can be done with a wallet. */
function manageOf(baseUrl: string, { walletId }: ManagedWallet) {
  const url = `${baseUrl}/api/wallets/${walletId}`;
  return { facts: url, export: `${url}/export`, delete: url };
}

/** The refusal of a wallet that the buyer has: it is paid for once. */
function walletExists(baseUrl: string, wallet: ManagedWallet): ServiceFailure {
  const manage = manageOf(baseUrl, wallet);
  const { walletId, addresses } = wallet;
  return new ServiceFailure({
    status: 422,
    code: 'WALLET_EXISTS',
    message: `You have a wallet for this agentId: ${walletId}. Its key is exported with the walletSecret that the first answer showed, in X-Wallet-Secret, or with a key of the account that paid, at ${manage.export}. For another wallet use another agentId; case does not count.`,
    field: 'agentId',
    details: { wallet: { walletId, addresses, manage } },
  });
}

const networks = z
  .preprocess(
    (value) => (typeof value === 'string' || typeof value === 'number' ? [value] : value),
    z.array(chainName).min(1).max(CHAINS.length),
  )
  .default(['base'])
  .describe(
    'Chains that the wallet is for; base unless given. One address on all EVM chains, another on Solana',
  );

export default defineService({
  path: 'agent-create-wallet',
  name: 'Agent Wallet Creator',
  tag: 'Execution',
  priceUsd: '2.00',
  summary:
    'A managed wallet for an agent, its key kept encrypted until you export or delete it. Each agentId has one, paid once.',
  keywords:
    'create open managed custodial custody hosted keep keeps store safekeeping look after wallet account bot agent persistent agentid solana deposit address',
  input: z.object({
    agentId: agentIdText('Your name for the agent, in any case: it has one wallet'),
    agentName: nameText(200, 'A name to show').optional(),
    networks,
    purpose: text(500, 'What the wallet is for, echoed').optional(),
  }),
  output: z.object({
    wallet_id: z.string().describe('Names the wallet in later requests'),
    walletId: z.string().describe('The same as wallet_id'),
    wallet_address: z.string().describe('Address on the first of networks'),
    walletAddress: z.string().describe('The same as wallet_address: of the first of networks'),
    agentId: z.string().describe('As first asked'),
    agentName: z.string().nullable().describe('As first asked; null where none was given'),
    networks: z.array(z.enum(CHAINS)).describe('Chains that it has an address on'),
    addresses: z
      .array(
        z.object({
          network: z.enum(CHAINS).describe('The chain'),
          address: z.string().describe('Its address there'),
        }),
      )
      .describe('Its address on each chain'),
    custody_type: z
      .literal('managed')
      .describe('This server keeps the key, encrypted, and signs nothing with it'),
    purpose: z.string().nullable().describe('As first asked; null where none was given'),
    status: z.literal('active').describe('Always active'),
    created: z.boolean().describe('False when networks were added'),
    created_at: z.string().describe('ISO 8601'),
    walletSecret: z
      .string()
      .nullable()
      .describe(
        'Exports and deletes the wallet, in X-Wallet-Secret. Shown once: null when networks were added',
      ),
    manage: z
      .object({
        facts: z.string().describe('GET: what this server knows of the wallet'),
        export: z.string().describe('POST: the private key'),
        delete: z.string().describe('DELETE: the key is destroyed'),
      })
      .describe('Addresses for what can be done with it'),
    requestId: z.string().describe('Names this call'),
  }),
  example: { agentId: 'my-agent', agentName: 'My agent', networks: ['base'] },
  aliases: {
    name: 'agentName',
    chain: 'networks',
    chains: 'networks',
    network: 'networks',
    blockchain: 'networks',
  },
  adapt: nameAsAgentId,
  requires: ['custody'],
  effect: 'write',
  secretAnswer: true,
  async beforeSettling({ agentId, networks }, { custody, call, baseUrl }) {
    const wallet = await custody.claim({ callId: call.callId, agentId, networks });
    if (wallet !== null) throw walletExists(baseUrl, wallet);
  },
  async run(input, { custody, call, baseUrl }) {
    const { wallet, bought, walletSecret } = await custody.walletFor({
      callId: call.callId,
      agentId: input.agentId,
      agentName: input.agentName ?? null,
      purpose: input.purpose ?? null,
      networks: input.networks,
    });
    if (bought === 'nothing') throw walletExists(baseUrl, wallet);
    const [first] = wallet.addresses;
    if (first === undefined) throw new Error(`wallet ${wallet.walletId} has no address`);
    const created = bought === 'wallet';
    return answer(
      {
        wallet_id: wallet.walletId,
        walletId: wallet.walletId,
        wallet_address: first.address,
        walletAddress: first.address,
        agentId: wallet.agentId,
        agentName: wallet.agentName,
        networks: wallet.addresses.map(({ network }) => network),
        addresses: wallet.addresses,
        custody_type: 'managed' as const,
        purpose: wallet.purpose,
        status: 'active' as const,
        created,
        created_at: new Date(wallet.createdAtMs).toISOString(),
        walletSecret,
        manage: manageOf(baseUrl, wallet),
        requestId: call.callId,
      },
      {
        method:
          'A key from the system’s random generator, stored under AES-256-GCM with a data key of its own, which is under the operator’s key.',
        notes: [
          'This server signs nothing with the key: export it to use the wallet.',
          'Export and delete also take X-API-KEY with a key of the account that paid, if credits did.',
          created
            ? 'Save walletSecret now: it is shown once.'
            : 'This agentId had its wallet before: networks that it lacked were added, and its secret, name and purpose stay as they were.',
        ],
      },
    );
  },
});
