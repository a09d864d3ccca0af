/** MQTT for tests, byte by byte: what a device's own library would never send. */
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';

/** MQTT 3.1.1, 1.5.3: text with its length. */
export function text(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]);
}

/** A packet with its length (2.2.3). @param first its type and flags */
export function packet(first: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const head = [first];
  let left = body.length;
  do {
    head.push((left % 128) | (left >= 128 ? 0x80 : 0));
    left = Math.floor(left / 128);
  } while (left > 0);
  return Buffer.concat([Buffer.from(head), body]);
}

export function connectPacket(
  { deviceId, secret }: { deviceId: string; secret: string },
  { will, keepAliveS = 60 }: { will?: { topic: string; message: string }; keepAliveS?: number } = {},
): Buffer {
  const flags = will === undefined ? 0xc2 : 0xce;
  const willParts = will === undefined ? [] : [text(will.topic), text(will.message)];
  const head = Buffer.from([4, flags, keepAliveS >> 8, keepAliveS & 0xff]);
  return packet(0x10, text('MQTT'), head, text(deviceId), ...willParts, text(deviceId), text(secret));
}

/** With QoS 1 unless the flags say otherwise. */
export function publishPacket(topic: string | Buffer, id: number, message: string, first = 0x32): Buffer {
  return packet(first, text(topic), Buffer.from([id >> 8, id & 0xff]), Buffer.from(message));
}

/** A connection to the broker on which nothing was said yet. */
export async function openRaw(port: number): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  socket.on('error', () => {});
  return socket;
}

/** The next bytes that come, so many at least; fewer when the connection ends before. */
export function nextBytes(socket: TLSSocket, least: number): Promise<Buffer> {
  return new Promise((resolve) => {
    let heard = Buffer.alloc(0);
    const done = () => {
      socket.off('data', hear);
      socket.off('close', done);
      resolve(heard);
    };
    const hear = (bytes: Buffer) => {
      heard = Buffer.concat([heard, bytes]);
      if (heard.length >= least) done();
    };
    socket.on('data', hear);
    socket.on('close', done);
    if (socket.destroyed) done();
  });
}
