/** Devices as services sell them: to whom they may be sold, and what their owner gets of it. */
import { ownerOf, type Payer } from '@farebox/core/custody/owner';
import { notFound } from '@farebox/core/words/failure';
import type { DevicesToChooseFrom, ReportingDevice, ReportingDevices } from '../services/reported-devices.ts';
import type { Exports } from './exports.ts';
import type { Readings } from './readings.ts';
import type { Device, DeviceRegistry } from './registry.ts';

/** The most devices of one kind that are looked through for what there is to choose from. */
const MAX_LOOKED_THROUGH = 200;

export interface CapabilityParts {
  registry: Pick<DeviceRegistry, 'find' | 'ofFleet' | 'ofOwner' | 'publicInFleets' | 'isReadable'>;
  readings: Readings;
  exports: Exports;
  retentionDays: number;
  /** Notes that a call's price is shared with this owner once it is taken. */
  share(callId: string, payer: Payer, owner: bigint): Promise<void>;
}

export function devicesFor(payer: Payer, parts: CapabilityParts): ReportingDevices {
  const { registry, readings, exports: files, retentionDays } = parts;
  const reader = ownerOf(payer);
  const accountId = payer.by === 'account' ? payer.accountId : null;
  /** The numbers, by name, of the devices that this payer was let at. */
  const numbers = new Map<string, bigint>();

  async function isReadable(device: Device): Promise<boolean> {
    return registry.isReadable(device, reader, accountId);
  }
  function admit(device: Device): ReportingDevice {
    numbers.set(device.deviceId, device.no);
    const { deviceId, name, fleetId, sensors, place, simulated } = device;
    return { deviceId, name, fleetId, sensors, place, simulated };
  }
  function numberOf(deviceId: string): bigint {
    const no = numbers.get(deviceId);
    if (no === undefined) throw new Error(`device ${deviceId} was not asked for`);
    return no;
  }

  return {
    async forCall(callId, deviceId) {
      const device = await registry.find(deviceId);
      if (device === null || !(await isReadable(device)))
        throw notFound('deviceId', 'There is no such device here that you may read.');
      await parts.share(callId, payer, device.owner);
      return admit(device);
    },

    async fleetForCall(callId, fleetId, limit) {
      const readable: Device[] = [];
      for (const device of await registry.ofFleet(fleetId)) {
        if (readable.length === limit) break;
        if (device.revokedAtMs === null && (await isReadable(device))) readable.push(device);
      }
      const [first] = readable;
      if (first === undefined) throw notFound('fleetId', 'There is no such fleet here that you may read.');
      // A fleet is one owner's.
      await parts.share(callId, payer, first.owner);
      return readable.map(admit);
    },

    toChooseFrom: (limit) => toChooseFrom(registry, accountId, limit),

    last: (deviceId, sensors) => readings.last(numberOf(deviceId), sensors),
    lastPosition: (deviceId) => readings.lastPosition(numberOf(deviceId)),
    range: (deviceId, span) => readings.range(numberOf(deviceId), span),
    after: (deviceId, seq, limit) => readings.after(numberOf(deviceId), seq, limit),

    lastSeq: (deviceId) => readings.lastSeq(numberOf(deviceId)),

    exportAs(format, device, rows, sensors) {
      numberOf(device.deviceId);
      const { deviceId, simulated } = device;
      return files.make({
        format,
        deviceId,
        simulated,
        readings: rows,
        sensors: sensors.map((name) => ({ name, unit: device.sensors[name] ?? '' })),
      });
    },

    retentionDays,
  };
}

function fleetsIn(devices: readonly Device[], isOwn: boolean) {
  const counts = new Map<string, number>();
  for (const { fleetId } of devices)
    if (fleetId !== null) counts.set(fleetId, (counts.get(fleetId) ?? 0) + 1);
  return [...counts].map(([fleetId, count]) => ({ fleetId, devices: count, isOwn }));
}

async function toChooseFrom(
  registry: CapabilityParts['registry'],
  accountId: bigint | null,
  limit: number,
): Promise<DevicesToChooseFrom> {
  const own = accountId === null ? [] : await registry.ofOwner(accountId, MAX_LOOKED_THROUGH);
  const open = await registry.publicInFleets(MAX_LOOKED_THROUGH);
  const kept = own.filter(({ revokedAtMs }) => revokedAtMs === null);
  const others = open.filter(({ owner }) => owner !== accountId);
  const alone = kept.flatMap(({ deviceId, fleetId }) => (fleetId === null ? [deviceId] : []));
  return {
    fleets: [...fleetsIn(kept, true), ...fleetsIn(others, false)].slice(0, limit),
    alone: alone.slice(0, limit),
  };
}
