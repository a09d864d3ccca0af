import { randomBytes } from 'node:crypto';

/** A configuration in which no part is off, though nobody answers at its addresses. */
const WALLET = '0x00000000000000000000000000000000000000b0';

export const EVERYTHING_ON: Readonly<Record<string, string>> = {
  WALLET_ENCRYPTION_KEY: randomBytes(32).toString('hex'),
  CARD_PROVIDER_KEY: `sk_test_${'a'.repeat(24)}`,
  CARD_PROVIDER_URL: 'http://127.0.0.1:9',
  CARD_WEBHOOK_SECRET: `whsec_${'b'.repeat(24)}`,
  ADMIN_TOKENS: `desk:${'c1'.repeat(12)}`,
  METRICS_TOKEN: 'a-token-for-the-metrics',
  UPSTREAM_BASE_BASE_URL: 'http://127.0.0.1:9',
  IDENTITY_REGISTRAR_KEY: `0x${'3'.repeat(64)}`,
  YIELD_VAULT_ADDRESS: '0x00000000000000000000000000000000000000c0',
  YIELD_KEEPER_KEY: `0x${'4'.repeat(64)}`,
  UPSTREAM_SOLANA_BASE_URL: 'http://127.0.0.1:9',
  SOLANA_YIELD_TREASURY: 'DYw8jCTfwHNRJhhmFcbXvVDTqWMEVFBX6ZKUmG5CNSKK',
  SOLANA_YIELD_SINCE_SLOT: '0',
  MPP_METHODS: 'tempo',
  MPP_SECRET_KEY: 'a-secret-that-binds-challenges-of-mpp',
  MPP_TEMPO_RPC_URL: 'http://127.0.0.1:9',
  MPP_TEMPO_RECIPIENT: WALLET,
  SMTP_URL: 'smtp://127.0.0.1:9',
  MAIL_FROM: 'shop@farebox.test',
};
