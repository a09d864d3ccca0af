import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../http/problem.ts';
import { admit, type RateLimit } from '../http/rate-limit.ts';
import { presentedApiKey } from '../keys/api-key.ts';
import type { Keys } from '../keys/keys.ts';
import { ownerOf } from './owner.ts';
import { isWalletSecret } from './wallet-secret.ts';
import type { Actor, StoredWallet, Wallets } from './wallets.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Requests about wallets that one address may make in a minute. */
export const WALLET_REQUESTS_PER_MINUTE = 30;
/** Refusals of one wallet that are put on record in a minute: a flood must not fill the database. */
export const RECORDED_REFUSALS_PER_MINUTE = 5;

const DELETED_NOTE =
  'The encrypted key was destroyed in the database. Backups made before may hold it until they expire.';

export interface CustodyRouteParts {
  wallets: Wallets;
  keys: Keys;
  /** By caller's address. */
  walletLimit: RateLimit;
  /** By wallet. */
  refusalLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
}

type WalletRequest = FastifyRequest<{ Params: { walletId: string } }>;

/** Looking at a managed wallet, taking its key away, and ending it. None of it costs anything. */
export function custodyRoutes(app: FastifyInstance, parts: CustodyRouteParts): void {
  const { wallets, keys } = parts;

  async function walletOf(request: WalletRequest, reply: FastifyReply): Promise<StoredWallet> {
    admit(parts.walletLimit, parts.addressOf(request), reply);
    const { walletId } = request.params;
    const wallet = UUID.test(walletId) ? await wallets.find(walletId) : null;
    if (wallet === null) throw new Problem(404, 'WALLET_NOT_FOUND', 'There is no such wallet here.');
    return wallet;
  }

  /** The owner, by the wallet's secret or by a key of the account that paid for it. Anybody else is turned away. */
  async function authorize(request: WalletRequest, wallet: StoredWallet): Promise<Actor> {
    const secret = request.headers['x-wallet-secret'];
    if (typeof secret === 'string') {
      if (isWalletSecret(secret.trim(), wallet.secretDigest)) {
        return { name: 'wallet-secret', requestId: request.id };
      }
      return turnAway(request, wallet, 'wallet-secret', 'WALLET_SECRET_INVALID', 'This is not its secret.');
    }
    const apiKey = presentedApiKey(request.headers);
    if (apiKey === null) {
      throw new Problem(
        401,
        'WALLET_CREDENTIAL_MISSING',
        'Send X-Wallet-Secret as it was handed out with the wallet, or X-API-KEY with a key of the account that paid for it.',
      );
    }
    const known = await keys.find(apiKey);
    if (known === null) {
      return turnAway(request, wallet, 'unknown key', 'API_KEY_INVALID', 'This API key is not known here.');
    }
    const name = `key:${known.id}`;
    // Expired keys pass: what is theirs stays theirs.
    const status = (await keys.record(known.id))?.status;
    if (status !== 'active') {
      return turnAway(request, wallet, name, 'API_KEY_NOT_ACTIVE', 'This API key was revoked or frozen.');
    }
    if (wallet.owner !== ownerOf({ by: 'account', accountId: known.accountId })) {
      return turnAway(request, wallet, name, 'WALLET_NOT_YOURS', 'Another account paid for this wallet.');
    }
    return { name, requestId: request.id };
  }

  async function turnAway(
    request: FastifyRequest,
    wallet: StoredWallet,
    name: string,
    code: string,
    message: string,
  ): Promise<never> {
    if (parts.refusalLimit.take(wallet.walletId).allowed) {
      await wallets.refused(wallet.walletId, { name, requestId: request.id });
    }
    throw new Problem(403, code, message);
  }

  app.get('/api/wallets/:walletId', async (request: WalletRequest, reply) => ({
    success: true,
    ...factsOf(await walletOf(request, reply)),
  }));

  app.post('/api/wallets/:walletId/export', async (request: WalletRequest, reply) => {
    const wallet = await walletOf(request, reply);
    const actor = await authorize(request, wallet);
    const exported = await wallets.exportKeys(wallet.walletId, actor);
    if (exported === null) {
      throw new Problem(410, 'WALLET_DELETED', 'This wallet was deleted, and its key with it.', {
        details: { deletedAt: isoOf(wallet.deletedAtMs) },
      });
    }
    return {
      success: true,
      walletId: wallet.walletId,
      keys: exported,
      warning:
        'Whoever has a private key has all that lies at its address. It stays here, encrypted, until you delete the wallet.',
    };
  });

  app.delete('/api/wallets/:walletId', async (request: WalletRequest, reply) => {
    const wallet = await walletOf(request, reply);
    await wallets.destroy(wallet.walletId, await authorize(request, wallet));
    const deleted = await wallets.find(wallet.walletId);
    return { success: true, ...factsOf(deleted ?? wallet), note: DELETED_NOTE };
  });
}

/** The public view of a wallet, for anybody who knows its id. */
function factsOf(wallet: StoredWallet): Record<string, unknown> {
  return {
    walletId: wallet.walletId,
    addresses: wallet.addresses,
    status: wallet.deletedAtMs === null ? 'active' : 'deleted',
    custodyType: 'managed',
    createdAt: isoOf(wallet.createdAtMs),
    deletedAt: isoOf(wallet.deletedAtMs),
  };
}

function isoOf(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}
