/** `/x402/catalog?q=`: the services that words or a question are about, best first, each with what is needed to buy it. */

import { z } from 'zod';
import { invalidRequest } from '../http/problem.ts';
import { countedOf } from '../service/counted.ts';
import { fittingBest } from '../service/fitting.ts';
import { toolSchemaOf } from '../service/tool-schema.ts';
import { catalogDocument, catalogEntry } from './catalog.ts';
import type { DiscoveryContext } from './context.ts';

const MAX_QUERY_CHARACTERS = 200;
const MAX_FOUND = 20;
const DEFAULT_FOUND = 5;

const asked = z.object({
  q: z.string().trim().max(MAX_QUERY_CHARACTERS),
  limit: z.coerce.number().int().min(1).max(MAX_FOUND).default(DEFAULT_FOUND),
});

export interface CatalogSearch {
  words: string;
  limit: number;
}

/**
 * Reads the query of a request for the catalog.
 *
 * @returns null when nothing is searched for: then the catalog is whole
 * @throws Problem 400 for a query that is too long or no text, or a limit that is none
 */
export function readCatalogSearch(query: unknown): CatalogSearch | null {
  const { q, limit } = Object(query) as { q?: unknown; limit?: unknown };
  if (q === undefined) return null;
  const parsed = asked.safeParse({ q, ...(limit === undefined ? {} : { limit }) });
  if (!parsed.success) {
    const fields = parsed.error.issues.map(({ path, message }) => ({ field: path.join('.'), message }));
    throw invalidRequest(
      `The catalog is searched by ?q= with at most ${MAX_QUERY_CHARACTERS} characters, and ?limit= of 1 to ${MAX_FOUND}.`,
      fields,
    );
  }
  return parsed.data.q === '' ? null : { words: parsed.data.q, limit: parsed.data.limit };
}

/** The catalog of what fits, in the order of `search_services`. All figures but `found` are of the whole catalog. */
export function catalogSearchDocument(context: DiscoveryContext, { words, limit }: CatalogSearch) {
  const fitting = fittingBest(words, context.services, limit);
  const { services: _all, quickStart: _start, ...about } = catalogDocument({ ...context, services: [] });
  return {
    ...about,
    totalServices: countedOf(context.services).length,
    availableServices: countedOf(context.services).filter(
      (service) => context.availability(service).available,
    ).length,
    query: words,
    found: fitting.length,
    services: fitting.map((service) => ({
      ...catalogEntry(service, context),
      inputSchema: toolSchemaOf(service),
      example: service.example,
    })),
  };
}
