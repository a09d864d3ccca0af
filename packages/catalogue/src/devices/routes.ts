/** Routes by which an owner manages devices. None of it costs anything. */

import { ownerOf } from '@farebox/core/custody/owner';
import { readJsonBody } from '@farebox/core/http/json-body';
import { Problem } from '@farebox/core/http/problem';
import { admit, type RateLimit } from '@farebox/core/http/rate-limit';
import { presentedApiKey } from '@farebox/core/keys/api-key';
import type { KeyRecord, Keys } from '@farebox/core/keys/keys';
import { isNameable, NOT_NAMEABLE } from '@farebox/core/words/name';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Readings } from './readings.ts';
import type { Refusal, Refusals } from './refusals.ts';
import { type Device, type DeviceRegistry, MAX_SENSORS, type SensorConflict } from './registry.ts';

export const DEVICE_REQUESTS_PER_MINUTE = 600;
const MAX_LISTED = 1_000;
const MAX_REFUSALS = 100;
/** The most readings of a chart: a reading every five minutes for a day, and some. */
const MAX_CHARTED = 2_000;
const DAY_MS = 86_400_000;

/** Sensors whose unit is the same everywhere. */
const KNOWN_UNITS: Readonly<Record<string, string>> = {
  temperature: 'celsius',
  humidity: 'percent',
  pressure: 'hPa',
  co2: 'ppm',
  motion: 'boolean',
  light: 'lux',
  vibration: 'm/s2',
  speed: 'km/h',
  heading: 'degrees',
  fuelLevel: 'percent',
  odometer: 'km',
  ignition: 'boolean',
};

export const DEVICE_ID = /^[a-z0-9][a-z0-9_-]{2,63}$/;
const id = z.string().regex(DEVICE_ID, 'must be 3 to 64 lower-case letters, digits, dashes and underscores');
const name = z.string().trim().min(1).max(100).refine(isNameable, NOT_NAMEABLE);
const place = z.strictObject({ lat: z.number().min(-90).max(90), lon: z.number().min(-180).max(180) });
const sensors = z
  .record(
    z.string().regex(/^[a-z][a-zA-Z0-9]{0,31}$/, 'must be a word such as temperature'),
    z.string().trim().min(1).max(20).refine(isNameable, NOT_NAMEABLE),
  )
  .refine((given) => Object.keys(given).length <= MAX_SENSORS, `must be at most ${MAX_SENSORS}`)
  .superRefine((given, context) => {
    for (const [sensor, unit] of Object.entries(given)) {
      const known = Object.hasOwn(KNOWN_UNITS, sensor) ? KNOWN_UNITS[sensor] : unit;
      if (known !== unit)
        context.addIssue({ code: 'custom', path: [sensor], message: `is reported in ${known} everywhere` });
    }
  });

const registration = z.strictObject({
  deviceId: id,
  name: name.nullable().default(null),
  fleetId: id.nullable().default(null),
  public: z.boolean().default(false),
  simulated: z.boolean().default(false),
  sensors: sensors.default({}),
  place: place.nullable().default(null),
});
const change = z.strictObject({
  name: name.nullable().optional(),
  public: z.boolean().optional(),
  place: place.nullable().optional(),
  sensors: sensors.optional(),
});
const refusalPage = z.object({
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, 'must be the cursor of the page before')
    .optional(),
  limit: z.coerce.number().int().min(1).max(MAX_REFUSALS).default(MAX_REFUSALS),
});
const offer = z.strictObject({
  network: z
    .string()
    .regex(/^[a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,64}$/, 'must be CAIP-2, such as eip155:8453')
    .optional(),
  address: z
    .string()
    .regex(/^[a-zA-Z0-9]{32,64}$/, 'must be an address')
    .optional(),
});
const acceptance = z.strictObject({ code: z.string().regex(/^[0-9a-f]{48}$/, 'must be an offer’s code') });

export interface DeviceRouteParts {
  registry: DeviceRegistry;
  readings: Pick<Readings, 'last' | 'range'>;
  refusals: Pick<Refusals, 'page'>;
  /** Begins to take reports that waited for a sensor. */
  takeDue(): void;
  keys: Keys;
  /** Shows what an account has earned by what its devices reported. */
  earnings(accountId: bigint): Promise<Record<string, unknown>>;
  /** How a device reports, with its name and secret. */
  connection(deviceId: string, secret: string): Record<string, unknown>;
  /** Its connections end, as its secret has. */
  disconnect(device: Device): void;
  /** False in production: there nothing is sold that its own owner calls made up. */
  acceptSimulated: boolean;
  limit: RateLimit;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
}

type DeviceRequest = FastifyRequest<{ Params: { deviceId: string } }>;

/** The look-ups of the key that a request is from, and of the device that it names. */
interface Owners {
  ownKey(request: FastifyRequest, reply: FastifyReply): Promise<KeyRecord>;
  ownDevice(request: DeviceRequest, reply: FastifyReply): Promise<Device>;
}

export function deviceRoutes(app: FastifyInstance, parts: DeviceRouteParts): void {
  const owners = ownersOf(parts);
  registrationRoutes(app, parts, owners);
  lookRoutes(app, parts, owners);
  changeRoutes(app, parts, owners);
  offerRoutes(app, parts, owners);
}

function ownersOf(parts: DeviceRouteParts): Owners {
  const { registry, keys } = parts;

  async function ownKey(request: FastifyRequest, reply: FastifyReply): Promise<KeyRecord> {
    admit(parts.limit, parts.addressOf(request), reply);
    const presented = presentedApiKey(request.headers);
    if (presented === null)
      throw new Problem(401, 'API_KEY_MISSING', 'Send your key in X-API-KEY, or as Authorization: Bearer.');
    const known = await keys.find(presented);
    const record = known === null ? null : await keys.record(known.id);
    if (record === null) throw new Problem(401, 'API_KEY_INVALID', 'This API key is not known here.');
    // Expired keys pass: what is theirs stays theirs.
    if (record.status !== 'active')
      throw new Problem(403, 'API_KEY_NOT_ACTIVE', 'This API key was revoked or frozen.');
    return record;
  }

  async function ownDevice(request: DeviceRequest, reply: FastifyReply): Promise<Device> {
    const { accountId } = await ownKey(request, reply);
    const { deviceId } = request.params;
    const device = DEVICE_ID.test(deviceId) ? await registry.find(deviceId) : null;
    if (device === null || device.owner !== accountId)
      throw new Problem(404, 'DEVICE_NOT_FOUND', 'Your account has no such device.');
    return device;
  }

  return { ownKey, ownDevice };
}

function withSecret(parts: DeviceRouteParts, deviceId: string, secret: string) {
  return {
    secret,
    ...parts.connection(deviceId, secret),
    note: 'Save the secret now: it is shown once and cannot be retrieved again.',
  };
}

function registrationRoutes(
  app: FastifyInstance,
  parts: DeviceRouteParts,
  { ownKey, ownDevice }: Owners,
): void {
  const { registry } = parts;

  app.post('/api/devices', async (request, reply) => {
    const key = await ownKey(request, reply);
    const asked = readJsonBody(request, registration);
    if (key.kind === 'trial')
      throw new Problem(403, 'TRIAL_KEY', 'Devices outlive a trial. Buy credit to register one.');
    if (asked.simulated && !parts.acceptSimulated)
      throw new Problem(422, 'SIMULATED_DEVICE', 'This server takes no readings that are made up.');
    const made = await registry.register({ ...asked, owner: key.accountId });
    if (made === 'id_taken')
      throw new Problem(409, 'DEVICE_ID_TAKEN', 'deviceId: there is a device of that name. Choose another.');
    if (made === 'fleet_taken')
      throw new Problem(
        409,
        'FLEET_TAKEN',
        'fleetId: another account has a fleet of that name. Choose another.',
      );
    if (made === 'too_many')
      throw new Problem(
        409,
        'TOO_MANY_DEVICES',
        'This account and the keys that were bought with its credit have as many devices as is allowed. Revoke one first.',
      );
    if (!('secret' in made)) throw conflictOf(made.conflict);
    parts.takeDue();
    const device = await registry.find(asked.deviceId);
    if (device === null) throw new Error('a device that was registered is gone');
    reply.code(201);
    return { success: true, ...shown(device), ...withSecret(parts, asked.deviceId, made.secret) };
  });

  app.post('/api/devices/:deviceId/rotate', async (request: DeviceRequest, reply) => {
    const device = await ownDevice(request, reply);
    const secret = await registry.rotate(device);
    if (secret === null) throw new Problem(410, 'DEVICE_REVOKED', 'This device was revoked.');
    parts.disconnect(device);
    return { success: true, deviceId: device.deviceId, ...withSecret(parts, device.deviceId, secret) };
  });
}

function lookRoutes(app: FastifyInstance, parts: DeviceRouteParts, { ownKey, ownDevice }: Owners): void {
  const { registry, readings } = parts;

  app.get('/api/devices', async (request, reply) => {
    const { accountId } = await ownKey(request, reply);
    const devices = await registry.ofOwner(accountId, MAX_LISTED);
    const listed = await Promise.all(
      devices.map(async (device) => ({ ...shown(device), lastReading: await lastOf(device) })),
    );
    return { success: true, devices: listed, earnings: await parts.earnings(accountId) };
  });

  app.get('/api/devices/:deviceId', async (request: DeviceRequest, reply) => {
    const device = await ownDevice(request, reply);
    return {
      success: true,
      ...shown(device),
      lastReading: await lastOf(device),
      readers: await registry.readers(device),
    };
  });

  app.get('/api/devices/:deviceId/readings', async (request: DeviceRequest, reply) => {
    const device = await ownDevice(request, reply);
    const toMs = parts.nowMs() + DAY_MS;
    const rows = await readings.range(device.no, {
      fromMs: parts.nowMs() - DAY_MS,
      toMs,
      sensor: null,
      limit: MAX_CHARTED,
    });
    return {
      success: true,
      deviceId: device.deviceId,
      sensors: device.sensors,
      readings: rows.map(readingOf),
    };
  });

  app.get('/api/devices/:deviceId/refusals', async (request: DeviceRequest, reply) => {
    const device = await ownDevice(request, reply);
    const page = refusalPage.safeParse(request.query);
    if (!page.success)
      throw new Problem(
        400,
        'INVALID_REQUEST',
        `limit is 1 to ${MAX_REFUSALS}, cursor that of a page before.`,
      );
    const { cursor, limit } = page.data;
    const before = cursor === undefined ? null : Number(cursor);
    const kept = await parts.refusals.page(device, { before, limit });
    return {
      success: true,
      deviceId: device.deviceId,
      refusals: kept.map(refusalOf),
      cursor: kept.length < limit ? null : String(kept.at(-1)?.nth),
    };
  });

  async function lastOf(device: Device) {
    const last = device.lastAtMs === null ? null : await readings.last(device.no, []);
    return last === null ? null : readingOf(last);
  }
}

function changeRoutes(app: FastifyInstance, parts: DeviceRouteParts, { ownDevice }: Owners): void {
  const { registry } = parts;

  app.patch('/api/devices/:deviceId', async (request: DeviceRequest, reply) => {
    const device = await ownDevice(request, reply);
    const asked = readJsonBody(request, change);
    const conflict = await registry.change(device, withoutAbsent(asked));
    if (conflict !== null) throw conflictOf(conflict);
    if (asked.sensors !== undefined) parts.takeDue();
    return { success: true, ...shown((await registry.find(device.deviceId)) ?? device) };
  });

  app.delete('/api/devices/:deviceId', async (request: DeviceRequest, reply) => {
    const device = await ownDevice(request, reply);
    await registry.revoke(device);
    parts.disconnect(device);
    return {
      success: true,
      ...shown((await registry.find(device.deviceId)) ?? device),
      note: 'It can report no more. What it has reported is kept and sold as before until it is too old; make it private to end that.',
    };
  });
}

function offerRoutes(
  app: FastifyInstance,
  { registry }: DeviceRouteParts,
  { ownKey, ownDevice }: Owners,
): void {
  app.post('/api/devices/:deviceId/offers', async (request: DeviceRequest, reply) => {
    const device = await ownDevice(request, reply);
    const { network, address } = readJsonBody(request, offer);
    if ((network === undefined) !== (address === undefined))
      throw new Problem(400, 'INVALID_REQUEST', 'network and address: give both for a wallet, or neither.');
    if (network === undefined || address === undefined) {
      const code = await registry.offer(device);
      reply.code(201);
      return {
        success: true,
        deviceId: device.deviceId,
        code,
        note: 'Whoever sends it to POST /api/device-offers with their own key may read this device. It works once, for seven days.',
      };
    }
    const reader = ownerOf({ by: 'signature', network, address });
    await registry.offerTo(device, reader);
    return { success: true, deviceId: device.deviceId, reader };
  });

  app.delete('/api/devices/:deviceId/offers', async (request: DeviceRequest, reply) => {
    const device = await ownDevice(request, reply);
    await registry.endOffers(device);
    return { success: true, deviceId: device.deviceId, readers: [] };
  });

  app.post('/api/device-offers', async (request, reply) => {
    const { accountId } = await ownKey(request, reply);
    const { code } = readJsonBody(request, acceptance);
    const deviceId = await registry.accept(code, ownerOf({ by: 'account', accountId }));
    if (deviceId === null)
      throw new Problem(
        404,
        'OFFER_NOT_FOUND',
        'code: there is no such offer, or it was taken or has expired.',
      );
    return { success: true, deviceId };
  });
}

/** A device as its owner sees it. */
function shown(device: Device): Record<string, unknown> {
  const { deviceId, fleetId, sensors: units, place: where, simulated, readings, refusal } = device;
  return {
    deviceId,
    name: device.name,
    fleetId,
    public: device.public,
    ...(simulated ? { simulated } : {}),
    sensors: units,
    place: where,
    status: device.revokedAtMs === null ? 'active' : 'revoked',
    createdAt: new Date(device.createdAtMs).toISOString(),
    readings,
    refusals: device.refusals,
    lastAt: device.lastAtMs === null ? null : new Date(device.lastAtMs).toISOString(),
    lastRefusal:
      refusal === null ? null : { at: new Date(refusal.atMs).toISOString(), reason: refusal.reason },
  };
}

function readingOf({ atMs, values, position }: { atMs: number; values: object; position: object | null }) {
  return { at: new Date(atMs).toISOString(), values, position };
}

/** A report that was kept, as its device sent it. */
function refusalOf({ code, reason, count, firstAtMs, lastAtMs, report, dueAtMs, sensor }: Refusal) {
  return {
    code,
    reason,
    count,
    firstAt: new Date(firstAtMs).toISOString(),
    lastAt: new Date(lastAtMs).toISOString(),
    report: report.toString(),
    waitsForSensor: sensor,
    takenFrom: dueAtMs === null ? null : new Date(dueAtMs).toISOString(),
  };
}

function conflictOf(conflict: SensorConflict): Problem {
  if (conflict === 'too_many_sensors')
    return new Problem(409, 'TOO_MANY_SENSORS', `sensors: a device has at most ${MAX_SENSORS}.`);
  return new Problem(
    409,
    'SENSOR_UNIT_FIXED',
    `sensors.${conflict.sensor}: what was reported is in ${conflict.unit}. Sensors can be added, and not changed.`,
  );
}

function withoutAbsent({
  name: called,
  public: isPublic,
  place: where,
  sensors: added,
}: z.output<typeof change>) {
  return {
    ...(added === undefined ? {} : { sensors: added }),
    ...(called === undefined ? {} : { name: called }),
    ...(isPublic === undefined ? {} : { public: isPublic }),
    ...(where === undefined ? {} : { place: where }),
  };
}
