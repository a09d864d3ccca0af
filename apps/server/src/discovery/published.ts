import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** A published document with its bytes, made once: plain, and compressed if that is worth it. */
export interface Published {
  contentType: string;
  body: Buffer;
  gzip: Buffer | null;
  /** Without quotes: a digest of the body. */
  digest: string;
}

const SMALLEST_COMPRESSED_BYTES = 1_024;
const COMPRESSIBLE = /^(text\/|application\/json|image\/svg)/;

/** Prepares bytes for any number of replies. */
export function publish(contentType: string, content: string | Buffer): Published {
  const body = Buffer.from(content);
  const compress = body.length >= SMALLEST_COMPRESSED_BYTES && COMPRESSIBLE.test(contentType);
  return {
    contentType,
    body,
    gzip: compress ? gzipSync(body) : null,
    digest: createHash('sha256').update(body).digest('base64url').slice(0, 22),
  };
}

/** A document as compact JSON. */
export function publishJson(document: unknown): Published {
  return publish('application/json; charset=utf-8', JSON.stringify(document));
}

/**
 * Sends a published document: as 304 when the caller has it already, and compressed when the caller can read that. It
 * may be read from any origin, and a cache may keep it for `maxAgeSeconds`.
 */
export function sendPublished(
  request: FastifyRequest,
  reply: FastifyReply,
  published: Published,
  maxAgeSeconds: number,
): FastifyReply {
  const gzip = acceptsGzip(request.headers['accept-encoding']) ? published.gzip : null;
  // Two encodings are two sets of bytes, so a strong validator must distinguish them.
  const etag = `"${published.digest}${gzip === null ? '' : '-gzip'}"`;
  reply.headers({
    etag,
    'cache-control': `public, max-age=${maxAgeSeconds}`,
    'access-control-allow-origin': '*',
    'x-content-type-options': 'nosniff',
  });
  appendVary(reply, 'Accept-Encoding');
  if (matches(request.headers['if-none-match'], published.digest)) return reply.code(304).send();
  reply.header('content-type', published.contentType);
  if (gzip !== null) reply.header('content-encoding', 'gzip');
  return reply.send(gzip ?? published.body);
}

/** Adds a name to `Vary` and keeps the names that are there. */
export function appendVary(reply: FastifyReply, name: string): void {
  const present = reply.getHeader('vary');
  reply.header('vary', present === undefined ? name : `${present}, ${name}`);
}

function acceptsGzip(header: string | string[] | undefined): boolean {
  const value = Array.isArray(header) ? header.join(',') : (header ?? '');
  return /(^|,)\s*gzip\s*(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(value);
}

/** Weak comparison (RFC 9110 §13.1.2) against either encoding of the same content. */
function matches(ifNoneMatch: string | undefined, digest: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((candidate) => {
    const tag = candidate.trim().replace(/^W\//, '');
    return tag === '*' || tag === `"${digest}"` || tag === `"${digest}-gzip"`;
  });
}
