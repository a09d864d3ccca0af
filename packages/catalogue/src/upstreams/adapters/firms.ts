import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';

/** Satellites whose detections come within hours. `days`: what may be asked for at once. */
export const FIRMS_MAX_DAYS = 5;
export const FIRMS_SATELLITES = [
  'VIIRS_SNPP_NRT',
  'VIIRS_NOAA20_NRT',
  'VIIRS_NOAA21_NRT',
  'MODIS_NRT',
] as const;
export type FirmsSatellite = (typeof FIRMS_SATELLITES)[number];

export interface FireDetection {
  lat: number;
  lon: number;
  /** Brightness temperature in kelvin: channel I-4 of VIIRS, 21 or 22 of MODIS. */
  brightnessKelvin: number;
  /** Fire radiative power in megawatts; null where it could not be retrieved. */
  frpMw: number | null;
  /** `low`, `nominal` or `high`; MODIS gives percent, which are read as NASA reads them: below 30, below 80. */
  confidence: 'low' | 'nominal' | 'high';
  /** As the source has it: a letter or percent. */
  confidenceAsGiven: string;
  satellite: string;
  instrument: string;
  /** ISO 8601, to the minute. */
  at: string;
  daynight: 'day' | 'night' | null;
  /** Size of the pixel across and along the track, in kilometers. */
  scanKm: number;
  trackKm: number;
}

const MAX_ROWS = 120_000;

const decimal = z
  .string()
  .regex(/^-?\d+(\.\d+)?$/)
  .transform(Number);
const row = z
  .looseObject({
    latitude: decimal.pipe(z.number().min(-90).max(90)),
    longitude: decimal.pipe(z.number().min(-180).max(180)),
    bright_ti4: decimal.optional(),
    brightness: decimal.optional(),
    frp: decimal.or(z.literal('').transform(() => Number.NaN)),
    scan: decimal,
    track: decimal,
    acq_date: z.iso.date(),
    // HHMM in UTC without leading zeros: 7 is 00:07.
    acq_time: z.string().regex(/^\d{1,4}$/),
    satellite: z.string(),
    instrument: z.string(),
    confidence: z.string().regex(/^([lnh]|low|nominal|high|\d{1,3})$/),
    daynight: z.string().optional(),
  })
  .transform((raw, context): FireDetection => {
    const brightnessKelvin = raw.bright_ti4 ?? raw.brightness;
    const time = raw.acq_time.padStart(4, '0');
    const at = Date.parse(`${raw.acq_date}T${time.slice(0, 2)}:${time.slice(2)}:00Z`);
    if (brightnessKelvin === undefined || Number.isNaN(at)) {
      context.addIssue({ code: 'custom', message: 'no brightness or no time' });
      return z.NEVER;
    }
    return {
      lat: raw.latitude,
      lon: raw.longitude,
      brightnessKelvin,
      frpMw: raw.frp >= 0 ? raw.frp : null,
      confidence: confidenceOf(raw.confidence),
      confidenceAsGiven: raw.confidence,
      satellite: raw.satellite,
      instrument: raw.instrument,
      at: new Date(at).toISOString(),
      daynight: raw.daynight === 'D' ? 'day' : raw.daynight === 'N' ? 'night' : null,
      scanKm: raw.scan,
      trackKm: raw.track,
    };
  });

function confidenceOf(given: string): FireDetection['confidence'] {
  const percent = Number(given);
  if (Number.isNaN(percent))
    return given.startsWith('l') ? 'low' : given.startsWith('h') ? 'high' : 'nominal';
  return percent < 30 ? 'low' : percent < 80 ? 'nominal' : 'high';
}

/** CSV without quotes. Errors come as a line of text with any status, so the first line must be the header. */
const detections = z.string().transform((content, context): FireDetection[] => {
  const [head = '', ...lines] = content.trimEnd().split(/\r?\n/);
  const names = head.split(',');
  const fail = (message: string) => {
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
  if (!head.startsWith('latitude,longitude,')) return fail('not the header of a list of fires');
  if (lines.length > MAX_ROWS) return fail('too many rows');
  const fires: FireDetection[] = [];
  for (const line of lines) {
    if (line === '') continue;
    const cells = line.split(',');
    const read = row.safeParse(Object.fromEntries(names.map((name, at) => [name, cells[at]])));
    if (!read.success || cells.length !== names.length) return fail('a row that is no detection');
    fires.push(read.data);
  }
  return fires;
});

/**
 * NASA FIRMS: fires that satellites saw, by area and day. The key stands in the path.
 * https://firms.modaps.eosdis.nasa.gov/api/area/
 */
export const firms = defineUpstream({
  name: 'firms',
  title: 'NASA FIRMS',
  baseUrl: 'https://firms.modaps.eosdis.nasa.gov',
  licence: 'NASA open data, credit asked: NASA FIRMS, part of ESDIS',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: 'NASA FIRMS, part of ESDIS',
    url: 'https://firms.modaps.eosdis.nasa.gov',
  },
  key: 'required',
  keyFrom: 'https://firms.modaps.eosdis.nasa.gov/api/map_key/',
  authorize: (apiKey) => ({ pathParts: { MAP_KEY: apiKey } }),
  requestsPerMinute: 120,
  timeoutMs: 12_000,
  maxReplyBytes: 24 * 1024 * 1024,
  open: (http) => ({
    /**
     * Detections in a box on `days` days in a row (1 to 5), the first of them `first` (YYYY-MM-DD, UTC). No fire is an empty
     * list.
     */
    fires(asked: {
      satellite: FirmsSatellite;
      box: { west: number; south: number; east: number; north: number };
      first: string;
      days: number;
    }): Promise<Reply<FireDetection[]>> {
      const { west, south, east, north } = asked.box;
      const area = [west, south, east, north].map((edge) => Math.round(edge * 1e4) / 1e4).join(',');
      return http.get({
        path: `/api/area/csv/MAP_KEY/${asked.satellite}/${area}/${asked.days}/${asked.first}`,
        as: 'text',
        schema: detections,
        freshMs: 600_000,
        staleMs: 3_000_000,
      });
    },
  }),
  probe: (api, nowMs) =>
    api.fires({
      satellite: 'VIIRS_SNPP_NRT',
      box: { west: 20, south: -10, east: 25, north: -5 },
      first: new Date(nowMs - 86_400_000).toISOString().slice(0, 10),
      days: 1,
    }),
});
