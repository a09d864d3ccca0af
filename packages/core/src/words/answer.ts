import { cleanLine } from './outsider-text.ts';

const MAX_NOTE_CHARACTERS = 4_000;

/** Where a value came from. Stands in every answer, so that a caller can weigh what it bought. */
export interface Source {
  /** The upstream's name, such as `defillama`. */
  name: string;
  /** The question, at the source's public address and without any secret; `urn:source:<name>` where it has none. */
  url: string;
  /** The time the value is true for, by the source's own word (ISO 8601); null where the source does not say. */
  asOf: string | null;
  /** When this server received it (ISO 8601). */
  retrievedAt: string;
  /** True when it was answered from this server's cache. */
  cached: boolean;
  /** True when the reply came from a sandbox part: a made-up value that must never be traded on. */
  sandbox: boolean;
  /** Credit or terms that the source asks to be shown. */
  licence?: string;
}

export interface Provenance {
  /** `sandbox` when any source was a sandbox part, `computed` when no source was needed. */
  mode: 'live' | 'cached' | 'sandbox' | 'computed';
  /** How the answer was made from the sources, with parameters and, where there is one, the published method. */
  method: string;
  sources: Source[];
  /** Notes that the caller should know: gaps, fallbacks taken, why a field is null. */
  notes: string[];
}

/** The result of a service's `run`: the fields of its output schema, and how they came about. */
export interface Answer<Fields> {
  fields: Fields;
  /** The answer itself, where the service answers no JSON: a text, which is sent in UTF-8, or bytes. */
  content?: string | Uint8Array;
  /** The status of such an answer (200 unless given, always 2xx), and headers of its own, among them its type. */
  status?: number;
  headers?: Readonly<Record<string, string>>;
  /** Its cost in micro-USD, where its service is metered. */
  costMicros?: bigint;
  method: string;
  sources: Source[];
  notes: string[];
}

/** An answer that is a text or bytes, and has no fields. */
export interface ContentAnswer extends Answer<Record<string, never>> {
  content: string | Uint8Array;
}

/**
 * Makes an answer.
 *
 * @param fields the fields of the service's output schema
 * @param provenance the method in a sentence; the sources in the order of their weight; notes, if any
 *
 * @example
 * ```ts
 * import { answer } from '@farebox/core/words/answer';
 *
 * answer({ root: 2 }, { method: 'By hand.', sources: [] }).fields; // { root: 2 }
 * ```
 */
export function answer<Fields>(
  fields: Fields,
  provenance: { method: string; sources?: Source[]; notes?: string[] },
): Answer<Fields> {
  return {
    fields,
    method: provenance.method,
    sources: provenance.sources ?? [],
    notes: provenance.notes ?? [],
  };
}

/**
 * Makes an answer of a service that answers no JSON.
 *
 * @param body the answer as its reader gets it; a text is sent in UTF-8
 * @param provenance as for `answer`; it leaves in a header
 */
export function content(
  body: string | Uint8Array,
  provenance: { method: string; sources?: Source[]; notes?: string[] },
): ContentAnswer {
  return { ...answer({}, provenance), content: body };
}

/** The provenance block of an answer. */
export function provenanceOf(made: Omit<Answer<unknown>, 'content' | 'costMicros'>): Provenance {
  const mode = made.sources.some((source) => source.sandbox)
    ? 'sandbox'
    : made.sources.length === 0
      ? 'computed'
      : made.sources.every((source) => source.cached)
        ? 'cached'
        : 'live';
  // They may quote what the answer is made of: a question, a ticker, a reason that a contract gives.
  const notes = made.notes.map((note) => cleanLine(note, MAX_NOTE_CHARACTERS));
  return { mode, method: made.method, sources: made.sources, notes };
}
