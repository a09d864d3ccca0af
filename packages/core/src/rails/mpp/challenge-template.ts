/**
 * Makes fresh challenges from a template: a challenge that the reference library made. Two challenges for the same
 * terms differ only in their expiry, in the contents of `opaque`, and in the id that binds both to the terms.
 * Everything else is kept as text.
 * https://paymentauth.org (the binding of a challenge's id, §5.1.2.1.1)
 */
import { createHmac } from 'node:crypto';
import type { MppLibrary } from './library.ts';

/** The same lifetime as the library's. */
const LIFE_MS = 5 * 60_000;
/** Placeholders for what differs in each challenge. None of them needs escaping. */
const PLACES = { id: 'ID-PLACE', expires: '2000-01-01T00:00:00.000Z', opaque: 'OPAQUE-PLACE' };

export interface ChallengeTemplate {
  /**
   * @param opaque the values that the credential must echo, by name
   * @returns the value of `WWW-Authenticate`, and the id of each challenge in it
   */
  fresh(opaque: Readonly<Record<string, string>>, nowMs: number): { header: string; ids: string[] };
}

/**
 * @param library the reference library
 * @param header a `WWW-Authenticate` that the library made, of challenges without a digest
 * @param secretKey the key that signs the ids
 */
export function templateOf(
  { Challenge }: Pick<MppLibrary, 'Challenge'>,
  header: string,
  secretKey: string,
): ChallengeTemplate {
  const patterns = Challenge.deserializeList(header).map((challenge) => {
    const { request, realm, method, intent } = challenge;
    const { digest, header: field } = challenge as { digest?: string; header?: string };
    if (digest !== undefined || field !== undefined) throw new Error('the library binds more than it did');
    const text = Challenge.serialize({ ...challenge, ...PLACES });
    const [start = '', beforeExpires = '', beforeOpaque = '', end = ''] = text.split(
      new RegExp(Object.values(PLACES).join('|')),
    );
    // The canonical JSON of the terms, as it stands in the header.
    const terms = /request="([^"]*)"/.exec(text)?.[1];
    if (terms === undefined || Object.keys(request).length === 0)
      throw new Error('a challenge without terms');
    return { start, beforeExpires, beforeOpaque, end, bound: `${realm}|${method}|${intent}|${terms}|` };
  });
  return {
    fresh(opaque, nowMs) {
      const expires = new Date(nowMs + LIFE_MS).toISOString();
      const names = Object.keys(opaque).sort();
      const echoed = Buffer.from(
        JSON.stringify(Object.fromEntries(names.map((name) => [name, opaque[name]]))),
      ).toString('base64url');
      const ids: string[] = [];
      const texts = patterns.map(({ start, beforeExpires, beforeOpaque, end, bound }) => {
        const id = createHmac('sha256', secretKey)
          .update(`${bound}${expires}||${echoed}`)
          .digest('base64url');
        ids.push(id);
        return `${start}${id}${beforeExpires}${expires}${beforeOpaque}${echoed}${end}`;
      });
      return { header: texts.join(', '), ids };
    },
  };
}
