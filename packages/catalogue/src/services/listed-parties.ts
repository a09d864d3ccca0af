/** Lists of persons, entities and addresses as services use them: dated copies with their entries. */

import type { Source } from '@farebox/core/words/answer';
import type { ListedParty } from '../upstreams/adapters/published-list.ts';

/** Lists of sanctions, by their names in answers. */
export const SANCTIONS_LISTS = ['ofac-sdn', 'ofac-consolidated', 'un', 'uk', 'eu'] as const;
export type SanctionsListName = (typeof SANCTIONS_LISTS)[number];
export type ListName = SanctionsListName | 'mixers';

/** The last published version of a list, within its maximum age. */
export interface ListInUse {
  name: ListName;
  title: string;
  /** The time of publication as the publisher states it (ISO 8601). */
  publishedAt: string;
  /** When the publisher last confirmed that this is the current list (ISO 8601). */
  confirmedAt: string;
  /** SHA-256 of the unchanged file, in hex. */
  sha256: string;
  parties: readonly ListedParty[];
  /** The entries with exactly this address; hex and bech32 in either case. */
  holdersOf(address: string): readonly ListedParty[];
  /** `asOf` is when it was published, `retrievedAt` when it was confirmed. */
  source: Source;
}

export interface Lists {
  /** The lists whose address is configured, in a fixed order. */
  readonly configured: readonly ListName[];
  /**
   * The current version of a list.
   *
   * @throws UpstreamUnavailable when it is not configured, was never fetched, or is older than its maximum age
   */
  current(name: ListName): Promise<ListInUse>;
}

/** The facts that answers state about a list that was used. */
export function listFacts({ name, title, publishedAt, confirmedAt, sha256, parties }: ListInUse) {
  return { list: name, title, publishedAt, confirmedAt, sha256, entries: parties.length };
}

/** The form of an address for lookups: hex and bech32 ignore case, base58 does not. */
export function addressKey(address: string): string {
  const written = address.trim();
  return /^(0x[0-9a-f]+|(bc|ltc|tb)1[0-9a-z]+)$/i.test(written) ? written.toLowerCase() : written;
}
