import { defineUpstream } from '../define.ts';
import {
  birthDay,
  InvalidList,
  joinedName,
  type ListedParty,
  listTime,
  type PublishedList,
  readListRecords,
} from './published-list.ts';
import { elementsAt, textAt, type XmlElement } from './xml-records.ts';

const MAX_BYTES = 32 * 1024 * 1024;
const TIMEOUT_MS = 60_000;
const RECORDS = new Set(['INDIVIDUAL', 'ENTITY']);

/**
 * Reads the consolidated list of the UN Security Council.
 *
 * @throws InvalidList when it is cut off or is no such list
 */
export async function readUnList(bytes: Buffer): Promise<PublishedList> {
  const parties: ListedParty[] = [];
  const root = await readListRecords(bytes, RECORDS, (element) => parties.push(partyOf(element)));
  if (root.name !== 'CONSOLIDATED_LIST') throw new InvalidList(`its root is ${root.name}`);
  return { publishedAt: listTime(root.attributes.dateGenerated ?? null), parties };
}

function partyOf(record: XmlElement): ListedParty {
  const uid = textAt(record, 'REFERENCE_NUMBER') ?? textAt(record, 'DATAID');
  const name = joinedName(
    ...['FIRST_NAME', 'SECOND_NAME', 'THIRD_NAME', 'FOURTH_NAME'].map((part) => textAt(record, part)),
  );
  if (uid === null || name === '') throw new InvalidList('an entry has no number or no name');
  const programs = [textAt(record, 'UN_LIST_TYPE')].filter((program) => program !== null);
  const original = textAt(record, 'NAME_ORIGINAL_SCRIPT');
  return {
    uid,
    kind: record.name === 'INDIVIDUAL' ? 'individual' : 'entity',
    name,
    aliases: [
      ...(original === null ? [] : [{ name: original, weak: false }]),
      ...elementsAt(record, [`${record.name}_ALIAS`])
        .map((alias) => ({
          name: joinedName(textAt(alias, 'ALIAS_NAME')),
          weak: textAt(alias, 'QUALITY')?.toLowerCase() === 'low',
        }))
        .filter((alias) => alias.name !== ''),
    ],
    // A year, a span of years and "approximately" are stated in other elements than an exact date.
    birthDates: elementsAt(record, ['INDIVIDUAL_DATE_OF_BIRTH']).map((birth) =>
      /^exact$/i.test(textAt(birth, 'TYPE_OF_DATE') ?? '') ? birthDay(textAt(birth, 'DATE') ?? '') : null,
    ),
    programs,
    addresses: [],
  };
}

/** https://main.un.org/securitycouncil/en/content/un-sc-consolidated-list */
export const unsc = defineUpstream({
  name: 'unsc',
  title: 'UN Security Council sanctions list',
  baseUrl: 'https://scsanctions.un.org',
  licence: 'United Nations Security Council Consolidated List',
  terms: {
    commercialUse: 'unknown',
    note: null,
    attribution: null,
    url: 'https://scsanctions.un.org',
  },
  key: 'none',
  requestsPerMinute: 10,
  open: (http) => ({
    /** Persons and entities of all committees. */
    consolidated: (signal?: AbortSignal) =>
      http.download({
        path: '/resources/xml/en/consolidated.xml',
        maxBytes: MAX_BYTES,
        timeoutMs: TIMEOUT_MS,
        signal,
      }),
  }),
  probe: async (api) => readUnList((await api.consolidated()).value.bytes),
});
