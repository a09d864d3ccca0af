/** Exports as files: the books by day for an accountant, and both logs of operators. */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Database } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import { readParameters } from '../http/parameters.ts';
import { Problem } from '../http/problem.ts';
import type { MeasuredCost } from '../service/sources.ts';
import type { StockDesk } from '../stock/desk.ts';
import {
  type AccountingLine,
  accountingLines,
  asCsv,
  CSV_HEAD,
  type KnownCosts,
  MOST_ACCOUNTING_DAYS,
} from './accounting.ts';
import { auditLines } from './audit-chain.ts';
import type { DeclaredCost } from './margin.ts';

const DAY_MS = 86_400_000;
const FIRST_DAY = '2020-01-01';
/** Files that are made at once, by all operators together. */
const MOST_AT_ONCE = 2;

const day = z.iso.date().refine((text) => text >= FIRST_DAY, `must be ${FIRST_DAY} or later`);
const days = z
  .object({ from: day, to: day })
  .transform(({ from, to }) => ({ fromMs: Date.parse(from), toMs: Date.parse(to) }))
  .refine(({ fromMs, toMs }) => fromMs <= toMs, { path: ['to'], message: 'must not be before from' })
  .refine(({ fromMs, toMs }) => toMs - fromMs < MOST_ACCOUNTING_DAYS * DAY_MS, {
    path: ['to'],
    message: `must be at most ${MOST_ACCOUNTING_DAYS} days from from`,
  });

/** `/admin/api/accounting.csv`, `/admin/api/accounting.jsonl` and `/admin/api/audit.jsonl`. */
export function exportRoutes(
  admin: FastifyInstance,
  parts: {
    patient: Database;
    distribution?: DistributionNote;
    stock: Pick<StockDesk, 'services'>;
    serviceCosts: readonly DeclaredCost[];
    sourceCostsOn(day: string): Promise<readonly MeasuredCost[]>;
  },
): void {
  const { patient } = parts;
  let running = 0;

  const costs = (): KnownCosts => ({
    declared: parts.serviceCosts,
    services: servicesOf(parts.stock),
    measuredOn: (of) => parts.sourceCostsOn(of),
  });
  const accounting = (query: unknown) =>
    accountingLines(patient, {
      ...readParameters(days, query),
      costs: costs(),
      isSpread: parts.distribution?.isDistributed === true,
    });

  admin.get('/accounting.csv', (request, reply) => {
    const lines = accounting(request.query);
    return sent(reply, 'text/csv; charset=utf-8; header=present', 'accounting.csv', csvOf(lines));
  });

  admin.get('/accounting.jsonl', (request, reply) => {
    const lines = accounting(request.query);
    return sent(reply, 'application/jsonl; charset=utf-8', 'accounting.jsonl', jsonOf(lines));
  });

  admin.get('/audit.jsonl', (_request, reply) =>
    sent(reply, 'application/jsonl; charset=utf-8', 'audit.jsonl', auditLines(patient)),
  );

  /** Sends lines as they are made: a reader that is slow holds none of them in memory. */
  function sent(
    reply: FastifyReply,
    type: string,
    name: string,
    lines: AsyncGenerator<string>,
  ): FastifyReply {
    if (running >= MOST_AT_ONCE)
      throw new Problem(
        503,
        'EXPORTS_BUSY',
        'Two files are being made already. Ask again when one is done.',
        {
          headers: { 'retry-after': '10' },
        },
      );
    running += 1;
    const stream = Readable.from(lines, { objectMode: false, highWaterMark: 65_536 });
    stream.once('close', () => {
      running -= 1;
    });
    return reply
      .header('content-type', type)
      .header('content-disposition', `attachment; filename="${name}"`)
      .send(stream);
  }
}

/** The services that the shop ships with. */
function servicesOf(stock: Pick<StockDesk, 'services'>): KnownCosts['services'] {
  const services: KnownCosts['services'][number][] = [];
  stock.services((service) => {
    services.push(service);
    return {};
  });
  return services;
}

async function* csvOf(lines: AsyncIterable<AccountingLine>): AsyncGenerator<string> {
  yield CSV_HEAD;
  for await (const line of lines) yield asCsv(line);
}

async function* jsonOf(lines: AsyncIterable<AccountingLine>): AsyncGenerator<string> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`;
}
