/**
 * The one place where the JSON of a request becomes values. What a caller writes may be stored, signed, hashed or sent on,
 * and there is text that JSON can spell and these cannot hold: PostgreSQL's text takes no NUL, and UTF-8 no surrogate that
 * stands alone. Such text is refused here, for every field of every route, before anything is asked for or paid.
 */
import { isUtf8 } from 'node:buffer';
import { type FieldIssue, invalidRequest } from './problem.ts';

const MAX_ISSUES = 20;
const MAX_PATH_NAMES = 64;
/** The escapes by which such text can come: raw NUL is no JSON, and raw surrogates are no UTF-8. */
const SUSPICIOUS = /\\u(?:0000|[dD][89a-fA-F])/;
const MUST_NOT = 'must not hold NUL (\\u0000) or half of a surrogate pair (\\ud800 to \\udfff alone)';

/** Whether text can be stored and sent on as it is. */
export function isPlainText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/**
 * Reads the JSON of a request's body.
 *
 * @returns the value; undefined for an empty body
 * @throws Problem 400 for what is no UTF-8 or no JSON, and with the path of each text that cannot be kept
 */
export function readJson(raw: Buffer | undefined): unknown {
  if (raw === undefined || raw.length === 0) return undefined;
  if (!isUtf8(raw)) throw invalidRequest('The body is not UTF-8.');
  const content = raw.toString('utf8').trim();
  if (content === '') return undefined;
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    throw invalidRequest('The body is not JSON. Send a JSON object with Content-Type: application/json.');
  }
  if (SUSPICIOUS.test(content)) refuseUnkeepable(value);
  return value;
}

/** Where a value stands: its own name, and where what holds it stands. A path is written only for what is refused. */
interface Place {
  name: string;
  within: Place | null;
}

/**
 * Looks through a value, however deep it is, in time that grows with its size alone.
 *
 * @throws Problem 400 with the path of each text, and of each name, that cannot be kept
 */
function refuseUnkeepable(value: unknown): void {
  const fields: FieldIssue[] = [];
  const left: { value: unknown; place: Place | null }[] = [{ value, place: null }];
  for (let next = left.pop(); next !== undefined && fields.length < MAX_ISSUES; next = left.pop()) {
    const { value: here, place } = next;
    if (typeof here === 'string') {
      if (!isPlainText(here)) fields.push({ field: pathOf(place), message: MUST_NOT });
      continue;
    }
    if (typeof here !== 'object' || here === null) continue;
    // Backwards, because the last that is put down is the first that is looked at.
    for (const [name, member] of Object.entries(here).reverse()) {
      const within = { name, within: place };
      if (!isPlainText(name)) fields.push({ field: pathOf(within), message: `this name ${MUST_NOT}` });
      left.push({ value: member, place: within });
    }
  }
  const [first] = fields;
  if (first !== undefined) throw invalidRequest(`${first.field || 'body'}: ${first.message}.`, fields);
}

/** From the outermost name to the innermost; of a deeper one the beginning. */
function pathOf(place: Place | null): string {
  const names: string[] = [];
  for (let at = place; at !== null; at = at.within) names.push(at.name);
  const deep = names.length > MAX_PATH_NAMES;
  const path = names.reverse().slice(0, MAX_PATH_NAMES).map(shown).join('.');
  return deep ? `${path}.…` : path;
}

/** A name as it may stand in an answer: what it cannot hold, it spells. */
function shown(name: string): string {
  return isPlainText(name) ? name : JSON.stringify(name).slice(1, -1);
}

/**
 * Refuses an address whose path or query holds a NUL.
 *
 * @param url path and query as they came
 * @throws Problem 400 with the names of the parameters
 */
export function refuseUnkeepableAddress(url: string): void {
  if (!url.includes('%00')) return;
  const [, query = ''] = url.split(/\?(.*)/s);
  const fields = [...new URLSearchParams(query)]
    .filter(([name, value]) => !isPlainText(name) || !isPlainText(value))
    .slice(0, MAX_ISSUES)
    .map(([name]) => ({ field: shown(name), message: MUST_NOT }));
  const found = fields.length > 0 ? fields : [{ field: 'address', message: MUST_NOT }];
  throw invalidRequest(`${found[0]?.field}: ${MUST_NOT}.`, found);
}
