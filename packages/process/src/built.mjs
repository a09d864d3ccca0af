/**
 * The server and the sandbox as one bundle, for the commands of this repository: a server starts from it in two thirds of the processor
 * time that the single files take, and holds a quarter less memory. It is made when packages are installed. Where the source has changed since,
 * commands run the source. In JavaScript: the entry of every npm script reads it, on any Node from 18 on.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { isAlive } from './is-alive.mjs';
import { say } from './npm-packages.mjs';

/** What a bundle is made of, below the root. */
const MADE_OF = ['apps', 'packages', 'contracts', 'docs', 'scripts/bundle.ts', 'package-lock.json'];
const LEFT_OUT = /^\.|^node_modules$|\.(?:test|fixture)\.\w+$/;
/** In the folder of bundles: somebody has tried to make one. */
const TRIED = 'tried';
/** One that is replaced stays: a program that was started from it loads more of it later. */
const KEPT = 2;
const UNFINISHED = 'unfinished-';
const MOST_SAID = 1_000;
const NOT_BUNDLED = 'the server could not be bundled, so its source is run, which takes longer to start';

/** The folder of bundles, each in one of its own that is named by its source, and is never changed. */
const folderOf = (root) => join(root, 'node_modules/.cache/farebox-built');
const bundleOf = (root, sources) => join(folderOf(root), sources.slice(0, 16));

/** Every file below a path, with its size and the time of its last change. */
function* lookedAt(path, name) {
  // A link that leads nowhere is no source, and a file may go while this looks.
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isDirectory()) {
    yield `${name} ${found.size} ${found.mtimeMs}\n`;
    return;
  }
  for (const entry of readdirSync(path).sort())
    if (!LEFT_OUT.test(entry)) yield* lookedAt(join(path, entry), `${name}/${entry}`);
}

/** What is bundled: no more than what is installed. */
function partOf(root) {
  const installed = join(root, 'node_modules/.farebox-installed.json');
  const { scope } = existsSync(installed) ? JSON.parse(readFileSync(installed, 'utf8')) : {};
  return scope === 'serve' ? 'server' : 'sandbox';
}

/** A checksum over what a bundle is made of and where, which changes when a file does; null where some of it is missing. */
function sourcesOf(root) {
  if (MADE_OF.some((path) => !existsSync(join(root, path)))) return null;
  const hash = createHash('sha256').update(`${root}\n${partOf(root)}\n`);
  for (const path of MADE_OF) for (const line of lookedAt(join(root, path), path)) hash.update(line);
  return hash.digest('hex');
}

/**
 * The program to run for a file of source: the bundled one while the source is as it was bundled, else the file.
 *
 * @param root of the repository
 * @param program the file, from the root
 * @returns its path
 */
export function builtProgram(root, program) {
  const sources = sourcesOf(root);
  const built = sources && join(bundleOf(root, sources), program.replace(/\.ts$/, '.js'));
  return built !== null && existsSync(built) ? built : join(root, program);
}

/** Whether nobody has tried to make a bundle yet, or whoever did was stopped. */
export const isUnbuilt = (root) => !existsSync(join(folderOf(root), TRIED));

/**
 * Makes the bundle of the source as it is. Where it cannot be made, as without a registry of packages or in a folder that may
 * not be written to, commands run the source.
 *
 * @param node the Node that runs TypeScript
 */
export async function build(root, node) {
  try {
    await makeBundle(root, node);
  } catch (error) {
    say(`${NOT_BUNDLED}: ${error.message}`);
  }
}

async function makeBundle(root, node) {
  const sources = sourcesOf(root);
  if (sources === null) return;
  const bundle = bundleOf(root, sources);
  const unfinished = join(folderOf(root), `${UNFINISHED}${process.pid}`);
  mkdirSync(unfinished, { recursive: true });
  say('bundling the server, once ...');
  const { code, said } = await bundled(root, node, unfinished);
  if (code !== 0) {
    rmSync(unfinished, { recursive: true, force: true });
    say(`${NOT_BUNDLED}:\n${said.trim()}`);
  } else {
    // One of the same source has the same files. Two renames, so that a program which runs from it hardly misses one.
    const replaced = `${unfinished}-replaced`;
    if (existsSync(bundle)) renameSync(bundle, replaced);
    renameSync(unfinished, bundle);
    rmSync(replaced, { recursive: true, force: true });
  }
  writeFileSync(join(folderOf(root), TRIED), '');
  removeOthers(folderOf(root), basename(bundle));
}

/** Removes bundles of earlier sources but the last one, and what processes have left that were stopped while they bundled. */
function removeOthers(folder, kept) {
  const madeAtMs = (name) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const others = readdirSync(folder).filter((name) => ![TRIED, kept].includes(name));
  const isWorkedOn = (name) => name.startsWith(UNFINISHED) && isAlive(Number(name.slice(UNFINISHED.length)));
  const earlier = others
    .filter((name) => /^[0-9a-f]{16}$/.test(name))
    .sort((a, b) => madeAtMs(b) - madeAtMs(a));
  const stays = new Set(earlier.slice(0, KEPT - 1));
  for (const name of others)
    if (!stays.has(name) && !isWorkedOn(name)) rmSync(join(folder, name), { recursive: true, force: true });
}

/** Runs what bundles. @returns its exit code, and the end of what it wrote */
async function bundled(root, node, into) {
  const args = [join(root, 'scripts/bundle.ts'), into, `--here=${partOf(root)}`];
  const run = spawn(node, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  run.stderr.on('data', (piece) => {
    said = `${said}${piece}`.slice(-MOST_SAID);
  });
  const code = await new Promise((resolve) => {
    run.on('error', (error) => {
      said += error.message;
      resolve(1);
    });
    run.on('close', resolve);
  });
  return { code, said };
}
