import { StartError } from '@farebox/process/start-error';
import type { Configured } from '../declared.ts';
import { untilNoneIsDue } from '../jobs/schedule.ts';
import type { Keys } from '../keys/keys.ts';
import type { House, Part } from '../part.ts';
import { CUSTODY } from './declared.ts';
import { createKeyring, parseKeyEncryptionKeys } from './envelope.ts';
import { CUSTODY_OPERATIONS } from './operations.ts';
import { ownerOf } from './owner.ts';
import { custodyRoutes, RECORDED_REFUSALS_PER_MINUTE, WALLET_REQUESTS_PER_MINUTE } from './routes.ts';
import { createWallets } from './wallets.ts';

export { CUSTODY };

const REWRAPPED_AT_ONCE = 100;

const CAPABILITY = { name: 'custody', setBy: 'WALLET_ENCRYPTION_KEY' };

/** Wallets that are kept for agents. Without a key to encrypt them under nothing of it is there. */
export function openCustody(
  house: House,
  { secrets }: Configured<typeof CUSTODY.variables>,
  { keys }: { keys: Keys },
): Part {
  const { encryptionKeys } = secrets.reveal();
  if (encryptionKeys.length === 0)
    return { name: 'custody', capabilities: [{ ...CAPABILITY, configured: false }] };
  const wallets = createWallets(house.pools.sql, {
    keyring: createKeyring(parseKeyEncryptionKeys(encryptionKeys.join(','))),
    nowMs: house.nowMs,
  });
  return {
    name: 'custody',
    async prepare(patience) {
      const missing = await patience.take(() => wallets.missingKeyIds());
      if (missing.length === 0) return;
      throw new StartError(
        `WALLET_ENCRYPTION_KEY: wallets are encrypted under keys that are not given: ${missing.join(', ')}`,
      );
    },
    requestHeaders: ['X-Wallet-Secret'],
    operations: [CUSTODY_OPERATIONS],
    capabilities: [
      {
        ...CAPABILITY,
        configured: true,
        forPayer: (proof) => wallets.paidBy(ownerOf(proof)),
      },
    ],
    routes(http) {
      custodyRoutes(http, {
        wallets,
        keys,
        walletLimit: house.limitByAddress(WALLET_REQUESTS_PER_MINUTE),
        refusalLimit: house.limit(RECORDED_REFUSALS_PER_MINUTE),
        addressOf: house.addressOf,
      });
    },
    jobs: [
      {
        name: 'rewrap-wallets',
        intervalMs: 60_000,
        run: async (stopping) =>
          void (await untilNoneIsDue(REWRAPPED_AT_ONCE, () => wallets.rewrap(REWRAPPED_AT_ONCE), stopping)),
      },
    ],
  };
}
