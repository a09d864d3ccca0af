/** The amounts that credit is sold in, as the interface lists them. */
export const TOPUP_TIERS = [
  { amountUsd: 5, tier: 'Intro', description: '80-100 calls' },
  { amountUsd: 10, tier: 'Starter', description: 'about 200 calls' },
  { amountUsd: 25, tier: 'Growth', description: 'about 500 calls' },
  { amountUsd: 100, tier: 'Pro', description: 'about 2000 calls' },
] as const;

export type TopupTier = (typeof TOPUP_TIERS)[number];
