/** Three PostgreSQLs under Patroni, with etcd: the programs of the system, as an operator runs them, in one folder. */
import { type ChildProcess, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, connect as dial, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectDatabase } from '../../../../packages/core/src/db/connection.ts';
import { type Launcher, launcher } from '../../../../packages/process/src/embedded-postgres.ts';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { until } from './until.fixture.ts';

/** The least that Patroni takes for `ttl`; `loop_wait` and twice `retry_timeout` fit into it. */
const PERIODS = { ttl: 20, loop_wait: 2, retry_timeout: 5 };
/** A replica begins as a copy, and a machine may do much else meanwhile. */
const START_MS = 180_000;
const NAMES = ['one', 'two', 'three'] as const;
/** Where Debian and its kin keep PostgreSQL's programs, by version. */
const DEBIAN = '/usr/lib/postgresql';
const NEEDED = ['postgres', 'initdb', 'pg_basebackup', 'pg_rewind', 'pg_controldata', 'pg_isready'];

/** Why there can be no cluster here; false where there can. */
export const withoutPatroni: string | false = (() => {
  for (const program of ['patroni', 'etcd'])
    try {
      execFileSync(program, ['--version'], { stdio: 'ignore' });
    } catch {
      return `${program} is not on PATH`;
    }
  return binaries() === null ? `there is no PostgreSQL with ${NEEDED.join(', ')} below ${DEBIAN}` : false;
})();

function binaries(): string | null {
  if (!existsSync(DEBIAN)) return null;
  const versions = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a));
  const folders = versions.map((version) => join(DEBIAN, version, 'bin'));
  return folders.find((folder) => NEEDED.every((name) => existsSync(join(folder, name)))) ?? null;
}

export interface Member {
  readonly name: string;
  /** An address of this PostgreSQL alone, past its wire. */
  readonly url: string;
  /** Ends its PostgreSQL with `kill -9`. Its Patroni lives. */
  killPostgres(): void;
  /** Cuts the machine off: nothing reaches it, nothing leaves it, and no connection is closed. */
  cutOff(): void;
}

export interface PatroniCluster {
  /** An address with all hosts, for a server. */
  url: string;
  /** The member that holds the leader's key in etcd; null while nobody does. */
  leader(): Promise<Member | null>;
  /** Waits until both others follow the primary, one of them synchronously and named as the next. */
  whole(): Promise<void>;
  close(): Promise<void>;
}

interface Running extends Member {
  readonly data: string;
  readonly apiPort: number;
  readonly patroni: ChildProcess;
  readonly wires: readonly Wire[];
}

/** Starts all of it, with an empty database of ours. */
export async function startPatroniCluster(): Promise<PatroniCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-patroni-'));
  const launch = launcher(folder);
  const password = randomBytes(12).toString('hex');
  const etcd = await startEtcd(launch, folder);
  const members: Running[] = [];
  const killAll = () => {
    for (const { patroni, data, wires } of members) {
      patroni.kill('SIGKILL');
      killPostmaster(data);
      for (const wire of wires) wire.close();
    }
    etcd.process.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  const standing = async (): Promise<Standing[]> => {
    const asked = members.map(async (member) => {
      const answer = await fetch(`http://127.0.0.1:${member.apiPort}/patroni`, {
        signal: AbortSignal.timeout(2_000),
      });
      const standing: Standing = JSON.parse(await answer.text());
      return standing;
    });
    return (await Promise.allSettled(asked)).flatMap((each) =>
      each.status === 'fulfilled' ? [each.value] : [],
    );
  };
  const whole = () =>
    until(
      'a primary with two that follow',
      async () => {
        const all = await standing();
        const primary = all.find(({ role }) => role === 'master' || role === 'primary');
        const followers = primary?.replication?.filter(({ state }) => state === 'streaming') ?? [];
        // Who may take over stands in etcd: a primary that is lost before it has written that is started again in its place.
        const { sync_standby: next = null } = JSON.parse((await etcd.read('/farebox/shop/sync')) ?? '{}');
        return followers.length === 2 && next !== null;
      },
      START_MS,
    );
  try {
    for (const name of NAMES)
      members.push(await startMember({ launch, folder, password, name, etcdPort: etcd.port }));
    await whole();
    const first = members[0];
    if (first === undefined) throw new Error('there is no member');
    const hosts = members.map(({ wires }) => `127.0.0.1:${wires[0]?.port}`);
    const leader = async () => {
      const key = await etcd.read('/farebox/shop/leader');
      return members.find(({ name }) => name === key) ?? null;
    };
    const primary = (await leader()) ?? first;
    const admin = connectDatabase(primary.url.replace(/farebox$/, 'postgres'), 1);
    await admin.unsafe('create database farebox');
    await admin.end();
    return {
      url: `postgres://farebox:${password}@${hosts.join()}/farebox`,
      leader,
      whole,
      close: async () => killAll(),
    };
  } catch (error) {
    const words = NAMES.map((name) => lastWords(join(folder, `${name}.log`))).join('\n');
    killAll();
    throw new Error(`the cluster did not start:\n${words}`, { cause: error });
  }
}

/** A member as its Patroni describes it. https://patroni.readthedocs.io/en/latest/rest_api.html */
interface Standing {
  role: string;
  replication?: { state: string }[];
}

async function startEtcd(
  launch: Launcher,
  folder: string,
): Promise<{ port: number; process: ChildProcess; read(key: string): Promise<string | null> }> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const peers = `http://127.0.0.1:${await freePort()}`;
  const args = [
    ...['--data-dir', join(folder, 'etcd'), '--name', 'etcd', '--initial-cluster', `etcd=${peers}`],
    ...['--listen-client-urls', url, '--advertise-client-urls', url],
    ...['--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers],
    // The disk of a test may be slow, and there is nobody else to vote for.
    ...['--heartbeat-interval', '500', '--election-timeout', '5000'],
  ];
  const child = launch.spawn('etcd', args, openSync(join(folder, 'etcd.log'), 'a'));
  const read = async (key: string) => {
    const asked = await fetch(`${url}/v3/kv/range`, {
      method: 'POST',
      body: JSON.stringify({ key: Buffer.from(key).toString('base64') }),
    });
    const { kvs }: { kvs?: { value: string }[] } = JSON.parse(await asked.text());
    return kvs?.[0] === undefined ? null : Buffer.from(kvs[0].value, 'base64').toString();
  };
  await until(
    'etcd to answer',
    () =>
      read('/').then(
        () => true,
        () => false,
      ),
    START_MS,
  );
  return { port, process: child, read };
}

async function startMember(parts: {
  launch: Launcher;
  folder: string;
  password: string;
  name: string;
  etcdPort: number;
}): Promise<Running> {
  const { launch, folder, password, name } = parts;
  const [port, apiPort] = [await freePort(), await freePort()];
  const url = `postgres://farebox:${password}@127.0.0.1:${port}/farebox`;
  // Whatever goes to this machine or leaves it goes by a wire, which can be cut.
  const wires = [await startWire(port), await startWire(parts.etcdPort), await startWire(apiPort)];
  const [toPostgres, toEtcd, toApi] = wires.map((wire) => `127.0.0.1:${wire.port}`);
  const home = join(folder, name);
  mkdirSync(home, { mode: 0o700 });
  const data = join(home, 'data');
  const configuration = {
    scope: 'shop',
    namespace: '/farebox/',
    name,
    restapi: { listen: `127.0.0.1:${apiPort}`, connect_address: toApi },
    // As a proxy: the address that etcd gives of itself would lead past the wire.
    etcd3: { proxy: `http://${toEtcd}` },
    bootstrap: {
      dcs: {
        ...PERIODS,
        primary_start_timeout: 0,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        postgresql: { use_pg_rewind: true, parameters: { max_connections: 80, shared_buffers: '32MB' } },
      },
      initdb: [{ encoding: 'UTF8' }, 'no-locale', { auth: 'scram-sha-256' }],
      pg_hba: ['host all all 127.0.0.1/32 scram-sha-256', 'host replication all 127.0.0.1/32 scram-sha-256'],
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: toPostgres,
      data_dir: data,
      bin_dir: binaries(),
      pgpass: join(home, 'pgpass'),
      authentication: Object.fromEntries(
        [
          ['superuser', 'farebox'],
          ['replication', 'follower'],
          ['rewind', 'rewinder'],
        ].map(([role, username]) => [role, { username, password }]),
      ),
      parameters: { unix_socket_directories: '' },
    },
  };
  const file = join(home, 'patroni.yml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(configuration), { mode: 0o600 });
  const patroni = launch.spawn('patroni', [file], openSync(join(folder, `${name}.log`), 'a'));
  return {
    name,
    url,
    data,
    apiPort,
    patroni,
    wires,
    killPostgres: () => killPostmaster(data),
    cutOff() {
      for (const wire of wires) wire.cut();
    },
  };
}

interface Wire {
  readonly port: number;
  /** From now on no connection carries anything, new ones neither; none is closed. */
  cut(): void;
  close(): void;
}

/** A way to a port of this machine. */
async function startWire(to: number): Promise<Wire> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const hold = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    hold(client);
    if (isCut) {
      client.pause();
      return;
    }
    const target = dial(to, '127.0.0.1');
    hold(target);
    client.pipe(target).pipe(client);
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const)
      one.on('error', () => other.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the wire has no port');
  return {
    port: address.port,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function killPostmaster(data: string): void {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return;
  try {
    process.kill(Number(readFileSync(file, 'utf8').split('\n')[0]), 'SIGKILL');
  } catch {
    // It has ended.
  }
}

function lastWords(log: string): string {
  return existsSync(log) ? `${log}:\n${readFileSync(log, 'utf8').slice(-3_000)}` : '';
}
