import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { Problem } from '../http/problem.ts';
import { microsToUsd } from '../ledger/money.ts';
import type { BooksVerdict, BooksVerdicts } from './books-verdict.ts';

/** The time for which a request waits for a proof of the books; the proof goes on without it. */
const PROOF_AWAITED_MS = 20_000;

/** `/admin/api/books`: the last verdict on the books, and a new one. */
export function booksRoutes(
  admin: FastifyInstance,
  { verdicts, logger }: { verdicts: BooksVerdicts; logger: Pick<FastifyBaseLogger, 'error'> },
): void {
  admin.get('/books', async () => booksAsJson(verdicts));

  admin.post('/books', async (_request, reply) => {
    const proof = verdicts.prove();
    const waiting = new AbortController();
    const patience = sleep(PROOF_AWAITED_MS, 'later' as const, { signal: waiting.signal, ref: false });
    const first = await Promise.race([proof, patience]).finally(() => {
      waiting.abort();
      patience.catch(() => {});
    });
    if (first === 'later') {
      proof.catch((error: unknown) => logger.error({ err: error }, 'proving the books failed'));
      return reply.code(202).send(await booksAsJson(verdicts));
    }
    if (first !== null) return booksAsJson(verdicts);
    throw new Problem(409, 'BOOKS_BEING_PROVEN', 'The books are being proved already.', {
      details: { since: (await verdicts.provingSince())?.toISOString() ?? null },
      headers: { 'retry-after': '10' },
    });
  });
}

/** The last verdict, and whether the next is on its way. */
export async function booksAsJson(verdicts: BooksVerdicts): Promise<Record<string, unknown>> {
  const [verdict, since] = await Promise.all([verdicts.last(), verdicts.provingSince()]);
  return {
    verdict: verdict === null ? null : verdictAsJson(verdict),
    provingSince: since?.toISOString() ?? null,
  };
}

function verdictAsJson({ startedAt, endedAt, books }: BooksVerdict): Record<string, unknown> {
  return {
    startedAt: startedAt.toISOString(),
    endedAt: endedAt.toISOString(),
    balanced: books.balanced,
    checks: books.checks,
    /** Credits less debits: what grows by debits, such as money that came in, is below zero. */
    house: books.house.map(({ account, netMicros }) => ({ account, netUsd: microsToUsd(netMicros) })),
    customersUsd: microsToUsd(books.customersMicros),
    reservedUsd: microsToUsd(books.reservedMicros),
    transfers: Number(books.transfers),
    /** The last day whose balances were taken as given (UTC); null: everything was read. */
    closedTo: books.closedTo ?? null,
    calls: numbersOf(books.calls),
    onChain: numbersOf(books.onChain),
  };
}

function numbersOf(counts: Readonly<Record<string, bigint>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Number(count)]));
}
