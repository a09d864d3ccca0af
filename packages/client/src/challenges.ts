/** Reads the challenges of a `WWW-Authenticate` header of the "Payment" scheme. https://paymentauth.org */
import { fromBase64, isRecord, parsed, textOf } from './json.ts';

const PARAMETER = /([a-z][\w-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/giy;
const MAX_CHALLENGES = 50;

/** @returns each challenge with its request as an object; one that cannot be read is left out */
export function challengesIn(header: string): Record<string, unknown>[] {
  return startsOf(header)
    .slice(0, MAX_CHALLENGES)
    .flatMap((start) => {
      const fields = parametersFrom(header, start);
      const request = parsed(fromBase64(textOf(fields.request)) ?? '');
      return isRecord(request) ? [{ ...fields, request }] : [];
    });
}

/** Where the parameters of each challenge begin, outside of quoted text. */
function startsOf(header: string): number[] {
  const bare = header.replaceAll(/"(?:[^"\\]|\\.)*"/g, (quoted) => '"'.padEnd(quoted.length, '_'));
  return [...bare.matchAll(/(?:^|,)\s*Payment\s+/gi)].map(({ index, 0: whole }) => index + whole.length);
}

function parametersFrom(header: string, start: number): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (let at = start; ; ) {
    PARAMETER.lastIndex = at;
    const [whole, name = '', quoted, bare] = PARAMETER.exec(header) ?? [];
    if (whole === undefined) return fields;
    fields[name.toLowerCase()] = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare;
    const gap = /^\s*,\s*/.exec(header.slice(at + whole.length, at + whole.length + 20));
    if (gap === null) return fields;
    at += whole.length + gap[0].length;
  }
}
