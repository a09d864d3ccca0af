/** The form of a device's report, and the times that it may claim. */
import { createHash } from 'node:crypto';
import { readJson } from '@farebox/core/http/json-text';
import { z } from 'zod';

/** The size of one report, whichever way it comes. */
export const MAX_REPORT_BYTES = 16_384;
const MAX_READINGS = 100;
/** How far a device's clock may be ahead of ours. */
export const CLOCK_SKEW_MS = 300_000;

export interface Reading {
  /** When it was measured, by the device's clock. */
  atMs: number;
  /**
   * With the time it tells one reading from another: the same again is the same. The device's own, or a space and a hash of
   * the reading, which no device can give.
   */
  key: string;
  /** The values by sensor, each in its unit. */
  measured: Readonly<Record<string, number>>;
  lat: number | null;
  lon: number | null;
}

/** Why a report was refused. Nothing of it was stored. */
export class ReportRefused extends Error {
  readonly code: string;
  /** Could be taken once the device has this sensor. */
  readonly sensor: string | null;
  /** Could be taken from then on. */
  readonly dueAtMs: number | null;
  constructor(code: string, message: string, later: { sensor?: string; dueAtMs?: number } = {}) {
    super(message);
    this.name = 'ReportRefused';
    this.code = code;
    this.sensor = later.sensor ?? null;
    this.dueAtMs = later.dueAtMs ?? null;
  }
}

/** The circumstances that a report is read in: the sensors of its device, and the time. */
export interface ReadFor {
  sensors: Readonly<Record<string, string>>;
  /** How old a reading may be when it comes. */
  backfillMs: number;
  nowMs: number;
  /** When it came, where that was before now. */
  cameAtMs?: number;
}

const position = z.strictObject({
  lat: z.number().min(-90).max(90),
  lon: z.number().min(-180).max(180),
});

const reading = z
  .strictObject({
    at: z.iso.datetime({ offset: true }),
    key: z
      .string()
      .regex(/^[!-~]{1,64}$/, 'must be 1 to 64 printable ASCII characters without spaces')
      .optional(),
    values: z.record(z.string(), z.number().min(-1e15).max(1e15)).optional(),
    position: position.optional(),
  })
  .refine(
    ({ values, position: place }) => Object.keys(values ?? {}).length > 0 || place !== undefined,
    'must hold values, a position, or both',
  );
const report = z.union([reading.transform((one) => [one]), z.array(reading).min(1).max(MAX_READINGS)]);

/**
 * Reads a report: a reading, or an array of them.
 *
 * @throws ReportRefused with what is wrong, and where
 */
export function readReport(body: Buffer, device: ReadFor): Reading[] {
  const { nowMs, cameAtMs = nowMs } = device;
  if (body.length > MAX_REPORT_BYTES)
    throw new ReportRefused('REPORT_TOO_LARGE', `A report may have ${MAX_REPORT_BYTES} bytes.`);
  const parsed = report.safeParse(jsonOf(body));
  if (!parsed.success) throw new ReportRefused('REPORT_INVALID', sayFirst(parsed.error));
  return parsed.data.map(({ at, key, values = {}, position: place }, index) => {
    const where = `reading ${index}`;
    const unknown = Object.keys(values).find((name) => !Object.hasOwn(device.sensors, name));
    if (unknown !== undefined)
      throw new ReportRefused(
        'SENSOR_UNKNOWN',
        `${where}: the device has no sensor ${JSON.stringify(unknown.slice(0, 32))}.`,
        { sensor: unknown },
      );
    const atMs = Date.parse(at);
    if (atMs > nowMs + CLOCK_SKEW_MS)
      throw new ReportRefused(
        'CLOCK_AHEAD',
        `${where}: at is in the future; here it is ${new Date(nowMs).toISOString()}.`,
        { dueAtMs: atMs - CLOCK_SKEW_MS },
      );
    if (atMs < cameAtMs - device.backfillMs)
      throw new ReportRefused(
        'READING_TOO_OLD',
        `${where}: at is more than ${device.backfillMs / 3_600_000} hours ago; here it is ${new Date(nowMs).toISOString()}.`,
      );
    const told = { measured: values, lat: place?.lat ?? null, lon: place?.lon ?? null };
    return { atMs, key: key ?? keyOf(at, told), ...told };
  });
}

/**
 * Makes the key that tells readings of one millisecond apart where the device gives them no keys: all that they hold, whatever
 * the order of its sensors, and the digits of their time below the millisecond.
 */
function keyOf(at: string, { measured, lat, lon }: Pick<Reading, 'measured' | 'lat' | 'lon'>): string {
  const [, belowMs = ''] = /\.\d{3}(\d*?)0*(?:Z|[+-])/.exec(at) ?? [];
  const sensors = Object.entries(measured).sort(([one], [other]) => (one < other ? -1 : 1));
  const told = JSON.stringify([belowMs, sensors, lat, lon]);
  return ` ${createHash('sha256').update(told).digest('base64url')}`;
}

function jsonOf(body: Buffer): unknown {
  try {
    return readJson(body);
  } catch {
    throw new ReportRefused('REPORT_INVALID', 'The report is not JSON in UTF-8.');
  }
}

function sayFirst({ issues }: z.ZodError): string {
  const [first] = issues;
  const inner =
    first?.code === 'invalid_union' ? first.errors.flat().find(({ path }) => path.length > 0) : first;
  const at = inner?.path.map(String).join('.').slice(0, 80) ?? '';
  return `${at === '' ? 'report' : at}: ${inner?.message ?? 'invalid'}`;
}
