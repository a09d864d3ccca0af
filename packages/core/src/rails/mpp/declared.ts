import { z } from 'zod';
import { declare, evmAddress, evmKey, list, url } from '../../declared.ts';

export const MPP = declare({
  name: 'mpp',
  variables: {
    methods: {
      name: 'MPP_METHODS',
      describe:
        'Ways to pay at `/mpp/`, in order of preference: `tempo`, and `evm` (USDC on Base, settled as x402 payments are). Empty: `/mpp/` is off',
      shape: list(z.enum(['tempo', 'evm'], 'must be of tempo, evm')),
      fallback: '',
    },
    secretKeys: {
      name: 'MPP_SECRET_KEY',
      describe:
        'Keys for the HMAC of MPP challenges, comma-separated, at least 32 characters each: the first makes them, all are recognized. Same on all replicas',
      shape: list(z.string().min(32, 'must have at least 32 characters each')),
      fallback: '',
      secret: true,
      renewed: true,
    },
    tempoRpcUrl: {
      name: 'MPP_TEMPO_RPC_URL',
      describe: 'Node of the Tempo chain',
      shape: url,
      fallback: 'https://rpc.tempo.xyz',
    },
    tempoRecipient: {
      name: 'MPP_TEMPO_RECIPIENT',
      describe: 'Recipient of stablecoins on Tempo',
      shape: evmAddress,
      fallback: null,
    },
    tempoCurrency: {
      name: 'MPP_TEMPO_CURRENCY',
      describe: 'The stablecoin accepted on Tempo, with 6 decimals; USDC.e by default',
      shape: evmAddress,
      fallback: '0x20C000000000000000000000b9537d11c60E8b50',
    },
    tempoRefundKey: {
      name: 'MPP_TEMPO_REFUND_KEY',
      describe:
        'A private key, or a key [kept elsewhere](upgrading.md#keys-that-sign-transactions), that holds that stablecoin for refunds on Tempo. Without it, services that are charged before they run are not sold there',
      shape: evmKey,
      fallback: null,
      secret: true,
    },
  },
  problems({ methods = [], secretKeys, tempoRecipient }, { other }) {
    const networks = other('X402_NETWORKS');
    return [
      ...(methods.length > 0 && secretKeys?.length === 0
        ? ['MPP_SECRET_KEY: must be set with MPP_METHODS']
        : []),
      ...(methods.includes('tempo') && tempoRecipient === null
        ? ['MPP_TEMPO_RECIPIENT: must be set for the method tempo']
        : []),
      ...(methods.includes('evm') && !(Array.isArray(networks) && networks.includes('base'))
        ? ['X402_NETWORKS: must include base for the MPP method evm, which settles there']
        : []),
    ];
  },
  money({ methods, tempoRpcUrl, tempoRecipient, tempoRefundKey }) {
    const onTempo = methods.includes('tempo');
    return {
      urls: onTempo ? [{ variable: 'MPP_TEMPO_RPC_URL', url: tempoRpcUrl }] : [],
      recipients: [{ variable: 'MPP_TEMPO_RECIPIENT', wallet: onTempo ? tempoRecipient : null }],
      evmKeys: [{ variable: 'MPP_TEMPO_REFUND_KEY', keys: tempoRefundKey === null ? [] : [tempoRefundKey] }],
    };
  },
});
