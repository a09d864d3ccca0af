import { limit, numberBetween, outsiderText } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { type Choice, MAX_CHOICES } from '@farebox/core/words/choices';
import { invalidInput, notFound } from '@farebox/core/words/failure';
import { z } from 'zod';
import { type Fix, MAX_GAP_MS, MOVING_KMH, STOP_MS, type Travel, travelOf } from '../../quant/trips.ts';
import { defineService } from '../define.ts';
import type { DeviceReading, ReportingDevice, ReportingDevices } from '../reported-devices.ts';
import {
  assertReported,
  deviceId,
  isoOf,
  labelOf,
  simulated,
  sourceOf,
} from '../shared/devices/device-answer.ts';
import { distanceKm } from '../shared/earth/great-circle.ts';

const HOUR_MS = 3_600_000;
/** The most positions of one vehicle: one each second for about three hours. */
const MAX_FIXES = 10_000;
/** A vehicle that was silent for this long is offline. */
const OFFLINE_MS = 900_000;
const SIGNALS = ['speed', 'heading', 'fuelLevel', 'ignition', 'odometer'];

const at = z
  .object({ lat: z.number().describe('Degrees north'), lon: z.number().describe('Degrees east') })
  .describe('A position');
const signal = (description: string) =>
  z.number().nullable().describe(`${description}; null where the vehicle has not reported it`);

const vehicle = z.object({
  vehicleId: z.string().describe('The device’s id'),
  name: outsiderText(200).nullable().describe('What its owner calls it'),
  location: at.describe('Where it was last'),
  speed: signal('Kilometers an hour'),
  heading: signal('Degrees clockwise from north'),
  fuelLevel: signal('Percent'),
  engineStatus: z
    .enum(['on', 'off'])
    .nullable()
    .describe('By its ignition; null where it does not report that'),
  odometer: signal('Kilometers'),
  status: z
    .enum(['active', 'idle', 'offline'])
    .describe('offline: silent for 15 minutes; active: its last leg moved; idle: it stood'),
  lastUpdate: z.string().describe('Of the location (ISO 8601)'),
  trips: z
    .array(
      z.object({
        startedAt: z.string().describe('ISO 8601'),
        endedAt: z.string().describe('ISO 8601'),
        distanceKm: z.number().describe('Along its positions'),
        from: at.describe('Where it began'),
        to: at.describe('Where it ended'),
        maxSpeedKmh: z.number().describe('Of its fastest leg'),
      }),
    )
    .describe('In the time asked for, oldest first'),
  distanceKm: z.number().describe('Of all trips'),
  movingSeconds: z.number().int().describe('In moving legs'),
  idleSeconds: z
    .number()
    .int()
    .nullable()
    .describe('Standing with the ignition on; null where it is not reported'),
  unknownSeconds: z.number().int().describe('Between positions that lie too far apart to say'),
});

export default defineService({
  path: 'fleet-telematics',
  name: 'Fleet Telematics',
  tag: 'IoT & DePIN',
  priceUsd: '0.10',
  featured: true,
  summary:
    'The positions of the vehicles of a fleet, with speed, fuel and ignition as reported, trips, distance and idle time.',
  keywords:
    'fleet truck trucks vehicle vehicles car cars van vans lorry lorries bus drivers driver delivery deliveries gps location position where track tracking fuel speed mileage idle route trips logistics shipment lorry fleet scooter bike boat driving speeding odometer dispatch',
  input: z.object({
    fleetId: deviceId.describe('The fleet; or give deviceId for one vehicle').optional(),
    deviceId: deviceId.describe('One vehicle, in place of fleetId').optional(),
    vehicleIds: z.array(deviceId).max(50).optional().describe('Only these of the fleet'),
    metrics: z
      .array(z.string().trim().max(40))
      .max(20)
      .optional()
      .describe('Taken from clients that send it; all that is known is answered'),
    timeRangeHours: numberBetween(
      0.1,
      168,
      'How far back trips are looked for, in hours; 24 unless given',
    ).default(24),
    limit: limit(10, 50),
  }),
  output: z.object({
    data: z
      .object({
        fleetId: z.string().nullable().describe('The fleet; null for a vehicle without one'),
        vehicles: z.array(vehicle).describe('Those that have reported a position, by id'),
        summary: z
          .object({
            totalVehicles: z.number().int().describe('Vehicles that were looked at'),
            active: z.number().int().describe('Moving'),
            idle: z.number().int().describe('Standing'),
            offline: z.number().int().describe('Silent, those that never reported among them'),
            distanceKm: z.number().describe('Of all trips of all of them'),
          })
          .describe('Of the vehicles'),
        from: z.string().describe('Beginning of the time (ISO 8601)'),
        to: z.string().describe('Its end: now'),
        simulated,
      })
      .describe('The fleet'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { fleetId: 'fleet-001', timeRangeHours: 24 },
  aliases: { fleet: 'fleetId', vehicleId: 'deviceId', vehicle: 'deviceId', hours: 'timeRangeHours' },
  requires: ['devices'],
  async run(input, { devices, call, nowMs }) {
    const toMs = nowMs();
    const fromMs = toMs - input.timeRangeHours * HOUR_MS;
    const asked = await vehiclesOf(input, devices, call.callId);
    const looked = await Promise.all(asked.map((device) => look(device, devices, { fromMs, toMs })));
    const found = looked.flatMap((each) => each ?? []);
    assertReported(found[0]);
    const count = (status: string) => found.filter(({ shown }) => shown.status === status).length;
    const cut = found.filter(({ fixes }) => fixes === MAX_FIXES).map(({ device }) => device.deviceId);
    const silent = asked.filter((device) => !found.some((each) => each.device === device));
    return answer(
      {
        data: {
          fleetId: input.fleetId ?? asked[0]?.fleetId ?? null,
          vehicles: found.map(({ shown }) => shown),
          summary: {
            totalVehicles: asked.length,
            active: count('active'),
            idle: count('idle'),
            offline: count('offline') + silent.length,
            distanceKm: rounded(found.reduce((sum, { shown }) => sum + shown.distanceKm, 0)),
          },
          from: isoOf(fromMs),
          to: isoOf(toMs),
          ...labelOf(...asked),
        },
        poweredBy: 'the fleet’s owner',
      },
      {
        method: `Two positions one after another are a leg: the great circle between them. From ${MOVING_KMH} km/h it moves. A trip is a row of moving legs with stops of up to ${STOP_MS / 60_000} minutes; over ${MAX_GAP_MS / 60_000} minutes without a position nothing is said. Idle: standing, ignition on at both ends.`,
        sources: found.map(({ device, last }) => sourceOf(device, last, toMs)),
        notes: [
          ...(cut.length === 0
            ? []
            : [
                `Only the first ${MAX_FIXES} positions of the time were looked at, of: ${cut.join(', ')}. Ask for less time.`,
              ]),
          ...(silent.length === 0
            ? []
            : [`No position was reported by: ${silent.map((device) => device.deviceId).join(', ')}.`]),
        ],
      },
    );
  },
});

interface Asked {
  fleetId?: string | undefined;
  deviceId?: string | undefined;
  vehicleIds?: string[] | undefined;
  limit: number;
}

/** @throws ServiceFailure 400 when neither a vehicle nor a fleet is given, 404 when none may be read */
async function vehiclesOf(
  input: Asked,
  devices: ReportingDevices,
  callId: string,
): Promise<ReportingDevice[]> {
  if (input.deviceId !== undefined) return [await devices.forCall(callId, input.deviceId)];
  if (input.fleetId === undefined)
    throw invalidInput(
      'fleetId',
      'fleetId: give a fleet, or deviceId for one vehicle.',
      await fleetsOf(devices),
    );
  const { vehicleIds } = input;
  const all = await devices.fleetForCall(
    callId,
    input.fleetId,
    vehicleIds === undefined ? input.limit : 1_000,
  );
  const wanted =
    vehicleIds === undefined ? all : all.filter((device) => vehicleIds.includes(device.deviceId));
  if (wanted.length === 0)
    throw notFound(
      'vehicleIds',
      'This fleet has none of these vehicles.',
      all.map(({ deviceId: id }) => ({ field: 'vehicleIds', value: [id], about: 'A vehicle of this fleet' })),
    );
  return wanted.slice(0, input.limit);
}

/** The fleets that a caller may choose from, and those vehicles of the caller's own that are in none. */
async function fleetsOf(devices: ReportingDevices): Promise<Choice[]> {
  const listed = await devices.toChooseFrom(MAX_CHOICES);
  const whose = ({ isOwn }: { isOwn: boolean }) => (isOwn ? 'Yours' : 'Public');
  return [
    ...listed.fleets.map((fleet) => ({
      field: 'fleetId',
      value: fleet.fleetId,
      about: `${whose(fleet)}, with ${fleet.devices} device(s)`,
    })),
    ...listed.alone.map((value) => ({ field: 'deviceId', value, about: 'Yours, in no fleet' })),
  ];
}

/** One vehicle; null when it has never reported a position. */
async function look(
  device: ReportingDevice,
  devices: ReportingDevices,
  span: { fromMs: number; toMs: number },
) {
  const { deviceId: vehicleId } = device;
  const ask = { ...span, sensor: null, positions: true as const, limit: MAX_FIXES };
  const readings = await devices.range(vehicleId, ask);
  const last = await devices.lastPosition(vehicleId);
  const place = last?.position ?? null;
  if (last === null || place === null) return null;
  const signals = await Promise.all(
    SIGNALS.filter((name) => name in device.sensors).map(
      async (name) => [name, (await devices.last(vehicleId, [name]))?.values[name]] as const,
    ),
  );
  const known = new Map(signals);
  const ignition = known.get('ignition');
  const fixes = readings.flatMap(fixOf);
  const travel = travelOf(fixes, distanceKm);
  return {
    device,
    last,
    fixes: fixes.length,
    shown: {
      vehicleId,
      name: device.name,
      location: place,
      speed: known.get('speed') ?? null,
      heading: known.get('heading') ?? null,
      fuelLevel: known.get('fuelLevel') ?? null,
      engineStatus: ignition === undefined ? null : ignition > 0 ? ('on' as const) : ('off' as const),
      odometer: known.get('odometer') ?? null,
      status: statusOf(last.atMs, travel, span.toMs),
      lastUpdate: isoOf(last.atMs),
      ...shownTravel(travel),
    },
  };
}

function fixOf({ atMs, position, values }: DeviceReading): Fix[] {
  if (position === null) return [];
  const { ignition } = values;
  return [{ atMs, ...position, ignition: ignition === undefined ? null : ignition > 0 }];
}

function statusOf(lastAtMs: number, { trips }: Travel, nowMs: number): 'active' | 'idle' | 'offline' {
  if (nowMs - lastAtMs > OFFLINE_MS) return 'offline';
  return trips.at(-1)?.endedAtMs === lastAtMs ? 'active' : 'idle';
}

function shownTravel({ trips, distanceKm: km, movingMs, idleMs, unknownMs }: Travel) {
  const seconds = (ms: number) => Math.round(ms / 1_000);
  return {
    trips: trips.map((trip) => ({
      startedAt: isoOf(trip.startedAtMs),
      endedAt: isoOf(trip.endedAtMs),
      distanceKm: rounded(trip.distanceKm),
      from: trip.from,
      to: trip.to,
      maxSpeedKmh: rounded(trip.maxSpeedKmh),
    })),
    distanceKm: rounded(km),
    movingSeconds: seconds(movingMs),
    idleSeconds: idleMs === null ? null : seconds(idleMs),
    unknownSeconds: seconds(unknownMs),
  };
}

const rounded = (value: number) => Math.round(value * 1_000) / 1_000;
