import { type Download, defineUpstream, type Reply } from '../define.ts';
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

const MAX_BYTES = 96 * 1024 * 1024;
const TIMEOUT_MS = 120_000;
const RECORDS = new Set(['publshInformation', 'sdnEntry']);
const ADDRESS = /^Digital Currency Address - (\S+)/i;

/**
 * Reads OFAC's list files in their plain XML (`SDN.XML`, `CONSOLIDATED.XML`), which says its date and how many records
 * it has. The namespace has changed once and is not looked at.
 *
 * @throws InvalidList when it is cut off, says another number of records, or is no such list
 */
export async function readOfacList(bytes: Buffer): Promise<PublishedList> {
  const parties: ListedParty[] = [];
  let publication: XmlElement | null = null;
  await readListRecords(bytes, RECORDS, (element) => {
    if (element.name === 'publshInformation') publication = element;
    else parties.push(partyOf(element));
  });
  if (publication === null) throw new InvalidList('it says nothing of its publication');
  const stated = Number(textAt(publication, 'Record_Count'));
  if (stated !== parties.length) {
    throw new InvalidList(`it says ${stated} records and holds ${parties.length}`);
  }
  return { publishedAt: listTime(textAt(publication, 'Publish_Date')), parties };
}

const KINDS: Readonly<Record<string, ListedParty['kind']>> = {
  individual: 'individual',
  entity: 'entity',
  vessel: 'vessel',
  aircraft: 'aircraft',
};

function partyOf(entry: XmlElement): ListedParty {
  const uid = textAt(entry, 'uid');
  const name = joinedName(textAt(entry, 'firstName'), textAt(entry, 'lastName'));
  if (uid === null || name === '') throw new InvalidList('an entry has no number or no name');
  const kind = KINDS[textAt(entry, 'sdnType')?.toLowerCase() ?? ''];
  return {
    uid,
    kind: kind ?? 'entity',
    ...(kind === undefined ? { kindUnstated: true } : {}),
    name,
    aliases: elementsAt(entry, ['akaList', 'aka'])
      .map((aka) => ({
        name: joinedName(textAt(aka, 'firstName'), textAt(aka, 'lastName')),
        weak: textAt(aka, 'category')?.toLowerCase() === 'weak',
      }))
      .filter((aka) => aka.name !== ''),
    birthDates: elementsAt(entry, ['dateOfBirthList', 'dateOfBirthItem']).map((item) =>
      birthDay(textAt(item, 'dateOfBirth') ?? ''),
    ),
    programs: elementsAt(entry, ['programList', 'program']).map(({ text }) => text),
    addresses: elementsAt(entry, ['idList', 'id']).flatMap((id) => {
      const asset = ADDRESS.exec(textAt(id, 'idType') ?? '')?.[1];
      const address = textAt(id, 'idNumber');
      return asset === undefined || address === null ? [] : [{ asset, address }];
    }),
  };
}

/** Public domain: works of the United States Government (17 U.S.C. § 105). https://ofac.treasury.gov/sanctions-list-service */
export const ofac = defineUpstream({
  name: 'ofac',
  title: 'OFAC Sanctions List Service',
  baseUrl: 'https://sanctionslistservice.ofac.treas.gov',
  licence: 'US Treasury, OFAC: public domain',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: null,
    url: 'https://sanctionslistservice.ofac.treas.gov',
  },
  key: 'none',
  requestsPerMinute: 10,
  open(http) {
    const file = (name: string, signal?: AbortSignal): Promise<Reply<Download>> =>
      http.download({
        path: `/api/PublicationPreview/exports/${name}`,
        maxBytes: MAX_BYTES,
        timeoutMs: TIMEOUT_MS,
        signal,
      });
    return {
      /** Specially Designated Nationals. */
      sdn: (signal?: AbortSignal) => file('SDN.XML', signal),
      /** OFAC's other lists in one. */
      consolidated: (signal?: AbortSignal) => file('CONSOLIDATED.XML', signal),
    };
  },
  probe: async (api) => readOfacList((await api.consolidated()).value.bytes),
});
