import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';
import type { CensusTract } from './censusgeocoder.ts';

/** The value of homes in a census tract as their owners estimate it, in dollars of the survey's last year. */
export interface TractHomeValue {
  /** The tract's name. */
  name: string;
  /** USD; null where the survey publishes none. */
  medianUsd: number | null;
  /** Half the width of the 90 percent interval around the median, in USD; null where there is none. */
  marginUsd: number | null;
  /** Set when the median is only known to lie beyond the highest or lowest published value. */
  beyond: 'above' | 'below' | null;
}

/** The survey pools the answers of this many years. */
export const ACS_YEARS = 5;
const TOP_CODE = 2_000_001;
const BOTTOM_CODE = 9_999;
const COLUMNS = ['NAME', 'B25077_001E', 'B25077_001M'] as const;

/**
 * Rows with the column names in the first one, all values as strings. An empty reply (204) means that the survey does
 * not know the tract.
 */
const table = z.string().transform((content, context): TractHomeValue[] => {
  if (content.trim() === '') return [];
  const fail = (message: string) => {
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
  let rows: unknown;
  try {
    rows = JSON.parse(content);
  } catch {
    // A missing or unknown key is answered with a page.
    return fail('not JSON');
  }
  const read = z.array(z.array(z.string().nullable())).min(1).max(2).safeParse(rows);
  if (!read.success) return fail('no table');
  const [head = [], ...lines] = read.data;
  const [name, estimate, margin] = COLUMNS.map((column) => head.indexOf(column));
  return lines.map((cells): TractHomeValue => {
    const value = amountOf(cells[estimate ?? -1]);
    if (value === undefined) return fail('a median that is no number');
    const marginUsd = amountOf(cells[margin ?? -1]);
    if (marginUsd === undefined) return fail('a margin that is no number');
    const beyond = value === TOP_CODE ? 'above' : value === BOTTOM_CODE ? 'below' : null;
    return {
      name: cells[name ?? -1] ?? '',
      medianUsd: beyond === null ? value : null,
      marginUsd: beyond === null && value !== null ? marginUsd : null,
      beyond,
    };
  });
});

/**
 * Null when the survey gives, as a large negative number, the reason why there is no value; undefined for anything that
 * is not an amount.
 */
function amountOf(cell: string | null | undefined): number | null | undefined {
  if (cell === null) return null;
  const number = cell === undefined || cell.trim() === '' ? Number.NaN : Number(cell);
  if (!Number.isFinite(number)) return undefined;
  return number < 0 ? null : number;
}

const DAY_MS = 86_400_000;

/** The American Community Survey, estimates of five years. https://www.census.gov/data/developers/data-sets/acs-5year.html */
export const acs = defineUpstream({
  name: 'acs',
  title: 'American Community Survey',
  baseUrl: 'https://api.census.gov/data',
  licence:
    'U.S. Census Bureau, public domain. This product uses the Census Bureau Data API but is not endorsed or certified by the Census Bureau.',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain. Every request needs a key, which is free.',
    attribution:
      'This product uses the Census Bureau Data API but is not endorsed or certified by the Census Bureau.',
    url: 'https://www.census.gov/data/developers/about/terms-of-service.html',
  },
  key: 'required',
  keyFrom: 'https://api.census.gov/data/key_signup.html',
  authorize: (apiKey) => ({ query: { key: apiKey } }),
  settings: {
    UPSTREAM_ACS_REQUESTS_PER_MINUTE: {
      describe:
        'How often it may be asked in a minute, where the agreement for the key allows more than 500 requests a day',
      required: false,
    },
  },
  // 250 at once and 245 more over the day stay below 500 a day.
  requestsPerMinute: 0.17,
  burst: 250,
  open: (http) => ({
    /**
     * The median value of owner-occupied homes in the survey that ends with a year; empty when the tract is not in it.
     * Null while that survey is not published: it comes out about a year later.
     */
    homeValue(asked: CensusTract & { year: number }): Promise<Reply<TractHomeValue[] | null>> {
      return http.find({
        path: `/${asked.year}/acs/acs5`,
        query: {
          get: COLUMNS.join(','),
          for: `tract:${asked.tract}`,
          in: `state:${asked.state} county:${asked.county}`,
        },
        as: 'text',
        schema: table,
        freshMs: DAY_MS,
        staleMs: 30 * DAY_MS,
      });
    },
  }),
  probe: (api) => api.homeValue({ year: 2023, state: '11', county: '001', tract: '006202' }),
});
