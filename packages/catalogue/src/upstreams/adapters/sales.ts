import { isNameable, NOT_NAMEABLE } from '@farebox/core/words/name';
import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';

export const HOME_TYPES = ['house', 'townhouse', 'condo'] as const;
export type HomeType = (typeof HOME_TYPES)[number];

/** A sale of a home. Nothing else of a row is read: neither names nor addresses come any further. */
export interface Sale {
  /** Of the home that was sold; it is never shown. */
  id: string;
  /** `YYYY-MM-DD`. */
  soldOn: string;
  priceUsd: number;
  /** Degrees. */
  lat: number;
  lon: number;
  /** `other`: no home, or one of another kind. */
  type: HomeType | 'other';
  /** Null where the source does not say. */
  squareFeet: number | null;
}

export interface FoundSales {
  sales: Sale[];
  /** Rows that are no sales; they are left out. */
  malformed: number;
  /** What is wrong with the first of them; null where there is none. */
  firstProblem: string | null;
}

/** What the operator says of the source, to be shown with its sales. */
export interface SalesPublisher {
  name: string;
  /** Null: the operator gave none. */
  url: string | null;
  terms: string;
}

/** So many rows are asked for, and so many are read. */
const ASKED_ROWS = 200;
const MOST_ROWS = 500;
const HOUR_MS = 3_600_000;

const row = z.object({
  id: z.union([z.string().min(1).max(100), z.number().int()]).transform(String),
  soldOn: z.iso.date(),
  priceUsd: z.number().min(0).max(1e9),
  lat: z.number().min(-90).max(90),
  lon: z.number().min(-180).max(180),
  type: z.enum([...HOME_TYPES, 'other']),
  // Records write an area that is not known as 0.
  squareFeet: z
    .number()
    .min(0)
    .max(1e6)
    .nullish()
    .transform((area) => (area === undefined || area === 0 ? null : area)),
});

const found = z
  .object({ sales: z.array(z.unknown()).max(MOST_ROWS) })
  .transform(({ sales: rows }, context): FoundSales => {
    const sales: Sale[] = [];
    let firstProblem: string | null = null;
    for (const [at, each] of rows.entries()) {
      const read = row.safeParse(each);
      if (read.success) sales.push(read.data);
      else firstProblem ??= problemOf(at, read.error);
    }
    const malformed = rows.length - sales.length;
    // A row that is wrong is a slip of the records. Most of them wrong are another format.
    if (malformed * 2 > rows.length) {
      context.addIssue({ code: 'custom', message: `${malformed} of ${rows.length} rows: ${firstProblem}` });
      return z.NEVER;
    }
    return { sales, malformed, firstProblem };
  });

/** Names the field, and repeats nothing of what stands in it. */
function problemOf(at: number, { issues }: z.ZodError): string {
  const [issue] = issues;
  return `sales[${at}].${issue?.path.join('.') || 'row'}: ${issue?.message ?? 'does not fit'}`;
}

const isShown = (mostCharacters: number) => (value: string) =>
  value.length > mostCharacters
    ? `must have at most ${mostCharacters} characters`
    : isNameable(value)
      ? null
      : NOT_NAMEABLE;

function isLink(value: string): string | null {
  const link = URL.canParse(value) ? new URL(value) : null;
  return link?.protocol === 'https:' && link.username === '' && link.password === '' && value.length <= 300
    ? null
    : 'must be an https address of at most 300 characters, without a user name or a password';
}

/**
 * Sales of homes, from a source of the operator's own that speaks a small protocol: `GET <address>/sales` with a place, a
 * radius and two days. docs/homes.md has it in full.
 */
export const sales = defineUpstream({
  name: 'sales',
  title: 'Sales of homes',
  baseUrl: null,
  licence: "The operator's own choice of source, under the terms that it states",
  terms: {
    commercialUse: 'own',
    note: 'The address leads to records of your choice. Their terms are yours to know, and stand in UPSTREAM_SALES_TERMS.',
    attribution: null,
    url: null,
  },
  key: 'optional',
  settings: {
    UPSTREAM_SALES_NAME: {
      describe: 'What the source of sales is called where its sales are shown: 80 characters at most',
      required: true,
      check: isShown(80),
    },
    UPSTREAM_SALES_TERMS: {
      describe:
        'On which terms its sales may be shown, with the credit that it asks for: 300 characters at most',
      required: true,
      check: isShown(300),
    },
    UPSTREAM_SALES_LINK: {
      describe: 'Where people read about the source: an https address',
      required: false,
      check: isLink,
    },
    UPSTREAM_SALES_REQUESTS_PER_MINUTE: {
      describe: 'How often it may be asked in a minute: 120 unless set',
      required: false,
    },
  },
  authorize: (apiKey) => ({ headers: { authorization: `Bearer ${apiKey}` } }),
  requestsPerMinute: 120,
  timeoutMs: 5_000,
  maxReplyBytes: 1024 * 1024,
  open: (http) => {
    const { settings } = http;
    const publisher: SalesPublisher = {
      name: settings.UPSTREAM_SALES_NAME ?? '',
      url: settings.UPSTREAM_SALES_LINK ?? null,
      terms: settings.UPSTREAM_SALES_TERMS ?? '',
    };
    return {
      publisher,
      /**
       * Sales of homes around a place between two days (`YYYY-MM-DD`), both included, the nearest first. What the source
       * keeps to is for its reader to check.
       */
      async near(asked: {
        lat: number;
        lon: number;
        radiusMeters: number;
        from: string;
        to: string;
      }): Promise<Reply<FoundSales>> {
        const { value, source } = await http.get({
          path: '/sales',
          query: { ...asked, limit: ASKED_ROWS },
          schema: found,
          freshMs: HOUR_MS,
          staleMs: 0,
        });
        const { name, url, terms } = publisher;
        return { value, source: { ...source, url: url ?? source.url, licence: `${name}: ${terms}` } };
      },
    };
  },
  async probe(api, nowMs) {
    const day = (atMs: number) => new Date(atMs).toISOString().slice(0, 10);
    const { value } = await api.near({
      lat: 38.9,
      lon: -77.03,
      radiusMeters: 1_600,
      from: day(nowMs - 730 * 24 * HOUR_MS),
      to: day(nowMs),
    });
    if (value.firstProblem !== null)
      throw new Error(`${value.malformed} rows are left out: ${value.firstProblem}`);
    return value;
  },
});
