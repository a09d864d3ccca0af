/**
 * Which room of the house may know which. `.dependency-cruiser.cjs` makes its rules from this, docs/architecture.md its
 * table and its picture; what has no row here may import nothing of ours.
 *
 * A row says what a folder or file may import beside itself, npm packages and Node: a folder ends in `/`, a file in
 * `.ts`, and braces list several files of one folder. A folder whose own folders have rows needs none itself. Types count too, because a type says as much about who knows whom
 * as a value does. Tests and their fixtures may reach further and are left out.
 */
export interface Wall {
  /** From the house's root. */
  room: string;
  /** From the house's root; `null`: everything of the house. */
  knows: readonly string[] | null;
  because: string;
}

export interface House {
  /** From the root of the repository, with `/` at its end. */
  root: string;
  rooms: readonly Wall[];
}

const PROCESS = '/packages/process/';

/** What stands at the same height is in the order of its name. A path that begins with `/` is from the repository's root. */
export const SERVER: House = {
  root: 'apps/server/src/',
  rooms: [
    {
      room: 'a2a/',
      knows: [
        'services/{define,fitting,tool-name}.ts',
        'paid-call/{about-call,door,fate,part,rail,sale,terms-in-message}.ts',
        'keys/{api-key,keys}.ts',
        'http/',
        'db/connection.ts',
        'words/nearest.ts',
        'jobs/schedule.ts',
        'part.ts',
        'declared.ts',
      ],
      because:
        'A door of its own to the paid call, in the words of A2A: its tasks know calls, and move no money.',
    },
    {
      room: 'account/',
      knows: ['keys/', 'cards/', 'ledger/', 'http/', 'words/', 'part.ts'],
      because: 'What an owner sees is put together from those who know it.',
    },
    {
      room: 'cards/',
      knows: [
        'keys/',
        'ledger/',
        'mail/',
        'http/',
        'words/',
        'db/',
        'secrets/secrets.ts',
        'jobs/schedule.ts',
        'part.ts',
        'declared.ts',
        'metrics.ts',
      ],
      because: 'A purchase ends in the ledger.',
    },
    { room: 'chain-rpc/', knows: [], because: 'The way to a node knows nothing of what is asked.' },
    { room: 'code-analysis/', knows: [], because: 'Code in, findings out.' },
    { room: 'compliance/', knows: [], because: 'Names and rules: nothing is asked there.' },
    {
      room: 'custody/',
      knows: [
        'keys/',
        'http/',
        'db/',
        'services/define.ts',
        'services/shared/wallet/fresh-key.ts',
        'words/',
        'jobs/schedule.ts',
        'part.ts',
        PROCESS,
        'declared.ts',
      ],
      because: 'Managed wallets know their owners, and no money.',
    },
    {
      room: 'data-lists/',
      knows: ['upstreams/', 'db/', 'services/listed-parties.ts', 'words/', 'part.ts'],
      because: 'A published list is read by its upstream; who looks things up in it does not matter.',
    },
    {
      room: 'db/',
      knows: ['words/database-away.ts', PROCESS, 'declared.ts'],
      because: 'The database knows no domain.',
    },
    {
      room: 'devices/',
      knows: [
        'custody/owner.ts',
        'keys/',
        'ledger/{group-commit,money}.ts',
        'http/',
        'db/',
        'services/reported-devices.ts',
        'threads/',
        'words/',
        'jobs/schedule.ts',
        'part.ts',
        PROCESS,
        'declared.ts',
      ],
      because: 'Devices know their owners, and money as a promise to be kept by whoever takes it.',
    },
    {
      room: 'discovery/',
      knows: [
        'services/',
        'a2a/extensions.ts',
        'http/',
        'ledger/money.ts',
        'keys/{credit-tiers,trial}.ts',
        'part.ts',
        'shop.ts',
      ],
      because: 'Documents are rendered from declarations; they can move no money.',
    },
    {
      room: 'http/',
      knows: ['words/database-away.ts'],
      because: 'The edge knows nothing of what lies behind it.',
    },
    {
      room: 'identity/',
      knows: [
        'custody/owner.ts',
        'services/define.ts',
        'db/',
        'words/',
        'relayer/',
        'chain-rpc/',
        'part.ts',
        'upstreams/declared.ts',
        'declared.ts',
      ],
      because: 'Identities know their owners, and a sender of transactions by its shape.',
    },
    {
      room: 'jobs/',
      knows: [],
      because: 'When work is done that nobody waits for; what it is, others know.',
    },
    {
      room: 'keys/',
      knows: ['ledger/', 'http/', 'db/', 'secrets/secrets.ts', 'jobs/schedule.ts', 'part.ts', 'declared.ts'],
      because: 'Keys lead to accounts; they know no calls.',
    },
    {
      room: 'ledger/',
      knows: ['db/'],
      because: 'The ledger knows the database, and nothing that moves money through it.',
    },
    {
      room: 'legacy/',
      knows: [
        'services/{define,fields,json-schema,example-answer}.ts',
        'words/',
        'upstreams/index.ts',
        'paid-call/{paid-call,sale,content,http-door,door,challenge,rail,request-body}.ts',
        'cards/{closed,provider}.ts',
        'cards/ways/{checkout,checkout-session-route}.ts',
        'ledger/money.ts',
        'http/',
        'paid-call/part.ts',
        'keys/{credit-tiers,trial}.ts',
        'part.ts',
      ],
      because: 'The older family knows services by their declaration and has no way to money of its own.',
    },
    {
      room: 'mail/',
      knows: ['db/', PROCESS, 'jobs/schedule.ts', 'part.ts', 'declared.ts'],
      because: 'Mail knows nobody who causes it.',
    },
    {
      room: 'mcp/',
      knows: [
        'services/{define,fitting,registry,json-schema,tool-name}.ts',
        'paid-call/{about-call,door,challenge,rail,sale,part,terms-in-message}.ts',
        'rails/mpp/{mcp,rail}.ts',
        'http/',
        'part.ts',
        'declared.ts',
      ],
      because: 'A door of its own to the paid call, in the words of MCP.',
    },
    {
      room: 'operations/',
      knows: ['http/', 'part.ts', 'declared.ts', 'metrics.ts'],
      because: 'What is watched is told by those who do it.',
    },
    {
      room: 'operator/',
      knows: [
        'ledger/',
        'keys/',
        'http/',
        'db/',
        'words/',
        'upstreams/http.ts',
        'relayer/gas-tanks.ts',
        'part.ts',
        'declared.ts',
      ],
      because: 'The operator sees the books, and moves money by the ledger alone.',
    },
    {
      room: 'paid-call/',
      knows: [
        'services/{define,registry,json-schema}.ts',
        'words/',
        'upstreams/index.ts',
        'ledger/',
        'http/',
        'db/',
        'secrets/secrets.ts',
        'jobs/schedule.ts',
        'part.ts',
        'declared.ts',
        'metrics.ts',
      ],
      because: 'How a call is sold knows services by their declaration, and rails by their interface alone.',
    },
    { room: 'quant/', knows: [], because: 'Numbers in, numbers out.' },
    {
      room: 'rails/credits/',
      knows: ['paid-call/rail.ts', 'keys/', 'ledger/money.ts'],
      because: 'A key pays out of its account in the ledger.',
    },
    {
      room: 'rails/evm/',
      knows: [
        'rails/on-chain/',
        'paid-call/rail.ts',
        'relayer/',
        'chain-rpc/',
        'http/problem.ts',
        'db/connection.ts',
      ],
      because: 'Signed authorizations (EIP-3009) are settled alike, whichever rail brings them.',
    },
    {
      room: 'rails/mpp/',
      knows: [
        'rails/evm/',
        'rails/on-chain/',
        'paid-call/{rail,door,part,metrics}.ts',
        'ledger/',
        'relayer/',
        'chain-rpc/',
        'http/{problem,problem-details}.ts',
        'db/connection.ts',
        'services/define.ts',
        'part.ts',
        'declared.ts',
      ],
      because: 'Each rail fulfils one interface, and knows no other rail.',
    },
    {
      room: 'rails/on-chain/',
      knows: ['paid-call/rail.ts', 'chain-rpc/'],
      because: 'What is said of a payment on any chain knows none of them.',
    },
    {
      room: 'rails/x402/',
      knows: [
        'rails/evm/',
        'rails/on-chain/',
        'paid-call/{rail,settlements,claim,metrics}.ts',
        'ledger/',
        'relayer/',
        'chain-rpc/',
        'http/',
        'db/connection.ts',
        'secrets/secrets.ts',
        'services/json-schema.ts',
        'part.ts',
        'upstreams/declared.ts',
        'declared.ts',
      ],
      because: 'Each rail fulfils one interface, and knows no other rail.',
    },
    {
      room: 'relayer/',
      knows: ['chain-rpc/', 'http/', 'db/', 'part.ts'],
      because: 'What sends transactions does not know what for.',
    },
    {
      room: 'secrets/',
      knows: ['db/', PROCESS, 'part.ts', 'declared.ts'],
      because: 'The versions of a secret know nothing of what is made with them.',
    },
    {
      room: 'services/',
      knows: ['upstreams/', 'quant/', 'compliance/', 'threads/', 'code-analysis/', 'words/'],
      because: 'What is sold knows nothing of money, HTTP or the database.',
    },
    {
      room: 'sold-keys/',
      knows: ['paid-call/sealed-answer.ts', 'keys/', 'ledger/', 'db/', 'words/', 'part.ts', 'declared.ts'],
      because: 'A key that is sold is known to the paid call by what it does for a service.',
    },
    { room: 'threads/', knows: [], because: 'A thread does not know what is done in it.' },
    {
      room: 'topup/',
      knows: [
        'paid-call/',
        'rails/x402/',
        'services/',
        'keys/',
        'ledger/',
        'http/',
        'db/',
        'words/',
        'part.ts',
        'declared.ts',
      ],
      because: 'Credit is sold by the paid call, and paid by x402 alone.',
    },
    {
      room: 'upstreams/',
      knows: ['words/', 'threads/', 'declared.ts'],
      because: 'An outside API knows what a source, a failure and a chain are called, and no service.',
    },
    {
      room: 'webhooks/',
      knows: [
        'keys/',
        'mail/{mailer,mail-text}.ts',
        'ledger/{money,transfer-id}.ts',
        'http/',
        'db/',
        'secrets/secrets.ts',
        'paid-call/paid-call.ts',
        'jobs/schedule.ts',
        'part.ts',
        'declared.ts',
      ],
      because: 'What is told to an owner moves nothing, and whoever causes it does not know of it.',
    },
    { room: 'words/', knows: [], because: 'Words are said by all, and know nobody.' },
    {
      room: 'yield/contracts/',
      knows: [],
      because: 'What the vault and the protocols are asked knows nobody who asks.',
    },
    {
      room: 'yield/evm/',
      knows: [
        'chain-rpc/',
        'db/',
        'http/',
        'jobs/schedule.ts',
        'part.ts',
        'upstreams/declared.ts',
        'yield/contracts/',
        'yield/keeper/report.ts',
        'declared.ts',
      ],
      because: 'The vault knows its chain, and nothing of calls that are paid.',
    },
    {
      room: 'yield/keeper/',
      knows: [
        'chain-rpc/',
        'db/',
        'relayer/',
        'jobs/schedule.ts',
        'part.ts',
        'upstreams/declared.ts',
        'yield/contracts/',
        'declared.ts',
      ],
      because: 'Who moves the vault’s funds knows its chain, and a sender of transactions.',
    },
    {
      room: 'yield/solana/',
      knows: [
        'chain-rpc/',
        'db/',
        'http/',
        'jobs/schedule.ts',
        'part.ts',
        'upstreams/declared.ts',
        'declared.ts',
      ],
      because: 'The portal knows its chain, and nothing of calls that are paid.',
    },
    {
      room: 'config.ts',
      knows: ['declared.ts', 'db/declared.ts', 'http/caller-address.ts', 'world.ts', 'shop.ts', PROCESS],
      because: 'What is configured the parts say; here it is read.',
    },
    {
      room: 'declared.ts',
      knows: ['world.ts', 'ledger/rule.ts'],
      because: 'What a part says of itself before it is opened, whichever part it is.',
    },
    {
      room: 'world.ts',
      knows: ['rails/x402/solana-key.ts'],
      because: 'Whose money it is, real or of a sandbox, is a fact of the configuration.',
    },
    {
      room: 'part.ts',
      knows: [
        'db/{connection,start-patience}.ts',
        'http/{operation,proxy-check,rate-limit}.ts',
        'jobs/schedule.ts',
        'paid-call/rail.ts',
        'services/define.ts',
        'shop.ts',
      ],
      because: 'What a part is, and what every part gets: types alone.',
    },
    {
      room: 'shop.ts',
      knows: ['words/'],
      because: 'What a shop is called has to do with nothing that it sells.',
    },
    {
      room: 'metrics.ts',
      knows: [],
      because: 'How a part shows figures, whichever part it is.',
    },
    { room: 'house.ts', knows: null, because: 'It makes a server of a list of parts.' },
    { room: 'app.ts', knows: null, because: 'It puts the parts together.' },
    { room: 'main.ts', knows: null, because: 'It starts and stops the process.' },
    { room: 'commands/', knows: null, because: 'Each starts a process of its own.' },
  ],
};

export const SANDBOX: House = {
  root: 'packages/sandbox/src/',
  rooms: [
    {
      room: 'cards/',
      knows: ['page-frame.ts', 'faults.ts'],
      because: 'A card provider knows no other part.',
    },
    {
      room: 'chain/',
      knows: ['upstreams/market.ts', '/contracts/forge.ts', PROCESS],
      because: 'A chain trades at the prices that the market sources tell, and carries what forge compiled.',
    },
    { room: 'devices/', knows: [], because: 'A device knows the public interface alone.' },
    {
      room: 'facilitator/',
      knows: ['faults.ts'],
      because: 'A facilitator is told the addresses of its chains.',
    },
    { room: 'mailbox/', knows: ['page-frame.ts', 'faults.ts'], because: 'A mailbox knows no other part.' },
    { room: 'solana/', knows: ['faults.ts'], because: 'A chain knows nobody who pays on it.' },
    {
      room: 'tempo/',
      knows: ['chain/{accounts,anvil,node-keeper}.ts', PROCESS],
      because: 'Tempo is the same node as the other EVM chain, in another mode.',
    },
    { room: 'upstreams/', knows: ['faults.ts'], because: 'Sources of data know nobody who asks them.' },
    { room: 'backup-mark.ts', knows: [], because: 'A mark is a name.' },
    { room: 'copy-tree.ts', knows: [], because: 'Files are copied whatever is in them.' },
    { room: 'data-dir.ts', knows: [], because: 'Where the world keeps its files.' },
    { room: 'faults.ts', knows: [], because: 'A fault on order does not know what it breaks.' },
    { room: 'kept-port.ts', knows: [], because: 'A port is a number.' },
    { room: 'page-frame.ts', knows: [], because: 'A frame knows no page.' },
    ...[
      ...['backup.ts', 'reset.ts', 'restore.ts', 'run.ts', 'saving.ts'],
      ...['start.ts', 'wallet.ts', 'warp.ts', 'world.ts'],
    ].map((room) => ({
      room,
      knows: ['', PROCESS],
      because: 'It puts the parts of the sandbox together, and hands the server their addresses.',
    })),
  ],
};

/** What is no house of rooms: each as a whole. */
export const OTHERS: House = {
  root: '',
  rooms: [
    { room: 'apps/web/', knows: [], because: 'A page knows the public interface alone.' },
    { room: 'bench/', knows: null, because: 'It measures whatever there is.' },
    { room: 'examples/', knows: [], because: 'An example knows what a reader has: the public interface.' },
    {
      room: 'packages/mcp-bridge/',
      knows: [],
      because: 'Whoever runs the bridge has the public interface alone.',
    },
    {
      room: 'packages/process/',
      knows: [],
      because: 'What the server and the sandbox share: processes of theirs.',
    },
    { room: 'scripts/', knows: null, because: 'They check whatever there is.' },
    { room: 'contracts/', knows: [], because: 'Contracts, and what runs their tests, know no server.' },
  ],
};

export const HOUSES: readonly House[] = [SERVER, SANDBOX, OTHERS];

/** A path of a row as a regular expression over paths from the repository's root. */
export function patternOf(house: House, path: string): string {
  const full = path.startsWith('/') ? path.slice(1) : house.root + path;
  const escaped = full
    .replaceAll('.', '[.]')
    .replace(/\{(.*)\}/, (_, names: string) => `(${names.replaceAll(',', '|')})`);
  return `^${escaped}${full.endsWith('/') ? '' : '$'}`;
}
