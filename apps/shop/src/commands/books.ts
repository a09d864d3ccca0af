#!/usr/bin/env node
/** `npm run books`: proves that the money adds up. Ends with 0 when it does, with 1 when it does not. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { upstreamsOf } from '@farebox/catalogue/upstreams/declared';
import { databaseOf, readConfig } from '@farebox/core/config';
import { openDatabase } from '@farebox/core/db/open';
import { booksOf } from '@farebox/core/declared';
import { proveArchives } from '@farebox/core/history/prove-archives';
import type { Books } from '@farebox/core/ledger/books';
import { microsToUsd } from '@farebox/core/ledger/money';
import { type BooksVerdicts, createBooksVerdicts } from '@farebox/core/operator/books-verdict';
import type { ChainAudit } from '@farebox/core/rails/evm/audit';
import { openMppRail } from '@farebox/core/rails/mpp/rail';
import { nodesOf } from '@farebox/core/rails/x402/networks';
import { createX402Rail } from '@farebox/core/rails/x402/rail';
import { createGasTanks } from '@farebox/core/relayer/gas-tanks';
import { runCommand } from '@farebox/process/run-command';
import { StartError } from '@farebox/process/start-error';
import { DECLARED } from '../app.ts';

/** The longest wait for the proof of somebody else. */
const PATIENCE_MS = 15 * 60_000;
const LOOK_AGAIN_MS = 500;

await runCommand('npm run books [-- --json]', async () => {
  const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
  const config = readConfig(process.env, DECLARED);
  const { publicUrl, sandbox } = config.house;
  const { x402: ofX402, mpp: ofMpp } = config;
  const rpcUrls = nodesOf(upstreamsOf(config.sources, config.terms.settings.accepted));
  const database = await openDatabase(databaseOf(config), { exclusive: false });
  const { nowMs } = database.clock;
  try {
    const books = await proveInTurn(createBooksVerdicts({ ...database, books: booksOf(DECLARED) }, nowMs));
    const gas = createGasTanks({ sql: database.sql, nowMs, report: () => {} });
    const x402 = createX402Rail(
      { ...ofX402.settings, ...ofX402.secrets.reveal(), facilitatorToken: () => null, rpcUrls },
      {
        sql: database.sql,
        baseUrl: publicUrl ?? 'http://localhost',
        secrets: config.secrets.secrets.reveal().versions,
        sandbox,
        gas,
        nowMs,
        report: () => {},
      },
    );
    const evm = x402.authorizations(8453);
    const revealed = ofMpp.secrets.reveal();
    const secretKeys = () => revealed.secretKeys;
    const mpp = openMppRail({ ...ofMpp.settings, ...revealed, secretKeys }, 'localhost', {
      sql: database.sql,
      evm,
      sandbox,
      gas,
      nowMs,
      report: () => {},
    });
    const chains = await Promise.all([x402.audit(), mpp?.audit(database.sql) ?? []])
      .then((audits) => audits.flat())
      .finally(() => Promise.all([x402.close(), mpp?.close()]));
    const archives = await proveArchives(database.patient, config.paidCall.settings.historyFolder);
    const balanced =
      books.balanced &&
      archives.every(({ ok }) => ok) &&
      chains.every(({ findings }) => findings.length === 0);
    const proved = { ...books, checks: [...books.checks, ...archives], balanced };
    process.stdout.write(values.json ? asJson({ ...proved, chains }) : asText(proved, chains, balanced));
    return balanced ? 0 : 1;
  } finally {
    await database.close();
  }
});

/**
 * Proves the books as the server's own job does, with its lease: there is one proof at a time, and this one is a verdict
 * like any other.
 */
async function proveInTurn(verdicts: BooksVerdicts): Promise<Books> {
  const untilMs = performance.now() + PATIENCE_MS;
  for (let told = false; ; ) {
    const verdict = await verdicts.prove('everything');
    if (verdict !== null) {
      if (verdict.notClosed !== null) process.stderr.write(`${verdict.notClosed.message}\n`);
      return verdict.books;
    }
    const since = await verdicts.provingSince();
    const who = `the books are being proved already${since === null ? '' : `, since ${since.toISOString()}`}`;
    if (performance.now() >= untilMs) throw new StartError(`${who}: nothing was proved here`);
    if (!told) process.stderr.write(`${who}: waiting for its end\n`);
    told = true;
    while ((await verdicts.provingSince()) !== null && performance.now() < untilMs)
      await sleep(LOOK_AGAIN_MS);
  }
}

function asJson(books: Books & { chains: ChainAudit[] }): string {
  return `${JSON.stringify(books, (_, value) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`;
}

function ofChain({ network, settlements, received, findings, unmatched }: ChainAudit): string[] {
  return [
    `${findings.length === 0 ? 'ok  ' : 'FAIL'}  ${network}: ${settlements} ${settlements === 1 ? 'settlement' : 'settlements'}, each asked of the chain`,
    ...received.map(({ asset, units }) => `      received ${microsToUsd(units)} of ${asset}`),
    ...findings.map((finding) => `      ${finding}`),
    ...(unmatched ?? []).map(
      ({ transaction, from, units }) =>
        `note  ${network}: ${microsToUsd(units)} USDC from ${from} paid for no call (${transaction})`,
    ),
  ];
}

function ofCards({ orders, paidMicros, reversedMicros, disputedMicros, ...rest }: Books['cards']): string[] {
  if (orders === 0n) return [];
  const usd = microsToUsd;
  return [
    `cards: ${orders} ${orders === 1n ? 'order' : 'orders'} paid, ${usd(paidMicros)} USD; ${usd(reversedMicros)} of it went back, ${usd(disputedMicros)} of that is disputed; customers owe ${usd(rest.owedMicros)}; ${usd(rest.promotionsMicros)} beyond what was paid`,
  ];
}

function asText(books: Books, chains: readonly ChainAudit[], balanced: boolean): string {
  const { captured, released, open } = books.calls;
  const sum = (name: string, micros: bigint) => `${name.padEnd(24)}${microsToUsd(micros).padStart(18)} USD`;
  const rows = books.checks.flatMap(({ name, ok, finding }) => [
    `${ok ? 'ok  ' : 'FAIL'}  ${name}`,
    ...(finding === null ? [] : [`      ${finding}`]),
  ]);
  rows.push(
    ...chains.flatMap(ofChain),
    '',
    ...books.house.map(({ account, netMicros }) => sum(account, netMicros)),
    `${sum('owed to customers', books.customersMicros)}, ${microsToUsd(books.reservedMicros)} of it reserved`,
    `${books.transfers} transfers; calls: ${captured} captured, ${released} released, ${open} open`,
    ...ofCards(books.cards),
    '',
    balanced ? 'The books balance.' : 'The books do NOT balance.',
  );
  return `${rows.join('\n')}\n`;
}
