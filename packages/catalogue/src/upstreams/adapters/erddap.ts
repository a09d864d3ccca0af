import { sourceUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';

/** The Multi-scale Ultra-high Resolution analysis: one value a day and 0.01 degree, at 09:00 UTC. */
export const SST_DATASET = {
  id: 'jplMURSST41',
  variable: 'analysed_sst',
  title: 'MUR SST v4.1 (NASA JPL)',
  resolutionDegrees: 0.01,
  /** 0.01 degree of latitude. */
  resolutionKm: 1.11,
  hourUtc: 'T09:00:00Z',
} as const;

/** The grid cell of the dataset that is nearest to the requested point. */
export interface SeaSurfaceCell {
  /** ISO 8601: the analysis that the value belongs to, which may differ from the requested day. */
  time: string;
  lat: number;
  lon: number;
  /** Degrees Celsius; null where the grid is masked, which is mostly land. */
  celsius: number | null;
}

/** Chlorophyll by VIIRS. The dataset that provides it changes over the years, so the operator may name another. */
export const CHLOROPHYLL = {
  defaultDataset: 'nesdisVHNchlaDaily',
  variable: 'chlor_a',
  title: 'VIIRS ocean color (NOAA)',
  firstDay: '2012-01-02',
  /** How far clear water is searched on every side of a point. */
  reachDegrees: 0.2,
  /** How many of the newest days are searched. */
  newestDays: 8,
} as const;
const CHLOROPHYLL_DATASET = 'UPSTREAM_ERDDAP_CHLOROPHYLL_DATASET';

/** A cell with a measurement, not hidden under clouds. */
export interface ChlorophyllCell {
  /** ISO 8601. */
  time: string;
  lat: number;
  lon: number;
  mgM3: number;
}

const column = z.string();
const table = z.looseObject({
  table: z.looseObject({
    columnNames: z.array(column).max(64),
    columnUnits: z.array(z.string().nullable()).max(64).nullish(),
    rows: z.array(z.array(z.union([z.string(), z.number(), z.null()])).max(64)).max(5_000),
  }),
});

const seaSurface = table.transform(({ table: { columnNames, columnUnits, rows } }, context) => {
  const at = (name: string) => columnNames.indexOf(name);
  const row = rows[0];
  if (row === undefined) return null;
  const unit = columnUnits?.[at(SST_DATASET.variable)];
  const cell = z
    .object({
      time: z.iso.datetime(),
      lat: z.number(),
      lon: z.number(),
      celsius: z.number().min(-5).max(50).nullable(),
    })
    .safeParse({
      time: row[at('time')],
      lat: row[at('latitude')],
      lon: row[at('longitude')],
      celsius: row[at(SST_DATASET.variable)],
    });
  if (!cell.success || (unit !== undefined && unit !== null && unit !== 'degree_C')) {
    context.addIssue({ code: 'custom', message: 'not a cell of sea surface temperature in degree_C' });
    return z.NEVER;
  }
  return cell.data satisfies SeaSurfaceCell;
});

/**
 * A dataset's axes in their order, which differs between datasets: some have an altitude between time and latitude,
 * some run southward.
 */
interface Axes {
  names: string[];
  /** Whether its latitude runs from north to south. */
  southward: boolean;
  cellDegrees: number;
}

const axes = table.transform(({ table: { columnNames, rows } }, context): Axes => {
  const at = (row: (string | number | null)[], name: string) => String(row[columnNames.indexOf(name)] ?? '');
  const dimensions = rows.filter((row) => at(row, 'Row Type') === 'dimension');
  const names = dimensions.map((row) => at(row, 'Variable Name'));
  const latitude = dimensions.find((row) => at(row, 'Variable Name') === 'latitude');
  const spacing = Number(
    /averageSpacing=(-?[\d.]+)/.exec(latitude === undefined ? '' : at(latitude, 'Value'))?.[1],
  );
  if (
    names[0] !== 'time' ||
    !names.includes('latitude') ||
    !names.includes('longitude') ||
    !(Math.abs(spacing) > 0)
  ) {
    context.addIssue({ code: 'custom', message: 'not the axes of a grid over the globe' });
    return z.NEVER;
  }
  return { names, southward: spacing < 0, cellDegrees: Math.abs(spacing) };
});

const chlorophyll = table.transform(({ table: { columnNames, columnUnits, rows } }, context) => {
  const at = (name: string) => columnNames.indexOf(name);
  if (columnUnits?.[at(CHLOROPHYLL.variable)]?.replace('^', '') !== 'mg m-3') {
    context.addIssue({ code: 'custom', message: 'not chlorophyll in mg m-3' });
    return z.NEVER;
  }
  const cells = z
    .array(
      z.object({ time: z.iso.datetime(), lat: z.number(), lon: z.number(), mgM3: z.number().nullable() }),
    )
    .safeParse(
      rows.map((row) => ({
        time: row[at('time')],
        lat: row[at('latitude')],
        lon: row[at('longitude')],
        mgM3: row[at(CHLOROPHYLL.variable)],
      })),
    );
  if (!cells.success) {
    context.addIssue({ code: 'custom', message: 'not cells of chlorophyll' });
    return z.NEVER;
  }
  // Clear water always contains some, and no water more than 1,000. Anything outside is a fill value.
  const measured = ({ mgM3 }: { mgM3: number | null }) => mgM3 !== null && mgM3 > 0 && mgM3 < 1_000;
  return {
    times: [...new Set(cells.data.map(({ time }) => time))],
    cells: cells.data.filter((cell): cell is ChlorophyllCell => measured(cell)),
  };
});

/** The brackets of a griddap query, which many servers refuse unless they are percent-encoded. */
function axis(value: string | number): string {
  return brackets(`(${value})`);
}

function brackets(bounds: string): string {
  return encodeURIComponent(`[${bounds}]`).replace(/\(/g, '%28').replace(/\)/g, '%29');
}

function between(low: number, high: number, downward: boolean): string {
  return brackets(downward ? `(${high}):(${low})` : `(${low}):(${high})`);
}

/**
 * ERDDAP's gridded data. Both a point outside the axes and a dataset that is gone get a 404 with a block of text; only
 * the first means "no data". https://coastwatch.pfeg.noaa.gov/erddap/griddap/documentation.html
 */
export const erddap = defineUpstream({
  name: 'erddap',
  title: 'NOAA CoastWatch ERDDAP',
  baseUrl: 'https://coastwatch.pfeg.noaa.gov/erddap',
  licence: 'NASA/NOAA public domain, credit asked: JPL MUR MEaSUREs Project',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: 'JPL MUR MEaSUREs Project; NOAA CoastWatch',
    url: 'https://coastwatch.pfeg.noaa.gov/erddap',
  },
  key: 'none',
  settings: {
    [CHLOROPHYLL_DATASET]: {
      describe: `The dataset of NOAA CoastWatch ERDDAP whose \`${CHLOROPHYLL.variable}\` is sold as chlorophyll; \`${CHLOROPHYLL.defaultDataset}\` unless set`,
      required: false,
      check: (value) => (/^\w{1,80}$/.test(value) ? null : 'must be the id of a dataset'),
    },
  },
  requestsPerMinute: 60,
  timeoutMs: 18_000,
  open: (http) => ({
    /**
     * The measured cells in a box around a point: of `day` (YYYY-MM-DD), or of the newest days. Null when time or place
     * lie outside the dataset. `times` are the analyses that were searched, oldest first.
     */
    async chlorophyll(asked: { lat: number; lon: number; day: string | null }) {
      const dataset = http.settings[CHLOROPHYLL_DATASET] ?? CHLOROPHYLL.defaultDataset;
      const { value: grid } = await http.get({
        path: `/info/${dataset}/index.json`,
        schema: axes,
        freshMs: 3_600_000,
        staleMs: 23 * 3_600_000,
      });
      // The middle of a cell is half a cell away from the edge of the axis.
      const reach = CHLOROPHYLL.reachDegrees;
      const side = (middle: number, bound: number, by: number) =>
        Math.round(Math.max(-bound, Math.min(bound, middle + by)) * 1e4) / 1e4;
      const bounds: Record<string, string> = {
        time:
          asked.day === null
            ? brackets(`last-${CHLOROPHYLL.newestDays - 1}:last`)
            : axis(`${asked.day}T12:00:00Z`),
        latitude: between(side(asked.lat, 89.7, -reach), side(asked.lat, 89.7, reach), grid.southward),
        longitude: between(side(asked.lon, 179.95, -reach), side(asked.lon, 179.95, reach), false),
      };
      const reply = await http.find({
        path: `/griddap/${dataset}.json?${CHLOROPHYLL.variable}${grid.names.map((name) => bounds[name] ?? axis('0.0')).join('')}`,
        schema: chlorophyll,
        freshMs: asked.day === null ? 3_600_000 : 6 * 3_600_000,
        staleMs: 18 * 3_600_000,
      });
      return { ...reply, cellDegrees: grid.cellDegrees };
    },

    /**
     * Sea surface temperature at the grid cell nearest to a point. `day` is YYYY-MM-DD, or null for the newest.
     * Null when time or place lie outside the dataset.
     */
    async seaSurfaceTemperature(asked: {
      lat: number;
      lon: number;
      day: string | null;
    }): Promise<Reply<SeaSurfaceCell | null>> {
      const time = asked.day === null ? 'last' : `${asked.day}${SST_DATASET.hourUtc}`;
      // The axis runs from -179.99 to 180: the antimeridian is there only once.
      const lon = asked.lon < -179.99 ? 180 : asked.lon;
      const reply = await http.find({
        path: `/griddap/${SST_DATASET.id}.json?${SST_DATASET.variable}${axis(time)}${axis(asked.lat)}${axis(lon)}`,
        schema: seaSurface,
        freshMs: asked.day === null ? 3_600_000 : 6 * 3_600_000,
        staleMs: 18 * 3_600_000,
      });
      if (reply.value === null) {
        const info = await http.find({
          path: `/info/${SST_DATASET.id}/index.json`,
          schema: table,
          freshMs: 3_600_000,
          staleMs: 0,
        });
        if (info.value === null) {
          throw sourceUnavailable(
            'erddap',
            'invalid_reply',
            `ERDDAP no longer has the dataset ${SST_DATASET.id}`,
          );
        }
      }
      return { ...reply, source: { ...reply.source, asOf: reply.value?.time ?? null } };
    },
  }),
  probe: (api) => api.seaSurfaceTemperature({ lat: 0, lon: -140, day: null }),
});
