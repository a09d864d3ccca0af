/** What the APIs of Open-Meteo have in common: columns beside their times, and the cell that was taken. */
import { z } from 'zod';

/**
 * https://open-meteo.com/en/terms: the free addresses are for non-commercial use. Selling needs a contract, which comes
 * with a key.
 */
export const OPEN_METEO_KEY = (apiKey: string) => ({ query: { apikey: apiKey } });

/** ISO 8601 without a zone, which means GMT unless another was asked for. */
const time = z.string().regex(/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2})?$/);
const column = z.array(z.number().nullable()).max(20_000);

/**
 * A reply of one kind: `daily`, with its times and the columns that were asked for. Every column must be there, be as long as
 * the times, and have its unit.
 *
 * @param units the columns, with the unit that each must have
 */
export function dailyColumns<Name extends string>(units: Readonly<Record<Name, string>>) {
  const names = Object.keys(units) as Name[];
  return z
    .looseObject({
      latitude: z.number().min(-90).max(90),
      longitude: z.number().min(-180).max(180),
      daily_units: z.record(z.string(), z.string()),
      daily: z.looseObject({ time: z.array(time).max(20_000) }),
    })
    .transform((raw, context) => {
      const columns = {} as Record<Name, (number | null)[]>;
      for (const name of names) {
        const read = column.safeParse(raw.daily[name]);
        if (
          !read.success ||
          read.data.length !== raw.daily.time.length ||
          raw.daily_units[name] !== units[name]
        ) {
          context.addIssue({ code: 'custom', message: `${name}: not a column in ${units[name]}` });
          return z.NEVER;
        }
        columns[name] = read.data;
      }
      return { lat: raw.latitude, lon: raw.longitude, times: raw.daily.time, columns };
    });
}

export interface OpenMeteoCurrent<Name extends string> {
  /** The middle of the model's cell. */
  lat: number;
  lon: number;
  /** ISO 8601. */
  at: string;
  values: Record<Name, number | null>;
}

/**
 * A reply of one moment: `current`. Every value must be there, if only as null, and have its unit.
 *
 * @param units the values, with the unit that each must have
 */
export function currentValues<Name extends string>(units: Readonly<Record<Name, string>>) {
  const names = Object.keys(units) as Name[];
  return z
    .looseObject({
      latitude: z.number().min(-90).max(90),
      longitude: z.number().min(-180).max(180),
      utc_offset_seconds: z.literal(0),
      current_units: z.record(z.string(), z.string()),
      current: z.looseObject({ time }),
    })
    .transform((raw, context): OpenMeteoCurrent<Name> => {
      const values = {} as Record<Name, number | null>;
      for (const name of names) {
        const read = z.number().nullable().safeParse(raw.current[name]);
        if (!read.success || raw.current_units[name] !== units[name]) {
          context.addIssue({ code: 'custom', message: `${name}: not a number in ${units[name]}` });
          return z.NEVER;
        }
        values[name] = read.data;
      }
      const at = new Date(`${raw.current.time}Z`).toISOString();
      return { lat: raw.latitude, lon: raw.longitude, at, values };
    });
}
