/** The command line: reads what is asked, does it, and ends with a code that a script can read. */
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { addressOf } from '../address.ts';
import type { Farebox, ServiceTypes } from '../client.ts';
import { FareboxError } from '../errors.ts';
import { recordOf, textOf } from '../json.ts';
import type { Receipt } from '../receipt.ts';
import { escapedText } from '../shown-text.ts';
import { completionFor } from './completion.ts';
import { inputOf, inputOfJson } from './input.ts';
import { EXIT, type Io, UsageError } from './io.ts';
import { isServerProgram, runServerProgram } from './server-programs.ts';
import { apiKeyIn, hasKey, openClient, readKept, writeKept } from './settings.ts';
import { walletCommand } from './wallet.ts';

const USAGE = `farebox use URL                    names the server once
farebox search [words]             finds services
farebox price SERVICE [--field …]  tells what a call costs
farebox call SERVICE [--field …]   buys a call; --input JSON (or - for standard input) in place of fields
farebox keys [trial | add]         shows the key; takes a trial key; keeps a key from standard input
farebox wallet [create | balance | fund] [--sandbox] [--rpc URL]
farebox receipts                   what was bought, the newest first
farebox completion bash|zsh|fish   a script for the shell
farebox --version
farebox serve | import | books | mcp           programs of the server, where it is installed
farebox new [FILE]                             a shop of your own to begin with, where @farebox/core is installed

--url URL       another server            --json      one object on standard output
--max-usd USD   more than this is asked   --yes       agrees to whatever would be asked
--id NAME       a name of your own: the same name is the same purchase

Ends with 0; 1 it failed; 2 called wrongly; 3 not paid (limit, credit); 4 not found; 5 failed and not charged;
6 not known whether charged: the same command again is answered by the same payment.
`;
const COMMANDS = [
  'use',
  'search',
  'price',
  'call',
  'keys',
  'wallet',
  'receipts',
  'completion',
  'mcp',
  'serve',
  'import',
  'books',
  'new',
];
const HOW_TO_PAY =
  'farebox keys trial takes a trial key, farebox keys add keeps one, and farebox wallet create makes a wallet';
const HOW_TO_ALLOW =
  '--yes agrees to this call, --max-usd to as much; FAREBOX_MAX_USD_PER_DAY raises the limit of a day';
/** After that long a person is told that it is still at work. */
const PROGRESS_MS = 2_000;

const OPTIONS = {
  url: { type: 'string' },
  json: { type: 'boolean', default: false },
  yes: { type: 'boolean', default: false },
  sandbox: { type: 'boolean', default: false },
  'max-usd': { type: 'string' },
  rpc: { type: 'string' },
  id: { type: 'string' },
  input: { type: 'string' },
  limit: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

/** The same world, in which words of a server tell no terminal what to do. */
function guarded(io: Io): Io {
  return {
    ...io,
    out: (text) => io.out(escapedText(text)),
    error: (text) => io.error(escapedText(text)),
    ask: (question) => io.ask(escapedText(question)),
  };
}

/** @returns the exit code */
export async function runProgram(words: readonly string[], world: Io): Promise<number> {
  const io = guarded(world);
  const [name = '--help', ...rest] = words;
  const isJson = rest.includes('--json');
  try {
    if (isServerProgram(name)) return await runServerProgram(io, name, rest);
    return await runCommand(io, name, rest);
  } catch (error) {
    return toldFailure(io, error, isJson);
  }
}

async function runCommand(io: Io, name: string, rest: readonly string[]): Promise<number> {
  const { ours, fields } = partWords(rest, name === 'call' || name === 'price');
  const { values, positionals } = parseArgs({ args: ours, options: OPTIONS, allowPositionals: true });
  if (name === '--help' || name === '-h' || name === 'help' || values.help) {
    io.out(USAGE);
    return EXIT.done;
  }
  if (name === '--version') {
    io.out(versionOf());
    return EXIT.done;
  }
  if (!COMMANDS.includes(name)) throw new UsageError(`there is no command ${name.slice(0, 40)}`);
  if (name === 'use') return use(io, positionals[0]);
  if (name === 'wallet') return walletCommand(io, positionals[0], values);
  const log = (line: string) => io.error(`farebox: ${inOneLine(line)}\n`);
  const given = { url: values.url, maxUsd: values['max-usd'], yes: values.yes };
  const farebox = await openClient(io, given, log);
  const print = (value: unknown) => io.out(JSON.stringify(value, null, values.json ? 0 : 2));
  switch (name) {
    case 'search':
      return search(io, farebox, { words: positionals.join(' '), json: values.json, limit: values.limit });
    case 'keys':
      return keys(io, farebox, positionals[0], print);
    case 'receipts':
      return receipts(io, await farebox.receipts(), values.json);
    case 'completion':
      return completion(io, farebox, positionals[0]);
  }
  const [service] = positionals;
  if (service === undefined || positionals.length > 1)
    throw new UsageError(`farebox ${name} takes one service`);
  const input = await readInput(io, farebox, { service, fields, json: values.input });
  if (name === 'price') {
    const { usd } = await farebox.price(service, input, { signal: io.signal });
    io.out(values.json ? JSON.stringify({ service, usd }) : `${usd} USD`);
    return EXIT.done;
  }
  const call = { signal: io.signal, ...(values.id === undefined ? {} : { id: values.id }) };
  const { output, receipt } = await shown(io, farebox.buy<string>(service, input, call));
  if (output instanceof Uint8Array) throw new UsageError('this answer is no text: buy it by a program');
  print(values.json ? { output, receipt } : output);
  if (receipt !== null)
    io.error(`${receipt.amountUsd} USD, paid by ${receipt.paidBy}${receipt.replayed ? ' before' : ''}\n`);
  for (const doubt of receipt?.doubts ?? []) io.error(`farebox: ${doubt}\n`);
  return EXIT.done;
}

/** Parts options of ours from the fields of a service: a service may have a field of the same name behind `--`. */
function partWords(words: readonly string[], hasFields: boolean): { ours: string[]; fields: string[] } {
  if (!hasFields) return { ours: [...words], fields: [] };
  const ours: string[] = [];
  const fields: string[] = [];
  let isOurs = true;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    const [, name = '', value] = /^--([\w-]+)(=.*)?$/s.exec(word) ?? [];
    if (word === '--') isOurs = false;
    else if (isOurs && Object.hasOwn(OPTIONS, name)) {
      ours.push(word);
      const { type } = OPTIONS[name as keyof typeof OPTIONS];
      if (type === 'string' && value === undefined) ours.push(words[++at] ?? '');
    } else if (name === '') ours.push(word);
    else {
      fields.push(word);
      const next = words[at + 1];
      if (value === undefined && next !== undefined && !/^--[A-Za-z]/.test(next))
        fields.push(words[++at] ?? '');
    }
  }
  return { ours, fields };
}

function use(io: Io, url: string | undefined): number {
  if (url === undefined) throw new UsageError('farebox use takes the address of a Farebox, with https://');
  const address = addressOf(url, true);
  writeKept(io, { ...readKept(io), url: address });
  io.error(`from now on: ${address}\n`);
  return EXIT.done;
}

async function readInput(
  io: Io,
  farebox: Farebox<ServiceTypes>,
  { service, fields, json }: { service: string; fields: readonly string[]; json: string | undefined },
): Promise<Record<string, unknown>> {
  if (json !== undefined && fields.length > 0) throw new UsageError('give fields or --input, and not both');
  if (json !== undefined) return inputOfJson(json === '-' ? await io.read() : json);
  if (fields.length === 0) return {};
  const recipe = recordOf(await farebox.read(`/x402/recipes/${encodeURIComponent(service)}`, io));
  return inputOf(fields, recipe.inputSchema);
}

async function search(
  io: Io,
  farebox: Farebox<ServiceTypes>,
  { words, json, limit = '20' }: { words: string; json: boolean; limit: string | undefined },
): Promise<number> {
  if (!/^[1-9]\d{0,2}$/.test(limit)) throw new UsageError('--limit must be a number from 1 to 999');
  const found = await farebox.search(words, { limit: Number(limit), signal: io.signal });
  if (json) io.out(JSON.stringify(found));
  else
    for (const { id, priceUSD, description } of found)
      io.out(
        `${inOneLine(id).padEnd(28)} ${JSON.stringify(priceUSD ?? null).padStart(6)} USD  ${inOneLine(description)}`,
      );
  if (found.length > 0) return EXIT.done;
  io.error('farebox: nothing is found by these words\n');
  return EXIT.notFound;
}

async function completion(
  io: Io,
  farebox: Farebox<ServiceTypes>,
  shell: string | undefined,
): Promise<number> {
  const sold = await farebox.search().catch(() => []);
  const services = sold.map(({ id }) => textOf(id));
  io.out(completionFor(shell, COMMANDS, services));
  return EXIT.done;
}

function receipts(io: Io, kept: readonly Receipt[], json: boolean): number {
  if (json) io.out(JSON.stringify(kept));
  else
    for (const { atMs, service, amountUsd, paidBy, replayed, callId, url } of kept)
      io.out(
        [
          new Date(atMs).toISOString().slice(0, 19),
          `${(amountUsd ?? '').padStart(8)} USD by ${paidBy}${replayed ? ' before' : ''}`,
          service,
          url ?? callId ?? '',
        ].join('  '),
      );
  return EXIT.done;
}

/** Words of a server cannot begin a line of their own, which would look like ours. */
const inOneLine = (text: unknown): string => textOf(text).replaceAll(/\s+/g, ' ');

function versionOf(): string {
  const { version } = recordOf(createRequire(import.meta.url)('farebox/package.json'));
  return textOf(version);
}

async function keys(
  io: Io,
  farebox: Farebox<ServiceTypes>,
  asked: string | undefined,
  print: (value: unknown) => void,
): Promise<number> {
  const keep = (apiKey: string) => {
    const kept = readKept(io);
    writeKept(io, { ...kept, keys: { ...kept.keys, [farebox.url]: apiKey } });
  };
  if (asked === 'trial') {
    const { apiKey, credits, expiresIn } = recordOf(await farebox.read('/api/m2m/credits/trial', io));
    keep(apiKeyIn(apiKey));
    print({ kept: true, credits, expiresIn });
  } else if (asked === 'add') {
    keep(apiKeyIn(io.isTerminal ? await io.ask('API key: ') : await io.read()));
    print({ kept: true });
  } else if (asked === undefined) {
    if (!hasKey(io, farebox.url)) throw new UsageError(`there is no key for ${farebox.url}: ${HOW_TO_PAY}`);
    print(await farebox.read('/api/keys/me', io));
  } else throw new UsageError('farebox keys takes trial, add, or nothing');
  return EXIT.done;
}

/** Tells a person that it is still at work. */
async function shown<T>(io: Io, work: Promise<T>): Promise<T> {
  if (!io.isTerminal) return work;
  const startedMs = Date.now();
  let last = '';
  const timer = setInterval(() => {
    last = `at work for ${Math.round((Date.now() - startedMs) / 1_000)} s`;
    io.progress(`\r${last}`);
  }, PROGRESS_MS);
  return work.finally(() => {
    clearInterval(timer);
    // What follows begins on an empty line.
    if (last !== '') io.progress(`\r${' '.repeat(last.length)}\r`);
  });
}

function toldFailure(io: Io, error: unknown, isJson: boolean): number {
  if (io.signal.aborted) {
    io.error('farebox: interrupted. What was paid is answered when the same command is given again.\n');
    return EXIT.interrupted;
  }
  const message = inOneLine(error instanceof Error ? error.message : 'it failed');
  const code = error instanceof FareboxError ? error.code : codeOf(error);
  const charged = error instanceof FareboxError ? error.charged : false;
  const { docUrl = null, field = null, requestId = null } = error instanceof FareboxError ? error : {};
  if (isJson) io.out(JSON.stringify({ error: { code, message, charged, field, docUrl, requestId } }));
  io.error(`farebox: ${message}\n`);
  if (code === 'USAGE') io.error('farebox --help tells how it is called.\n');
  else if (code === 'PAYMENT_REQUIRED') io.error(`farebox: ${HOW_TO_PAY}\n`);
  else if (code === 'ABOVE_LIMIT') io.error(`farebox: ${HOW_TO_ALLOW}\n`);
  else if (docUrl !== null) io.error(`farebox: read ${docUrl}\n`);
  return exitOf(error, code);
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  const isUsage =
    error instanceof UsageError || error instanceof TypeError || textOf(code).startsWith('ERR_PARSE_ARGS');
  return isUsage ? 'USAGE' : 'FAILED';
}

const NOT_PAID = new Set([
  'ABOVE_LIMIT',
  'CANNOT_PAY',
  'DECLINED',
  'NOT_A_SANDBOX',
  'SANDBOX_REFUSED',
  'TOO_MANY_OPEN',
]);

function exitOf(error: unknown, code: string): number {
  if (!(error instanceof FareboxError)) return code === 'USAGE' ? EXIT.usage : EXIT.failed;
  if (error.charged !== false) return EXIT.unknown;
  if (error.status === 402 || NOT_PAID.has(code)) return EXIT.notPaid;
  if (error.status === 404) return EXIT.notFound;
  if (error.status === 400 || error.status === 413) return EXIT.usage;
  return error.status === null ? EXIT.failed : EXIT.notCharged;
}
