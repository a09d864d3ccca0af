/** The devices that there are, whose they are and who may read them. */
import { createHash, randomBytes } from 'node:crypto';
import { arrayLiteral } from '@farebox/core/db/array-literal';
import { type Database, isUniqueViolation, type Transaction } from '@farebox/core/db/connection';
import { accountsBoundWith, holdBound, rootBuyerOf } from '@farebox/core/keys/root-buyer';
import { newCredential } from './credential.ts';

export interface Device {
  no: bigint;
  deviceId: string;
  /** The account whose key registered it. */
  owner: bigint;
  name: string | null;
  fleetId: string | null;
  public: boolean;
  simulated: boolean;
  sensors: Readonly<Record<string, string>>;
  place: { lat: number; lon: number } | null;
  publicKey: Buffer;
  createdAtMs: number;
  revokedAtMs: number | null;
  /** How many readings it has reported. */
  readings: number;
  lastAtMs: number | null;
  /** Why its last report was refused, where none was taken since. */
  refusal: { atMs: number; reason: string } | null;
  /** How many different reports of it were acknowledged and could not be taken when they came. */
  refusals: number;
}

interface NewDevice {
  deviceId: string;
  owner: bigint;
  name: string | null;
  fleetId: string | null;
  public: boolean;
  simulated: boolean;
  sensors: Readonly<Record<string, string>>;
  place: { lat: number; lon: number } | null;
}

interface DeviceChange {
  name?: string | null;
  public?: boolean;
  place?: { lat: number; lon: number } | null;
  sensors?: Readonly<Record<string, string>>;
}

/** Why sensors cannot be added: what is stored has its unit, and a device has so many at most. */
export type SensorConflict = { sensor: string; unit: string } | 'too_many_sensors';

export interface DeviceRegistry {
  /**
   * Registers a device, or one that its owner had revoked anew: with what it reported, its sensors and who may read it.
   *
   * @returns its secret, shown once; or why it was not registered
   */
  register(device: NewDevice): Promise<{ secret: string } | NotRegistered['why']>;
  find(deviceId: string): Promise<Device | null>;
  /** The devices of an account, in the order of their registration, those that were revoked too. */
  ofOwner(owner: bigint, limit: number): Promise<Device[]>;
  ofFleet(fleetId: string): Promise<Device[]>;
  /** Devices of fleets that everybody may read, in the order of their registration. */
  publicInFleets(limit: number): Promise<Device[]>;
  /**
   * @param change `sensors` are added; reports that wait for one of them are due at once
   * @returns null, or why nothing was changed
   */
  change(device: Device, change: DeviceChange): Promise<SensorConflict | null>;
  /** Gives it a new secret; the old one ends at once. @returns null when it was revoked */
  rotate(device: Device): Promise<string | null>;
  /** It can report no more. Again changes nothing. */
  revoke(device: Device): Promise<void>;
  /** Offers it to whoever presents the code, once. @returns the code */
  offer(device: Device): Promise<string>;
  offerTo(device: Device, reader: string): Promise<void>;
  /** Takes an offer. @returns the device's id; null: there is no such offer, or it is over */
  accept(code: string, reader: string): Promise<string | null>;
  /** Ends all offers, taken or not. */
  endOffers(device: Device): Promise<void>;
  readers(device: Device): Promise<string[]>;
  /** Whether this payer may read it. */
  isReadable(device: Device, reader: string, accountId: bigint | null): Promise<boolean>;
  /** Those of them whose secret is not what it was, or has ended. */
  changed(devices: readonly Device[]): Promise<Device[]>;
  /** Notes why a report was refused, for its owner to see. */
  refused(device: Device, reason: string): Promise<void>;
}

export const MAX_SENSORS = 32;
const OFFER_DAYS = 7;
const MAX_READERS = 1_000;
/** The devices of one fleet, which one call may look through. */
const MAX_FLEET = 1_000;

interface Row {
  no: bigint;
  id: string;
  owner: bigint;
  name: string | null;
  fleet: string | null;
  public: boolean;
  simulated: boolean;
  sensors: Record<string, string>;
  lat: number | null;
  lon: number | null;
  public_key: Buffer;
  created_at: Date;
  revoked_at: Date | null;
  seq: bigint;
  last_at: Date | null;
  refused_at: Date | null;
  refusal: string | null;
  refusals: bigint;
}

interface RegistryParts {
  nowMs(): number;
  perAccount: number;
}

export function createDeviceRegistry(sql: Database, parts: RegistryParts): DeviceRegistry {
  return { ...registration(sql, parts), ...lookups(sql), ...changes(sql, parts), ...offers(sql, parts) };
}

const isoAfter = ({ nowMs }: { nowMs(): number }, afterMs = 0) => new Date(nowMs() + afterMs).toISOString();

function registration(sql: Database, parts: RegistryParts): Pick<DeviceRegistry, 'register'> {
  const { perAccount } = parts;
  async function insert(
    on: Transaction,
    device: NewDevice,
  ): Promise<{ secret: string } | NotRegistered['why']> {
    const { owner } = device;
    // Registrations of one root buyer stand in line, so that two at once are not one too many.
    const rootBuyer = await rootBuyerOf(on, owner);
    await holdBound(on, rootBuyer, 'devices');
    const [held] = await on<{ count: number }[]>`
      select count(*)::integer as count from devices
      where owner in (${accountsBoundWith(on, owner, rootBuyer)}) and revoked_at is null`;
    if ((held?.count ?? 0) >= perAccount) return 'too_many';
    if (device.fleetId !== null) {
      const [fleet] = await on<{ owner: bigint }[]>`
        insert into device_fleets as f (name, owner) values (${device.fleetId}, ${String(owner)})
        on conflict (name) do update set name = f.name returning f.owner`;
      if (fleet?.owner !== owner) return 'fleet_taken';
    }
    const { secret, publicKey } = newCredential();
    const [row] = await on<Row[]>`select * from devices where id = ${device.deviceId} for no key update`;
    const former = row === undefined ? null : deviceOf(row);
    if (former === null) await add(on, device, { publicKey, nowMs: parts.nowMs() });
    else {
      // Readings that somebody made up must not become real ones, nor the other way round.
      const isSame = former.owner === owner && former.simulated === device.simulated;
      if (former.revokedAtMs === null || !isSame) return 'id_taken';
      const sensors = withSensors(former.sensors, device.sensors);
      if (!('all' in sensors)) return { conflict: sensors.conflict };
      const { no } = former;
      await revive(on, { ...device, sensors: sensors.all }, { no, publicKey, nowMs: parts.nowMs() });
    }
    return { secret };
  }

  return {
    async register(device) {
      try {
        // What is refused leaves no fleet behind.
        return await sql.begin(async (transaction) => {
          const made = await insert(transaction, device);
          if (typeof made === 'string' || 'conflict' in made) throw new NotRegistered(made);
          return made;
        });
      } catch (error) {
        if (error instanceof NotRegistered) return error.why;
        if (isUniqueViolation(error)) return 'id_taken';
        throw error;
      }
    },
  };
}

async function add(
  on: Transaction,
  device: NewDevice,
  { publicKey, nowMs }: { publicKey: Buffer; nowMs: number },
): Promise<void> {
  const { place } = device;
  await on`
    insert into devices (id, owner, name, fleet, public, simulated, sensors, lat, lon, public_key, created_at)
    values (${device.deviceId}, ${String(device.owner)}, ${device.name}, ${device.fleetId}, ${device.public},
            ${device.simulated}, ${JSON.stringify(device.sensors)}::text::jsonb, ${place?.lat ?? null},
            ${place?.lon ?? null}, ${publicKey}, ${new Date(nowMs).toISOString()})`;
}

/** Lets one that had ended report again. It is held. */
async function revive(
  on: Transaction,
  device: NewDevice,
  { no, publicKey, nowMs }: { no: bigint; publicKey: Buffer; nowMs: number },
): Promise<void> {
  const { place } = device;
  await on`
    update devices
    set name = ${device.name}, fleet = ${device.fleetId}, public = ${device.public},
        sensors = ${JSON.stringify(device.sensors)}::text::jsonb, lat = ${place?.lat ?? null},
        lon = ${place?.lon ?? null}, public_key = ${publicKey}, revoked_at = null, refused_at = null, refusal = null
    where no = ${String(no)}`;
  await dueWithSensors(on, { no, nowMs }, device.sensors);
}

function lookups(
  sql: Database,
): Pick<
  DeviceRegistry,
  'find' | 'ofOwner' | 'ofFleet' | 'publicInFleets' | 'isReadable' | 'readers' | 'changed'
> {
  return {
    async find(deviceId) {
      const [row] = await sql<Row[]>`select * from devices where id = ${deviceId}`;
      return row === undefined ? null : deviceOf(row);
    },

    async ofOwner(owner, limit) {
      const rows = await sql<Row[]>`
        select * from devices where owner = ${String(owner)} order by no limit ${limit}`;
      return rows.map(deviceOf);
    },

    async ofFleet(fleetId) {
      const rows = await sql<Row[]>`
        select * from devices where fleet = ${fleetId} order by id limit ${MAX_FLEET}`;
      return rows.map(deviceOf);
    },

    async publicInFleets(limit) {
      const rows = await sql<Row[]>`
        select * from devices where public and revoked_at is null and fleet is not null order by no limit ${limit}`;
      return rows.map(deviceOf);
    },

    async readers(device) {
      const rows = await sql<{ reader: string }[]>`
        select reader from device_readers where device = ${String(device.no)} order by offered_at limit ${MAX_READERS}`;
      return rows.map(({ reader }) => reader);
    },

    async isReadable(device, reader, accountId) {
      if (device.public || device.owner === accountId) return true;
      const [row] = await sql`
        select 1 from device_readers where device = ${String(device.no)} and reader = ${reader}`;
      return row !== undefined;
    },

    async changed(devices) {
      if (devices.length === 0) return [];
      const rows = await sql<{ no: bigint; public_key: Buffer }[]>`
        select no, public_key from devices
        where no = any(${arrayLiteral(devices.map(({ no }) => no))}::text::bigint[]) and revoked_at is null`;
      const keys = new Map(rows.map((row) => [row.no, row.public_key]));
      return devices.filter(({ no, publicKey }) => keys.get(no)?.equals(publicKey) !== true);
    },
  };
}

function changes(
  sql: Database,
  parts: RegistryParts,
): Pick<DeviceRegistry, 'change' | 'rotate' | 'revoke' | 'refused'> {
  const now = () => isoAfter(parts);
  return {
    async change(device, { sensors, ...change }) {
      const columns = {
        ...(change.name === undefined ? {} : { name: change.name }),
        ...(change.public === undefined ? {} : { public: change.public }),
        ...(change.place === undefined
          ? {}
          : { lat: change.place?.lat ?? null, lon: change.place?.lon ?? null }),
      };
      const { no } = device;
      return sql.begin(async (transaction) => {
        if (sensors !== undefined) {
          const [held] = await transaction<{ sensors: Record<string, string> }[]>`
            select sensors from devices where no = ${String(no)} for no key update`;
          const added = withSensors(held?.sensors ?? {}, sensors);
          if (!('all' in added)) return added.conflict;
          await transaction`
            update devices set sensors = ${JSON.stringify(added.all)}::text::jsonb where no = ${String(no)}`;
          await dueWithSensors(transaction, { no, nowMs: parts.nowMs() }, sensors);
        }
        if (Object.keys(columns).length > 0)
          await transaction`update devices set ${transaction(columns)} where no = ${String(no)}`;
        return null;
      });
    },

    async rotate(device) {
      const { secret, publicKey } = newCredential();
      const { count } = await sql`
        update devices set public_key = ${publicKey} where no = ${String(device.no)} and revoked_at is null`;
      return count === 1 ? secret : null;
    },

    async revoke(device) {
      await sql`
        update devices set revoked_at = ${now()} where no = ${String(device.no)} and revoked_at is null`;
    },

    async refused(device, reason) {
      await sql`
        update devices set refused_at = ${now()}, refusal = ${reason} where no = ${String(device.no)}`;
    },
  };
}

function offers(
  sql: Database,
  parts: RegistryParts,
): Pick<DeviceRegistry, 'offer' | 'offerTo' | 'accept' | 'endOffers'> {
  const now = (afterMs = 0) => isoAfter(parts, afterMs);
  return {
    async offer(device) {
      const code = randomBytes(24).toString('hex');
      await sql`
        insert into device_offers (digest, device, expires_at)
        values (${digestOf(code)}, ${String(device.no)}, ${now(OFFER_DAYS * 86_400_000)})`;
      await sql`delete from device_offers where expires_at <= ${now()}`;
      return code;
    },

    async offerTo(device, reader) {
      await sql`
        insert into device_readers (device, reader, offered_at) values (${String(device.no)}, ${reader}, ${now()})
        on conflict do nothing`;
    },

    async accept(code, reader) {
      const [taken] = await sql<{ id: string }[]>`
        with taken as (
          delete from device_offers where digest = ${digestOf(code)} and expires_at > ${now()} returning device
        ), added as (
          insert into device_readers (device, reader, offered_at) select device, ${reader}, ${now()} from taken
          on conflict do nothing
        ) select d.id from taken t join devices d on d.no = t.device`;
      return taken?.id ?? null;
    },

    async endOffers(device) {
      await sql`
        with offers as (delete from device_offers where device = ${String(device.no)})
        delete from device_readers where device = ${String(device.no)}`;
    },
  };
}

class NotRegistered extends Error {
  readonly why: 'id_taken' | 'fleet_taken' | 'too_many' | { conflict: SensorConflict };
  constructor(why: NotRegistered['why']) {
    super('the device was not registered');
    this.why = why;
  }
}

/** The sensors of a device with those that are added. */
function withSensors(
  there: Readonly<Record<string, string>>,
  added: Readonly<Record<string, string>>,
): { all: Record<string, string> } | { conflict: SensorConflict } {
  for (const [sensor, unit] of Object.entries(there))
    if (Object.hasOwn(added, sensor) && added[sensor] !== unit) return { conflict: { sensor, unit } };
  const all = { ...there, ...added };
  return Object.keys(all).length > MAX_SENSORS ? { conflict: 'too_many_sensors' } : { all };
}

/** Reports that wait for one of these sensors are due. The device is held. */
async function dueWithSensors(
  on: Transaction,
  { no, nowMs }: { no: bigint; nowMs: number },
  sensors: Readonly<Record<string, string>>,
): Promise<void> {
  await on`
    update device_refusals set due_at = ${new Date(nowMs).toISOString()}
    where device = ${String(no)} and sensor = any(${arrayLiteral(Object.keys(sensors))}::text::text[])`;
}

function digestOf(code: string): Buffer {
  return createHash('sha256').update(code).digest();
}

function deviceOf(row: Row): Device {
  return {
    no: row.no,
    deviceId: row.id,
    owner: row.owner,
    name: row.name,
    fleetId: row.fleet,
    public: row.public,
    simulated: row.simulated,
    sensors: row.sensors,
    place: row.lat === null || row.lon === null ? null : { lat: row.lat, lon: row.lon },
    publicKey: row.public_key,
    createdAtMs: row.created_at.getTime(),
    revokedAtMs: row.revoked_at?.getTime() ?? null,
    readings: Number(row.seq),
    lastAtMs: row.last_at?.getTime() ?? null,
    refusal:
      row.refused_at === null || row.refusal === null
        ? null
        : { atMs: row.refused_at.getTime(), reason: row.refusal },
    refusals: Number(row.refusals),
  };
}
