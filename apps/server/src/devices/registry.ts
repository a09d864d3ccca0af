/** The devices that there are, whose they are and who may read them. */
import { createHash, randomBytes } from 'node:crypto';
import { arrayLiteral } from '../db/array-literal.ts';
import { type Database, isUniqueViolation, type Transaction } from '../db/connection.ts';
import { accountsBoundWith, holdBound, rootBuyerOf } from '../keys/root-buyer.ts';
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

export interface DeviceRegistry {
  /** Registers a device. @returns its secret, shown once; or why it was not registered */
  register(device: NewDevice): Promise<{ secret: string } | 'id_taken' | 'fleet_taken' | 'too_many'>;
  find(deviceId: string): Promise<Device | null>;
  /** Of an account, in the order of their registration, those that were revoked too. */
  ofOwner(owner: bigint, limit: number): Promise<Device[]>;
  ofFleet(fleetId: string): Promise<Device[]>;
  change(
    device: Device,
    change: { name?: string | null; public?: boolean; place?: { lat: number; lon: number } | null },
  ): Promise<void>;
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

const OFFER_DAYS = 7;
const MAX_READERS = 1_000;
/** Of one fleet, which one call may look through. */
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
  ): Promise<{ secret: string } | 'fleet_taken' | 'too_many'> {
    const { owner, place } = device;
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
    await on`
      insert into devices (id, owner, name, fleet, public, simulated, sensors, lat, lon, public_key, created_at)
      values (${device.deviceId}, ${String(owner)}, ${device.name}, ${device.fleetId}, ${device.public},
              ${device.simulated}, ${JSON.stringify(device.sensors)}::text::jsonb, ${place?.lat ?? null},
              ${place?.lon ?? null}, ${publicKey}, ${isoAfter(parts)})`;
    return { secret };
  }

  return {
    async register(device) {
      try {
        // What is refused leaves no fleet behind.
        return await sql.begin(async (transaction) => {
          const made = await insert(transaction, device);
          if (typeof made === 'string') throw new NotRegistered(made);
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

function lookups(
  sql: Database,
): Pick<DeviceRegistry, 'find' | 'ofOwner' | 'ofFleet' | 'isReadable' | 'readers' | 'changed'> {
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
    async change(device, change) {
      const columns = {
        ...(change.name === undefined ? {} : { name: change.name }),
        ...(change.public === undefined ? {} : { public: change.public }),
        ...(change.place === undefined
          ? {}
          : { lat: change.place?.lat ?? null, lon: change.place?.lon ?? null }),
      };
      if (Object.keys(columns).length === 0) return;
      await sql`update devices set ${sql(columns)} where no = ${String(device.no)}`;
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
  readonly why: 'fleet_taken' | 'too_many';
  constructor(why: 'fleet_taken' | 'too_many') {
    super(why);
    this.why = why;
  }
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
  };
}
