import { z } from 'zod';
import { defineUpstream } from '../define.ts';
import { InvalidList, listTime, type PublishedList } from './published-list.ts';

const MAX_BYTES = 8 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

const list = z.looseObject({
  date: z.string(),
  entries: z
    .array(
      z.looseObject({
        id: z.string().min(1).max(100),
        name: z.string().trim().min(1).max(200),
        addresses: z
          .array(z.string().regex(/^(0x[0-9a-fA-F]{40}|[a-zA-Z0-9]{20,100})$/))
          .min(1)
          .max(1_000),
        reference: z.url({ protocol: /^https?$/ }).nullish(),
      }),
    )
    .max(20_000),
});

/**
 * Reads a list of mixing services: `{"date":"2026-11-20","entries":[{"id":"…","name":"…","addresses":["0x…"],
 * "reference":"https://…"}]}`. There is no public register of them, so the operator chooses which list is used.
 *
 * @throws InvalidList when it is cut off or is not such a list
 */
export async function readMixerList(bytes: Buffer): Promise<PublishedList> {
  let raw: unknown;
  try {
    raw = JSON.parse(bytes.toString('utf8'));
  } catch (cause) {
    throw new InvalidList('not a whole list: not JSON', { cause });
  }
  const parsed = list.safeParse(raw);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new InvalidList(`${issue?.path.join('.')}: ${issue?.message}`);
  }
  return {
    publishedAt: listTime(parsed.data.date),
    parties: parsed.data.entries.map(({ id, name, addresses, reference }) => ({
      uid: id,
      kind: 'service',
      name,
      aliases: [],
      programs: reference === null || reference === undefined ? [] : [reference],
      addresses: addresses.map((address) => ({ asset: 'any', address })),
    })),
  };
}

export const mixers = defineUpstream({
  name: 'mixers',
  title: 'List of mixing services',
  baseUrl: null,
  licence: "The operator's own choice of list",
  terms: {
    commercialUse: 'own',
    note: 'The address leads to a list of your choice.',
    attribution: null,
    url: null,
  },
  key: 'none',
  requestsPerMinute: 10,
  open: (http) => ({
    /** The whole list. */
    all: (signal?: AbortSignal) =>
      http.download({ path: '/mixers.json', maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS, signal }),
  }),
  probe: async (api) => readMixerList((await api.all()).value.bytes),
});
