import type { Debts } from '../cards/disputes/debts.ts';
import type { AutoRecharges } from '../cards/recharge/auto-recharge.ts';
import type { Keys } from '../keys/keys.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { House, Part } from '../part.ts';
import { ACCOUNT_OPERATIONS } from './operations.ts';
import { accountRoutes } from './routes.ts';

/** Opens what a key's owner sees and changes. */
export function openAccount(
  { baseUrl, firstCall, addressOf, limitByAddress, nowMs }: House,
  needs: { keys: Keys; ledger: Ledger; debts: Debts; autoRecharges: AutoRecharges | null },
): Part {
  const { keys, ledger, debts, autoRecharges } = needs;
  return {
    name: 'account',
    assets: { '/keys': 'keys.html' },
    operations: [ACCOUNT_OPERATIONS],
    routes(http) {
      accountRoutes(http, {
        keys,
        ledger,
        autoRecharges,
        baseUrl,
        firstCall,
        addressOf,
        nowMs,
        standing: debts.standing,
        accountLimit: limitByAddress(),
      });
    },
  };
}
