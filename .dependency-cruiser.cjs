/**
 * Who may know whom: the rule that docs/architecture.md draws. Type-only imports count too, because a type says as much
 * about who knows whom as a value does. Tests and their fixtures may reach further and are left out.
 */
// It reads TypeScript with this package, and without it would look at nothing and find no fault.
require('@swc/core');

const SERVER = '^apps/server/src/';
const OURS = '^(apps|packages|bench|scripts)/';

/** A part of the server may import itself, npm packages, Node, and the listed paths below `apps/server/src/`. */
function mayKnow(part, others, because) {
  return {
    name: part,
    comment: because,
    severity: 'error',
    from: { path: `${SERVER}${part}/` },
    to: {
      path: OURS,
      pathNot: ['/node_modules/', ...[`${part}/`, ...others].map((path) => SERVER + path)],
    },
  };
}

module.exports = {
  forbidden: [
    {
      name: 'no-circles',
      comment: 'Modules that need each other are one module.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'leads-nowhere',
      comment: 'An import must resolve.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    mayKnow(
      'services',
      ['upstreams/', 'quant/', 'compliance/', 'threads/', 'code-analysis/'],
      'What is sold knows nothing of money, HTTP or the database.',
    ),
    mayKnow(
      'upstreams',
      ['services/(answer|failure|fields)[.]ts$', 'threads/'],
      'An outside API knows what a source, a failure and a chain are called, and no service.',
    ),
    mayKnow('quant', [], 'Numbers in, numbers out.'),
    mayKnow('compliance', [], 'Names and rules: nothing is asked there.'),
    mayKnow('code-analysis', [], 'Code in, findings out.'),
    mayKnow('threads', [], 'A thread does not know what is done in it.'),
    mayKnow(
      'rails',
      [
        'keys/',
        'ledger/',
        'paid-call/(rail|settlements|door|challenge|claim)[.]ts$',
        'relayer/',
        'chain-rpc/',
        'http/',
        'db/',
        'secrets/secrets[.]ts$',
        'services/json-schema[.]ts$',
      ],
      'A way to pay knows the ledger or a chain, and the interface that it fulfils.',
    ),
    mayKnow('chain-rpc', [], 'The way to a node knows nothing of what is asked.'),
    mayKnow('relayer', ['chain-rpc/', 'db/', 'http/'], 'What sends transactions does not know what for.'),
    mayKnow(
      'custody',
      ['services/(define|fields|fresh-key)[.]ts$', 'keys/', 'http/', 'db/'],
      'Managed wallets know their owners, and no money.',
    ),
    mayKnow(
      'identity',
      ['custody/owner[.]ts$', 'services/(define|failure)[.]ts$', 'db/'],
      'Identities know their owners, and a sender of transactions by its shape.',
    ),
    mayKnow('ledger', ['db/'], 'The ledger knows the database, and nothing that moves money through it.'),
    mayKnow('db', ['start-error.ts'], 'The database knows no domain.'),
    mayKnow(
      'secrets',
      ['db/', 'start-error[.]ts$'],
      'The versions of a secret know nothing of what is made with them.',
    ),
    mayKnow('http', [], 'The edge knows nothing of what lies behind it.'),
    mayKnow(
      'keys',
      ['ledger/', 'http/', 'db/', 'secrets/secrets[.]ts$'],
      'Keys lead to accounts; they know no calls.',
    ),
    mayKnow(
      'paid-call',
      [
        'services/(define|registry|answer|failure|json-schema)[.]ts$',
        'upstreams/index[.]ts$',
        'ledger/',
        'http/',
        'db/',
        'secrets/secrets[.]ts$',
      ],
      'How a call is sold knows services by their declaration, and rails by their interface alone.',
    ),
    mayKnow(
      'discovery',
      ['services/', 'http/', 'ledger/money[.]ts$', 'keys/credit-tiers[.]ts$'],
      'Documents are rendered from declarations; they can move no money.',
    ),
    mayKnow(
      'jobs',
      ['ledger/', 'paid-call/(calls|rail|settlements|undelivered)[.]ts$'],
      'A job finishes what the database says is open.',
    ),
    mayKnow(
      'operations',
      ['http/', 'paid-call/paid-call[.]ts$', 'upstreams/http[.]ts$'],
      'What is watched is told by those who do it.',
    ),
    mayKnow(
      'legacy',
      [
        'services/(define|answer|failure|fields)[.]ts$',
        'upstreams/index[.]ts$',
        'paid-call/(paid-call|door|challenge|rail|request-body)[.]ts$',
        'cards/(checkout|closed|provider)[.]ts$',
        'ledger/money[.]ts$',
        'http/',
      ],
      'The older family knows services by their declaration and has no way to money of its own.',
    ),
    mayKnow(
      'cards',
      ['http/', 'ledger/', 'keys/', 'db/', 'mail/', 'secrets/secrets[.]ts$', 'jobs/schedule[.]ts$'],
      'A purchase ends in the ledger.',
    ),
    mayKnow(
      'account',
      ['keys/', 'cards/', 'ledger/', 'http/'],
      'What an owner sees is put together from those who know it.',
    ),
    mayKnow(
      'data-lists',
      ['upstreams/', 'db/', 'services/(answer|failure|listed-parties)[.]ts$'],
      'A published list is read by its upstream; who looks things up in it does not matter.',
    ),
    mayKnow('mail', ['db/', 'start-error[.]ts$'], 'Mail knows nobody who causes it.'),
    mayKnow(
      'operator',
      ['http/', 'ledger/', 'keys/', 'db/', 'upstreams/http[.]ts$'],
      'The operator sees the books, and moves money by the ledger alone.',
    ),
    mayKnow(
      'topup',
      ['paid-call/', 'rails/x402/', 'services/', 'keys/', 'ledger/', 'http/', 'db/'],
      'Credit is sold by the paid call, and paid by x402 alone.',
    ),
    {
      name: 'nobody-reads-the-environment',
      comment: 'config.ts turns the environment into a Config; what starts a process hands it over.',
      severity: 'error',
      from: { path: SERVER, pathNot: `${SERVER}(main|app|commands/[^/]+)[.]ts$` },
      to: { path: `${SERVER}config[.]ts$` },
    },
    {
      name: 'the-sandbox-stands-alone',
      comment:
        'Sandbox parts speak the wire protocol of what they stand for; they know nothing of the server.',
      severity: 'error',
      from: { path: '^packages/sandbox/src/upstreams/' },
      to: { path: OURS, pathNot: '^packages/sandbox/src/upstreams/' },
    },
    {
      name: 'the-server-knows-no-sandbox',
      comment: 'The server is handed addresses and cannot tell which world they lead to.',
      severity: 'error',
      from: { path: SERVER },
      to: { path: '^packages/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '[.](test|fixture)[.]ts$' },
    parser: 'swc',
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json'],
      conditionNames: ['import', 'node', 'default'],
      exportsFields: ['exports'],
    },
  },
};
