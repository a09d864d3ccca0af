/** The chain's state in one file. A new file is written completely beside the old one and then replaces it. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BankState } from './bank.ts';
import type { LandedTransaction } from './history.ts';
import type { ClockState } from './slots.ts';

const SAVE_EVERY_MS = 1_000;
const FORMAT = 'farebox-solana-1';

export interface StateFile {
  /** Notes that something changed: it is on disk a second later at the latest. */
  changed(): void;
  /** Writes all changes that are not on disk yet, and returns once they are. */
  written(): Promise<void>;
  /** Does what `written` does, and ends the automatic writing. */
  close(): Promise<void>;
}

interface Header {
  format: string;
  /** SHA-256 of the accounts, hex: LiteSVM would end the process on bytes that are not its own. */
  accountsSha256: string;
  clock: ClockState;
  /** How many lines of transactions follow; behind them are the accounts. */
  transactions: number;
}

const NEWLINE = 10;
/** The line of each transaction. It is made only once, because every save writes all lines again. */
const lines = new WeakMap<LandedTransaction, string>();

function fileIn(stateDir: string): string {
  return join(stateDir, 'solana.state');
}

/**
 * Reads the saved state.
 *
 * @returns null if nothing was saved
 * @throws Error if the file is damaged or of another version
 */
export function readState(stateDir: string): BankState | null {
  const file = fileIn(stateDir);
  if (!existsSync(file)) return null;
  const bytes = readFileSync(file);
  const damaged = new Error(`${file} is damaged or of another version; remove it to begin a new chain`);
  try {
    const [[headerLine = ''], afterHeader] = takeLines(bytes, 0, 1);
    const header: Header = JSON.parse(headerLine);
    if (header.format !== FORMAT) throw damaged;
    const [kept, afterTransactions] = takeLines(bytes, afterHeader, header.transactions);
    const accounts = new Uint8Array(bytes.subarray(afterTransactions));
    if (header.accountsSha256 !== sha256(accounts)) throw damaged;
    return { clock: header.clock, transactions: kept.map((line) => JSON.parse(line)), accounts };
  } catch {
    throw damaged;
  }
}

/** Reads `count` lines from an offset on. @returns the lines, and the offset behind them */
function takeLines(bytes: Buffer, from: number, count: number): [lines: string[], next: number] {
  const taken: string[] = [];
  let at = from;
  while (taken.length < count) {
    const end = bytes.indexOf(NEWLINE, at);
    if (end === -1) throw new Error('the file ends too early');
    taken.push(bytes.toString('utf8', at, end));
    at = end + 1;
  }
  return [taken, at];
}

function lineOf(transaction: LandedTransaction): string {
  const line = lines.get(transaction) ?? JSON.stringify(transaction);
  lines.set(transaction, line);
  return line;
}

/** Keeps the state in this folder from now on. */
export function openStateFile(stateDir: string, state: () => BankState): StateFile {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const file = fileIn(stateDir);
  let isDirty = false;
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> | null = null;

  async function write(): Promise<void> {
    isDirty = false;
    writtenAtMs = performance.now();
    const { clock, transactions, accounts } = state();
    const header: Header = {
      format: FORMAT,
      accountsSha256: sha256(accounts),
      clock,
      transactions: transactions.length,
    };
    const text = [JSON.stringify(header), ...transactions.map(lineOf), ''].join('\n');
    try {
      await writeFile(`${file}.new`, Buffer.concat([Buffer.from(text), accounts]), { mode: 0o600 });
      await rename(`${file}.new`, file);
    } catch (error) {
      isDirty = true;
      throw error;
    }
  }

  function plan(): void {
    if (timer !== null || writing !== null) return;
    timer = setTimeout(
      () => {
        timer = null;
        writing = write()
          .catch((error: unknown) => process.emitWarning(`the sandbox Solana was not saved: ${error}`))
          .finally(() => {
            writing = null;
            if (isDirty) plan();
          });
      },
      Math.max(0, writtenAtMs + SAVE_EVERY_MS - performance.now()),
    );
    timer.unref();
  }

  async function written(): Promise<void> {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    await writing;
    if (!isDirty) return;
    writing = write().finally(() => {
      writing = null;
      if (isDirty) plan();
    });
    await writing;
  }

  return {
    changed() {
      isDirty = true;
      plan();
    },
    written,
    async close() {
      await written();
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
  };
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
