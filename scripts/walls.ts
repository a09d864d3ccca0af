/**
 * Which folder of the repository may import which. `.dependency-cruiser.cjs` makes its rules from this list, and
 * docs/parts.md its table and docs/architecture.md its picture. A folder without a row may import nothing of ours.
 *
 * A row says what a folder or file may import beside itself, npm packages and Node. A folder ends in `/`, a file in
 * `.ts`, and braces list several files of one folder. A folder needs no row if each of its own folders has one. Types
 * count too, because a type creates the same dependency as a value. Tests and their fixtures may import more, and are
 * left out. What stands in a folder `inside/` is imported by the folder around it alone.
 */
export interface Wall {
  /** Path from the house's root. */
  room: string;
  /** Paths from the house's root; `null`: everything in the house. */
  knows: readonly string[] | null;
  because: string;
}

export interface House {
  /** Path from the root of the repository, with `/` at its end. */
  root: string;
  /** Paths that every room may import, but for those that stand in them. */
  floor?: readonly string[];
  rooms: readonly Wall[];
}

const PROCESS = '/packages/process/';

const CORE_PACKAGE = '/packages/core/';

/** The fare box. Rows on the same level are in alphabetical order. A path that begins with `/` starts at the repository's root. */
export const CORE: House = {
  root: 'packages/core/src/',
  floor: ['words/', 'jobs/schedule.ts', 'part.ts', 'declared.ts', 'metrics.ts', PROCESS],
  rooms: [
    {
      room: 'a2a/',
      knows: ['service/', 'paid-call/', 'keys/{api-key,keys}.ts', 'http/', 'db/connection.ts'],
      because:
        'A door of its own to the paid call, in the words of A2A: its tasks know calls, and move no money.',
    },
    {
      room: 'account/',
      knows: ['keys/', 'cards/', 'ledger/', 'http/'],
      because: 'What an owner sees is assembled from the parts that know it.',
    },
    {
      room: 'cards/',
      knows: ['keys/', 'ledger/', 'mail/', 'http/', 'db/', 'secrets/secrets.ts'],
      because: 'A purchase ends in the ledger.',
    },
    {
      room: 'commands/',
      knows: [],
      because: 'A command writes what a beginner changes, and starts nothing.',
    },
    { room: 'chain-rpc/', knows: [], because: 'The connection to a node does not depend on what is asked.' },
    {
      room: 'custody/',
      knows: ['keys/', 'http/', 'db/', 'service/define.ts'],
      because: 'Managed wallets know their owners, and nothing of money.',
    },
    {
      room: 'db/',
      knows: [],
      because: 'The database knows no domain.',
    },
    {
      room: 'discovery/',
      knows: [
        'service/',
        'a2a/extensions.ts',
        'http/',
        'ledger/money.ts',
        'keys/{credit-tiers,trial}.ts',
        'secrets/secrets.ts',
        'shop.ts',
      ],
      because: 'Documents are rendered from declarations; they can move no money.',
    },
    {
      room: 'http/',
      knows: [],
      because: 'The HTTP edge does not depend on what is served behind it.',
    },
    {
      room: 'identity/',
      knows: ['custody/{owner,agent-id-claims}.ts', 'service/define.ts', 'db/', 'relayer/', 'chain-rpc/'],
      because: 'Identities know their owners, and a sender of transactions by its interface.',
    },
    {
      room: 'jobs/',
      knows: [],
      because: 'It decides when background work runs; what the work is, the other parts know.',
    },
    {
      room: 'history/',
      knows: ['db/', 'ledger/spread-books.ts', 'ledger/writers-ended.ts'],
      because: 'Archives know tables, and how buckets lie on servers, and move no money.',
    },
    {
      room: 'keys/',
      knows: ['ledger/', 'http/', 'db/', 'secrets/secrets.ts'],
      because: 'Keys lead to accounts; they know no calls.',
    },
    {
      room: 'ledger/',
      knows: ['db/'],
      because: 'The ledger knows the database, and none of the parts that move money through it.',
    },
    {
      room: 'legacy/',
      knows: [
        'service/',
        'paid-call/',
        'cards/{closed,provider}.ts',
        'cards/ways/{checkout,checkout-session-route}.ts',
        'ledger/money.ts',
        'http/',
        'keys/{credit-tiers,trial}.ts',
      ],
      because: 'The older family knows services by their declaration, and moves money only by the paid call.',
    },
    {
      room: 'mail/',
      knows: ['db/'],
      because: 'Mail does not know the parts that cause it.',
    },
    {
      room: 'mcp/',
      knows: ['service/', 'paid-call/', 'keys/{api-key,keys}.ts', 'rails/mpp/{asked,mcp,rail}.ts', 'http/'],
      because: 'A door of its own to the paid call, in the words of MCP.',
    },
    {
      room: 'operations/',
      knows: ['http/', 'tracing/'],
      because: 'What is monitored is reported by the parts that do it.',
    },
    {
      room: 'operator/',
      knows: [
        'ledger/',
        'keys/',
        'http/',
        'db/',
        'service/{define,sources,supply}.ts',
        'stock/',
        'relayer/gas-tanks.ts',
      ],
      because: 'The operator sees the books, and moves money by the ledger alone.',
    },
    {
      room: 'paid-call/',
      knows: [
        'service/',
        'history/',
        'keys/root-buyer.ts',
        'ledger/',
        'http/',
        'db/',
        'secrets/secrets.ts',
        'tracing/',
      ],
      because: 'The paid call knows services by their declaration, and rails by their interface alone.',
    },
    {
      room: 'rails/credits/',
      knows: ['paid-call/', 'keys/', 'ledger/money.ts'],
      because: 'A key pays from its account in the ledger.',
    },
    {
      room: 'rails/evm/',
      knows: [
        'rails/on-chain/',
        'paid-call/',
        'relayer/',
        'chain-rpc/',
        'http/problem.ts',
        'db/connection.ts',
      ],
      because: 'Signed authorizations (EIP-3009) are settled in the same way, whichever rail brings them.',
    },
    {
      room: 'rails/mpp/',
      knows: [
        'rails/evm/',
        'rails/on-chain/',
        'paid-call/',
        'ledger/',
        'relayer/',
        'chain-rpc/',
        'http/{problem,problem-details}.ts',
        'db/connection.ts',
        'service/define.ts',
      ],
      because: 'Each rail implements one interface, and knows no other rail.',
    },
    {
      room: 'rails/on-chain/',
      knows: ['paid-call/', 'chain-rpc/'],
      because: 'What holds for payments on every chain depends on none of them.',
    },
    {
      room: 'rails/x402/',
      knows: [
        'rails/evm/',
        'rails/on-chain/',
        'paid-call/',
        'ledger/',
        'relayer/',
        'chain-rpc/',
        'http/',
        'db/connection.ts',
        'secrets/secrets.ts',
        'service/{json-schema,route}.ts',
      ],
      because: 'Each rail implements one interface, and knows no other rail.',
    },
    {
      room: 'people/',
      knows: ['operator/trail.ts', 'ledger/transfer-id.ts', 'db/', 'secrets/secrets.ts'],
      because: 'It knows what parts declare about people, and none of the parts.',
    },
    {
      room: 'relayer/',
      knows: ['chain-rpc/', 'http/', 'db/'],
      because: 'It sends transactions, and does not know what they are for.',
    },
    {
      room: 'secrets/',
      knows: ['db/'],
      because: 'The versions of a secret do not depend on what is made with them.',
    },
    { room: 'service/', knows: [], because: 'What a service is does not depend on which there are.' },
    {
      room: 'sold-keys/',
      knows: ['paid-call/', 'service/define.ts', 'keys/', 'ledger/', 'db/'],
      because: 'The paid call knows sold keys only as a capability of a service.',
    },
    {
      room: 'recovery/',
      knows: ['cards/', 'db/', 'ledger/', 'paid-call/', 'rails/evm/'],
      because: 'It puts right what all ways to pay have sold; nothing that is sold knows of it.',
    },
    {
      room: 'status/',
      knows: ['discovery/{pages,page-frame,published}.ts', 'jobs/', 'http/', 'db/'],
      because: 'It shows what other parts say of themselves, and asks none of them for money.',
    },
    {
      room: 'stock/',
      knows: ['service/', 'ledger/money.ts', 'db/', 'http/problem.ts'],
      because: 'What is sold, and at which price, is decided without knowing how it is paid.',
    },
    { room: 'threads/', knows: [], because: 'A thread does not know what is computed in it.' },
    {
      room: 'tracing/',
      knows: [],
      because: 'Spans carry names and times, and know nothing of what they time.',
    },
    {
      room: 'topup/',
      knows: ['paid-call/', 'rails/x402/', 'service/', 'keys/', 'ledger/', 'http/', 'db/'],
      because: 'Credit is sold by the paid call, and paid by x402 alone.',
    },
    {
      room: 'webhooks/',
      knows: [
        'keys/',
        'mail/{mailer,mail-text}.ts',
        'ledger/{bucket-turns,money,transfer-id}.ts',
        'http/',
        'db/',
        'secrets/secrets.ts',
        'paid-call/',
      ],
      because:
        'Telling an owner moves no money, and the parts that cause an event do not know about webhooks.',
    },
    {
      room: 'words/',
      knows: [],
      because: 'All parts use these words, and the words depend on none of them.',
    },
    {
      room: 'config.ts',
      knows: ['db/declared.ts', 'http/caller-address.ts', 'secret-files.ts', 'world.ts', 'shop.ts'],
      because: 'Each part declares what is configured; this file reads it.',
    },
    {
      room: 'declared.ts',
      knows: ['world.ts', 'ledger/rule.ts', 'relayer/sign.ts', 'words/personal-data.ts'],
      because: 'How any part declares itself before it is opened.',
    },
    {
      room: 'secret-files.ts',
      knows: [],
      because: 'A secret is read in one way, wherever it stands.',
    },
    {
      room: 'world.ts',
      knows: ['rails/x402/solana-key.ts', 'relayer/sign.ts'],
      because: 'Whether money is real or of a sandbox follows from the configuration.',
    },
    {
      room: 'part.ts',
      knows: [
        'db/{connection,leased-queue,start-patience}.ts',
        'http/{operation,proxy-check,rate-limit,server}.ts',
        'jobs/schedule.ts',
        'paid-call/',
        'service/{define,shelf}.ts',
        'shop.ts',
      ],
      because: 'What a part is, and what every part gets; types alone.',
    },
    { room: 'shop.ts', knows: ['words/'], because: 'A shop’s name does not depend on what it sells.' },
    { room: 'metrics.ts', knows: [], because: 'How any part publishes its metrics.' },
    {
      room: 'serve.ts',
      knows: ['config.ts', 'db/', 'house.ts', 'operations/redaction.ts', 'secret-files.ts', 'service/'],
      because: 'It runs a shop as a process, whatever its parts are.',
    },
    {
      room: 'house.ts',
      knows: ['db/', 'discovery/context.ts', 'http/', 'service/', 'shop.ts'],
      because: 'It makes a server of a list of parts.',
    },
  ],
};

/** The services, and what they ask. Which files of the fare box it may import, the `exports` of that package say. */
export const CATALOGUE: House = {
  root: 'packages/catalogue/src/',
  rooms: [
    {
      room: 'code-analysis/',
      knows: [PROCESS],
      because: 'Code in, findings out; its compilers are fetched when they are first used.',
    },
    { room: 'compliance/', knows: [], because: 'Names and rules alone; it asks no source.' },
    {
      room: 'data-lists/',
      knows: [
        'upstreams/',
        'law-pages/law-pages.ts',
        'compliance/{rule,rules}.ts',
        'services/{listed-parties,listed-tokens}.ts',
        CORE_PACKAGE,
      ],
      because: 'Lists are fetched by their upstreams, and do not depend on who looks things up in them.',
    },
    {
      room: 'devices/',
      knows: ['services/reported-devices.ts', PROCESS, CORE_PACKAGE],
      because:
        'Devices know their owners. A share of money is only noted here; whoever takes the price sets it aside.',
    },
    {
      room: 'law-pages/',
      knows: ['upstreams/{define,http,wire-errors}.ts', 'services/law-page-changes.ts', CORE_PACKAGE],
      because: 'It reads the addresses that it is given, and does not know what their pages say.',
    },
    {
      room: 'pictures/',
      knows: [
        'services/map-pictures.ts',
        'upstreams/{budget,index,picture}.ts',
        'upstreams/adapters/{gibs,gibs-layers,gibs-maps}.ts',
        CORE_PACKAGE,
      ],
      because: 'What is drawn for an answer knows neither the answer nor who paid for it.',
    },
    {
      room: 'preflight/',
      knows: [],
      because: 'What is to be signed in, what it would do out; it asks no chain.',
    },
    { room: 'quant/', knows: [], because: 'Numbers in, numbers out.' },
    {
      room: 'services/',
      knows: ['upstreams/', 'quant/', 'compliance/', 'code-analysis/', 'preflight/', CORE_PACKAGE],
      because: 'A service knows nothing of money, HTTP or the database.',
    },
    {
      room: 'upstreams/',
      knows: [CORE_PACKAGE],
      because: 'An adapter of an outside API knows sources, failures and names of chains, and no service.',
    },
  ],
};

/** The vault, its keeper and the portal. */
export const YIELD: House = {
  root: 'packages/yield/src/',
  rooms: [
    {
      room: 'contracts/',
      knows: [],
      because: 'The interfaces of the vault and the protocols do not depend on who uses them.',
    },
    {
      room: 'evm/',
      knows: [
        'contracts/',
        'free-reads/',
        'keeper/report.ts',
        '{figures,kept-reading,signing-check}.ts',
        CORE_PACKAGE,
      ],
      because: 'The vault knows its chain, and nothing of calls that are paid.',
    },
    {
      room: 'keeper/',
      knows: ['contracts/', CORE_PACKAGE],
      because: 'The keeper, which moves the vault’s funds, knows its chain and a sender of transactions.',
    },
    {
      room: 'solana/',
      knows: ['free-reads/', '{figures,kept-reading,signing-check}.ts', CORE_PACKAGE],
      because: 'The portal knows its chain, and nothing of calls that are paid.',
    },
    {
      room: 'free-reads/',
      knows: [CORE_PACKAGE],
      because: 'What free callers may take of a node does not depend on what they read.',
    },
    { room: 'figures.ts', knows: [], because: 'An amount is written alike on every chain.' },
    {
      room: 'kept-reading.ts',
      knows: [],
      because: 'What is kept, and for how long, has nothing to do with the chain that was read.',
    },
    {
      room: 'signing-check.ts',
      knows: [],
      because: 'What is told of a call before it is signed has the same fields on every chain.',
    },
  ],
};

/** The routes that an operator sells by configuration, and how their calls are sent on. */
export const PROXY: House = {
  root: 'packages/proxy/src/',
  rooms: [
    {
      room: 'config/',
      knows: ['wire/headers.ts', CORE_PACKAGE],
      because: 'What is configured does not depend on how calls are sent on.',
    },
    {
      room: 'wire/',
      knows: ['/packages/core/src/service/fair-places.ts'],
      because:
        'Sending a call on does not depend on who pays for it; its places are shared as all others are.',
    },
    {
      room: 'sell/',
      knows: ['config/', 'wire/', CORE_PACKAGE],
      because: 'A route is a service to the paid call; it knows nothing of rails or the ledger.',
    },
    { room: 'declared.ts', knows: [CORE_PACKAGE], because: 'It is known before anything is opened.' },
    {
      room: 'configured.ts',
      knows: ['config/', 'sell/', CORE_PACKAGE, PROCESS],
      because: 'It reads the file, and opens what it says.',
    },
    {
      room: 'route-door.ts',
      knows: [CORE_PACKAGE],
      because: 'How routes are paid does not depend on who answers them.',
    },
    {
      room: 'part.ts',
      knows: ['config/', 'wire/', 'sell/', 'declared.ts', 'route-door.ts', 'gate/', CORE_PACKAGE, PROCESS],
      because: 'It is one more door of the paid call.',
    },
    {
      room: 'gate/',
      knows: ['config/', 'sell/', 'route-door.ts', '/packages/gate/', CORE_PACKAGE],
      because: 'A guest of the paid call: it answers routes, and moves no money.',
    },
  ],
};

/** The shop, which puts the packages together. */
export const SHOP: House = {
  root: 'apps/shop/src/',
  rooms: [
    {
      room: 'app.ts',
      knows: ['', CORE_PACKAGE, '/packages/catalogue/', '/packages/yield/', '/packages/proxy/', PROCESS],
      because: 'It puts the parts together.',
    },
    {
      room: 'guides.ts',
      knows: [CORE_PACKAGE, '/packages/catalogue/'],
      because:
        'The documents stand beside the shop, the groups beside the services, and the fare box shows what it is given.',
    },
    {
      room: 'main.ts',
      knows: ['', CORE_PACKAGE, '/packages/catalogue/', '/packages/yield/', '/packages/proxy/', PROCESS],
      because: 'It starts and stops the process.',
    },
    {
      room: 'commands/',
      knows: ['', CORE_PACKAGE, '/packages/catalogue/', '/packages/yield/', '/packages/proxy/', PROCESS],
      because: 'Each starts a process of its own.',
    },
    {
      room: 'doctor/',
      knows: ['app.ts', CORE_PACKAGE, '/packages/catalogue/'],
      because: 'It looks at what is configured from outside, and takes no part in the server.',
    },
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
      because: 'A chain trades at the prices of the market sources, and carries what forge compiled.',
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
    { room: 'backup-mark.ts', knows: [], because: 'It holds one file name.' },
    { room: 'copy-tree.ts', knows: [], because: 'It copies files without reading them.' },
    { room: 'data-dir.ts', knows: [], because: 'It says where the sandbox keeps its files.' },
    { room: 'faults.ts', knows: [], because: 'A fault on order does not depend on what it breaks.' },
    { room: 'kept-port.ts', knows: [PROCESS], because: 'It keeps port numbers, and finds free ones.' },
    { room: 'load-server-program.ts', knows: [], because: 'It loads files of the server by their paths.' },
    { room: 'page-frame.ts', knows: [], because: 'The frame of a page does not depend on the page.' },
    { room: 'parts.ts', knows: [PROCESS], because: 'It starts and stops parts of any kind.' },
    {
      room: 'signers.ts',
      knows: [PROCESS],
      because: 'It plays a command of the server, loaded by its path.',
    },
    ...[
      ...['backup.ts', 'reset.ts', 'restore.ts', 'run.ts', 'saving.ts'],
      ...['start.ts', 'time-asked.ts', 'wallet.ts', 'warp.ts', 'world.ts'],
    ].map((room) => ({
      room,
      knows: ['', PROCESS],
      because: 'It puts the parts of the sandbox together, and hands the server their addresses.',
    })),
  ],
};

/** Folders that belong to no house; each is one room. */
export const OTHERS: House = {
  root: '',
  rooms: [
    {
      room: 'packages/core/new/',
      knows: ['packages/core/src/'],
      because: 'A shop to begin with knows the faces of the fare box.',
    },
    { room: 'packages/core/web/', knows: [], because: 'A page knows the public interface alone.' },
    { room: 'bench/', knows: null, because: 'It measures whatever there is.' },
    {
      room: 'examples/',
      knows: ['packages/client/'],
      because: 'An example knows what a reader has: the client, and the public interface.',
    },
    {
      room: 'packages/client/',
      knows: [],
      because: 'Whoever buys has the public interface alone.',
    },
    {
      room: 'packages/gate/',
      knows: [],
      because: 'Whoever sells routes of a server of their own has this package alone.',
    },
    {
      room: 'packages/mcp-bridge/',
      knows: ['packages/client/'],
      because: 'The bridge is a client behind the words of MCP.',
    },
    {
      room: 'packages/process/',
      knows: [],
      because: 'What the server and the sandbox share about processes.',
    },
    { room: 'scripts/', knows: null, because: 'They check whatever there is.' },
    { room: 'contracts/', knows: [], because: 'Contracts, and what runs their tests, know no server.' },
  ],
};

export const HOUSES: readonly House[] = [CORE, CATALOGUE, YIELD, PROXY, SHOP, SANDBOX, OTHERS];

/** The floor below a room: none for what the floor itself is made of. */
export function floorOf({ floor = [] }: House, room: string): readonly string[] {
  return floor.some((path) => path.startsWith(room)) ? [] : floor;
}

/** A path of a row, as a regular expression over paths from the repository's root. */
export function patternOf(house: House, path: string): string {
  const full = path.startsWith('/') ? path.slice(1) : house.root + path;
  const escaped = full
    .replaceAll('.', '[.]')
    .replace(/\{(.*)\}/, (_, names: string) => `(${names.replaceAll(',', '|')})`);
  return `^${escaped}${full.endsWith('/') ? '' : '$'}`;
}
