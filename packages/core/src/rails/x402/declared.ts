import { z } from 'zod';
import { declare, evmAddress, evmKey, list, type Surroundings, url } from '../../declared.ts';
import { upstreamBaseUrlVariable } from '../../words/upstream-variables.ts';
import { NETWORK_NAMES, type NetworkName } from './networks.ts';
import { readSolanaKey } from './solana-key.ts';

const solanaKey = z.string().refine((value) => {
  try {
    readSolanaKey(value);
    return true;
  } catch {
    return false;
  }
}, 'must be a Solana private key (base58 of 64 bytes, or a JSON list of them), aws-kms:KEY@ADDRESS or signer:SOCKET@ADDRESS');

export const X402 = declare({
  name: 'x402',
  variables: {
    networks: {
      name: 'X402_NETWORKS',
      describe:
        'Chains to offer, of `base`, `ethereum`, `polygon`, `arbitrum`, `solana`. One is offered when its node, a recipient and a settler are configured',
      shape: list(z.enum(NETWORK_NAMES, `must be names of ${NETWORK_NAMES.join(', ')}`)),
      fallback: '',
    },
    recipient: {
      name: 'X402_RECIPIENT',
      describe: 'Recipient of USDC on EVM chains',
      shape: evmAddress,
      fallback: null,
    },
    recipientSolana: {
      name: 'X402_RECIPIENT_SOLANA',
      describe: 'Recipient of USDC on Solana: the owner of an existing token account',
      shape: z
        .string()
        .regex(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/, 'must be a base58 address: the owner, not the token account'),
      fallback: null,
    },
    facilitatorUrls: {
      name: 'FACILITATOR_URL',
      describe: 'x402 facilitators in order of preference, comma-separated; if one fails, the next is asked',
      shape: list(url),
      fallback: '',
    },
    facilitatorToken: {
      name: 'FACILITATOR_TOKEN',
      describe: 'Bearer token for the facilitators',
      shape: z.string().min(8, 'must have at least 8 characters'),
      fallback: null,
      secret: true,
      renewed: true,
    },
    relayerKeys: {
      name: 'X402_RELAYER_KEYS',
      describe:
        'Keys of our own settler, comma-separated: private keys, or keys [kept elsewhere](upgrading.md#keys-that-sign-transactions). With one, EVM payments need no facilitator',
      shape: list(evmKey),
      fallback: '',
      secret: true,
    },
    refundKeys: {
      name: 'X402_REFUND_KEYS',
      describe:
        'Keys that hold USDC and gas for refunds. Without one, services that are charged before they run are not sold for x402',
      shape: list(evmKey),
      fallback: '',
      secret: true,
    },
    walletFactories: {
      name: 'X402_WALLET_FACTORIES',
      describe:
        'Contracts that our settler may call to deploy a smart wallet with its first payment (ERC-6492). Name only factories that run no code of the caller’s choice. By default those of Coinbase Smart Wallet 1.0 and 1.1',
      shape: list(evmAddress),
      fallback: '0x0BA5ED0c6AA8c49038F819E587E2633c4A9F428a,0xBA5ED110eFDBa3D005bfC882d75358ACBbB85842',
    },
    gasTokenUsd: {
      name: 'X402_GAS_TOKEN_USD',
      describe:
        'Assumed price of one unit of each chain’s own currency, in whole USD. Better too high than too low, because a settlement may not cost more gas than its price is worth',
      shape: list(
        z
          .string()
          .regex(/^[a-z]+:[1-9]\d{0,6}$/, 'must be prices in whole USD, such as base:4000,polygon:1')
          .transform((value): [string, number] => [value.split(':')[0] ?? '', Number(value.split(':')[1])])
          .refine(
            ([name]) => NETWORK_NAMES.some((known) => known === name),
            'must name chains of X402_NETWORKS',
          ),
      ).transform((prices): Partial<Record<NetworkName, number>> => Object.fromEntries(prices)),
      fallback: 'base:4000,ethereum:4000,arbitrum:4000,polygon:1',
    },
    relayerKeySolana: {
      name: 'X402_RELAYER_KEY_SOLANA',
      describe:
        'Key of our own settler on Solana: a private key in base58 or as a JSON list, or a key [kept elsewhere](upgrading.md#keys-that-sign-transactions). With it, Solana payments need no facilitator. It needs SOL and nothing else',
      shape: solanaKey,
      fallback: null,
      secret: true,
    },
    refundKeySolana: {
      name: 'X402_REFUND_KEY_SOLANA',
      describe:
        'Key in the same forms that holds USDC and SOL for refunds on Solana. Without it, services that are charged before they run are not sold there',
      shape: solanaKey,
      fallback: null,
      secret: true,
    },
  },
  problems(values, { production, other }) {
    const { networks = [], recipient, recipientSolana } = values;
    return networks.flatMap((name) => {
      const [variable, wallet] =
        name === 'solana' ? ['X402_RECIPIENT_SOLANA', recipientSolana] : ['X402_RECIPIENT', recipient];
      const node = upstreamBaseUrlVariable(name);
      const settler = name === 'solana' ? 'X402_RELAYER_KEY_SOLANA' : 'X402_RELAYER_KEYS';
      return [
        ...[...(wallet === null ? [variable] : []), ...(other(node) === null ? [node] : [])].map(
          (missing) => `${missing}: must be set to take payments on ${name}`,
        ),
        ...(production && !hasSettler(name, values)
          ? [`FACILITATOR_URL: must be set to settle payments on ${name}, unless ${settler} is`]
          : []),
      ];
    });
  },
  money: (values, about) => ({
    urls: [
      ...values.networks.map((name) => nodeOf(name, about)),
      ...values.facilitatorUrls.map((each) => ({ variable: 'FACILITATOR_URL', url: each })),
    ],
    recipients: [
      { variable: 'X402_RECIPIENT', wallet: values.recipient },
      { variable: 'X402_RECIPIENT_SOLANA', wallet: values.recipientSolana },
    ],
    evmKeys: [
      { variable: 'X402_RELAYER_KEYS', keys: values.relayerKeys },
      { variable: 'X402_REFUND_KEYS', keys: values.refundKeys },
    ],
    solanaKeys: [
      { variable: 'X402_RELAYER_KEY_SOLANA', key: values.relayerKeySolana },
      { variable: 'X402_REFUND_KEY_SOLANA', key: values.refundKeySolana },
    ],
  }),
});

/** Whether somebody is configured who could settle there. What is wrong in itself is reported already. */
function hasSettler(
  name: NetworkName,
  values: {
    facilitatorUrls?: readonly string[];
    relayerKeys?: readonly string[];
    relayerKeySolana?: string | null;
  },
): boolean {
  const { facilitatorUrls, relayerKeys, relayerKeySolana } = values;
  const ownKey = name === 'solana' ? relayerKeySolana !== null : relayerKeys?.length !== 0;
  return facilitatorUrls?.length !== 0 || ownKey;
}

function nodeOf(name: NetworkName, { other }: Surroundings): { variable: string; url: string } {
  const variable = upstreamBaseUrlVariable(name);
  return { variable, url: String(other(variable) ?? '') };
}
