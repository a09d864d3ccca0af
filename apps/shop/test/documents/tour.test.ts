/** The first hour of docs/tour.md: each of its commands in order, as a reader pastes it, and what is printed there beside what comes. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { until } from '../fire/until.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const START_MS = 600_000;
const MAX_SHOWN = 8_000;
const ID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const MADE_UP = '"(?:price|entry|confidence|responseTimeMs|blockNumber)": ?-?[\\d.]+';
/** Where the signal of the hour is to hold, there is neither a target nor a stop. */
const AIM = '"(?:target|stopLoss)": ?(?:null|-?[\\d.]+)';
const MOMENT = '\\d{4}-\\d\\d-\\d\\d(?:T[\\d:.]+Z)?';
/** Values that change each time, the same ones wherever they come again: how it stands in the page, and may stand in a run. */
const NAMES: readonly [string, string][] = [
  [ID, ID],
  ['0x[0-9a-f]{8,}', '0x[0-9a-f]+'],
  ['127\\.0\\.0\\.1:\\d+', '127\\.0\\.0\\.1:\\d+'],
  ['fbx_live_[0-9a-f]{3,}', 'fbx_live_[0-9a-f]+'],
];
/** Values that change each time: a moment, the time that something took, and what is made up of the market. */
const VARYING: readonly [string, string][] = [
  [MOMENT, MOMENT],
  ['\\d+(?:\\.\\d+)? s(?=\\))', '\\d+(?:\\.\\d+)? s'],
  ['\\d+ ms', '\\d+ ms'],
  [MADE_UP, MADE_UP],
  [AIM, AIM],
  ['"signal":"\\w+"', '"signal":"\\w+"'],
  ['eyJ\\w+', 'eyJ\\w+'],
  [' {2,}', ' +'],
];
const ALL = [...NAMES, ...VARYING];
const ANY = new RegExp(ALL.map(([find]) => `(${find})`).join('|'), 'gi');
const ANY_NAME = new RegExp(NAMES.map(([find]) => find).join('|'), 'gi');

interface Step {
  command: string;
  printed: string;
}

const page = readFileSync(join(ROOT, 'docs/tour.md'), 'utf8');
const steps = [...page.matchAll(/^```(console|sh)\n([\s\S]*?)^```$/gm)].flatMap(
  ([, language, block = '']): Step[] =>
    language === 'sh'
      ? [{ command: block.trim(), printed: '' }]
      : block
          .split(/^\$ /m)
          .slice(1)
          .map((each) => {
            const [command = '', ...printed] = each.split('\n');
            return { command, printed: printed.join('\n').trim() };
          }),
);

const folder = mkdtempSync(join(tmpdir(), 'farebox-tour-'));
/** The values of this run, by those of the page. */
const values = new Map<string, string>();
let environment: Record<string, string>;
let server: ChildProcess | null = null;
let said = '';
before(async () => {
  const home = join(folder, 'home');
  mkdirSync(home);
  // In a terminal curl shows no meter of its progress.
  writeFileSync(join(home, '.curlrc'), 'silent\nshow-error\n');
  const port = String(await freePort());
  values.set('127.0.0.1:8402', `127.0.0.1:${port}`);
  environment = {
    ...SURROUNDINGS,
    HOME: home,
    FAREBOX_DATA_DIR: join(folder, '.farebox'),
    FAREBOX_HOME: join(folder, 'client'),
    PORT: port,
  };
});
after(async () => {
  await stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
});

async function start(): Promise<string> {
  said = '';
  const child = spawn('bash', ['-c', 'exec npm start'], {
    cwd: ROOT,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    // As in a terminal of its own, where Ctrl-C reaches all that it started.
    detached: true,
  });
  server = child;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (words: string) => {
      said += words;
    });
  const hasEnded = () => child.exitCode !== null;
  await until(
    'the server is ready',
    () => /Farebox is ready[\s\S]*operator .*\n[\s\S]*\n/.test(said) || hasEnded(),
    START_MS,
  );
  assert.ok(!hasEnded(), said);
  return said;
}

async function stop(): Promise<void> {
  if (server === null || server.exitCode !== null || server.pid === undefined) return;
  const exit = once(server, 'exit');
  process.kill(-server.pid, 'SIGINT');
  await exit;
  server = null;
}

async function run(command: string): Promise<string> {
  const child = spawn('bash', ['-c', `${command} 2>&1`], {
    cwd: ROOT,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return (await text(child.stdout)).replaceAll('\r', '');
}

/** The command as a reader has it, with the names of their run. */
const ofThisRun = (command: string) =>
  command.replace(ANY_NAME, (name) => values.get(name.toLowerCase()) ?? name);

/** The pattern of a piece of the page, and the names in it, which are its groups. */
function patternOf(piece: string, isCut: boolean): { pattern: string; names: string[] } {
  const names: string[] = [];
  let pattern = '';
  let from = 0;
  for (const found of piece.matchAll(ANY)) {
    const [whole, ...groups] = found;
    const kind = groups.findIndex((each) => each !== undefined);
    const isLast = found.index + whole.length === piece.length;
    // One that is cut off in the page is no whole name.
    const isName = kind < NAMES.length && !(isCut && isLast);
    if (isName) names.push(whole.toLowerCase());
    const as = ALL[kind]?.[1] ?? '';
    pattern += escaped(piece.slice(from, found.index)) + (isName ? `(${as})` : as);
    from = found.index + whole.length;
  }
  return { pattern: pattern + escaped(piece.slice(from)), names };
}

const escaped = (plain: string) => plain.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Compares what came with what the page has: a name of the page stands for the same one each time. */
function assertPrinted({ command, printed }: Step, came: string): void {
  const pieces = printed.split('…').map((piece, at, all) => patternOf(piece, at < all.length - 1));
  const regexOf = (count: number) =>
    new RegExp(
      pieces
        .slice(0, count)
        .map(({ pattern }) => pattern)
        .join('[\\s\\S]*?'),
      'i',
    );
  const found = regexOf(pieces.length).exec(came);
  if (found === null) {
    const fits = pieces.findIndex((_, at) => !regexOf(at + 1).test(came));
    const part = printed.split('…')[fits];
    assert.fail(`$ ${command}\n--- the page has\n${part}\n--- and it printed\n${came.slice(0, MAX_SHOWN)}`);
  }
  for (const [at, name] of pieces.flatMap(({ names }) => names).entries()) {
    const value = (found[at + 1] ?? '').toLowerCase();
    const known = values.get(name);
    if (known === undefined) values.set(name, found[at + 1] ?? '');
    else assert.equal(value, known.toLowerCase(), `${name} in the answer to ${command}`);
  }
}

/** Sets a variable of the reader's shell: what the page cuts off was printed by the command before. */
function exportAll(command: string, before: string): void {
  for (const [, name = '', value = ''] of command.matchAll(/(\w+)=(\S+)/g)) {
    const secret = value.startsWith('fbx')
      ? /fbx_live_[0-9a-f]{20,}/.exec(before)
      : /key +(0x[0-9a-fA-F]{64})/.exec(before);
    const whole = value.startsWith('$') ? (environment[value.slice(1)] ?? '') : ofThisRun(value);
    environment[name] = value.includes('…') ? (secret?.[1] ?? secret?.[0] ?? assert.fail(command)) : whole;
  }
}

test('each command of the tour does what the page says, down to the balances and the books', async () => {
  assert.ok(steps.length > 25, `${steps.length} steps`);
  const differences: string[] = [];
  let before = '';
  for (const step of steps) {
    if (step.command.startsWith('export ')) {
      exportAll(step.command, step.command.includes('fbx_live') ? said : before);
      continue;
    }
    if (step.command === 'npm start') {
      await stop();
      before = await start();
    } else before = await run(ofThisRun(step.command));
    try {
      assertPrinted(step, before);
    } catch (error) {
      assert.ok(error instanceof assert.AssertionError);
      // The others are of use to whoever puts the page right.
      differences.push(error.message);
    }
  }
  assert.equal(differences.length, 0, differences.join('\n\n'));
});
