/** Which lists there are, where each comes from, and how old it may become. */
import type { ListName } from '../services/listed-parties.ts';
import { readEuList } from '../upstreams/adapters/eusanctions.ts';
import { readMixerList } from '../upstreams/adapters/mixers.ts';
import { readOfacList } from '../upstreams/adapters/ofac.ts';
import type { PublishedList } from '../upstreams/adapters/published-list.ts';
import { readUkList } from '../upstreams/adapters/uksanctions.ts';
import { readUnList } from '../upstreams/adapters/unsc.ts';
import type { Download, Reply } from '../upstreams/define.ts';
import type { UpstreamName, Upstreams } from '../upstreams/index.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export interface ListDefinition {
  title: string;
  upstream: UpstreamName;
  /** Older than this, nothing is looked up in it: the publisher has not confirmed it for so long. */
  confirmedWithinMs: number;
  /**
   * The same for its own date: a publisher that goes on handing out a file which nobody keeps any more confirms it every
   * day. Each is well above the longest pause between two of its publications.
   */
  publishedWithinMs: number;
  fetch(upstreams: Upstreams, signal: AbortSignal | undefined): Promise<Reply<Download>>;
  read(file: Download): Promise<PublishedList>;
}

const SANCTIONS_AGES = { confirmedWithinMs: 3 * DAY_MS, publishedWithinMs: 60 * DAY_MS };

export const LISTS: Readonly<Record<ListName, ListDefinition>> = {
  'ofac-sdn': {
    title: 'OFAC Specially Designated Nationals and Blocked Persons List',
    upstream: 'ofac',
    ...SANCTIONS_AGES,
    fetch: ({ ofac }, signal) => ofac.sdn(signal),
    read: ({ bytes }) => readOfacList(bytes),
  },
  'ofac-consolidated': {
    title: 'OFAC Consolidated (non-SDN) Sanctions List',
    upstream: 'ofac',
    ...SANCTIONS_AGES,
    // It changes a few times a year.
    publishedWithinMs: 400 * DAY_MS,
    fetch: ({ ofac }, signal) => ofac.consolidated(signal),
    read: ({ bytes }) => readOfacList(bytes),
  },
  un: {
    title: 'United Nations Security Council Consolidated List',
    upstream: 'unsc',
    ...SANCTIONS_AGES,
    fetch: ({ unsc }, signal) => unsc.consolidated(signal),
    read: ({ bytes }) => readUnList(bytes),
  },
  uk: {
    title: 'UK Sanctions List',
    upstream: 'uksanctions',
    ...SANCTIONS_AGES,
    fetch: ({ uksanctions }, signal) => uksanctions.designations(signal),
    read: ({ bytes, lastModified }) => readUkList(bytes, lastModified),
  },
  eu: {
    title: 'EU Consolidated Financial Sanctions List',
    upstream: 'eusanctions',
    ...SANCTIONS_AGES,
    fetch: ({ eusanctions }, signal) => eusanctions.consolidated(signal),
    read: ({ bytes }) => readEuList(bytes),
  },
  mixers: {
    title: 'List of mixing services',
    upstream: 'mixers',
    confirmedWithinMs: 3 * DAY_MS,
    publishedWithinMs: 180 * DAY_MS,
    fetch: (upstreams, signal) => upstreams.mixers.all(signal),
    read: ({ bytes }) => readMixerList(bytes),
  },
};
export const LIST_NAMES = Object.keys(LISTS) as ListName[];
