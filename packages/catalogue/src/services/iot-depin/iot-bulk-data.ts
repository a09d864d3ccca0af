import { outsiderText } from '@farebox/core/service/fields';
import { noAnswer, ServiceFailure } from '@farebox/core/words/failure';
import { z } from 'zod';
import { defineService } from '../define.ts';
import { statisticAnswer } from '../figures.ts';
import { EXPORT_FORMATS } from '../reported-devices.ts';
import {
  assertReported,
  deviceId,
  isoOf,
  labelOf,
  sensorsOf,
  sensorType,
  simulated,
  sourceOf,
} from '../shared/devices/device-answer.ts';

const DAY_MS = 86_400_000;
/** The most records of one call. A file with this many, with every possible sensor, can still be stored. */
const MAX_RECORDS = 50_000;

const moment = (description: string) =>
  z
    .union([z.iso.date(), z.iso.datetime({ offset: true })])
    .optional()
    .describe(description);

export default defineService({
  path: 'iot-bulk-data',
  name: 'IoT Bulk Data Export',
  tag: 'IoT & DePIN',
  priceUsd: '0.25',
  summary:
    'All readings of a device over a span of time, as a JSON, CSV or Parquet file to download for a day.',
  keywords:
    'bulk export download history historical csv parquet json archive all data device readings measurements year month past file dump table spreadsheet log logs range time series',
  input: z.object({
    deviceId,
    startDate: moment('Day (UTC) or time, ISO 8601; a day before endDate unless given'),
    endDate: moment('Day (UTC, to its end) or time, ISO 8601; now unless given'),
    format: z
      .preprocess(
        (value) => (typeof value === 'string' ? value.toLowerCase() : value),
        z.enum(EXPORT_FORMATS),
      )
      .default('json')
      .describe('Of the file'),
    sensorType,
  }),
  output: z.object({
    data: z
      .object({
        exportId: z.string().describe('Names the file'),
        deviceId: z.string().describe('The device'),
        timeRange: z
          .object({
            from: z.string().describe('Beginning (ISO 8601)'),
            to: z.string().describe('End (ISO 8601)'),
          })
          .describe('The time that was asked for'),
        recordCount: z.number().int().describe('Readings in the file'),
        format: z.enum(EXPORT_FORMATS).describe('Of the file'),
        sizeBytes: z.number().int().describe('Of the file'),
        sha256: z.string().describe('Of the file’s bytes, in hex'),
        summary: z
          .object({
            firstAt: z.string().describe('Oldest measurement (ISO 8601)'),
            lastAt: z.string().describe('Newest measurement (ISO 8601)'),
            sensors: z
              .array(
                z.object({
                  sensorType: z.string().describe('The sensor'),
                  unit: outsiderText(60).describe('In what'),
                  count: z.number().int().describe('Readings that have it'),
                  min: z.number().describe('Smallest value'),
                  max: z.number().describe('Largest value'),
                  mean: z.number().describe('Arithmetic mean of the values'),
                }),
              )
              .describe('Of each sensor that reported in this time'),
          })
          .describe('Of what is in the file'),
        downloadUrl: z.string().describe('GET: the file, for whoever has this address'),
        expiresAt: z.string().describe('Until when it can be downloaded (ISO 8601)'),
        simulated,
      })
      .describe('The file'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { deviceId: 'iot-device-001', format: 'csv' },
  aliases: {
    device: 'deviceId',
    id: 'deviceId',
    sensor: 'sensorType',
    from: 'startDate',
    dateStart: 'startDate',
    to: 'endDate',
    dateEnd: 'endDate',
  },
  requires: ['devices'],
  async run(input, { devices, call, nowMs }) {
    const { fromMs, toMs } = spanOf(input, nowMs());
    const device = await devices.forCall(call.callId, input.deviceId);
    const sensors = sensorsOf(device, input.sensorType);
    const sensor = input.sensorType === 'all' ? null : input.sensorType;
    const span = { fromMs, toMs, sensor, limit: MAX_RECORDS + 1 };
    const readings = await devices.range(device.deviceId, span);
    if (readings.length > MAX_RECORDS)
      throw noAnswer(
        'RANGE_TOO_LARGE',
        `There are more than ${MAX_RECORDS} readings in this time. Ask for less of it: the first ${MAX_RECORDS} end at ${isoOf(readings[MAX_RECORDS - 1]?.atMs ?? toMs)}.`,
        'endDate',
      );
    const first = assertReported(readings[0]);
    const last = readings.at(-1) ?? first;
    const file = await devices.exportAs(input.format, device, readings, sensors);
    return statisticAnswer(
      {
        data: {
          exportId: file.exportId,
          deviceId: device.deviceId,
          timeRange: { from: isoOf(fromMs), to: isoOf(toMs) },
          recordCount: readings.length,
          format: input.format,
          sizeBytes: file.sizeBytes,
          sha256: file.sha256,
          summary: {
            firstAt: isoOf(first.atMs),
            lastAt: isoOf(last.atMs),
            sensors: sensors.flatMap((name) => {
              const values = readings.flatMap(({ values: { [name]: value } }) => value ?? []);
              return values.length === 0
                ? []
                : [{ sensorType: name, unit: device.sensors[name] ?? '', ...statistics(values) }];
            }),
          },
          downloadUrl: file.downloadUrl,
          expiresAt: isoOf(file.expiresAtMs),
          ...labelOf(device),
        },
        poweredBy: 'the device’s owner',
      },
      {
        method: `Every reading that was measured from the beginning to the end of the time, by the device’s clock. Readings are kept for ${devices.retentionDays} days.`,
        sources: [sourceOf(device, last, nowMs())],
      },
    );
  },
});

/** @throws ServiceFailure 400 when the span ends before it begins */
function spanOf(
  { startDate, endDate }: { startDate?: string | undefined; endDate?: string | undefined },
  nowMs: number,
): { fromMs: number; toMs: number } {
  const isDay = (text: string) => !text.includes('T');
  const toMs = endDate === undefined ? nowMs : Date.parse(endDate) + (isDay(endDate) ? DAY_MS - 1 : 0);
  const fromMs = startDate === undefined ? toMs - DAY_MS : Date.parse(startDate);
  if (fromMs <= toMs) return { fromMs, toMs };
  throw new ServiceFailure({
    status: 400,
    code: 'INVALID_REQUEST',
    message: 'startDate: must not be after endDate.',
    field: 'startDate',
  });
}

function statistics(values: readonly number[]) {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let sum = 0;
  for (const value of values) {
    min = Math.min(min, value);
    max = Math.max(max, value);
    sum += value;
  }
  return { count: values.length, min, max, mean: sum / values.length };
}
