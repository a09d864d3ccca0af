/**
 * The MQTT broker (MQTT 3.1.1 over TLS). A device is its credential: user name and client id are its id, the password its
 * secret. It may publish readings to its own topic, and nothing else. A PUBACK leaves once the readings are committed; what
 * is refused is not acknowledged, and the connection ends.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { Aedes, type AedesOptions, type Client } from 'aedes';
import type { RateLimit } from '../http/rate-limit.ts';
import { boundedFrames } from './bounded-frames.ts';
import { isSecretOf } from './credential.ts';
import type { Device, DeviceRegistry } from './registry.ts';
import { MAX_REPORT_BYTES } from './report.ts';
import type { Reporting } from './reporting.ts';
import { DEVICE_ID } from './routes.ts';
import { createTurns } from './turns.ts';

/** Beside the report itself a packet has a topic and an id. */
const MAX_PACKET_BYTES = MAX_REPORT_BYTES + 1_024;
/** For TLS, and then for the first packet. */
const HELLO_MS = 5_000;
/** After a restart all devices come at once. A handshake takes about a millisecond of the processor, and it begins in its turn. */
const HANDSHAKES_IN_A_TURN = 4;
/** The system keeps so many that the process has not taken yet, where it may; of more it loses some, seconds later. */
const BACKLOG = 4_096;
/** Clients of MQTT wait so long for an answer, and begin anew. */
const WAIT_MS = 30_000;
/** A client that promises a sign of life less often than this is not let in. One that breaks it is cut off. */
const KEEP_ALIVE_LIMIT_S = 300;
const DRAIN_MS = 10_000;

/** CONNACK's reasons (MQTT 3.1.1, 3.2.2.3). */
const UNAVAILABLE = 3;
const BAD_CREDENTIALS = 4;

export interface BrokerParts {
  registry: Pick<DeviceRegistry, 'find'>;
  reporting: Reporting;
  /** Connections, by address. */
  limit: RateLimit;
  /** Packets of one connection, of whatever kind. */
  packetsPerMinute: number;
  maxConnections: number;
}

export interface Broker {
  readonly port: number;
  /** How many devices are connected. */
  readonly connected: number;
  /** The devices that are connected, as they were when they came. */
  devices(): Device[];
  disconnect(deviceId: string): void;
  close(): Promise<void>;
}

export function topicOf(deviceId: string): string {
  return `devices/${deviceId}/readings`;
}

/** Opens it. @throws when the port is taken, or the certificate is none */
export async function openBroker(
  at: { host: string; port: number; cert: string; key: string },
  { registry, reporting, ...bounds }: BrokerParts,
): Promise<Broker> {
  const devices = new WeakMap<Client, Device>();

  const broker = await Aedes.createBroker(rulesOf({ registry, reporting }, devices));
  const { server, stopWaiting } = listenerOf(at, broker, bounds);
  server.listen({ port: at.port, host: at.host, backlog: BACKLOG });
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the broker has no port');

  /** The broker's own table of clients, which its types do not show. */
  const clients = () => (broker as unknown as { clients: Record<string, Client> }).clients;
  return {
    port: address.port,
    get connected() {
      return broker.connectedClients;
    },
    devices: () => Object.values(clients()).flatMap((client) => devices.get(client) ?? []),
    disconnect: (deviceId) => clients()[deviceId]?.close(),
    async close() {
      server.close();
      stopWaiting();
      await new Promise<void>((resolve) => broker.close(() => resolve()));
    },
  };
}

/** Where devices connect, and how those that wait for their turn are ended. */
function listenerOf(
  { cert, key }: { cert: string; key: string },
  broker: Aedes,
  { limit, maxConnections, packetsPerMinute }: Omit<BrokerParts, 'registry' | 'reporting'>,
): { server: Server; stopWaiting(): void } {
  const tls = createTlsServer(
    { cert, key, minVersion: 'TLSv1.2', handshakeTimeout: HELLO_MS },
    (socket: TLSSocket) => {
      const bounded = boundedFrames(socket, { maxBytes: MAX_PACKET_BYTES, packetsPerMinute });
      // It has an error for everything that goes wrong on it; the broker hears of it too.
      bounded.on('error', () => {});
      broker.handle(bounded);
    },
  );
  // A handshake that is over its time is told of here, and its connection stays open.
  tls.on('tlsClientError', (_error, socket) => socket.destroy());
  // The clock of a handshake begins with it, and not while it waits behind a thousand others.
  const turns = createTurns(
    { each: HANDSHAKES_IN_A_TURN, waitMs: WAIT_MS },
    (socket) => void tls.emit('connection', socket),
  );
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    // Before a handshake is paid for.
    if (limit.take(socket.remoteAddress ?? '').allowed) turns.wait(socket);
    else socket.destroy();
  });
  // Those that wait are counted too.
  server.maxConnections = maxConnections;
  return { server, stopWaiting: turns.close };
}

/** Who may connect, and what they may do. @param devices filled with who connects */
function rulesOf(
  { registry, reporting }: Pick<BrokerParts, 'registry' | 'reporting'>,
  devices: WeakMap<Client, Device>,
): AedesOptions {
  /** @returns null when it is not that device, or it was revoked */
  async function deviceOf(name: string | undefined, password: Buffer | undefined): Promise<Device | null> {
    if (name === undefined || password === undefined || !DEVICE_ID.test(name)) return null;
    const device = await registry.find(name);
    if (device === null || device.revokedAtMs !== null) return null;
    return isSecretOf(password.toString('latin1'), device.publicKey) ? device : null;
  }

  return {
    connectTimeout: HELLO_MS,
    drainTimeout: DRAIN_MS,
    keepaliveLimit: KEEP_ALIVE_LIMIT_S,
    maxClientsIdLength: 64,
    maxTopicLevels: 3,
    // Nobody listens: what the broker tells of itself goes nowhere.
    heartbeatInterval: 3_600_000,

    authenticate(client, username, password, done) {
      deviceOf(username, password).then(
        (device) => {
          if (device === null) {
            done(
              Object.assign(new Error('this is no device of ours'), { returnCode: BAD_CREDENTIALS }),
              null,
            );
            return;
          }
          // Whatever it calls itself: so it ends its own earlier connection, and nobody else's.
          client.id = device.deviceId;
          devices.set(client, device);
          done(null, true);
        },
        () => done(Object.assign(new Error('nobody can say'), { returnCode: UNAVAILABLE }), null),
      );
    },

    authorizePublish(client, packet, done) {
      // A will is written when its connection begins, so it measured nothing. The library hands it over without a command.
      if (client === null || packet.cmd !== 'publish') return done(new Error('a will is no report'));
      // MQTT 3.1.1, 2.3.1-1: nothing could acknowledge it.
      if (packet.qos > 0 && packet.messageId === 0) return done(new Error('an id of a packet is not 0'));
      const device = devices.get(client);
      if (device === undefined || packet.topic !== topicOf(device.deviceId))
        return done(new Error('a device publishes to its own topic'));
      if (packet.qos === 2) return done(new Error('QoS 2 is not offered: what is sent again is stored once'));
      packet.retain = false;
      const body = typeof packet.payload === 'string' ? Buffer.from(packet.payload) : packet.payload;
      reporting.take(device, body).then(
        () => done(null),
        (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
      );
    },

    // There is nothing to listen to.
    authorizeSubscribe: (_client, _subscription, done) => done(null, null),
  };
}
