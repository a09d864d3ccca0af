/** Every column of the database that can hold a name is either declared as people's data, or stands here with what it holds instead. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { variablesOf } from '../../../../packages/core/src/config.ts';
import { peopleOf } from '../../../../packages/core/src/declared.ts';
import { boundTo } from '../../../../packages/core/src/people/person.ts';
import { DECLARED } from '../../src/app.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { columnsOf } from './people.fixture.ts';

/** Columns that hold nothing about people, or nothing that leads to one here. A new column is thought about before it stands in this list. */
const IMPERSONAL: Record<string, readonly [because: string, ...columns: string[]]> = {
  a2a_tasks: ['names of services and states', 'service', 'state', 'paid_by'],
  account_events: ['the kind of event', 'type'],
  account_freezes: ['the kind of freeze', 'cause'],
  account_sales_days: ['names of services and rails', 'service', 'rail'],
  agent_id_claims: ['the kind, and the id of a call', 'kind', 'call_id'],
  agent_identities: [
    'ids of calls and transactions, which the chain shows',
    ...['transaction_key', 'claimed_by', 'register_transaction', 'transfer_transaction'],
  ],
  api_keys: ['kind and state', 'kind', 'status'],
  auto_recharges: ['words for machines', 'waiting_for', 'off_reason'],
  books_verdicts: ['findings of the books, by number', 'books'],
  call_archives: [
    'names of weeks and of their files',
    ...['week', 'calls_file', 'calls_sha256', 'transfers_file', 'transfers_sha256'],
  ],
  call_quotas: ['numbers of accounts, wallets of a chain, names of services', 'root_buyer', 'service'],
  call_spending: ['names of services', 'service'],
  calls: ['names of rails and services, and how it ended', 'rail', 'service', 'outcome'],
  calls_carried: ['names of weeks and services', 'week', 'service'],
  card_events: [
    'the provider’s names of an event, a page and a payment',
    'id',
    'type',
    'session_id',
    'payment_intent_id',
  ],
  card_orders: [
    'words for machines',
    ...['kind', 'failure', 'decline_code', 'dispute', 'key_secret_id', 'delivered_to'],
  ],
  compacted_weeks: ['names of weeks', 'week'],
  data_lists: [
    'public lists of sanctioned parties, as their publishers have them',
    'name',
    'sha256',
    'content',
    'source',
    'failure',
  ],
  database_lineage: ['the database’s own name', 'cluster'],
  device_exports: [
    'files of readings, without a name of their buyer, for an hour',
    'id',
    'media_type',
    'file_name',
    'content',
  ],
  device_refusals: ['words for machines', 'code', 'sensor'],
  ending_transactions: [
    'transactions of ours, which the chain shows',
    'network',
    'hash',
    'id',
    'raw',
    'opens_for',
    'paid_by',
  ],
  erasures: [
    'digests of erased persons, and the provider’s names of them while it lasts',
    'secret_id',
    'digest',
    'customers',
  ],
  free_calls: ['numbers of accounts, wallets of a chain, names of services', 'root_buyer', 'service'],
  free_hang_ups: ['numbers of accounts or wallets of a chain, for a day', 'buyer'],
  gas_spent: ['chains, and wallets of ours', 'network', 'address'],
  gate_calls: [
    'answers on their way to a caller, for ten minutes, without a name of theirs',
    'gate',
    'said',
    'body',
    'outcome',
  ],
  gate_messages: ['names of gates, and numbers used once', 'gate', 'nonce'],
  law_pages: ['official pages of laws, a hash, and the server’s words', 'url', 'first_sha256', 'failure'],
  ledger_accounts: ['names of the house’s accounts', 'name'],
  ledger_carried: ['names of weeks', 'week'],
  ledger_days: ['digests of days', 'transfers_digest', 'moves_digest', 'digest'],
  ledger_days_head: ['a digest', 'digest'],
  ledger_transfers: ['the kind of transfer', 'code'],
  ledger_transfers_heard: ['the kind of transfer, and a copy of its note for a minute', 'code', 'note'],
  lifted_bounds: ['numbers of accounts, or wallets of a chain', 'root_buyer'],
  lost_gas: ['wallets of a chain, for a day', 'network', 'payer', 'factory'],
  managed_wallet_events: ['the kind of event', 'action'],
  managed_wallet_keys: ['the kind of key, and the name of the key it is under', 'kind', 'kek_id'],
  managed_wallets: ['chains, and the id of a call', 'networks', 'created_by_call'],
  operator_access: ['who turned tokens off', 'tokens_off_by'],
  operator_act_outcomes: ['how a refund ended, and the provider’s name of it', 'status', 'refund_id'],
  operator_acts: ['the kind of act, and the chain of digests', 'act', 'digest'],
  operator_acts_head: ['a digest', 'digest'],
  operator_people: ['a role', 'role_set'],
  operator_proposals: [
    'words for machines, and digests of an operator’s request',
    'act',
    'ended',
    'idempotency_digest',
    'request_digest',
  ],
  operator_sessions: ['words for machines', 'ended_why'],
  operator_trail: ['words for machines, and the chain of digests', 'kind', 'role', 'digest'],
  operator_trail_head: ['a digest', 'digest'],
  paid_requests: ['names of services and rails, and how it ended', 'service', 'rail', 'outcome'],
  payments_in_flight: ['wallets of a chain, for minutes', 'network', 'asset', 'payer'],
  recoveries: ['words for machines, and which operator opened the shop', 'reason', 'opened_by'],
  recovered_sales: [
    'orders by number, or wallets of a chain with their nonces',
    'source',
    'reference',
    'became',
  ],
  refunds: ['a chain, and the server’s words', 'network', 'asset', 'reason'],
  relayer_transactions: [
    'transactions of ours, which the chain shows',
    'network',
    'address',
    'id',
    'to_address',
    'data',
    'raw',
    'hashes',
    'filler',
  ],
  relayers: ['chains, and wallets of ours', 'network', 'address'],
  root_buyers: ['numbers of accounts, or wallets of a chain', 'root_buyer'],
  sales_days: ['names of services and rails', 'service', 'rail'],
  schema_migrations: ['names of files', 'name', 'checksum'],
  secret_versions: ['ids of secrets', 'id'],
  service_figures: ['names of services', 'service'],
  settlements: ['a chain, and the server’s words', 'rail', 'network', 'asset', 'reason'],
  sign_in_nonces: ['wallets of a chain, for minutes', 'nonce', 'address'],
  source_budgets: ['names of sources', 'source'],
  source_costs: ['names of sources', 'source'],
  solana_yield_claims: [
    'wallets and transactions of a chain, where they are public',
    'signature',
    'wallet',
    'state',
    'reason',
  ],
  solana_yield_fees: [
    'wallets and transactions of a chain, where they are public',
    ...['signature', 'wallet', 'state', 'reason', 'deposit_signature', 'refund_signature', 'looked_before'],
  ],
  solana_yield_intents: ['wallets of a chain', 'wallet'],
  solana_yield_moves: [
    'wallets and transactions of a chain, where they are public',
    'signature',
    'wallet',
    'kind',
  ],
  solana_yield_unread: ['transactions of a chain', 'signature'],
  solana_yield_walks: ['transactions of a chain', 'account', 'read_to', 'head', 'below'],
  sql_functions: ['names of functions', 'name'],
  sql_triggers: ['names of functions', 'name'],
  status_spells: ['names of services, rails and chains', 'component'],
  stock_replicas: ['names of our machines', 'host', 'reason'],
  stock_versions: ['what an operator sells, and which operator', 'kind', 'content', 'digest', 'made_by'],
  transfer_days: ['the kind of transfer', 'code'],
  trial_claims: ['the id of a secret', 'secret_id'],
  trial_credits: ['words for machines', 'ended'],
  undelivered_calls: ['names of services', 'service'],
  webhook_deliveries: ['the kind of event', 'type'],
  webhooks: ['kinds of events, and words for machines', 'events', 'disabled_because'],
  yield_index: ['a vault of a chain', 'vault', 'last_hash'],
  yield_index_samples: ['a vault of a chain', 'vault', 'protocols'],
  yield_keeper: ['a vault of a chain', 'vault', 'report'],
  yield_keeper_moves: ['a vault of a chain', 'vault', 'transaction_hash', 'from_protocol', 'to_protocol'],
  yield_keeper_reasons: ['a vault of a chain', 'vault', 'from_protocol', 'to_protocol', 'reason'],
  yield_marks: ['a vault of a chain', 'vault', 'block_hash'],
  yield_moves: ['wallets of a chain, where they are public', 'vault', 'kind', 'from_wallet', 'to_wallet'],
  yield_samples: ['a vault of a chain', 'vault', 'active', 'protocols'],
};

const tables = peopleOf(DECLARED).flatMap((part) => part.tables);
const nobody = { email: 'nobody@example.com', accounts: [1n], bought: [2n] };

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

test('every column that can hold a name is declared as people’s, or is known to hold none', async () => {
  const stands = (await columnsOf(database)).map(({ table, column }) => `${table}.${column}`);
  const declared = tables.flatMap(({ table, columns }) => columns.map((column) => `${table}.${column}`));
  const impersonal = Object.entries(IMPERSONAL).flatMap(([table, [, ...columns]]) =>
    columns.map((column) => `${table}.${column}`),
  );
  assert(stands.length > 300);
  assert.deepEqual(
    impersonal.filter((column) => declared.includes(column)),
    [],
    'either, and not both',
  );
  assert.deepEqual(
    [...new Set([...declared, ...impersonal])].sort(),
    stands.sort(),
    'declare it in the `personal-data.ts` of its part, or say here what it holds',
  );
});

describe('what is declared', () => {
  test('can be asked: each query is one that the database takes', async () => {
    const queries = [
      ...tables.map(({ table, whose }) => `select 1 from ${table} where ${whose}`),
      ...peopleOf(DECLARED).flatMap(
        ({ known = [], addresses = [], customers = [], bought = [], obstacles = [] }) => [
          ...[...known, ...addresses, ...customers, ...bought],
          ...obstacles.map(({ sql }) => `${sql} limit 1`),
        ],
      ),
    ];
    for (const query of queries) {
      const { text, values } = boundTo(query, nobody, Date.now());
      await assert.doesNotReject(database.sql.unsafe(text, values), query);
    }
  });

  test('names only settings that there are', () => {
    const known = variablesOf(DECLARED).map(({ name }) => name);
    const named = tables.flatMap(({ kept }) =>
      [...kept.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name),
    );
    assert(named.length > 8);
    assert.deepEqual(
      named.filter((name) => !known.includes(name)),
      [],
    );
  });

  test('leaves secrets out of an export', async () => {
    const secret = /digest|sealed|secret|ciphertext|wrapped|claimant|site$|page_seal|key_lookup/;
    const shown = (await columnsOf(database)).filter(
      ({ table, column }) =>
        secret.test(column) &&
        tables.some((rule) => rule.table === table && !(rule.withheld ?? []).includes(column)),
    );
    assert.deepEqual(
      shown.map(({ table, column }) => `${table}.${column}`).filter((name) => !SHOWN.includes(name)),
      [],
    );
  });
});

/** Names that only sound like secrets. */
const SHOWN = ['card_orders.key_secret_id', 'trial_claims.secret_id'];
