import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';

/** The house price index of a state in a quarter; not seasonally adjusted. */
export interface StateIndex {
  year: number;
  /** 1 to 4. */
  quarter: number;
  index: number;
}

const MAX_ROWS = 100_000;

/** CSV of state, year, quarter and index, with or without a line of names, with or without quotes. */
const table = z.string().transform((content, context): ReadonlyMap<string, StateIndex[]> => {
  const fail = (message: string) => {
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
  const lines = content
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
    .map((line) => line.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1')));
  if (lines.length > MAX_ROWS) return fail('too many rows');
  const names = /^[A-Z]{2}$/.test(lines[0]?.[0] ?? '') ? null : lines.shift();
  const column = (name: RegExp, place: number) =>
    names == null ? place : names.findIndex((each) => name.test(each));
  const [state, year, quarter, index] = [
    column(/^state/i, 0),
    column(/^(yr|year)$/i, 1),
    column(/^(qtr|quarter|period)$/i, 2),
    column(/^index/i, 3),
  ];
  const states = new Map<string, StateIndex[]>();
  const seen = new Set<string>();
  for (const cells of lines) {
    const [name = '', written = ''] = [cells[state], cells[index]];
    const row = { year: Number(cells[year]), quarter: Number(cells[quarter]), index: Number(written) };
    const key = `${name} ${row.year} ${row.quarter}`;
    if (!/^[A-Z]{2} (19|20)\d\d [1-4]$/.test(key) || seen.has(key))
      return fail('a row that is no quarter of a state');
    seen.add(key);
    // A quarter without an index has one of these marks.
    if (['', '.', '-'].includes(written)) continue;
    if (!(row.index > 0 && row.index < 1e6)) return fail('an index that is no number');
    const rows = states.get(name) ?? [];
    rows.push(row);
    states.set(name, rows);
  }
  if (states.size === 0) return fail('no index');
  for (const rows of states.values()) rows.sort((a, b) => a.year - b.year || a.quarter - b.quarter);
  return states;
});

const DAY_MS = 86_400_000;

/** House price indexes of the Federal Housing Finance Agency. https://www.fhfa.gov/data/hpi/datasets */
export const fhfa = defineUpstream({
  name: 'fhfa',
  title: 'FHFA House Price Index',
  baseUrl: 'https://www.fhfa.gov',
  licence: 'Federal Housing Finance Agency, public domain',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: 'Federal Housing Finance Agency, House Price Index',
    url: 'https://www.fhfa.gov/data/hpi',
  },
  key: 'none',
  requestsPerMinute: 10,
  timeoutMs: 12_000,
  open: (http) => ({
    /**
     * The index of a state by its postal letters, all transactions, oldest quarter first; empty for a state that it does not
     * list, such as Puerto Rico.
     */
    async stateIndex(state: string): Promise<Reply<readonly StateIndex[]>> {
      const reply = await http.get({
        path: '/hpi/download/quarterly_datasets/hpi_at_state.csv',
        as: 'text',
        schema: table,
        freshMs: DAY_MS,
        staleMs: 30 * DAY_MS,
      });
      return { ...reply, value: reply.value.get(state) ?? [] };
    },
  }),
  probe: (api) => api.stateIndex('DC'),
});
