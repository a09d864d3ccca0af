import { isNameable, NOT_NAMEABLE } from './name.ts';

/**
 * Characters that show nothing: those that Unicode says to ignore in display (zero-width characters, soft hyphens, fillers, variation
 * selectors, tags), other marks of format, and the blank of Braille. https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point
 */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\u2800]/u;

/**
 * Says why text may not be an id of an agent, in words that follow the field's name; null when it may. An id that only looks like
 * another would name something else than its reader believes: text that changes under NFKC (https://www.unicode.org/reports/tr15/), such
 * as full-width letters, is refused with the form to use.
 */
export function agentIdFault(text: string, maximumLength: number): string | null {
  if (!isNameable(text)) return NOT_NAMEABLE;
  if (INVISIBLE.test(text)) return 'must not hold invisible characters, such as zero-width spaces or joiners';
  const plain = text.normalize('NFKC').trim();
  if (plain === text) return null;
  const advice = plain.length <= maximumLength && plain !== '' ? `: use ${JSON.stringify(plain)}` : '';
  return `must be in Unicode’s normal form NFKC${advice}`;
}

/**
 * The form in which ids of one buyer's agents are compared: two that differ by case alone are the same. Going by upper case as well
 * brings letters together that have several lower-case forms, such as ß and ss, σ and ς.
 */
export function foldedAgentId(agentId: string): string {
  return agentId.toLowerCase().toUpperCase().toLowerCase().normalize('NFKC');
}
