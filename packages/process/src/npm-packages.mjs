/**
 * Packages from a registry, as a lock file pins them: for the entry of every npm script, and for what a program fetches when it is first
 * used. Written with built-ins only, and in JavaScript, so that it runs on any Node from 18 on.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from './is-alive.mjs';

/** With what npm itself takes to begin, words come after 5 s at most. */
const REGISTRY_PATIENCE_MS = 2_500;
/** For npm itself, which takes seconds to begin on a machine that does much else. */
const PING_MS = 20_000;
const PROGRESS_MS = 5_000;
/** The longest that one program waits for another to fetch the same. */
const FETCH_MS = 900_000;
const FETCH_POLL_MS = 250;
/** Longer than it takes to write an id into a file that was just made. */
const CLAIMED_WITHIN_MS = 5_000;
/** What npm says when it cannot speak with a registry at all; any other answer comes from one. */
const UNREACHABLE =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|FETCH_ERROR|network)\b/i;
const SILENT = /E\w*TIMEDOUT|E\w*TIMEOUT|timeout/i;
const WHAT_TO_SET =
  '`npm config get registry` names it. Behind a proxy set HTTPS_PROXY; for a registry of your own run `npm config set registry https://…`.';
const NPM_INSTALL = [
  'install',
  '--no-save',
  '--no-audit',
  '--no-fund',
  '--loglevel=error',
  '--ignore-scripts',
];
/** Files of packages that no program reads as it runs: Node executes no TypeScript below `node_modules`. */
const NEVER_READ = /\.(?:map|md|markdown|flow|[cm]?tsx?)$/i;
const LICENCE = /^(?:licen[cs]e|copying|notice)/i;

/** The words of the system where there is no npm: some images of Node come without. */
const NO_NPM = /\bspawn npm\S* ENOENT\b/;

/** Writes words on the progress to the error output. */
export const say = (words) => process.stderr.write(`farebox: ${words}\n`);

/** Runs npm. @returns its exit code, null when it took longer than it may, and what it wrote to its error output */
async function npm(args, { cwd, mostMs = null, shown = false }) {
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

/**
 * Asks the registry before anything long begins: behind a closed network npm itself tries for minutes without a word.
 *
 * @returns `there` when it answers, be it with an error; `silent` when that takes long; `away` when it cannot be reached
 * @throws Error where there is no npm to ask it with
 */
async function lookForRegistry(cwd) {
  const args = ['ping', '--fetch-retries=0', `--fetch-timeout=${REGISTRY_PATIENCE_MS}`];
  const { code, errors } = await npm(args, { cwd, mostMs: PING_MS });
  if (NO_NPM.test(errors))
    throw new Error('npm is not on the PATH, and is needed once to fetch packages: it comes with Node.');
  if (code === null || (code !== 0 && SILENT.test(errors))) return 'silent';
  return code !== 0 && UNREACHABLE.test(errors) ? 'away' : 'there';
}

/**
 * Installs what a folder's lock file pins. `npm install` and not `npm ci`, which refuses a lock file without the binaries of
 * platforms that a registry does not carry. Versions and checksums come from the lock file all the same, and nothing is written to it.
 *
 * @param extra further arguments of npm
 * @throws Error with words for the person at the terminal
 */
export async function npmInstall(folder, extra = []) {
  const registry = await lookForRegistry(folder);
  if (registry === 'silent')
    say(`the package registry has not answered yet; ${WHAT_TO_SET} Trying all the same ...`);
  if (registry === 'away') {
    // What npm has kept of an earlier installation may be enough.
    const { code } = await npm([...NPM_INSTALL, '--offline', ...extra], { cwd: folder });
    if (code === 0) return;
    throw new Error(
      `the package registry cannot be reached, and is needed once; ${WHAT_TO_SET} Then run the command again.`,
    );
  }
  const startedMs = Date.now();
  const timer = setInterval(
    () => say(`${soFarIn(folder)} after ${Math.round((Date.now() - startedMs) / 1_000)} s ...`),
    PROGRESS_MS,
  );
  const { code } = await npm([...NPM_INSTALL, ...extra], { cwd: folder, shown: true });
  clearInterval(timer);
  if (code !== 0)
    throw new Error(
      `the installation in ${folder} failed. It needs the package registry once; run the command again.`,
    );
}

/** The number of packages in a folder's `node_modules`, without those inside others. */
export function packagesIn(folder) {
  const modules = join(folder, 'node_modules');
  const namesIn = (path) =>
    existsSync(path) ? readdirSync(path).filter((name) => !name.startsWith('.')) : [];
  return namesIn(modules)
    .map((name) => (name.startsWith('@') ? namesIn(join(modules, name)).length : 1))
    .reduce((sum, count) => sum + count, 0);
}

function filesBelow(path, isWanted) {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    const inside = join(path, entry.name);
    if (entry.isDirectory()) return filesBelow(inside, isWanted);
    return entry.isFile() && isWanted(entry.name) ? [inside] : [];
  });
}

const bytesOf = (files) => files.reduce((sum, file) => sum + statSync(file).size, 0);

/** The size of what is installed in a folder, in MB, without what it links to. */
export function megabytesIn(folder) {
  return Math.round(bytesOf(filesBelow(join(folder, 'node_modules'), () => true)) / 1e6);
}

/** How much npm has put there by now: it makes all folders first and fills them then, so that the megabytes show that it goes on. */
function soFarIn(folder) {
  const packages = `${packagesIn(folder)} packages`;
  try {
    return `${packages}, ${megabytesIn(folder)} MB`;
  } catch {
    // What it is just moving cannot be measured.
    return packages;
  }
}

/** Whether no program reads a file of a package as it runs. Licences are kept, whatever their name ends in. */
export const isNeverRead = (name) => NEVER_READ.test(name) && !LICENCE.test(name);

/**
 * The packages that some of a lock file's folders need as they run, optional ones with them. Optional peers are left out, which npm
 * installs as soon as the lock file holds them for anybody: compilers and clients that only tests need.
 *
 * @param entries folders as the lock file names them: of workspaces, or `''` for the root
 * @returns paths below the folder, such as `node_modules/viem`
 */
export function neededPackages(folder, entries) {
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  const needed = new Set();
  const visit = (place) => {
    if (needed.has(place)) return;
    needed.add(place);
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = packages[place];
    const peers = Object.keys(peerDependencies ?? {}).filter(
      (name) => peerDependenciesMeta?.[name]?.optional !== true,
    );
    for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
      const found = placeOf(packages, place, name);
      if (found !== null) visit(found);
    }
  };
  for (const entry of entries) visit(entry);
  return new Set([...needed].filter((place) => place.includes('node_modules/')));
}

/** Where Node finds a package for one that imports it: the nearest `node_modules` upwards. */
function placeOf(packages, importer, name) {
  for (let from = importer; ; ) {
    const place = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
    if (packages[place] !== undefined) return packages[place].link ? packages[place].resolved : place;
    if (from === '') return null;
    const nested = from.lastIndexOf('/node_modules/');
    from = nested === -1 ? '' : from.slice(0, nested);
  }
}

/** Removes what the named folders do not need as they run: other packages, and files of packages that no program reads. */
export function trim(folder, entries) {
  const needed = neededPackages(folder, entries);
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  for (const [place, { link }] of Object.entries(packages)) {
    if (link || !place.startsWith('node_modules/') || needed.has(place)) continue;
    rmSync(join(folder, place), { recursive: true, force: true });
  }
  for (const file of filesBelow(join(folder, 'node_modules'), isNeverRead)) rmSync(file);
  // npm would take its own list of what is here for true.
  rmSync(join(folder, 'node_modules/.package-lock.json'), { force: true });
}

/** The checksum of a folder's lock file: what is installed is what it says, or older. */
export const lockOf = (folder) =>
  createHash('sha256')
    .update(readFileSync(join(folder, 'package-lock.json')))
    .digest('hex');

/**
 * Fetches the packages of a tool when it is first used, and says so at the terminal. Several programs may ask at once: one of them
 * fetches.
 *
 * @param manifest the folder with the tool's `package.json` and `package-lock.json`. The packages are put beside them, or where nothing
 * may be written there into `farebox/` in the user's folder for caches.
 * @returns the folder whose `node_modules` holds the packages
 * @throws Error when they cannot be had, with what to do about it
 */
export async function fetchTool(manifest) {
  const lock = lockOf(manifest);
  const there = toolFolders(manifest, lock).find((folder) => stampOf(folder) === lock);
  if (there !== undefined) return there;
  const folder = toolFolders(manifest, lock).find(isWritable);
  if (folder === undefined)
    throw new Error(`there is no folder to fetch ${basename(manifest)} into; set XDG_CACHE_HOME to one`);
  return alone(folder, async () => {
    if (stampOf(folder) === lock) return folder;
    if (folder !== manifest)
      for (const file of ['package.json', 'package-lock.json'])
        cpSync(join(manifest, file), join(folder, file));
    say(`fetching ${basename(manifest)}, once ...`);
    await npmInstall(folder);
    trim(folder, ['']);
    say(`fetched ${basename(manifest)}: ${megabytesIn(folder)} MB`);
    writeFileSync(join(folder, 'node_modules', STAMP), JSON.stringify({ lock }));
    return folder;
  });
}

/** The folder in which a tool's packages are, null where it has not been fetched. */
export function fetchedTool(manifest) {
  const lock = lockOf(manifest);
  return toolFolders(manifest, lock).find((folder) => stampOf(folder) === lock) ?? null;
}

/** The variables that a process needs to find fetched tools by itself: nothing else of this process is told. */
export const toolVariables = () =>
  process.env.XDG_CACHE_HOME === undefined ? {} : { XDG_CACHE_HOME: process.env.XDG_CACHE_HOME };

const STAMP = '.farebox-installed.json';

function toolFolders(manifest, lock) {
  const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return [manifest, join(caches, 'farebox', `${basename(manifest)}-${lock.slice(0, 16)}`)];
}

function stampOf(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, 'node_modules', STAMP), 'utf8')).lock;
  } catch {
    return null;
  }
}

function isWritable(folder) {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Does work while no other process does any in this folder. A process that died with it is taken for gone. */
async function alone(folder, work) {
  const claim = join(folder, '.fetching');
  const untilMs = Date.now() + FETCH_MS;
  for (;;) {
    try {
      writeFileSync(claim, String(process.pid), { flag: 'wx' });
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (!isClaimed(claim)) rmSync(claim, { force: true });
    else if (Date.now() > untilMs)
      throw new Error(`process ${readFileSync(claim, 'utf8')} has been fetching into ${folder} for too long`);
    else await sleep(FETCH_POLL_MS);
  }
  try {
    return await work();
  } finally {
    rmSync(claim, { force: true });
  }
}

/** Whether the process that made a claim lives: a file with its id. One that was stopped before it wrote that has left an empty file. */
export function isClaimed(claim) {
  try {
    const pid = readFileSync(claim, 'utf8');
    return pid === '' ? Date.now() - statSync(claim).mtimeMs < CLAIMED_WITHIN_MS : isAlive(Number(pid));
  } catch {
    return false;
  }
}
