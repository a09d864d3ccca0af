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

const MAX_BYTES = 64 * 1024 * 1024;
const TIMEOUT_MS = 90_000;
const RECORDS = new Set(['Designation', 'DateGenerated']);
const NAME_PARTS = ['Name1', 'Name2', 'Name3', 'Name4', 'Name5', 'Name6'];

/**
 * Reads the UK Sanctions List of the Foreign, Commonwealth & Development Office. It is the only current one since
 * OFSI's consolidated list was closed on 28 January 2026.
 *
 * @param lastModified used when the file itself does not state its date
 * @throws InvalidList when it is cut off or is not such a list
 */
export async function readUkList(bytes: Buffer, lastModified: string | null): Promise<PublishedList> {
  const parties: ListedParty[] = [];
  let generated: string | null = null;
  const root = await readListRecords(bytes, RECORDS, (element) => {
    if (element.name === 'DateGenerated') generated = element.text;
    else parties.push(partyOf(element));
  });
  if (root.name !== 'Designations') throw new InvalidList(`its root is ${root.name}`);
  // British dates: the day comes first.
  return { publishedAt: listTime(generated ?? lastModified, 'day-first'), parties };
}

function partyOf(designation: XmlElement): ListedParty {
  const uid = textAt(designation, 'UniqueID');
  const names = elementsAt(designation, ['Names', 'Name'])
    .map((each) => ({
      name: joinedName(...NAME_PARTS.map((part) => textAt(each, part))),
      primary: textAt(each, 'NameType')?.toLowerCase() === 'primary name',
      weak: /low quality/i.test(textAt(each, 'AliasStrength') ?? ''),
    }))
    .filter(({ name }) => name !== '');
  const first = names.find(({ primary }) => primary) ?? names[0];
  if (uid === null || first === undefined) throw new InvalidList('an entry has no number or no name');
  const kind = textAt(designation, 'IndividualEntityShip')?.toLowerCase();
  return {
    uid,
    kind: kind === 'individual' ? 'individual' : kind === 'ship' ? 'vessel' : 'entity',
    ...(['individual', 'ship', 'entity'].includes(kind ?? '') ? {} : { kindUnstated: true }),
    name: first.name,
    aliases: [
      ...names.filter((each) => each !== first).map(({ name, weak }) => ({ name, weak })),
      ...elementsAt(designation, ['NonLatinNames', 'NonLatinName', 'NameNonLatinScript'])
        .filter(({ text }) => text !== '')
        .map(({ text }) => ({ name: joinedName(text), weak: false })),
    ],
    birthDates: elementsAt(designation, ['IndividualDetails', 'Individual', 'DOBs', 'DOB']).map(({ text }) =>
      birthDay(text),
    ),
    programs: [textAt(designation, 'RegimeName')].filter((program) => program !== null),
    addresses: [],
  };
}

/** https://www.gov.uk/government/publications/the-uk-sanctions-list */
export const uksanctions = defineUpstream({
  name: 'uksanctions',
  title: 'UK Sanctions List',
  baseUrl: 'https://sanctionslist.fcdo.gov.uk',
  licence: 'UK Sanctions List, Open Government Licence v3.0',
  terms: {
    commercialUse: 'allowed',
    note: null,
    attribution: 'Contains public sector information licensed under the Open Government Licence v3.0',
    url: 'https://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/',
  },
  key: 'none',
  requestsPerMinute: 10,
  open: (http) => ({
    /** All designations in one file. */
    designations: (signal?: AbortSignal) =>
      http.download({
        path: '/docs/UK-Sanctions-List.xml',
        maxBytes: MAX_BYTES,
        timeoutMs: TIMEOUT_MS,
        signal,
      }),
  }),
  async probe(api) {
    const { value } = await api.designations();
    return readUkList(value.bytes, value.lastModified);
  },
});
