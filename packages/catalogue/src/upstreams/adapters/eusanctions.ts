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
import { elementsAt, type XmlElement } from './xml-records.ts';

const MAX_BYTES = 96 * 1024 * 1024;
const TIMEOUT_MS = 120_000;
const RECORDS = new Set(['sanctionEntity']);
/** A public token: it appears in the links of the Commission's own feed (`/fsd/fsf/public/rss`) and is not secret. */
const PUBLIC_TOKEN = 'dG9rZW4tMjAxNw';

/**
 * Reads the European Union's consolidated financial sanctions list (XML, schema 1.1). The facts about an entry are in
 * attributes. Each spelling of a name is its own element, and `strong` says whether it identifies the entry.
 *
 * @throws InvalidList when it is cut off or is not such a list
 */
export async function readEuList(bytes: Buffer): Promise<PublishedList> {
  const parties: ListedParty[] = [];
  const root = await readListRecords(bytes, RECORDS, (element) => parties.push(partyOf(element)));
  if (root.name !== 'export') throw new InvalidList(`its root is ${root.name}`);
  return { publishedAt: listTime(root.attributes.generationDate ?? null), parties };
}

function partyOf(entity: XmlElement): ListedParty {
  const uid = entity.attributes.euReferenceNumber || entity.attributes.logicalId;
  const names = elementsAt(entity, ['nameAlias'])
    .map(({ attributes }) => ({
      name: joinedName(
        attributes.wholeName ||
          joinedName(
            attributes.firstName ?? null,
            attributes.middleName ?? null,
            attributes.lastName ?? null,
          ),
      ),
      weak: attributes.strong === 'false',
    }))
    .filter(({ name }) => name !== '');
  const first = names.find(({ weak }) => !weak) ?? names[0];
  if (!uid || first === undefined) throw new InvalidList('an entry has no number or no name');
  const kind = elementsAt(entity, ['subjectType'])[0]?.attributes.code;
  return {
    uid,
    kind: kind === 'person' ? 'individual' : 'entity',
    ...(['person', 'enterprise'].includes(kind ?? '') ? {} : { kindUnstated: true }),
    name: first.name,
    // The same spelling appears once for each act that names it.
    aliases: [
      ...new Map(names.filter(({ name }) => name !== first.name).map((each) => [each.name, each])).values(),
    ],
    birthDates: elementsAt(entity, ['birthdate']).map(({ attributes }) =>
      attributes.circa === 'true' ? null : birthDay(attributes.birthdate ?? ''),
    ),
    programs: [
      ...new Set(
        elementsAt(entity, ['regulation']).flatMap(({ attributes }) =>
          attributes.programme ? [attributes.programme] : [],
        ),
      ),
    ],
    addresses: [],
  };
}

/** https://data.europa.eu/data/datasets/consolidated-list-of-persons-groups-and-entities-subject-to-eu-financial-sanctions */
export const eusanctions = defineUpstream({
  name: 'eusanctions',
  title: 'EU consolidated financial sanctions list',
  baseUrl: 'https://webgate.ec.europa.eu',
  licence: 'European Commission, Financial Sanctions Files',
  terms: {
    commercialUse: 'unknown',
    note: null,
    attribution: null,
    url: 'https://webgate.ec.europa.eu',
  },
  documentation: {
    at: 'https://webgate.ec.europa.eu/fsd/fsf/public/rss',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 10,
  open: (http) => ({
    /** All persons and entities in one file. */
    consolidated: (signal?: AbortSignal) =>
      http.download({
        path: `/fsd/fsf/public/files/xmlFullSanctionsList_1_1/content?token=${PUBLIC_TOKEN}`,
        maxBytes: MAX_BYTES,
        timeoutMs: TIMEOUT_MS,
        signal,
      }),
  }),
  probe: async (api) => readEuList((await api.consolidated()).value.bytes),
});
