import { admit, type RateLimit } from '@farebox/core/http/rate-limit';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { PICTURE_PATH, type PictureLinks } from './links.ts';
import type { Pictures } from './pictures.ts';

export const LOOKS_PER_ADDRESS_PER_MINUTE = 240;
/** The time for which a browser need not ask again. */
const MAX_AGE_SECONDS = 3_600;

export function pictureRoutes(
  app: FastifyInstance,
  parts: {
    links: Pick<PictureLinks, 'read'>;
    pictures: Pictures;
    limit: RateLimit;
    addressOf(request: FastifyRequest): string;
    nowMs(): number;
  },
): void {
  const { links, pictures, nowMs } = parts;
  app.get(PICTURE_PATH, async (request, reply) => {
    admit(parts.limit, parts.addressOf(request), reply);
    const { picture, expiresAtMs } = links.read(request.query);
    const { png, etag, blank } = await pictures.look(picture);
    const leftSeconds = Math.floor((expiresAtMs - nowMs()) / 1_000);
    reply.headers({
      'cache-control': `public, max-age=${Math.max(0, Math.min(MAX_AGE_SECONDS, leftSeconds))}`,
      etag,
      'x-picture-blank': String(blank),
      'x-content-type-options': 'nosniff',
      // Pages elsewhere may show it, whatever they forbid themselves.
      'cross-origin-resource-policy': 'cross-origin',
    });
    if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send();
    return reply.type('image/png').send(png);
  });
}

/** Whether one of the tags that a caller has is this one. https://www.rfc-editor.org/rfc/rfc9110#name-if-none-match */
function isKnown(header: string | undefined, etag: string): boolean {
  const given = header?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? [];
  return given.includes(etag) || given.includes('*');
}
