import { readFile } from 'node:fs/promises';
import type { Payer } from '@farebox/core/custody/owner';
import type { Database } from '@farebox/core/db/connection';
import type { Configured } from '@farebox/core/declared';
import type { Job } from '@farebox/core/jobs/schedule';
import type { Keys } from '@farebox/core/keys/keys';
import { microsToUsd } from '@farebox/core/ledger/money';
import type { House, Part } from '@farebox/core/part';
import { StartError } from '@farebox/process/start-error';
import { type Broker, type BrokerParts, type Certificate, openBroker, topicOf } from './broker.ts';
import { devicesFor } from './capability.ts';
import { DEVICES } from './declared.ts';
import { createExports, type Exports } from './exports.ts';
import { createDeviceMetrics } from './metrics.ts';
import { DEVICE_OPERATIONS } from './operations.ts';
import { createDays, type Days, dropOldDays } from './partitions.ts';
import { createReadings } from './readings.ts';
import { createRefusals, type Refusals } from './refusals.ts';
import { createDeviceRegistry, type DeviceRegistry } from './registry.ts';
import { REPORT_HEADERS, REPORTS_PER_ADDRESS_PER_MINUTE, reportRoutes } from './report-routes.ts';
import { createReporting } from './reporting.ts';
import { DEVICE_REQUESTS_PER_MINUTE, deviceRoutes } from './routes.ts';

export { DEVICES };

const HOUR_MS = 3_600_000;
const CONNECTIONS_PER_ADDRESS_PER_MINUTE = 6_000;
/** Pings and the like. */
const PACKETS_BESIDE_REPORTS_PER_MINUTE = 60;
/** A device that lost its acknowledgements sends again what is known, which costs it nothing. */
const PACKETS_FOR_A_REPORT = 10;
const REFUSALS_LOOKED_AT_MS = 10_000;
const CERTIFICATE_LOOKED_AT_MS = 60_000;
/** The time by which a connection outlives a secret that ended on another replica. */
const CREDENTIALS_LOOKED_AT_MS = 30_000;

/** The owners' shares of a price, as kept by the part that takes the price. Amounts are micro-USD. */
interface Shares {
  note(share: { callId: string; payer: Payer; beneficiary: bigint; partPerMillion: bigint }): Promise<void>;
  earned(accountId: bigint): Promise<{
    calls: number;
    earnedMicros: bigint;
    paidMicros: bigint;
    dueMicros: bigint;
    /** The part of it that waits for more than the usual time, and below it for what. */
    heldMicros: bigint;
    heldFor: readonly string[];
  }>;
}

interface Mqtt {
  port: number;
  certFile: string;
  keyFile: string;
}

interface DeviceNeeds {
  keys: Keys;
  shares: Shares;
  /** Where the broker listens. */
  host: string;
  /** False in production: there nothing is sold that its own owner calls made up. */
  acceptSimulated: boolean;
}

/** Devices that report: their credentials, what they report, and to whom it is sold. */
export function openDevices(
  house: House,
  { settings }: Configured<typeof DEVICES.variables>,
  needs: DeviceNeeds,
): Part {
  const { nowMs, baseUrl, addressOf, pools } = house;
  const { keys, host, acceptSimulated, shares } = needs;
  const partPerMillion = BigInt(settings.ownerSharePercent) * 10_000n;
  const share = (callId: string, payer: Payer, beneficiary: bigint) =>
    shares.note({ callId, payer, beneficiary, partPerMillion });
  const { retentionDays, backfillMs, perAccount } = settings;
  const registry = createDeviceRegistry(pools.sql, { nowMs, perAccount });
  const days = createDays(pools.sql, nowMs);
  const readings = createReadings(pools.sql, nowMs, days);
  const files = createExports(pools.sql, { nowMs, baseUrl });
  const metrics = createDeviceMetrics({
    connected: () => broker?.connected ?? 0,
    waiting: () => readings.depth,
  });
  const { report } = metrics;
  const refusals = createRefusals(pools.sql, { nowMs, backfillMs, readings, report });
  const limit = house.limit(settings.reportsPerMinute);
  const reporting = createReporting({ registry, readings, refusals, limit, backfillMs, nowMs, report });
  const mqtt = mqttOf(settings);
  const common = { registry, readings, refusals, exports: files, retentionDays, addressOf, nowMs };
  let broker: Broker | null = null;

  return {
    name: 'devices',
    assets: { '/devices': 'devices.html' },
    operations: [DEVICE_OPERATIONS],
    requestHeaders: REPORT_HEADERS,
    metrics: metrics.registry,
    capabilities: [
      {
        name: 'devices',
        configured: true,
        setBy: 'DEVICE_RETENTION_DAYS',
        forPayer: (proof) => devicesFor(proof, { ...common, share }),
      },
    ],
    async prepare() {
      // Before the first reading. Where they cannot be made now, readings wait for their days.
      await days.make().catch((error: unknown) => house.logger.warn({ err: error }, 'days of readings'));
      const limit = house.limitByAddress(CONNECTIONS_PER_ADDRESS_PER_MINUTE);
      const parts = { registry, reporting, limit, ...boundsOf(settings) };
      if (mqtt !== null) broker = await openMqtt({ ...mqtt, host }, parts);
    },
    drain: () => void broker?.close(),
    routes(http) {
      deviceRoutes(http, {
        ...common,
        keys,
        acceptSimulated,
        takeDue: () => void refusals.takeDue().catch(() => {}),
        connection: (deviceId) => connectionOf(deviceId, baseUrl, broker),
        earnings: (accountId) => earningsOf(shares, accountId, settings.ownerSharePercent),
        disconnect: ({ deviceId }) => broker?.disconnect(deviceId),
        limit: house.limitByAddress(DEVICE_REQUESTS_PER_MINUTE),
      });
      const limit = house.limitByAddress(REPORTS_PER_ADDRESS_PER_MINUTE);
      reportRoutes(http, { ...common, reporting, limit });
    },
    jobs: jobsOf(pools.sql, { ...common, days, mqtt, broker: () => broker }),
    async close() {
      await Promise.all([broker?.close(), files.close()]);
    },
  };
}

function jobsOf(
  sql: Database,
  parts: {
    registry: Pick<DeviceRegistry, 'changed'>;
    exports: Pick<Exports, 'dropExpired'>;
    refusals: Pick<Refusals, 'takeDue' | 'dropOld'>;
    days: Pick<Days, 'make'>;
    retentionDays: number;
    nowMs(): number;
    mqtt: Mqtt | null;
    broker(): Broker | null;
  },
): Job[] {
  const { registry, exports: files, refusals, days, retentionDays, nowMs } = parts;
  return [
    // Two days ahead and each hour: a lock on the table may be held for a day before a reading waits for it.
    { name: 'make-days-of-readings', intervalMs: HOUR_MS, run: () => days.make() },
    {
      name: 'drop-old-readings',
      intervalMs: HOUR_MS,
      run: () => dropOldDays(sql, { nowMs: nowMs(), retentionDays }),
    },
    {
      name: 'end-lost-credentials',
      intervalMs: CREDENTIALS_LOOKED_AT_MS,
      async run() {
        const broker = parts.broker();
        if (broker === null) return;
        for (const { deviceId } of await registry.changed(broker.devices())) broker.disconnect(deviceId);
      },
    },
    {
      name: 'take-refused-reports',
      intervalMs: REFUSALS_LOOKED_AT_MS,
      run: (stopping) => refusals.takeDue(stopping),
    },
    { name: 'drop-refused-reports', intervalMs: HOUR_MS, run: () => refusals.dropOld() },
    { name: 'drop-device-exports', intervalMs: HOUR_MS, run: async () => void (await files.dropExpired()) },
    takeUpCertificate(parts.mqtt, parts.broker),
  ];
}

/** A certificate is renewed in its files, and who connects from then on sees the new one. */
function takeUpCertificate(mqtt: Mqtt | null, broker: () => Broker | null): Job {
  let used: Certificate | null = null;
  return {
    name: 'take-up-certificate',
    intervalMs: CERTIFICATE_LOOKED_AT_MS,
    async run() {
      if (mqtt === null) return;
      const found = await certificateIn(mqtt);
      if (found.cert === used?.cert && found.key === used.key) return;
      // While one of the two files is new and the other is not, the old certificate stays.
      broker()?.renew(found);
      used = found;
    },
  };
}

async function certificateIn({ certFile, keyFile }: Mqtt): Promise<Certificate> {
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
  return { cert, key };
}

/** Shows what an account has earned. */
async function earningsOf(shares: Shares, accountId: bigint, sharePercent: number) {
  const { calls, earnedMicros, paidMicros, dueMicros, heldMicros, heldFor } = await shares.earned(accountId);
  return {
    sharePercent,
    calls,
    earnedUsd: microsToUsd(earnedMicros),
    paidUsd: microsToUsd(paidMicros),
    dueUsd: microsToUsd(dueMicros),
    heldUsd: microsToUsd(heldMicros),
    heldFor,
  };
}

/** How a device reports. */
function connectionOf(deviceId: string, baseUrl: string, broker: Broker | null) {
  const mqtt = {
    url: `mqtts://${new URL(baseUrl).hostname}:${broker?.port}`,
    username: deviceId,
    password: 'the secret',
    topic: topicOf(deviceId),
    qos: 1,
  };
  return {
    mqtt: broker === null ? null : mqtt,
    https: {
      url: `${baseUrl}/api/devices/${deviceId}/readings`,
      headers: REPORT_HEADERS,
      signature: 'Ed25519 with the secret as its seed, over: deviceId, line feed, timestamp, line feed, body',
    },
  };
}

/** @throws StartError when the port is taken, or the certificate is none */
function boundsOf({
  mqttConnections: maxConnections,
  reportsPerMinute,
}: Configured<typeof DEVICES.variables>['settings']) {
  const packetsPerMinute = PACKETS_FOR_A_REPORT * reportsPerMinute + PACKETS_BESIDE_REPORTS_PER_MINUTE;
  return { maxConnections, packetsPerMinute };
}

async function openMqtt(at: Mqtt & { host: string }, parts: BrokerParts): Promise<Broker> {
  try {
    return await openBroker({ host: at.host, port: at.port, ...(await certificateIn(at)) }, parts);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(`DEVICE_MQTT_PORT: devices cannot be served: ${why}`, { cause });
  }
}

/** Null: devices report by HTTPS alone. */
function mqttOf({
  mqttPort: port,
  mqttCertFile: certFile,
  mqttKeyFile: keyFile,
}: Configured<typeof DEVICES.variables>['settings']): Mqtt | null {
  return port === null || certFile === null || keyFile === null ? null : { port, certFile, keyFile };
}
