import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

const FORMAT = /^fbx_wallet_[0-9a-f]{64}$/;

/** The secret that exports or deletes a wallet: 256 random bits, shown to the owner once. Only `digest` is stored. */
export function newWalletSecret(): { walletSecret: string; digest: Buffer } {
  const walletSecret = `fbx_wallet_${randomBytes(32).toString('hex')}`;
  return { walletSecret, digest: hash('sha256', walletSecret, 'buffer') };
}

/** Whether what was presented is the secret with this digest. Takes the same time for every wrong one. */
export function isWalletSecret(presented: string, digest: Buffer): boolean {
  return FORMAT.test(presented) && timingSafeEqual(hash('sha256', presented, 'buffer'), digest);
}
