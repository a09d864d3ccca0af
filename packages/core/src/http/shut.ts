/** What a shop still answers while nothing may be sold: pages and documents, its health, and what operators read. */
import type { FastifyInstance } from 'fastify';
import { unavailable } from './problem.ts';

const RETRY_AFTER_MS = 60_000;

/** Addresses by their beginnings: `/docs` stands for itself and for what lies below. */
const READ_WHILE_SHUT = [
  '/.well-known',
  '/admin',
  '/assets',
  '/docs',
  '/favicon.ico',
  '/favicon.svg',
  '/health',
  '/keys',
  '/legal',
  '/llms.txt',
  '/metrics',
  '/openapi.json',
  '/robots.txt',
  '/sitemap.xml',
  '/status',
  '/status.json',
];

/** Whether a request only reads what no forgotten sale can make wrong. */
function isReadWhileShut(method: string, path: string): boolean {
  if (method === 'OPTIONS') return true;
  if (method !== 'GET' && method !== 'HEAD') return false;
  return path === '/' || READ_WHILE_SHUT.some((begin) => path === begin || path.startsWith(`${begin}/`));
}

/**
 * Refuses everything else with 503 `SELLING_SHUT`, before a body is read.
 *
 * @param shut why, in a sentence; null: nothing is refused
 */
export function refuseWhileShut(http: FastifyInstance, shut: () => string | null): void {
  http.addHook('onRequest', async (request) => {
    if (shut() === null) return;
    const path = request.url.split('?', 1)[0] ?? '';
    if (isReadWhileShut(request.method, path)) return;
    throw unavailable(
      'SELLING_SHUT',
      'The shop is shut while its operator puts right what a restored database has forgotten. Nothing was charged.',
      RETRY_AFTER_MS,
    );
  });
}
