import { outsiderText } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import { defineService } from '../define.ts';
import {
  assertReported,
  deviceId,
  isoOf,
  labelOf,
  position,
  QUALITY,
  quality,
  sensorsOf,
  sensorType,
  simulated,
  sourceOf,
} from '../shared/devices/device-answer.ts';

const reading = z.object({
  sensorType: z.string().describe('The sensor'),
  value: z.number().describe('What it measured'),
  unit: outsiderText(60).describe('In what, as the device’s owner declared; boolean: 1 is yes'),
  timestamp: z.string().describe('When it was measured, by the device’s clock (ISO 8601)'),
  receivedAt: z.string().describe('When this server stored it (ISO 8601)'),
});

export default defineService({
  path: 'iot-sensor-reading',
  name: 'IoT Sensor Reading',
  tag: 'IoT & DePIN',
  priceUsd: '0.05',
  featured: true,
  summary:
    'The latest value that a registered device reported, of one sensor or of all, with its unit and time.',
  keywords:
    'sensor sensors iot device reading latest current value temperature thermometer humidity greenhouse room home smart meter measure measured measurement motion co2 pressure last warehouse fridge gauge cold storage freezer office basement soil probe tank',
  input: z.object({ deviceId, sensorType }),
  output: z.object({
    data: z
      .object({
        deviceId: z.string().describe('The device'),
        sensorType: z.string().describe('As asked'),
        value: z.number().nullable().describe('Of the sensor that was asked for; null when all were'),
        unit: outsiderText(60).nullable().describe('Of value'),
        timestamp: z.string().describe('When the newest of readings was measured (ISO 8601)'),
        quality,
        readings: z.array(reading).describe('One for each sensor that has reported'),
        position,
        metadata: z
          .object({
            name: outsiderText(200).nullable().describe('What its owner calls it'),
            fleetId: z.string().nullable().describe('The fleet that it belongs to'),
            ageSeconds: z.number().describe('From the newest measurement until now'),
          })
          .describe('Of the device'),
        simulated,
      })
      .describe('What the device reported last'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { deviceId: 'iot-device-001', sensorType: 'all' },
  aliases: { device: 'deviceId', id: 'deviceId', sensor: 'sensorType', type: 'sensorType' },
  requires: ['devices'],
  async run(input, { devices, call, nowMs }) {
    const device = await devices.forCall(call.callId, input.deviceId);
    const names = sensorsOf(device, input.sensorType);
    const latest = await Promise.all(
      names.map(async (sensor) => ({ sensor, reading: await devices.last(device.deviceId, [sensor]) })),
    );
    const found = latest.flatMap(({ sensor, reading: last }) =>
      last === null ? [] : [{ sensor, last, value: last.values[sensor] ?? Number.NaN }],
    );
    const newest = assertReported(found.toSorted((a, b) => b.last.atMs - a.last.atMs)[0]);
    const one = input.sensorType === 'all' ? undefined : newest;
    const silent = names.filter((sensor) => !found.some((each) => each.sensor === sensor));
    return answer(
      {
        data: {
          deviceId: device.deviceId,
          sensorType: input.sensorType,
          value: one?.value ?? null,
          unit: one === undefined ? null : (device.sensors[one.sensor] ?? null),
          timestamp: isoOf(newest.last.atMs),
          quality: QUALITY as typeof QUALITY,
          readings: found.map(({ sensor, last, value }) => ({
            sensorType: sensor,
            value,
            unit: device.sensors[sensor] ?? '',
            timestamp: isoOf(last.atMs),
            receivedAt: isoOf(last.receivedAtMs),
          })),
          position: newest.last.position ?? device.place,
          metadata: {
            name: device.name,
            fleetId: device.fleetId,
            ageSeconds: Math.max(0, Math.round((nowMs() - newest.last.atMs) / 1_000)),
          },
          ...labelOf(device),
        },
        poweredBy: 'the device’s owner',
      },
      {
        method: 'The latest reading by the device’s clock, for each sensor.',
        sources: [sourceOf(device, newest.last, nowMs())],
        notes: silent.length === 0 ? [] : [`Nothing was reported by: ${silent.join(', ')}.`],
      },
    );
  },
});
