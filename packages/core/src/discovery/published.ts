import { createHash } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** A published document with its bytes, made once: plain, and compressed if that is worth it. */
export interface Published {
  contentType: string;
  body: Buffer;
  /** The same bytes in each encoding, the first the one that is preferred; none when it is not worth it. */
  encoded: readonly { name: string; bytes: Buffer }[];
  /** The digest of the body, without quotes. */
  digest: string;
}

/** The highest quality takes a second for the longest document; this one a few milliseconds, and less room than gzip. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };
/** The encodings as registered for `Content-Encoding`, the smallest result first. */
const ENCODINGS = [
  { name: 'br', encode: (body: Buffer) => brotliCompressSync(body, BROTLI) },
  { name: 'zstd', encode: (body: Buffer) => zstdCompressSync(body) },
  { name: 'gzip', encode: (body: Buffer) => gzipSync(body) },
];
/** The endings that stand behind the digest in an ETag. */
const TAGS = ['', ...ENCODINGS.map(({ name }) => `-${name}`)];
const SMALLEST_COMPRESSED_BYTES = 1_024;
const COMPRESSIBLE = /^(text\/|application\/json|image\/svg)/;

/** Prepares bytes for any number of replies. */
export function publish(contentType: string, content: string | Buffer): Published {
  const body = Buffer.from(content);
  const compress = body.length >= SMALLEST_COMPRESSED_BYTES && COMPRESSIBLE.test(contentType);
  return {
    contentType,
    body,
    encoded: compress ? ENCODINGS.map(({ name, encode }) => ({ name, bytes: encode(body) })) : [],
    digest: digestOf(body),
  };
}

const digestOf = (body: Buffer) => createHash('sha256').update(body).digest('base64url').slice(0, 22);
const JSON_TYPE = 'application/json; charset=utf-8';

/** A document as compact JSON. */
export function publishJson(document: unknown): Published {
  return publish(JSON_TYPE, JSON.stringify(document));
}

/** A document that is made for one reply: not compressed, because nobody else is sent it. */
export function publishOnce(document: unknown): Published {
  const body = Buffer.from(JSON.stringify(document));
  return { contentType: JSON_TYPE, body, encoded: [], digest: digestOf(body) };
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
  const accepted = request.headers['accept-encoding'];
  const chosen = published.encoded.find(({ name }) => accepts(accepted, name));
  // Two encodings are two sets of bytes, so a strong validator must distinguish them.
  const etag = `"${published.digest}${chosen === undefined ? '' : `-${chosen.name}`}"`;
  reply.headers({
    etag,
    'cache-control': `public, max-age=${maxAgeSeconds}`,
    'access-control-allow-origin': '*',
    'x-content-type-options': 'nosniff',
  });
  appendVary(reply, 'Accept-Encoding');
  if (matches(request.headers['if-none-match'], published.digest)) return reply.code(304).send();
  reply.header('content-type', published.contentType);
  if (chosen !== undefined) reply.header('content-encoding', chosen.name);
  return reply.send(chosen?.bytes ?? published.body);
}

/** Adds a name to `Vary` and keeps the names that are there. */
export function appendVary(reply: FastifyReply, name: string): void {
  const present = reply.getHeader('vary');
  reply.header('vary', present === undefined ? name : `${present}, ${name}`);
}

/** Whether a request names the encoding, and not with a quality of zero. */
function accepts(header: string | string[] | undefined, encoding: string): boolean {
  const value = Array.isArray(header) ? header.join(',') : (header ?? '');
  return value.split(',').some((each) => {
    const [name = '', ...parameters] = each.split(';').map((part) => part.trim().toLowerCase());
    return name === encoding && !parameters.some((parameter) => /^q\s*=\s*0(\.0*)?$/.test(parameter));
  });
}

/** Weak comparison (RFC 9110 §13.1.2) against any encoding of the same content. */
function matches(ifNoneMatch: string | undefined, digest: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((candidate) => {
    const tag = candidate.trim().replace(/^W\//, '');
    return tag === '*' || TAGS.some((encoding) => tag === `"${digest}${encoding}"`);
  });
}
