/** What is sold and at which price, as an operator sees and sets it. */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../http/json-body.ts';
import { readParameters } from '../http/parameters.ts';
import type { MeasuredCost, SourceHealth } from '../service/sources.ts';
import { supplyOf } from '../service/supply.ts';
import { micros, type StockDesk } from '../stock/desk.ts';
import { priceText } from '../stock/service-rule.ts';
import { type ActRouteParts, keyedBy, reason, toldOf } from './act-routes.ts';
import { id } from './address-fields.ts';
import { type DeclaredCost, marginOf } from './margin.ts';

const PATH = z
  .string()
  .max(100)
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be the path of a service');
/** Null takes back what an operator set. */
const change = z
  .strictObject({
    reason,
    price: priceText.nullable().optional(),
    available: z.boolean().nullable().optional(),
    mpp: z.boolean().nullable().optional(),
  })
  .refine(
    ({ price, available, mpp }) => price !== undefined || available !== undefined || mpp !== undefined,
    'must set price, available or mpp, or take one back with null',
  );
const versionsQuery = z.object({ after: id.optional() });

/** `/admin/api/services` and `/admin/api/stock/versions`. */
export function stockRoutes(
  admin: FastifyInstance,
  parts: ActRouteParts & {
    stock: StockDesk;
    serviceCosts: readonly DeclaredCost[];
    upstreamHealth(): readonly SourceHealth[];
    sourceCosts(): Promise<readonly MeasuredCost[]>;
  },
): void {
  const { acts, stock, serviceCosts, upstreamHealth } = parts;

  admin.get('/services', async () => {
    const known = new Map(upstreamHealth().map((health) => [health.name, health]));
    const health = (name: string) => known.get(name) ?? {};
    const costs = { declared: serviceCosts, measured: await parts.sourceCosts() };
    return {
      ...(await stock.state()),
      services: stock.services((service, price) => ({
        supply: supplyOf(service, health),
        margin: marginOf(service, price, costs),
      })),
    };
  });

  admin.post<{ Params: { service: string } }>('/services/:service', async (request) => {
    const path = readParameters(PATH, request.params.service);
    const { reason: why, price, available, mpp } = readJsonBody(request, change);
    const rule = {
      priceMicros: price === undefined ? undefined : micros(price),
      isAvailable: available,
      isSoldByMpp: mpp,
    };
    const done = await acts.setService({ ...keyedBy(parts, request), reason: why, path, rule });
    const service = stock.services().find((each) => each.service === path);
    return { ...toldOf(parts, done), service };
  });

  admin.get('/stock/versions', async (request) => {
    const { after } = readParameters(versionsQuery, request.query);
    const versions = await stock.versions(after ?? null);
    return { versions, after: versions.length === 50 ? versions.at(-1)?.version : null };
  });

  admin.get<{ Params: { version: string } }>('/stock/versions/:version', async (request) =>
    stock.version(readParameters(id, request.params.version)),
  );
}
