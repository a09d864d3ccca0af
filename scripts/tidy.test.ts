/**
 * Checks what no compiler does: hand-kept lists are complete, discouraged calls are not made, and long functions do not
 * grow.
 */
import assert from 'node:assert/strict';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { describe, test } from 'node:test';
import { errorCodes, unnamedIn } from './error-codes.ts';
import { functionsOf, LONG_LINES, longFunctions } from './long-functions.ts';
import { serverFiles } from './packages.ts';
import { isRiddle, MOST_RIDDLES_PERCENT, notedPercent, proseByFolder } from './prose.ts';
import { unlookedValues } from './unlooked-values.ts';
import { HOUSES } from './walls.ts';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const files = (pattern: string) =>
  globSync(pattern, { cwd: ROOT, exclude: (path) => /node_modules/.test(path) })
    .map((path) => path.replaceAll(sep, '/'))
    .sort();
const sources = () =>
  serverFiles(ROOT, '**/*.ts').filter(({ path }) => !/\.(test|fixture|d)\.ts$/.test(path));
/** The room by which the maps of tables name a file. */
const roomOf = (path: string, inSource: string) =>
  path.startsWith('packages/yield/') ? `yield/${inSource}` : inSource;
const source = (pattern: string) => files(pattern).filter((path) => !/\.(test|fixture|d)\.ts$/.test(path));

describe('every hand-kept list is complete and has nothing else:', () => {
  test('the rooms of the house', () => {
    for (const { root, rooms } of HOUSES.filter((house) => house.root !== '')) {
      const entriesOf = (folder: string): string[] =>
        readdirSync(join(ROOT, root, folder), { withFileTypes: true })
          .map((entry) => folder + (entry.isDirectory() ? `${entry.name}/` : entry.name))
          .filter((name) => !/\.(test|fixture)\.ts$/.test(name))
          // If a folder within has a row, everything in there must have one.
          .flatMap((name) =>
            rooms.some(({ room }) => room !== name && room.startsWith(name)) ? entriesOf(name) : [name],
          );
      assert.deepEqual(rooms.map(({ room }) => room).sort(), entriesOf('').sort(), root);
    }
    const walled = HOUSES.flatMap(({ root, rooms }) =>
      root === '' ? rooms.map(({ room }) => room) : [root],
    );
    const outside = source('{apps/*/src,packages,bench,scripts,examples,contracts}/**/*.{ts,js,mjs}').filter(
      (path) => !walled.some((room) => path.startsWith(room)),
    );
    assert.deepEqual(outside, []);
  });

  test('the parts of the server', () => {
    const app = read('apps/shop/src/app.ts');
    const parts = serverFiles(ROOT, '**/part.ts')
      .map(({ path }) => path)
      .filter((path) => path !== 'packages/core/src/part.ts');
    assert(parts.length > 10);
    const unlisted = parts.filter(
      (path) => !app.includes(`'${path.replace(/^packages\/(\w+)\/src\/(.*)\.ts$/, '@farebox/$1/$2')}'`),
    );
    assert.deepEqual(unlisted, [], 'app.ts opens every part: one that it does not open is off for good');
    assert(app.split('\n').length <= 150, 'app.ts is a table of contents');
  });

  test('the files of a rail: how it reads, what it offers and, on a chain, how its money moves', () => {
    const folders = files('packages/core/src/rails/*/rail.ts').map((path) => path.replace('rail.ts', ''));
    const onChains = folders.filter((folder) => files(`${folder}chains.ts`).length > 0);
    assert(folders.length >= 3 && onChains.length >= 2);
    const missing = onChains.flatMap((folder) =>
      ['read.ts', 'offer.ts', 'wire.ts', 'part.ts'].flatMap((name) =>
        files(folder + name).length === 0 ? [folder + name] : [],
      ),
    );
    assert.deepEqual(missing, []);
  });

  test('what a wall lets through', () => {
    for (const { root, rooms } of HOUSES) {
      for (const { room, knows } of rooms) {
        for (const path of knows ?? []) {
          const full = path.startsWith('/') ? path.slice(1) : root + path;
          assert(
            files(full.endsWith('/') ? `${full}**/*.ts` : full).length > 0,
            `${room} may know ${path}, which is not there`,
          );
        }
      }
    }
  });

  test('the commands of npm', () => {
    const { scripts }: { scripts: Record<string, string> } = JSON.parse(read('package.json'));
    const commands = [
      ...(/const COMMANDS = \{([\s\S]*?)\n\};/.exec(read('bootstrap.mjs'))?.[1] ?? '').matchAll(
        /^ {2}'?([\w:-]+)'?: (?:\{|besideServer\()/gm,
      ),
    ];
    const run = Object.values(scripts).map((line) => line.split(' ')[2] ?? '');
    assert.deepEqual([...new Set(run)].sort(), commands.map(([, name]) => name ?? '').sort());
  });

  test('the workspaces, to the checker of dead code', () => {
    const { workspaces }: { workspaces: Record<string, unknown> } = JSON.parse(read('knip.json'));
    const root: { workspaces: string[] } = JSON.parse(read('package.json'));
    const packages = root.workspaces.flatMap((folder) => files(`${folder}/package.json`));
    const folders = packages.map((path) => path.replace('/package.json', ''));
    assert.deepEqual(Object.keys(workspaces).sort(), ['.', ...folders].sort());
  });
});

describe('a call that has a better alternative is not made:', () => {
  const BANNED: { call: RegExp; instead: string; allowed: RegExp }[] = [
    {
      call: /\bDate\.now\b|\bnew Date\(\)/,
      instead: 'Time comes in as nowMs. Between two moments, performance.now().',
      allowed: /^(packages\/core\/src\/db\/clock|apps\/shop\/src\/commands\/[\w-]+)\.ts$/,
    },
    {
      call: /\bprocess\.env\b/,
      instead: 'config.ts reads the environment, and what starts a process hands it over.',
      allowed: /^apps\/shop\/src\/(main|commands\/[\w-]+)\.ts$/,
    },
    {
      call: /\.toFixed\(|\bparseFloat\(/,
      instead: 'Money is a bigint: microsToUsd and usdToMicros.',
      // These format shares, votes and scores: numbers that nobody pays.
      allowed: /^packages\/(catalogue\/src\/(services|quant|upstreams)|core\/src\/legacy\/endpoints\.ts)\b/,
    },
    {
      call: /\bconsole\./,
      instead: 'The logger, or process.stdout in a program.',
      allowed: /^$/,
    },
  ];
  for (const { call, instead, allowed } of BANNED) {
    test(String(call), () => {
      const made = sources()
        .map(({ path }) => path)
        .filter((path) => !allowed.test(path) && call.test(codeOf(read(path))));
      assert.deepEqual(made, [], instead);
    });
  }
});

describe('a table has one owner,', () => {
  /** The owner of each table, who writes it, apart from database functions. */
  const OWNERS: Record<string, string> = {
    a2a_tasks: 'a2a',
    account_debts: 'cards',
    account_events: 'webhooks',
    account_freezes: 'keys',
    account_sales_days: 'paid-call',
    agent_id_claims: 'custody',
    agent_identities: 'identity',
    api_keys: 'keys',
    auto_recharge_notices: 'cards',
    auto_recharges: 'cards',
    books_proof: 'operator',
    books_verdicts: 'operator',
    call_answers: 'paid-call',
    call_answers_rest: 'paid-call',
    call_identities: 'paid-call',
    call_shares: 'paid-call',
    call_spending: 'paid-call',
    call_archives: 'history',
    calls: 'paid-call',
    calls_carried: 'history',
    calls_left_open: 'paid-call',
    calls_open_since: 'paid-call',
    calls_rest: 'paid-call',
    card_event_cursor: 'cards',
    call_quotas: 'paid-call',
    card_events: 'cards',
    card_orders: 'cards',
    compacted_weeks: 'history',
    credit_origins: 'keys',
    data_lists: 'data-lists',
    database_lineage: 'recovery',
    device_exports: 'devices',
    device_fleets: 'devices',
    device_offers: 'devices',
    device_readers: 'devices',
    device_readings: 'devices',
    device_refusals: 'devices',
    devices: 'devices',
    ending_transactions: 'relayer',
    erasures: 'people',
    followed_calls: 'paid-call',
    free_calls: 'paid-call',
    free_hang_ups: 'paid-call',
    gas_spent: 'relayer',
    gate_calls: 'gate',
    gate_messages: 'gate',
    key_addresses: 'webhooks',
    key_links: 'cards',
    law_pages: 'law-pages',
    ledger_accounts: 'ledger',
    ledger_carried: 'ledger',
    ledger_closed_balances: 'ledger',
    ledger_day_moves: 'ledger',
    ledger_days: 'ledger',
    ledger_days_head: 'ledger',
    ledger_outbox: 'ledger',
    ledger_transfers: 'ledger',
    ledger_transfers_caused: 'ledger',
    ledger_transfers_heard: 'ledger',
    ledger_transfers_rest: 'ledger',
    lifted_bounds: 'keys',
    lost_gas: 'rails',
    mails: 'mail',
    managed_wallet_events: 'custody',
    managed_wallet_keys: 'custody',
    managed_wallets: 'custody',
    operator_access: 'operator',
    operator_act_outcomes: 'operator',
    operator_acts: 'operator',
    operator_acts_head: 'operator',
    operator_people: 'operator',
    operator_proposals: 'operator',
    operator_sessions: 'operator',
    operator_trail: 'operator',
    operator_trail_head: 'operator',
    paid_requests: 'paid-call',
    payments_in_flight: 'paid-call',
    purchase_brake: 'cards',
    recoveries: 'recovery',
    recovered_sales: 'recovery',
    refunds: 'paid-call',
    relayer_transactions: 'relayer',
    relayers: 'relayer',
    replicas: 'db',
    sales_days: 'paid-call',
    sales_folded: 'paid-call',
    sales_folded_buckets: 'paid-call',
    sales_open: 'paid-call',
    schema_migrations: 'db',
    secret_versions: 'secrets',
    service_figures: 'paid-call',
    settlements: 'paid-call',
    share_payouts: 'paid-call',
    reversal_walks: 'cards',
    root_buyers: 'keys',
    sign_in_nonces: 'rails',
    solana_yield_claims: 'yield',
    solana_yield_fees: 'yield',
    solana_yield_intents: 'yield',
    solana_yield_moves: 'yield',
    solana_yield_unread: 'yield',
    solana_yield_walks: 'yield',
    sold_keys: 'sold-keys',
    source_budgets: 'upstreams',
    source_costs: 'upstreams',
    sql_functions: 'db',
    sql_triggers: 'db',
    status_looks: 'status',
    status_spells: 'status',
    stock_replicas: 'stock',
    stock_versions: 'stock',
    topups: 'topup',
    transfer_days: 'paid-call',
    trial_claims: 'keys',
    trial_credits: 'keys',
    trial_days: 'keys',
    undelivered_calls: 'paid-call',
    webhook_deliveries: 'webhooks',
    webhooks: 'webhooks',
    yield_index: 'yield',
    yield_index_samples: 'yield',
    yield_keeper: 'yield',
    yield_keeper_moves: 'yield',
    yield_keeper_reasons: 'yield',
    yield_marks: 'yield',
    yield_moves: 'yield',
    yield_samples: 'yield',
  };
  /** The parts that write a table of another owner, and why. */
  const GUESTS: Record<string, string> = {
    'cards writes ledger_accounts': 'the mark below which a card recharges; no sum',
    'secrets writes card_orders': 'gives up keys that a lost secret would have fetched',
    'secrets writes trial_claims': 'forgets addresses that a lost secret has made unreadable',
  };

  /** The parts that read tables of other owners, and why. */
  const READERS: Record<string, readonly [because: string, ...tables: string[]]> = {
    recovery: [
      'what the database knows is compared with what the world knows',
      ...['calls', 'ledger_transfers', 'refunds', 'replicas', 'settlements'],
    ],
    cards: [
      'a purchase goes to its account, a debt follows what was spent of it',
      ...['account_freezes', 'api_keys', 'calls', 'calls_carried', 'credit_origins', 'ledger_accounts'],
      'ledger_transfers',
    ],
    db: ['a week that is archived is not made again', 'call_archives'],
    history: [
      'a week leaves once nothing of it is open, and nothing leaves that is named',
      ...['calls_rest', 'ledger_carried', 'ledger_days', 'ledger_days_head', 'refunds', 'sales_folded'],
      ...['sales_open', 'settlements', 'undelivered_calls'],
    ],
    keys: [
      'a key is shown with what it has and has spent, a trial with what is left of it, and none is forgotten that is named',
      ...['call_spending', 'card_orders', 'followed_calls', 'key_addresses', 'key_links', 'ledger_accounts'],
      ...['ledger_transfers', 'operator_acts'],
    ],
    operator: [
      'the operator sees all that there is',
      ...[
        'account_debts',
        'account_freezes',
        'account_sales_days',
        'api_keys',
        'call_answers',
        'call_shares',
      ],
      ...[
        'call_spending',
        'call_archives',
        'calls',
        'calls_carried',
        'card_events',
        'card_orders',
        'ledger_accounts',
      ],
      ...['ledger_transfers', 'paid_requests'],
      ...[
        'refunds',
        'sales_days',
        'sales_folded',
        'sales_folded_buckets',
        'sales_open',
        'settlements',
        'transfer_days',
      ],
      ...[
        'trial_claims',
        'trial_days',
        'a2a_tasks',
        'account_events',
        'devices',
        'gas_spent',
        'webhook_deliveries',
        'webhooks',
      ],
    ],
    ledger: [
      'an account goes to another bucket with all that is its own, while nothing of it is open',
      ...['call_archives', 'call_shares', 'calls', 'replicas', 'root_buyers', 'undelivered_calls'],
    ],
    'paid-call': [
      'what a call reserved, of which key, and whether the replica that runs it is alive; what of it was a trial’s, a new card’s, or went back',
      ...['account_debts', 'api_keys', 'call_archives', 'calls_carried', 'card_orders', 'credit_origins'],
      ...[
        'ledger_accounts',
        'ledger_closed_balances',
        'ledger_outbox',
        'ledger_transfers',
        'operator_acts',
        'replicas',
      ],
      'trial_credits',
    ],
    rails: ['the audit holds settlements against their chain', 'settlements'],
    secrets: [
      'whether anything is left that a lost secret has made unreadable',
      ...['call_answers', 'card_orders', 'trial_claims'],
    ],
    'sold-keys': [
      'a key is sold by a call, holds what it cost and is taken back with it',
      ...['calls', 'credit_origins', 'ledger_transfers', 'schema_migrations', 'settlements', 'trial_credits'],
    ],
    stock: ['a version names the act that made it, and a standing the process', 'operator_acts', 'replicas'],
    topup: [
      'credit is sold by a call, settles with it and ends in the ledger',
      ...['calls', 'ledger_transfers', 'refunds', 'settlements'],
    ],
    webhooks: [
      'a balance is told when it is low, and nothing once an account has no key',
      ...['api_keys', 'ledger_accounts'],
    ],
  };

  test('and all tables are in the map', () => {
    const made = new Set(['schema_migrations']);
    for (const path of files('packages/core/src/db/migrations/*.sql')) {
      for (const [, verb, name = ''] of read(path).matchAll(
        /^(create(?: unlogged)?|drop) table (?:if (?:not )?exists )?(\w+)/gim,
      ))
        if (verb?.toLowerCase() === 'drop') made.delete(name);
        else made.add(name);
    }
    assert.deepEqual(Object.keys(OWNERS).sort(), [...made].sort());
  });

  test('and functions and triggers stand in files of their owners, not in migrations', () => {
    const made = files('packages/core/src/db/migrations/*.sql').filter((path) =>
      /^(create|drop)( or replace)? (function|trigger)/im.test(read(path)),
    );
    assert.deepEqual(
      made,
      [],
      'Change the file in the folder `functions` of its owner: src/db/functions.ts.',
    );
  });

  test('and nobody else writes it', () => {
    const writes = new Set<string>();
    for (const { path, inSource } of sources()) {
      const [folder = ''] = roomOf(path, inSource).split('/');
      if (!inSource.includes('/')) continue;
      for (const [, table = ''] of read(path).matchAll(
        /\b(?:insert into|update|delete from|truncate)\s+(?:only\s+)?(\w+)/gi,
      )) {
        const owner = OWNERS[table];
        if (owner !== undefined && owner !== folder) writes.add(`${folder} writes ${table}`);
      }
    }
    assert.deepEqual([...writes].sort(), Object.keys(GUESTS).sort());
  });

  test('and who reads it is in the map', () => {
    const reads = new Set<string>();
    for (const { path, inSource } of sources()) {
      const [folder = ''] = roomOf(path, inSource).split('/');
      if (!inSource.includes('/')) continue;
      for (const [, table = ''] of read(path).matchAll(
        /\b(?:from|join|using)\s+(?:only\s+|lateral\s+)?\(?(\w+)/gi,
      )) {
        const owner = OWNERS[table];
        if (owner !== undefined && owner !== folder) reads.add(`${folder} reads ${table}`);
      }
    }
    const mapped = Object.entries(READERS).flatMap(([folder, [, ...tables]]) =>
      tables.map((table) => `${folder} reads ${table}`),
    );
    assert.deepEqual([...reads].sort(), mapped.sort());
  });
});

const ANY_CODE = '{*,{apps,packages,bench,scripts,examples,contracts}/**/*}.{ts,js,mjs,cjs}';

test('a program that is a module too is told by its path, which Node 22 can tell', () => {
  const told = files(ANY_CODE).filter((path) => /import\.meta\.main\b/.test(read(path)));
  assert.deepEqual(told, [], 'Compare process.argv[1] with import.meta.filename.');
});

test('no literal is spread inside another', () => {
  const everywhere = files(ANY_CODE);
  assert(everywhere.length > 1_000);
  const spread = everywhere.filter((path) => /\.\.\.[\s(]*\{/.test(read(path)));
  assert.deepEqual(spread, [], 'Write its properties in its place, or spread a group that has a name.');
});

test('a long function does not grow, and no other becomes long', () => {
  const known: Record<string, number> = JSON.parse(read('scripts/long-functions.json'));
  const long = longFunctions(ROOT);
  const grown = Object.entries(long).filter(([name, lines]) => lines > (known[name] ?? LONG_LINES));
  assert.deepEqual(grown, [], 'Take something out of it. A long function is several that have no name yet.');
  assert.deepEqual(known, long, 'One shrank: npm run format writes its new length down.');
});

test('the length of a function is seen wherever it stands', () => {
  const seen = functionsOf(`
    export default async function () {}
    export function open() {
      return { look() {
        // one line more
      } };
    }
    export class Tank {
      constructor() { fill(); }
      #look() {}
      get full() { return 1; }
      static { fill(); }
      drain = () => 3;
    }
    export const service = define({
      path: 'x',
      run: async () => {
        const inner = () => 1;
        return inner();
      },
      within: { 'a-b': function () {} },
    });
    on('end', () => {});`);
  const lines = seen.map(({ name, lines }) => `${name} ${lines}`).sort();
  assert.deepEqual(lines, [
    ...[
      'Tank 1',
      'Tank.constructor 1',
      'Tank.drain 1',
      'Tank.full 1',
      'Tank.look 1',
      'default 1',
      'default 1',
    ],
    ...['open 5', 'open.look 3', 'service.run 4', 'service.run.inner 1', 'service.within.a-b 1'],
  ]);
});

test('each code of an error stands in a test', () => {
  const codes = errorCodes(ROOT);
  assert(codes.length > 300, `${codes.length} codes`);
  // One of each way in which a code is made.
  for (const code of ['ACCOUNT_FROZEN', 'NO_CANDLES', 'ACCOUNT_BUSY', 'PAYMENT_REVERSED', 'API_KEY_REVOKED'])
    assert(codes.includes(code), code);
  const unnamed = unnamedIn([...codes, 'A_CODE_OF_NO_SERVER'], ROOT);
  assert.deepEqual(unnamed, ['A_CODE_OF_NO_SERVER'], 'Provoke it in a test that names it.');
});

describe('the first sentence of a doc comment', () => {
  test('says what the thing is, or begins with a verb', () => {
    for (const riddle of ['Of the block before.', 'Whoever is there.', 'What it cost.', 'Until then.'])
      assert(isRiddle(riddle), riddle);
    for (const plain of ['The block before.', 'Whether it was read.', 'How many wait.', 'Officers.'])
      assert(!isRiddle(plain), plain);
  });

  test('is a riddle in no more of a folder than it was, and in 12 % at most', () => {
    const noted: Record<string, number> = JSON.parse(read('scripts/prose.json'));
    const prose = proseByFolder(ROOT);
    const worse = Object.entries(prose).filter(
      ([folder, { percent }]) =>
        percent > Math.min(noted[folder] ?? MOST_RIDDLES_PERCENT, MOST_RIDDLES_PERCENT),
    );
    assert.deepEqual(worse, [], 'Say what the thing is, or what it does: a verb in the third person.');
    assert.deepEqual(Object.keys(noted).sort(), Object.keys(prose).sort());
    const lax = Object.entries(prose).filter(([folder, one]) => (noted[folder] ?? 0) > notedPercent(one) + 1);
    assert.deepEqual(lax, [], 'A folder has fewer: npm run format writes its new share down.');
  });
});

test('no value becomes text or a number without a look at what it is', () => {
  const found = unlookedValues(ROOT);
  const proof = 'scripts/unlooked-values.fixture.ts';
  assert.deepEqual(
    found.filter((place) => !place.startsWith(proof)),
    [],
    'Ask for its type first: an object decides by itself what it is as text.',
  );
  assert.deepEqual(
    found.map((place) => place.slice(proof.length + 1)),
    [
      'value: unknown',
      'record.name: unknown',
      'list[0]: unknown',
      'list: readonly unknown[]',
      'some: string | Json',
      'record: Json',
      "JSON.parse('{}').amount: any",
      'value.cause: unknown',
    ],
  );
});

/** The code of a file without its comments and strings. */
function codeOf(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '').replace(/`[^`]*`/g, '``');
}
