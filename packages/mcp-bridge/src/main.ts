#!/usr/bin/env node
/**
 * The MCP server of a desktop agent, over its standard input and output: `setup` prints what to write into the agent's
 * file. Standard output carries messages of MCP alone, and everything else goes to standard error.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { createPayer } from './pay.ts';
import { createBuyer } from './purchase.ts';
import { createBridgeServer } from './server.ts';
import { readSettings, SettingsError } from './settings.ts';
import { setupText } from './setup.ts';
import { openSpending, type Spending } from './spending.ts';
import { createUpstream } from './upstream.ts';

const USAGE = `farebox mcp          serves a desktop agent over standard input and output
farebox mcp setup    prints what to write into the agent's file

FAREBOX_URL                  the Farebox (the one on this machine, at PORT or 8402)
FAREBOX_API_KEY              pays with a key, or a wallet pays:
FAREBOX_EVM_PRIVATE_KEY      0x and 64 digits: USDC on Base, Polygon, Arbitrum, Ethereum
FAREBOX_SOLANA_PRIVATE_KEY   a key pair in base58: USDC on Solana
FAREBOX_SOLANA_RPC_URL       a node of Solana (the public one)
FAREBOX_NETWORKS             in this order (base,solana,polygon,arbitrum,ethereum); tempo too
FAREBOX_PAY_BY               how a wallet pays, in this order (x402,mpp)
FAREBOX_TEMPO_RPC_URL        a node of Tempo (the public one)
FAREBOX_SANDBOX_WALLET       true: the wallet was made for a sandbox: no other one pays it, and this one nothing else
FAREBOX_MAX_USD_PER_CALL     above it a person is asked (1.00)
FAREBOX_MAX_USD_PER_DAY      the same for all calls of a day in UTC (10.00)
FAREBOX_SILENCE_SECONDS      how long the Farebox may say nothing (30)
FAREBOX_SPENDING_FILE        where it is kept what was spent (~/.farebox/mcp-spending.sqlite)
`;
/** How long a client may take to read the last answers. */
const END_MS = 2_000;

const log = (line: string) => process.stderr.write(`farebox mcp: ${line}\n`);

try {
  const [asked] = process.argv.slice(2);
  const settings = readSettings(process.env);
  if (asked === 'setup') {
    const command = { command: process.execPath, args: [import.meta.filename] };
    process.stdout.write(setupText(command, settings.url));
  } else if (asked === undefined) await serve(settings);
  else {
    process.stderr.write(USAGE);
    process.exitCode = asked === '--help' ? 0 : 2;
  }
} catch (error) {
  // Of a library's error on a private key no word is shown: it may hold the key.
  log(error instanceof SettingsError ? error.message : 'cannot start: is the private key one of its chain?');
  process.exitCode = 1;
}

async function serve(settings: ReturnType<typeof readSettings>): Promise<void> {
  const { url, maxCallMicros, maxDayMicros } = settings;
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));
  const nowMs = Date.now;
  const limits = { maxCallMicros, maxDayMicros };
  const upstream = createUpstream(url, settings.silenceMs);
  const payer = await createPayer(settings);
  let book: Spending | null = null;
  const spending = () => {
    book ??= openSpending(settings.spendingFile, nowMs);
    return book;
  };
  const buyer = payer === null ? null : createBuyer({ upstream, payer, spending, limits, url, nowMs, log });
  const transport = new StdioServerTransport();
  const handle = serveStdio(
    () => createBridgeServer({ upstream, payer, buyer, limits, version, nowMs, log }),
    {
      transport,
      onerror: (error) => log(error.message.slice(0, 300)),
    },
  );
  log(`${url.href}, ${payer === null ? 'with nothing to pay with' : `paid by ${payer.name}`}`);

  let ending = false;
  const end = () => {
    if (ending) return;
    ending = true;
    // Calls that are under way stay written down as open: the same call gets their answers the next time.
    setTimeout(() => process.exit(0), END_MS).unref();
    handle
      .close()
      .catch(() => undefined)
      .finally(() => {
        book?.close();
        process.exit(0);
      });
  };
  process.stdin.once('end', end).once('close', end);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, end);
  // A client that is gone reads nothing any more.
  process.stdout.on('error', end);
}
