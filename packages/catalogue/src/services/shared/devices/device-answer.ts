/** What answers about devices have in common: the form of their readings, and their source. */

import type { Source } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { DeviceReading, ReportingDevice } from '../../reported-devices.ts';

export const isoOf = (atMs: number) => new Date(atMs).toISOString();

/** A device's name, as it was registered. */
export const deviceId = z
  .string()
  .trim()
  .regex(/^[a-z0-9][a-z0-9_-]{2,63}$/, 'must be a device’s id: 3 to 64 of a-z, 0-9, - and _')
  .describe('The device’s id, as it was registered');

/** A sensor by name; null: all. Clients write `all` for that. */
export const sensorType = z
  .string()
  .trim()
  .regex(/^[a-zA-Z0-9]{1,32}$/, 'must be a sensor’s name, such as temperature, or all')
  .default('all')
  .describe('temperature, humidity, pressure, co2, motion, light, vibration or another sensor; or all');

export const simulated = z
  .literal(true)
  .optional()
  .describe('There when the readings are made up, by the word of the device’s owner');

export const QUALITY = 'reported';
export const quality = z
  .literal(QUALITY)
  .describe('As the device reported it under its own credential; nobody has checked the sensor');

export const position = z
  .object({ lat: z.number().describe('Degrees north'), lon: z.number().describe('Degrees east') })
  .nullable()
  .describe('Where the device was, by its own word; else where its owner says it stands; else null');

/** The requested sensors. @throws noAnswer when the device has no such sensor */
export function sensorsOf(device: ReportingDevice, asked: string): string[] {
  const all = Object.keys(device.sensors);
  if (asked === 'all') return all;
  if (all.includes(asked)) return [asked];
  throw noAnswer(
    'SENSOR_NOT_THERE',
    `This device has ${all.length === 0 ? 'no sensors' : all.join(', ')}, and no ${asked}.`,
    'sensorType',
  );
}

/** @throws noAnswer when nothing of what was requested was reported within the retention time */
export function assertReported<T>(found: T | null | undefined): T {
  if (found !== null && found !== undefined) return found;
  throw noAnswer('NO_READINGS', 'The device reported nothing of this kind in the requested time.');
}

/** The device as a source. @param latest its latest reading that the answer holds */
export function sourceOf(device: ReportingDevice, latest: DeviceReading | undefined, nowMs: number): Source {
  return {
    name: 'device',
    url: `urn:device:${device.deviceId}`,
    asOf: latest === undefined ? null : isoOf(latest.atMs),
    retrievedAt: isoOf(latest?.receivedAtMs ?? nowMs),
    cached: false,
    sandbox: device.simulated,
  };
}

/** `{ simulated: true }` when a device's readings are simulated. */
export function labelOf(...devices: readonly ReportingDevice[]): { simulated?: true } {
  return devices.some((device) => device.simulated) ? { simulated: true } : {};
}
