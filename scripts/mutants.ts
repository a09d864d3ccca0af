/** All bugs that `npm run mutate` plants, area by area. */
import { type Mutant, mutantsIn } from './mutant.ts';
import { CALLER_ADDRESS_MUTANTS } from './mutants/caller-address.ts';
import { CARDS_MUTANTS } from './mutants/cards.ts';
import { CATALOGUE_MUTANTS } from './mutants/catalogue.ts';
import { CLIENT_MUTANTS } from './mutants/client.ts';
import { DATABASE_MUTANTS } from './mutants/database.ts';
import { DEVICES_MUTANTS } from './mutants/devices.ts';
import { DOCTOR_MUTANTS } from './mutants/doctor.ts';
import { EXECUTION_MUTANTS } from './mutants/execution.ts';
import { GATE_MUTANTS } from './mutants/gate.ts';
import { HISTORY_MUTANTS } from './mutants/history.ts';
import { KEYS_MUTANTS } from './mutants/keys.ts';
import { LEDGER_MUTANTS } from './mutants/ledger.ts';
import { OPERATOR_MUTANTS } from './mutants/operators.ts';
import { PAGE_MUTANTS } from './mutants/pages.ts';
import { PAID_CALL_MUTANTS } from './mutants/paid-call.ts';
import { PEOPLE_MUTANTS } from './mutants/people.ts';
import { PROXY_MUTANTS } from './mutants/proxy.ts';
import { PROXY_PRICES_MUTANTS } from './mutants/proxy-prices.ts';
import { PROXY_WIRE_MUTANTS } from './mutants/proxy-wire.ts';
import { QUEUES_MUTANTS } from './mutants/queues.ts';
import { RAILS_MUTANTS } from './mutants/rails.ts';
import { RECOVERY_MUTANTS } from './mutants/recovery.ts';
import { SECRET_MUTANTS } from './mutants/secrets.ts';
import { STOCK_MUTANTS } from './mutants/stock.ts';
import { WALLET_MUTANTS } from './mutants/wallets.ts';
import { YIELD_MUTANTS } from './mutants/yield.ts';

export const MUTANTS: readonly Mutant[] = [
  ...LEDGER_MUTANTS,
  ...HISTORY_MUTANTS,
  ...PAID_CALL_MUTANTS,
  ...PROXY_MUTANTS,
  ...STOCK_MUTANTS,
  ...PEOPLE_MUTANTS,
  ...RECOVERY_MUTANTS,
  ...SECRET_MUTANTS,
  ...CALLER_ADDRESS_MUTANTS,
  ...RAILS_MUTANTS,
  ...KEYS_MUTANTS,
  ...CARDS_MUTANTS,
  ...DATABASE_MUTANTS,
  ...DEVICES_MUTANTS,
  ...DOCTOR_MUTANTS,
  ...EXECUTION_MUTANTS,
  ...PROXY_WIRE_MUTANTS,
  ...QUEUES_MUTANTS,
  ...PROXY_PRICES_MUTANTS,
  ...CLIENT_MUTANTS,
  ...CATALOGUE_MUTANTS,
  ...OPERATOR_MUTANTS,
  ...PAGE_MUTANTS,
  ...GATE_MUTANTS,
  ...WALLET_MUTANTS,
  ...YIELD_MUTANTS,
].flatMap(mutantsIn);
