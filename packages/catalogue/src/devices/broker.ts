/**
 * The MQTT broker (MQTT 3.1.1 over TLS). A device is its credential: user name and client id are its id, the password its
 * secret. It may publish readings to its own topic, and nothing else. A PUBACK leaves once the readings are committed, or
 * once a report that cannot be taken is kept for the owner: a device that is told nothing sends the same again for ever.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import type { RateLimit } from '@farebox/core/http/rate-limit';
import type { Aedes, AedesOptions, Client } from 'aedes';
import { isSecretOf } from './credential.ts';
import { BrokenPacket, PacketQueue } from './packet-queue.ts';
import type { Device, DeviceRegistry } from './registry.ts';
import { MAX_REPORT_BYTES, ReportRefused } from './report.ts';
import type { Pace, Reporting } from './reporting.ts';
import { DEVICE_ID } from './routes.ts';
import { createTurns } from './turns.ts';

/** Beside the report itself a packet has a topic and an id. */
const MAX_PACKET_BYTES = MAX_REPORT_BYTES + 1_024;
/** The time for TLS, and then again for the first packet. */
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
/** The bytes that all connections together may have read and not dealt with yet. Beyond that each has one packet at a time. */
const READ_AHEAD_BYTES = 134_217_728;

/** CONNACK's reasons (MQTT 3.1.1, 3.2.2.3). */
const UNAVAILABLE = 3;
const BAD_CREDENTIALS = 4;

/** How connections end that did nothing wrong, in the words of the library. */
const NO_FAULT = /^(?:keep alive timeout|drain timeout|connection closed|connect did not arrive)/;

export interface BrokerParts {
  registry: Pick<DeviceRegistry, 'find' | 'refused'>;
  reporting: Pick<Reporting, 'takeInTurn'>;
  /** Connections, by address. */
  limit: RateLimit;
  /** Packets of one connection, of whatever kind. */
  packetsPerMinute: number;
  maxConnections: number;
}

/** PEM texts. */
export interface Certificate {
  cert: string;
  key: string;
}

export interface Broker {
  readonly port: number;
  /** How many devices are connected. */
  readonly connected: number;
  /** The devices that are connected, as they were when they came. */
  devices(): Device[];
  /** Presents this certificate to new connections. @throws when it is none, or the key is another's; then the old one stays */
  renew(certificate: Certificate): void;
  /** Ends its connection once the report at hand is dealt with. */
  disconnect(deviceId: string): void;
  close(): Promise<void>;
}

export function topicOf(deviceId: string): string {
  return `devices/${deviceId}/readings`;
}

/** The device of a connection, and how fast it may report. */
interface Session {
  device: Device;
  pace: Pace;
}

/** Opens it. @throws when the port is taken, or the certificate is none */
export async function openBroker(
  at: { host: string; port: number } & Certificate,
  { registry, reporting, ...bounds }: BrokerParts,
): Promise<Broker> {
  const sessions = new WeakMap<Client, Session>();
  /** The broker's own table of clients, which its types do not show. */
  const clients = () => (broker as unknown as { clients: Record<string, Client> }).clients;
  const leave = async (deviceId: string) => {
    const client = clients()[deviceId];
    await queueOf(client)?.finish();
    client?.close();
  };

  const rules = rulesOf({ registry, reporting, leave }, sessions);
  const { Aedes: Library } = await import('aedes');
  await makeNumbersWhenSent();
  const broker = await Library.createBroker(rules);
  broker.on('clientReady', (client) => queueOf(client)?.open());
  broker.on('clientError', (client, error) => {
    const session = sessions.get(client);
    const fault = session === undefined ? null : faultOf(error);
    if (session !== undefined && fault !== null) void registry.refused(session.device, fault).catch(() => {});
  });
  const { server, tls, stopWaiting } = listenerOf(at, broker, bounds);
  server.listen({ port: at.port, host: at.host, backlog: BACKLOG });
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the broker has no port');

  let closing: Promise<void> | null = null;
  async function close() {
    server.close();
    stopWaiting();
    await Promise.all(Object.keys(clients()).map(leave));
    await new Promise<void>((resolve) => broker.close(() => resolve()));
  }
  return {
    port: address.port,
    get connected() {
      return broker.connectedClients;
    },
    devices: () => Object.values(clients()).flatMap((client) => sessions.get(client)?.device ?? []),
    renew: ({ cert, key }) => tls.setSecureContext({ cert, key, minVersion: 'TLSv1.2' }),
    disconnect: (deviceId) => void leave(deviceId),
    close() {
      closing ??= close();
      return closing;
    },
  };
}

function queueOf(client: Client | undefined): PacketQueue | null {
  return client?.conn instanceof PacketQueue ? client.conn : null;
}

/**
 * The library's own library for packets would make a buffer of each number that one can have, 12 MB in all, before it sends its
 * first. A buffer of two bytes is as quickly made as found.
 */
async function makeNumbersWhenSent(): Promise<void> {
  const { writeToStream } = await import('mqtt-packet');
  writeToStream.cacheNumbers = false;
}

/** The fault of a device, where a connection ended for that. What it published wrong was told already. */
function faultOf(error: Error): string | null {
  if (error instanceof BrokenPacket) return `${error.code}: ${error.message}`;
  if (error instanceof Ended || 'code' in error || NO_FAULT.test(error.message)) return null;
  return `PACKET_BROKEN: ${error.message.slice(0, 200)}`;
}

/** Where devices connect, and how those that wait for their turn are ended. */
function listenerOf(
  { cert, key }: Certificate,
  broker: Aedes,
  { limit, maxConnections, packetsPerMinute }: Omit<BrokerParts, 'registry' | 'reporting'>,
): { server: Server; tls: TlsServer; stopWaiting(): void } {
  const readAhead = { bytesLeft: READ_AHEAD_BYTES };
  const tls = createTlsServer(
    { cert, key, minVersion: 'TLSv1.2', handshakeTimeout: HELLO_MS },
    (socket: TLSSocket) => {
      const queue = new PacketQueue(socket, { maxBytes: MAX_PACKET_BYTES, packetsPerMinute, readAhead });
      // It has an error for everything that goes wrong on it; the broker hears of it too.
      queue.on('error', () => {});
      broker.handle(queue);
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
  return { server, tls, stopWaiting: turns.close };
}

/** Ends a connection. What its owner should know of it was noted. */
class Ended extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Ended';
  }
}

interface RuleParts extends Pick<BrokerParts, 'registry' | 'reporting'> {
  /** Ends a device's connection, if it has one, once its report at hand is dealt with. */
  leave(deviceId: string): Promise<void>;
}

/** The rules of who may connect and what they may do. @param sessions filled with who connects */
function rulesOf(
  { registry, reporting, leave }: RuleParts,
  sessions: WeakMap<Client, Session>,
): AedesOptions {
  const keepAlives = new WeakMap<Client, number>();

  /** @returns null when it is not that device, or it was revoked */
  async function deviceOf(name: string | undefined, password: Buffer | undefined): Promise<Device | null> {
    if (name === undefined || password === undefined || !DEVICE_ID.test(name)) return null;
    const device = await registry.find(name);
    if (device === null || device.revokedAtMs !== null) return null;
    if (!isSecretOf(password.toString('latin1'), device.publicKey)) return null;
    // Its earlier connection ends (MQTT 3.1.1, 3.1.4-2), and no acknowledgement is lost with it.
    await leave(device.deviceId);
    return device;
  }

  const publish = publishingOf({ registry, reporting });
  return {
    connectTimeout: HELLO_MS,
    drainTimeout: DRAIN_MS,
    keepaliveLimit: KEEP_ALIVE_LIMIT_S,
    maxClientsIdLength: 64,
    maxTopicLevels: 3,
    // Nobody listens: what the broker tells of itself goes nowhere.
    heartbeatInterval: 3_600_000,

    preConnect(client, { keepalive = 0 }, done) {
      keepAlives.set(client, keepalive * 1_000);
      done(null, true);
    },

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
          const pace = { keepAliveMs: keepAlives.get(client) ?? 0, spentAtMs: performance.now() };
          sessions.set(client, { device, pace });
          done(null, true);
        },
        () => done(Object.assign(new Error('nobody can say'), { returnCode: UNAVAILABLE }), null),
      );
    },

    authorizePublish(client, packet, done) {
      const queue = client === null ? null : queueOf(client);
      // A will is written when its connection begins, so it measured nothing. The library hands it over without a command.
      if (client === null || queue === null || packet.cmd !== 'publish')
        return done(new Ended('a will is no report'));
      publish(sessions.get(client), packet, queue.stopping)
        .then(
          () => done(null),
          (error: unknown) =>
            done(error instanceof Ended ? error : new Ended('it is to be sent again', { cause: error })),
        )
        .finally(() => queue.settled());
    },

    // There is nothing to listen to.
    authorizeSubscribe: (_client, _subscription, done) => done(null, null),
  };
}

/** Handles a published packet: resolved, it is acknowledged; rejected, its connection ends. */
function publishingOf({ registry, reporting }: Pick<RuleParts, 'registry' | 'reporting'>) {
  /** Tells the owner of a device's fault, and ends the connection. A failure to write it down changes nothing for the device. */
  async function endFor(device: Device, code: string, message: string): Promise<never> {
    await registry.refused(device, `${code}: ${message}`).catch(() => {});
    throw new Ended(message);
  }

  return async (
    session: Session | undefined,
    packet: {
      topic: string;
      qos: number;
      messageId?: number | undefined;
      retain: boolean;
      payload: string | Buffer;
    },
    stopping: AbortSignal,
  ): Promise<void> => {
    if (session === undefined) throw new Ended('nobody has connected');
    const { device, pace } = session;
    // MQTT 3.1.1, 2.3.1-1: nothing could acknowledge it.
    if (packet.qos > 0 && packet.messageId === 0)
      await endFor(device, 'PACKET_BROKEN', 'The id of a packet is not 0.');
    if (packet.topic !== topicOf(device.deviceId))
      await endFor(
        device,
        'TOPIC_WRONG',
        `A device publishes to its own topic, ${topicOf(device.deviceId)}.`,
      );
    if (packet.qos === 2)
      await endFor(device, 'QOS_2', 'QoS 2 is not offered. Use QoS 1: what is sent again is stored once.');
    packet.retain = false;
    const body = typeof packet.payload === 'string' ? Buffer.from(packet.payload) : packet.payload;
    try {
      await reporting.takeInTurn(device, body, pace, stopping);
    } catch (error) {
      throw error instanceof ReportRefused ? new Ended(error.message, { cause: error }) : error;
    }
  };
}
