#!/usr/bin/env node
/** The program `farebox`. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import { EXIT } from './io.ts';
import { runProgram } from './program.ts';

const interrupted = new AbortController();
process.once('SIGINT', () => interrupted.abort());
// Whoever read the output has read enough.
process.stdout.on('error', () => process.exit(EXIT.done));

process.exitCode = await runProgram(process.argv.slice(2), {
  environment: process.env,
  home: process.env.FAREBOX_HOME ?? join(homedir(), '.farebox'),
  out: (line) => process.stdout.write(line.endsWith('\n') ? line : `${line}\n`),
  error: (words) => process.stderr.write(words),
  progress: (words) => process.stderr.write(words),
  isTerminal: process.stdin.isTTY === true && process.stderr.isTTY === true,
  read: () => text(process.stdin),
  async ask(question) {
    const asking = createInterface({ input: process.stdin, output: process.stderr });
    try {
      return await asking.question(question, { signal: interrupted.signal });
    } finally {
      asking.close();
    }
  },
  signal: interrupted.signal,
});
