/**
 * Devices of the sandbox: programs that register at a server as any owner would, and report to it over its own broker,
 * or by HTTPS if it has none. Their readings are simulated, and they declare that when they register.
 */
import { createHash, createPrivateKey, sign } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { connectAsync, type MqttClient } from 'mqtt';

const MINUTE_MS = 60_000;
/** A new device also reports this much of the time before its start, so that it has a history. */
const BACKLOG_MINUTES = 60;
const PUBLISH_MS = 10_000;
/** How often a device tries to begin: a machine that has just started the whole sandbox is busy. */
const FIRST_TRIES = 6;

interface Demo {
  deviceId: string;
  name: string;
  fleetId: string | null;
  sensors: Readonly<Record<string, string>>;
  place: { lat: number; lon: number } | null;
  reading(minute: number): { values: Record<string, number>; position?: { lat: number; lon: number } };
}

/** A number from 0 to 1 that follows from names: the same minute brings the same weather again. */
function chance(...names: readonly (string | number)[]): number {
  return createHash('sha256').update(names.join(':')).digest().readUInt32BE(0) / 0xffffffff;
}
const rounded = (value: number, places = 1) => Math.round(value * 10 ** places) / 10 ** places;
/** By the hour of the day, from -1 at night to 1. */
const daily = (minute: number) => Math.sin(((minute % 1_440) / 1_440 - 0.25) * 2 * Math.PI);

const STATION = { temperature: 'celsius', humidity: 'percent', pressure: 'hPa' };
const ROOM = { ...STATION, co2: 'ppm', light: 'lux', motion: 'boolean', vibration: 'm/s2' };

function air(deviceId: string, minute: number) {
  return {
    temperature: rounded(14 + 6 * daily(minute) + chance(deviceId, minute, 't') - 0.5),
    humidity: rounded(60 - 15 * daily(minute) + 4 * chance(deviceId, minute, 'h')),
    pressure: rounded(1_013 + 8 * chance(deviceId, Math.floor(minute / 720), 'p')),
  };
}

function room(deviceId: string, name: string): Demo {
  return {
    deviceId,
    name,
    fleetId: null,
    sensors: ROOM,
    place: { lat: 52.37, lon: 4.9 },
    reading: (minute) => ({
      values: {
        ...air(deviceId, minute),
        co2: Math.round(420 + 380 * chance(deviceId, Math.floor(minute / 30), 'c')),
        light: Math.round(Math.max(0, 600 * daily(minute))),
        motion: chance(deviceId, minute, 'm') > 0.8 ? 1 : 0,
        vibration: rounded(0.2 * chance(deviceId, minute, 'v'), 3),
      },
    }),
  };
}

/** Drives around a block for twenty minutes, stands for ten, its engine on for the first five of them. */
function truck(deviceId: string, lat: number, lon: number): Demo {
  return {
    deviceId,
    name: `Delivery truck ${deviceId.at(-1)}`,
    fleetId: 'fleet-001',
    place: null,
    sensors: { speed: 'km/h', heading: 'degrees', fuelLevel: 'percent', ignition: 'boolean', odometer: 'km' },
    reading(minute) {
      const shift = Math.floor(chance(deviceId) * 30);
      const phase = (minute + shift) % 30;
      const moving = phase < 20;
      const along = moving ? phase : 20;
      const angle = (along / 20) * 2 * Math.PI;
      return {
        values: {
          speed: moving ? rounded(35 + 10 * chance(deviceId, minute, 's')) : 0,
          heading: rounded((along / 20) * 360) % 360,
          fuelLevel: rounded(90 - ((minute + shift) % 1_440) / 24),
          ignition: phase < 25 ? 1 : 0,
          odometer: rounded(120_000 + Math.floor(((minute + shift) % 525_600) / 30) * 12 + along * 0.6),
        },
        position: {
          lat: rounded(lat + 0.017 * Math.sin(angle), 5),
          lon: rounded(lon + 0.027 * (Math.cos(angle) - 1), 5),
        },
      };
    },
  };
}

const DEVICES: readonly Demo[] = [
  room('iot-device-001', 'Demo room sensor'),
  room('iot-device-002', 'Demo greenhouse'),
  {
    deviceId: 'ws-atl-001',
    name: 'Demo weather station',
    fleetId: null,
    sensors: STATION,
    place: { lat: 33.75, lon: -84.39 },
    reading: (minute) => ({ values: air('ws-atl-001', minute) }),
  },
  truck('demo-truck-1', 52.36, 4.89),
  truck('demo-truck-2', 52.09, 5.12),
  truck('demo-truck-3', 51.92, 4.48),
];

/** What a device must know to report. */
interface Credential {
  secret: string;
  mqtt: { url: string; topic: string } | null;
}
type Credentials = Record<string, Credential>;

export interface SandboxDevices {
  /** Stops reporting. */
  stop(): Promise<void>;
}

export interface DevicesParts {
  serverUrl: string;
  /** Of the account that owns them. */
  apiKey: string;
  /** The certificate of the server's broker, in PEM. */
  ca: string | null;
  /** How often each reports. */
  everyMs: number;
  nowMs(): number;
  failed(what: string): void;
}

/**
 * Registers them, and starts them once each has reported its last hour.
 *
 * @throws Error when the server does not take one, or one cannot report in a minute
 */
export async function startDevices(parts: DevicesParts): Promise<SandboxDevices> {
  const credentials = await registered(parts);
  const running = await Promise.all(
    DEVICES.map(async (device) => {
      const credential = credentials[device.deviceId];
      if (credential === undefined) throw new Error(`${device.deviceId} has no secret`);
      return run(device, credential, parts);
    }),
  );
  return {
    async stop() {
      await Promise.all(running.map((each) => each.stop()));
    },
  };
}

async function registered({ serverUrl, apiKey }: DevicesParts): Promise<Credentials> {
  const credentials: Credentials = {};
  const post = async (path: string, body: object) => {
    const answer = await fetch(serverUrl + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': apiKey },
      body: JSON.stringify(body),
    });
    return { status: answer.status, told: (await answer.json()) as Credential & { message?: string } };
  };
  for (const { deviceId, name, fleetId, sensors, place } of DEVICES) {
    const about = { deviceId, name, fleetId, sensors, place, public: true, simulated: true };
    let { status, told } = await post('/api/devices', about);
    // A device that exists from an earlier start gets a new secret, so no secret has to be stored.
    if (status === 409) ({ status, told } = await post(`/api/devices/${deviceId}/rotate`, {}));
    if (status >= 300) throw new Error(`${deviceId} was not registered: ${told.message ?? status}`);
    credentials[deviceId] = { secret: told.secret, mqtt: told.mqtt };
  }
  return credentials;
}

async function run(device: Demo, credential: Credential, parts: DevicesParts): Promise<SandboxDevices> {
  const send = await begun(device, credential, parts);
  let last = 0;
  const report = async () => {
    const atMs = Math.floor(parts.nowMs() / 1_000) * 1_000;
    if (atMs === last) return;
    last = atMs;
    await send.report({ at: new Date(atMs).toISOString(), ...device.reading(Math.floor(atMs / MINUTE_MS)) });
  };
  const beat = () =>
    report().catch((error: unknown) =>
      parts.failed(`${device.deviceId}: ${error instanceof Error ? error.message : error}`),
    );
  await beat();
  const timer = setInterval(() => void beat(), parts.everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await send.end();
    },
  };
}

/** Connects, and reports the last hour. After a failure it does so again when the next report is due. @throws the last failure */
async function begun(device: Demo, credential: Credential, parts: DevicesParts): Promise<Sender> {
  for (let triesLeft = FIRST_TRIES - 1; ; triesLeft -= 1) {
    let send: Sender | null = null;
    try {
      send =
        credential.mqtt === null
          ? overHttps(device, credential, parts)
          : await overMqtt(device, credential, parts);
      await send.report(lastHour(device, parts.nowMs()));
      return send;
    } catch (error) {
      await send?.end();
      if (triesLeft === 0) throw error;
      await pause(parts.everyMs);
    }
  }
}

function lastHour(device: Demo, nowMs: number): object[] {
  const first = Math.floor(nowMs / MINUTE_MS) - BACKLOG_MINUTES;
  return Array.from({ length: BACKLOG_MINUTES }, (_, nth) => ({
    at: new Date((first + nth) * MINUTE_MS).toISOString(),
    ...device.reading(first + nth),
  }));
}

interface Sender {
  /** @throws Error when it is not stored */
  report(report: object): Promise<void>;
  end(): Promise<void>;
}

async function overMqtt(
  { deviceId }: Demo,
  { secret, mqtt }: Credential,
  { ca, failed, serverUrl }: DevicesParts,
): Promise<Sender> {
  if (mqtt === null) throw new Error('there is no broker');
  const url = `mqtts://${new URL(serverUrl).hostname}:${new URL(mqtt.url).port}`;
  const client: MqttClient = await connectAsync(url, {
    username: deviceId,
    password: secret,
    clientId: deviceId,
    protocolVersion: 4,
    keepalive: 60,
    ...(ca === null ? {} : { ca }),
    reconnectPeriod: 2_000,
    // It would make a buffer of each number of a packet in advance: 12 MB for a handful of packets a minute.
    writeCache: false,
  });
  client.on('error', (error) => failed(`${deviceId}: ${error.message}`));
  return {
    async report(report) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error('no PUBACK came')), PUBLISH_MS);
      });
      await Promise.race([client.publishAsync(mqtt.topic, JSON.stringify(report), { qos: 1 }), late]).finally(
        () => clearTimeout(timer),
      );
    },
    end: () => client.endAsync(true),
  };
}

function overHttps({ deviceId }: Demo, { secret }: Credential, { serverUrl, nowMs }: DevicesParts): Sender {
  const key = createPrivateKey({
    key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.from(secret, 'hex')]),
    format: 'der',
    type: 'pkcs8',
  });
  return {
    async report(report) {
      const body = JSON.stringify(report);
      const timestamp = String(Math.floor(nowMs() / 1_000));
      const signature = sign(null, Buffer.from(`${deviceId}\n${timestamp}\n${body}`), key).toString('hex');
      const answer = await fetch(`${serverUrl}/api/devices/${deviceId}/readings`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-device-timestamp': timestamp,
          'x-device-signature': signature,
        },
        body,
      });
      if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
    },
    async end() {},
  };
}
