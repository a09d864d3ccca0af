import { z } from 'zod';
import { sourceUnavailable } from '../words/failure.ts';
import type { Reply } from './define.ts';
import { defineUpstream } from './define.ts';

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

/** The cell of the grid that the dataset has nearest to the point asked for. */
export interface SeaSurfaceCell {
  /** ISO 8601: the analysis that the value belongs to, which may differ from what was asked. */
  time: string;
  lat: number;
  lon: number;
  /** Degrees Celsius; null where the grid is masked: land, mostly. */
  celsius: number | null;
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

/** The brackets of a griddap query, which many servers refuse unless they are percent-encoded. */
function axis(value: string | number): string {
  return encodeURIComponent(`[(${value})]`).replace(/\(/g, '%28').replace(/\)/g, '%29');
}

/**
 * ERDDAP's gridded data. A point outside the axes is a 404 with a block of text, and so is a dataset that is gone:
 * only the first is "no data". https://coastwatch.pfeg.noaa.gov/erddap/griddap/documentation.html
 */
export const erddap = defineUpstream({
  name: 'erddap',
  title: 'NOAA CoastWatch ERDDAP',
  baseUrl: 'https://coastwatch.pfeg.noaa.gov/erddap',
  licence: 'NASA/NOAA public domain, credit asked: JPL MUR MEaSUREs Project',
  key: 'none',
  requestsPerMinute: 60,
  timeoutMs: 18_000,
  open: (http) => ({
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
