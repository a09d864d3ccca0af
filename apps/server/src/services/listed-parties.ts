/** Lists of persons, entities and addresses as services use them: dated copies, and who stands in them. */
import type { ListedParty } from '../upstreams/published-list.ts';
import type { Source } from '../words/answer.ts';

/** Lists of sanctions, by what answers call them. */
export const SANCTIONS_LISTS = ['ofac-sdn', 'ofac-consolidated', 'un', 'uk', 'eu'] as const;
export type SanctionsListName = (typeof SANCTIONS_LISTS)[number];
export type ListName = SanctionsListName | 'mixers';

/** A list as it was last published, within its bound of age. */
export interface ListInUse {
  name: ListName;
  title: string;
  /** By the publisher's word (ISO 8601). */
  publishedAt: string;
  /** When the publisher last said that this is the list (ISO 8601). */
  confirmedAt: string;
  /** Of the file as it came, in hex. */
  sha256: string;
  parties: readonly ListedParty[];
  /** Who stands in the list with exactly this address; hex and bech32 in either case. */
  holdersOf(address: string): readonly ListedParty[];
  /** `asOf` is when it was published, `retrievedAt` when it was confirmed. */
  source: Source;
}

export interface Lists {
  /** Those whose address is configured, in a fixed order. */
  readonly configured: readonly ListName[];
  /**
   * A list for use.
   *
   * @throws UpstreamUnavailable when it is not configured, was never fetched, or is older than its bound
   */
  current(name: ListName): Promise<ListInUse>;
}

/** What answers say about a list that was used. */
export function listFacts({ name, title, publishedAt, confirmedAt, sha256, parties }: ListInUse) {
  return { list: name, title, publishedAt, confirmedAt, sha256, entries: parties.length };
}

/** How an address is looked up: hex and bech32 have no case, base58 has. */
export function addressKey(address: string): string {
  const written = address.trim();
  return /^(0x[0-9a-f]+|(bc|ltc|tb)1[0-9a-z]+)$/i.test(written) ? written.toLowerCase() : written;
}
