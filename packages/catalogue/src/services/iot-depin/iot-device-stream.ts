import { setTimeout as sleep } from 'node:timers/promises';
import type { Piece } from '@farebox/core/service/define';
import { numberBetween, outsiderText } from '@farebox/core/service/fields';
import { type Answer, answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import { defineService } from '../define.ts';
import type { DeviceReading, ReportingDevice } from '../reported-devices.ts';
import {
  deviceId,
  isoOf,
  labelOf,
  position,
  sensorsOf,
  sensorType,
  simulated,
  sourceOf,
} from '../shared/devices/device-answer.ts';

/** How often the service looks for new readings. */
const LOOK_MS = 500;
/** The most readings of one look and of one answer. */
const MAX_READINGS = 1_000;
/** A stream ends before the longest time that a call may take. */
const MAX_STREAM_MS = 280_000;

const point = z.object({
  timestamp: z.string().describe('When it was measured (ISO 8601)'),
  cursor: z.string().describe('Of this reading: what came after it begins here'),
  values: z.record(z.string(), z.number()).describe('By sensor, in its unit'),
  position,
});

interface Input {
  deviceId: string;
  sensorType: string;
  durationSeconds: number;
  cursor?: string | undefined;
}

const summary = z.object({
  data: z
    .object({
      streamId: z.string().describe('Names this call'),
      deviceId: z.string().describe('The device'),
      duration: z.number().describe('Seconds that were asked for; those before now without stream'),
      units: z.record(z.string(), outsiderText(60)).describe('The unit of each sensor'),
      dataPoints: z
        .array(point)
        .describe('In the order in which they were stored; empty in a stream, whose events they were'),
      count: z.number().int().describe('Readings that were told'),
      sampleRate: z
        .number()
        .nullable()
        .describe('Readings a second between the first and the last; null below two'),
      encoding: z.literal('json').describe('Of dataPoints'),
      cursor: z
        .string()
        .describe('Where the next call goes on: what came after the last reading that was told'),
      simulated,
    })
    .describe('What the device reported'),
  poweredBy: z.string().describe('Whose data it is'),
});
type Fields = z.input<typeof summary>;

export default defineService({
  path: 'iot-device-stream',
  name: 'IoT Device Stream',
  tag: 'IoT & DePIN',
  priceUsd: '0.10',
  summary:
    'Readings of a device as they come in, as server-sent events; or those of the last seconds, with a cursor to go on from.',
  keywords:
    'stream streaming live feed realtime real time real-time continuous subscribe watch device sensor readings events follow push sse as they come incoming monitor updates',
  input: z.object({
    deviceId,
    sensorType,
    durationSeconds: numberBetween(
      1,
      300,
      'Seconds that the stream lasts; without stream, seconds before now',
    ).default(60),
    cursor: z
      .string()
      .regex(/^\d{1,15}$/, 'must be the cursor of an earlier answer')
      .optional()
      .describe('Go on after this reading, in place of durationSeconds before now'),
    stream: z.boolean().optional().describe('True: server-sent events as readings come in'),
  }),
  output: summary,
  example: { deviceId: 'iot-device-001', durationSeconds: 60 },
  aliases: {
    device: 'deviceId',
    id: 'deviceId',
    sensor: 'sensorType',
    duration: 'durationSeconds',
    seconds: 'durationSeconds',
  },
  requires: ['devices'],
  async run(input, { devices, call, nowMs }) {
    const device = await devices.forCall(call.callId, input.deviceId);
    const sensors = sensorsOf(device, input.sensorType);
    const toMs = nowMs();
    const fromMs = toMs - input.durationSeconds * 1_000;
    const readings =
      input.cursor === undefined
        ? await devices.range(device.deviceId, { fromMs, toMs, sensor: null, limit: MAX_READINGS })
        : await devices.after(device.deviceId, Number(input.cursor), MAX_READINGS);
    const told = readings.filter((reading) => hasOne(reading, sensors));
    // The cursor is past everything that was looked at, including readings without the sensor.
    const cursor = Math.max(
      Number(input.cursor ?? (await devices.lastSeq(device.deviceId))),
      ...readings.map(({ seq }) => seq),
    );
    return made(input, device, {
      told,
      cursor,
      streamId: call.callId,
      sensors,
      nowMs: toMs,
      isStream: false,
    });
  },
  stream: {
    field: 'stream',
    timeoutMs: 300_000,
    async *run(input, { devices, call, nowMs, signal }): AsyncGenerator<Piece, Answer<Fields>> {
      const device = await devices.forCall(call.callId, input.deviceId);
      const sensors = sensorsOf(device, input.sensorType);
      let cursor = Number(input.cursor ?? (await devices.lastSeq(device.deviceId)));
      const untilMs = nowMs() + Math.min(input.durationSeconds * 1_000, MAX_STREAM_MS);
      const told: DeviceReading[] = [];
      yield {
        event: 'open',
        data: { deviceId: device.deviceId, cursor: String(cursor), ...labelOf(device) },
      };
      for (;;) {
        const isLast = nowMs() >= untilMs;
        for (const reading of await devices.after(device.deviceId, cursor, MAX_READINGS)) {
          cursor = reading.seq;
          if (!hasOne(reading, sensors)) continue;
          told.push(reading);
          yield { event: 'reading', data: pointOf(reading, sensors) };
        }
        if (isLast) break;
        await sleep(Math.max(1, Math.min(LOOK_MS, untilMs - nowMs())), undefined, { signal });
      }
      return made(input, device, {
        told,
        cursor,
        streamId: call.callId,
        sensors,
        nowMs: nowMs(),
        isStream: true,
      });
    },
  },
});

const hasOne = ({ values }: DeviceReading, sensors: readonly string[]) =>
  sensors.length === 0 || sensors.some((sensor) => sensor in values);

function pointOf({ atMs, seq, values, position: place }: DeviceReading, sensors: readonly string[]) {
  return {
    timestamp: isoOf(atMs),
    cursor: String(seq),
    values: Object.fromEntries(
      sensors.flatMap((name) => (name in values ? [[name, values[name] ?? 0]] : [])),
    ),
    position: place,
  };
}

function made(
  input: Input,
  device: ReportingDevice,
  about: {
    told: readonly DeviceReading[];
    cursor: number;
    streamId: string;
    sensors: readonly string[];
    nowMs: number;
    isStream: boolean;
  },
): Answer<Fields> {
  const { told, sensors } = about;
  const times = told.map(({ atMs }) => atMs);
  const spanMs = told.length < 2 ? 0 : Math.max(...times) - Math.min(...times);
  return answer(
    {
      data: {
        streamId: about.streamId,
        deviceId: device.deviceId,
        duration: input.durationSeconds,
        units: Object.fromEntries(sensors.map((name) => [name, device.sensors[name] ?? ''])),
        dataPoints: about.isStream ? [] : told.map((reading) => pointOf(reading, sensors)),
        count: told.length,
        sampleRate: spanMs === 0 ? null : Math.round(((told.length - 1) / spanMs) * 1e6) / 1e3,
        encoding: 'json' as const,
        cursor: String(about.cursor),
        ...labelOf(device),
      },
      poweredBy: 'the device’s owner',
    },
    {
      method: 'Readings in the order in which they were stored, as the device reported them.',
      sources: [sourceOf(device, told.at(-1), about.nowMs)],
      notes: [
        ...(told.length === 0 ? ['The device reported nothing in this time.'] : []),
        ...(told.length === MAX_READINGS ? ['There are more: go on from cursor.'] : []),
        ...(about.isStream && input.durationSeconds * 1_000 > MAX_STREAM_MS
          ? [`A stream lasts ${MAX_STREAM_MS / 1_000} s at most: go on from cursor.`]
          : []),
      ],
    },
  );
}
