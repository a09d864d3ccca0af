/** Answers that are not JSON: their bytes, and a header that names their sources. */
import type { Service, StreamedContent } from '../service/define.ts';
import { type Answer, type Provenance, provenanceOf } from '../words/answer.ts';
import type { MadeAnswer, StreamHead } from './sale.ts';

/** The size of the provenance header. Clients stop reading headers at 16 kB in all. */
const MAX_PROVENANCE_BYTES = 4_096;
const MAX_SOURCES = 40;
const MAX_METHOD = 500;

/** @throws Error when the service returned no content */
export function contentOf(service: Service, made: Answer<unknown>): MadeAnswer {
  if (made.content === undefined) throw new Error(`the answer has no ${service.contentType}`);
  const body = typeof made.content === 'string' ? Buffer.from(made.content) : bytesOf(made.content);
  return { ...contentHeadOf(service, made), body };
}

/** The status and headers of such an answer, whether its bytes are there or still to come. */
export function contentHeadOf({ contentType }: Service, made: Answer<unknown> | StreamedContent): StreamHead {
  const { status = 200 } = made;
  if (status < 200 || status > 299) throw new Error(`an answer cannot have the status ${status}`);
  return {
    status,
    headers: {
      'content-type': contentType,
      ...made.headers,
      // The caller bought these exact bytes, so no proxy may transform them.
      'cache-control': 'private, no-store, no-transform',
      'x-content-type-options': 'nosniff',
      'x-provenance': provenanceHeader(provenanceOf(made)),
    },
  };
}

/** Copies the view alone: it may be a part of a larger buffer. */
function bytesOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/**
 * The provenance block as one line of ASCII. Sources that do not fit are dropped from the end and counted in `omitted`.
 */
function provenanceHeader({ mode, method, sources, notes }: Provenance): string {
  const line = (shown: number, told: string[]) =>
    asciiJson({
      mode,
      method: method.slice(0, MAX_METHOD),
      sources: sources.slice(0, shown),
      notes: told,
      ...(shown < sources.length || told.length < notes.length
        ? { omitted: { sources: sources.length - shown, notes: notes.length - told.length } }
        : {}),
    });
  for (const told of [notes, []]) {
    for (let shown = Math.min(sources.length, MAX_SOURCES); shown >= 0; shown--) {
      const header = line(shown, told);
      if (header.length <= MAX_PROVENANCE_BYTES) return header;
    }
  }
  return asciiJson({ mode, omitted: { sources: sources.length, notes: notes.length } });
}

/** JSON in printable ASCII, which is all that a header may hold. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
