/** (p) devices that send a reading a second each over MQTT and TLS, every one committed before its PUBACK leaves, against the broker alone. */
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDeviceRegistry } from '../packages/catalogue/src/devices/registry.ts';
import { connectPools } from '../packages/core/src/db/connection.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { freePort } from '../packages/process/src/free-port.ts';
import { makeCertificate } from '../packages/sandbox/src/devices/certificate.ts';
import { order, startProgram } from './answering-process.ts';
import type { DeviceOrder, DeviceRound, LoadDevice } from './devices-load-program.ts';
import { startFarebox } from './farebox.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

/** Some account: no key leads to it, and nothing is sold. */
const OWNER = 999_999n;
const METRICS_TOKEN = 'of-the-benchmark-alone';
/** The load is open: each device sends on its second. Who keeps up acknowledges as much as was sent. */
const GOAL_KEEPS_UP = { atLeast: 0.95 };
const BROKER = join(import.meta.dirname, 'broker-program.ts');
const LOAD = join(import.meta.dirname, 'devices-load-program.ts');

interface Measured extends DeviceRound {
  /** Of the process that listens, for a thousand readings. */
  processorMs: number;
}

export async function measureDevices(
  resources: Resources,
  { rounds, devices: { count, roundSeconds, warmUpSeconds } }: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const folder = resources.folder();
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const { cert, key } = makeCertificate(new Date(Date.now() - 60_000));
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);

  const broker = await startProgram<{ port: number }>(resources, BROKER, {
    environment: { ...process.env, BENCH_CERT_FILE: certFile, BENCH_KEY_FILE: keyFile },
  });
  const dataDir = resources.folder();
  const port = await freePort();
  const url = await startFarebox(resources, dataDir, {
    DEVICE_MQTT_PORT: String(port),
    DEVICE_MQTT_CERT_FILE: certFile,
    DEVICE_MQTT_KEY_FILE: keyFile,
    METRICS_TOKEN,
  });
  const devices = await registered(dataDir, count);
  const sides = {
    ours: await connected(resources, port, devices),
    theirs: await connected(resources, broker.first.port, devices),
  };
  const processor = {
    ours: async () => (await metricsOf(url)).processorSeconds,
    theirs: () => order<object, number>(broker.child, {}),
  };
  let sent = 0;
  const send = async (side: keyof typeof sides, seconds: number): Promise<Measured> => {
    const before = await processor[side]();
    const round = await order<DeviceOrder, DeviceRound>(sides[side], { seconds });
    const processorMs = (((await processor[side]()) - before) / round.sent) * 1e6;
    if (round.acknowledged !== round.sent)
      throw new Error(
        `(p) ${round.sent - round.acknowledged} of ${round.sent} readings were not acknowledged`,
      );
    if (side === 'ours') sent += round.sent;
    return { ...round, processorMs };
  };
  await send('ours', warmUpSeconds);
  await send('theirs', warmUpSeconds);
  const { residentMb: before } = await metricsOf(url);
  const found = await alternate(
    rounds,
    () => send('ours', roundSeconds),
    () => send('theirs', roundSeconds),
  );
  const { residentMb: after } = await metricsOf(url);
  const stored = await storedIn(dataDir);
  if (stored !== sent) throw new Error(`(p) ${sent} readings were acknowledged, and ${stored} are stored`);
  const behindMs = Math.max(...[...found.ours, ...found.opponent].map((each) => each.behindMs));
  return {
    lines: linesOf(found, count),
    notes: [
      `(p) ${stored} readings were sent, acknowledged and stored, each once; at the worst a round's last reading was sent ${Math.round(behindMs)} ms late`,
      `(p) main.ts held ${Math.round(before)} MB before the rounds and ${Math.round(after)} MB after them`,
    ],
  };
}

function linesOf(found: { ours: Measured[]; opponent: Measured[] }, count: number): ComparedLine[] {
  const line = (
    measured: string,
    unit: ComparedLine['unit'],
    pick: Exclude<keyof Measured, 'sent' | 'acknowledged' | 'behindMs'>,
    goal: ComparedLine['goal'] = null,
  ): ComparedLine => ({
    part: 'p',
    measured,
    unit,
    goal,
    ...compare(
      found.ours.map((each) => each[pick]),
      found.opponent.map((each) => each[pick]),
    ),
  });
  return [
    line(`${count} devices, a reading a second`, 'readings/s', 'perSecond', GOAL_KEEPS_UP),
    line('PUBACK, p50', 'ms', 'p50Ms'),
    line('PUBACK, p99', 'ms', 'p99Ms'),
    line('processor of the listening process, 1,000 readings', 'ms', 'processorMs'),
  ];
}

async function connected(resources: Resources, port: number, devices: LoadDevice[]): Promise<ChildProcess> {
  const { child } = await startProgram(resources, LOAD, { environment: process.env });
  await order<DeviceOrder, null>(child, { connect: { port, devices } });
  return child;
}

async function metricsOf(url: string): Promise<{ processorSeconds: number; residentMb: number }> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
  const text = await response.text();
  const value = (name: string) => {
    const [, told] = new RegExp(`^${name} (\\S+)`, 'm').exec(text) ?? [];
    if (told === undefined) throw new Error(`the server does not tell ${name}`);
    return Number(told);
  };
  return {
    processorSeconds: value('process_cpu_seconds_total'),
    residentMb: value('process_resident_memory_bytes') / 2 ** 20,
  };
}

async function withDatabase<Result>(
  dataDir: string,
  work: (sql: ReturnType<typeof connectPools>['sql']) => Promise<Result>,
): Promise<Result> {
  const embedded = await startEmbeddedPostgres(dataDir);
  const pools = connectPools(embedded.url, 4);
  try {
    return await work(pools.sql);
  } finally {
    await Promise.all([pools.sql.end({ timeout: 5 }), pools.commits.end({ timeout: 5 })]);
    await embedded.stop();
  }
}

/** As their owner would, without the requests. */
function registered(dataDir: string, count: number): Promise<LoadDevice[]> {
  return withDatabase(dataDir, async (sql) => {
    const registry = createDeviceRegistry(sql, { nowMs: Date.now, perAccount: count });
    const devices: LoadDevice[] = [];
    for (let nth = 0; nth < count; nth++) {
      const deviceId = `bench-${nth}`;
      const device = await registry.register({
        deviceId,
        owner: OWNER,
        name: null,
        fleetId: null,
        public: true,
        simulated: false,
        place: null,
        sensors: { temperature: 'celsius' },
      });
      if (typeof device === 'string' || 'conflict' in device)
        throw new Error(`${deviceId}: ${JSON.stringify(device)}`);
      devices.push({ deviceId, secret: device.secret });
    }
    return devices;
  });
}

function storedIn(dataDir: string): Promise<number> {
  return withDatabase(dataDir, async (sql) => {
    const [row] = await sql<{ count: number }[]>`select count(*)::integer as count from device_readings`;
    return row?.count ?? 0;
  });
}
